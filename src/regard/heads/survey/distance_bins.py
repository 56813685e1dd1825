"""How weight falls with distance: sums over all pairs of one distance, far ones in growing bins.

The distance of a pair is ``key − query``: negative behind the query, positive ahead of it. Distances below
16 have bins of their own; beyond, four bins to a doubling.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.masks.extent import Integers

NEAR = 16
PER_DOUBLING = 4
DOUBLINGS = 20
"""Beyond NEAR · 2^20 everything is in the last bin: sixteen million tokens."""


@cache
def edges() -> Integers:
    """Where the bins of ``|distance|`` begin: 0, 1, …, 15, then in steps that grow.

    >>> edges()[15:22].tolist()
    [15, 16, 20, 23, 27, 32, 39]
    """
    far = np.ceil(NEAR * 2.0 ** (np.arange(PER_DOUBLING * DOUBLINGS) / PER_DOUBLING))
    return np.unique(np.concatenate([np.arange(NEAR), far])).astype(np.int64)


def count() -> int:
    """How many bins there are, both sides together."""
    return 2 * len(edges()) - 1


def bin_of(distance: Integers) -> Integers:
    """The bin of each distance, from the furthest behind to the furthest ahead.

    >>> middle = count() // 2
    >>> (bin_of(np.array([-17, -1, 0, 1, 16, 17, 30])) - middle).tolist()
    [-16, -1, 0, 1, 16, 16, 19]
    """
    size = np.searchsorted(edges(), np.abs(distance), side="right") - 1
    found: Integers = len(edges()) - 1 + np.sign(distance) * size
    return found


def ranges() -> list[tuple[int, int]]:
    """The first and last distance of every bin; the outermost ones have no end."""
    stops = [*(int(edge) - 1 for edge in edges()[1:]), np.iinfo(np.int64).max]
    ahead = [(int(start), stop) for start, stop in zip(edges(), stops)]
    return [(-stop, -start) for start, stop in reversed(ahead[1:])] + ahead


def by_distance(sums: Tensor, first_query: int) -> Tensor:
    """Sums ``(head, query, key)`` added up over pairs of one distance, ``(head, bin)`` in float64.

    >>> by_distance(torch.ones(1, 3, 3), 0)[0, count() // 2 - 2 : count() // 2 + 3].tolist()
    [1.0, 2.0, 3.0, 2.0, 1.0]
    """
    heads, queries, keys = sums.shape
    # Turned upside down and padded by one row's length, every row of the flattened table begins one
    # place later than the row above, so that pairs of one distance are in one column.
    width = keys + queries
    flat = F.pad(sums.flip(1), (0, queries)).reshape(heads, queries * width)
    columns = flat[:, : queries * (width - 1)].view(heads, queries, width - 1).double().sum(1)
    distance = np.arange(width - 1) - (queries - 1) - first_query
    index = torch.from_numpy(bin_of(distance)).to(sums.device)
    return columns.new_zeros(heads, count()).index_add_(1, index, columns)
