"""A mask as intervals of keys for each query: what the page carries in place of truth values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.masks import Mask
from regard.masks.extent import Extent
from regard.masks.mask import Constant

CHUNK_PAIRS = 1 << 24
"""Truth values in memory at a time."""


class Intervals(NamedTuple):
    """Query i sees the keys ``start … stop − 1`` of ``bounds[first[i] : first[i + 1]]``."""

    first: NDArray[np.uint32]  # (queries + 1,)
    bounds: NDArray[np.uint32]  # (intervals, 2)


def intervals(mask: Mask, extent: Extent) -> Intervals | None:
    """The intervals of a mask without ``lead``, or None where every query sees every key.

    >>> from regard import masks
    >>> found = intervals(masks.causal() & ~masks.every(2), Extent(4, 4))
    >>> found.first, found.bounds.tolist()
    (array([0, 0, 1, 2, 4], dtype=uint32), [[1, 2], [1, 2], [1, 2], [3, 4]])
    """
    if mask == Constant(True):
        return None
    step = max(1, CHUNK_PAIRS // max(1, extent.keys))
    counts, bounds = [], []
    for start in range(0, extent.queries, step):
        q = np.arange(start, min(start + step, extent.queries)) + extent.offset
        allowed = np.broadcast_to(mask.evaluate(extent, q), (len(q), extent.keys))
        edges = np.zeros((len(q), extent.keys + 1), np.bool_)
        edges[:, 0] = allowed[:, 0] if extent.keys else False
        edges[:, 1:-1] = allowed[:, 1:] != allowed[:, :-1]
        if extent.keys:
            edges[:, -1] = allowed[:, -1]
        rows, columns = np.nonzero(edges)
        bounds.append(columns.reshape(-1, 2))  # each row opens as many intervals as it closes
        counts.append(np.bincount(rows[::2], minlength=len(q)))
    every = np.concatenate([np.zeros(1, np.int64), *counts])
    found = np.concatenate([np.zeros((0, 2), np.int64), *bounds])
    if len(found) == extent.queries and (found == (0, extent.keys)).all():
        return None
    return Intervals(np.cumsum(every).astype(np.uint32), found.astype(np.uint32))
