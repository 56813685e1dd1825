"""Every coarser level of a matrix from one pass over its rows: sums, maxima, and the margins.

At level z a cell represents ``2^z × 2^z`` pairs. Fine levels are computed tile by tile on request,
which is cheap; from ``base_level`` on, cells are kept. Only a few rows of weights are in memory at a
time; coarser levels are sums and maxima of four cells of the level below, so they are exact.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.threads import each, spread
from regard.views.map.head_matrix import HeadMatrix

LEAST_BASE = 3
"""The finest level that is ever kept: below, a tile is at most 1024 × 1024 pairs, a few milliseconds."""

MOST_CELLS = 1 << 24
"""Cells of the finest level that is kept, at most: 64 MB in float32."""

CHUNK_WEIGHTS = 1 << 20
"""Weights in memory at a time: 4 MB in float32, so that they stay in the cache of the processor."""


STRETCHES = 32
"""The most groups of rows that are computed in parallel."""

PER_WEIGHT = 128
"""About how many multiplications a weight costs: its score, the exponential and the sums."""


class _Progress:
    """Reports how many of all rows are done, one thread at a time."""

    def __init__(self, rows: int, report: Callable[[float], None]) -> None:
        self._rows, self._report = rows, report
        self._done, self._lock = 0, threading.Lock()

    def add(self, rows: int) -> None:
        with self._lock:
            self._done += rows
            self._report(self._done / self._rows)


@dataclass(frozen=True, eq=False)
class Levels:
    """What one pass found: ``sums[z − base]`` and ``maxima[z − base]`` for the kept levels, and margins.

    Of another quantity than weights, ``maxima`` are the numbers furthest from 0, NaN where all are masked.
    The margins are about weights.
    """

    base: int
    sums: tuple[Tensor, ...]  # (row, column) of cells
    maxima: tuple[Tensor, ...]
    received: Tensor  # (key,): Σ_i w_ij
    entropy: Tensor  # (query,): −Σ_j w_ij log w_ij, in nats
    greatest: float = 1.0  # the greatest size of the quantity; weights have that of 1

    @property
    def nbytes(self) -> int:
        """Memory held."""
        held = (*self.sums, *self.maxima, self.received, self.entropy)
        return sum(tensor.numel() * tensor.element_size() for tensor in held)


def base_level(matrix: HeadMatrix) -> int:
    """The finest level that is kept."""
    base = LEAST_BASE
    while math.ceil(matrix.queries / 2**base) * math.ceil(matrix.keys / 2**base) > MOST_CELLS:
        base += 1
    return base


@torch.no_grad()
def build(matrix: HeadMatrix, report: Callable[[float], None] = lambda share: None) -> Levels:
    """All kept levels and the margins, in one pass.

    ``report`` is called every few rows with the share that is done; the pass ends if it raises.
    """
    base = base_level(matrix)
    step = 2**base
    shape = math.ceil(matrix.queries / step), math.ceil(matrix.keys / step)
    keeps = matrix.coarsest >= base
    sums, maxima = (torch.zeros(shape if keeps else (0, 0)) for _ in range(2))
    weighs = matrix.what == "weight"
    if not weighs:
        maxima.fill_(torch.nan)
    sizes = [1.0] if weighs else [0.0]
    received, entropy = torch.zeros(matrix.keys, dtype=torch.float64), torch.zeros(matrix.queries)
    height = max(1, CHUNK_WEIGHTS // max(1, matrix.keys * step)) * step
    progress = _Progress(matrix.queries, report)

    def stretch(tops: range) -> Tensor:
        """Some rows, a few at a time; what they gave to each key."""
        own = torch.zeros_like(received)
        for top in tops:
            rows = slice(top, min(top + height, matrix.queries))
            columns = matrix.reach(rows)
            if columns.start < columns.stop:
                weights, entropy[rows], given = matrix.weighted(rows, columns)
                own[columns] += given
                values = None if matrix.what == "weight" else matrix.values(rows, columns)
                if keeps:
                    # Where a row sees is found in whole tiles, so this begins at a cell.
                    at = (
                        slice(top // step, -(-rows.stop // step)),
                        slice(columns.start // step, -(-columns.stop // step)),
                    )
                    if values is None:
                        sums[at], maxima[at] = in_blocks(weights, step)
                    else:
                        sums[at], maxima[at] = signed_in_blocks(values, step)
                if values is not None:
                    sizes.append(float(values.abs().nan_to_num(0.0).max()))
            progress.add(rows.stop - rows.start)
        return own

    tops = range(0, matrix.queries, height)
    apart = max(1, -(-len(tops) // STRETCHES))
    stretches = [tops[start : start + apart] for start in range(0, len(tops), apart)]
    size = matrix.queries * matrix.keys * PER_WEIGHT
    for own in spread(lambda: each(stretch, stretches), size):
        received += own
    # Rounding may give slightly less than 0 where one key takes everything.
    return Levels(
        base,
        *_coarser(sums, maxima, matrix.coarsest - base, in_blocks if weighs else signed_in_blocks),
        received.float(),
        entropy.clamp_(min=0),
        max(sizes),
    )


def in_blocks(weights: Tensor, step: int) -> tuple[Tensor, Tensor]:
    """Sums and maxima of blocks of ``step × step`` weights, in float32; those at the ends may be smaller.

    >>> sums, maxima = in_blocks(torch.arange(6.0).reshape(2, 3), 2)
    >>> sums, maxima
    (tensor([[8., 7.]]), tensor([[4., 5.]]))
    """
    if step == 1:
        return weights.float(), weights.float()
    rows, columns = weights.shape
    # Weights are never negative, so that zeros change neither a sum nor a maximum.
    if rows % step or columns % step:
        weights = F.pad(weights, (0, -columns % step, 0, -rows % step))
    tall = weights.unflatten(0, (-1, step))
    # Rows first: whole lines are added at the speed of memory, and what is left is small.
    return (
        tall.sum(1).unflatten(1, (-1, step)).sum(-1).float(),
        tall.amax(1).unflatten(1, (-1, step)).amax(-1).float(),
    )


def signed_in_blocks(values: Tensor, step: int) -> tuple[Tensor, Tensor]:
    """Sums of blocks of ``step × step`` numbers, and of each block the number furthest from 0; NaN if none.

    >>> signed_in_blocks(torch.tensor([[1.0, -3.0, torch.nan], [2.0, torch.nan, torch.nan]]), 2)
    (tensor([[0., 0.]]), tensor([[-3., nan]]))
    """
    if step == 1:
        return values.nan_to_num(0.0).float(), values.float()
    rows, columns = values.shape
    padded = F.pad(values, (0, -columns % step, 0, -rows % step), value=torch.nan)
    blocks = padded.unflatten(1, (-1, step)).unflatten(0, (-1, step))  # (down, step, across, step)
    empty = blocks.isnan()
    highest = blocks.masked_fill(empty, -torch.inf).amax((1, 3))
    lowest = blocks.masked_fill(empty, torch.inf).amin((1, 3))
    furthest = torch.where(highest >= -lowest, highest, lowest).masked_fill(highest == -torch.inf, torch.nan)
    return blocks.nan_to_num(0.0).sum((1, 3)).float(), furthest.float()


def _coarser(
    sums: Tensor, maxima: Tensor, more: int, blocks: Callable[[Tensor, int], tuple[Tensor, Tensor]]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The level and all above it."""
    if more < 0:
        return (), ()
    found = [(sums, maxima)]
    for _ in range(more):
        last_sums, last_maxima = found[-1]
        found.append((in_blocks(last_sums, 2)[0], blocks(last_maxima, 2)[1]))
    return tuple(one for one, _ in found), tuple(one for _, one in found)
