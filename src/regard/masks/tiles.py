"""Which tiles of a mask are not empty, found without visiting n×n pairs.

The rectangle is first evaluated in coarse blocks; only the blocks that are not empty are evaluated
again in fine tiles. For a window this takes O(n) work, and never more than O(tiles).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from regard.masks.extent import Extent, Integers, Pairs, TiledAxis
from regard.masks.mask import ALL, NONE, SOME, Mask, Verdicts

COARSE = 32
"""Fine tiles along each side of a coarse block."""

DISTANCES = 1 << 20
"""How many distances are evaluated at once."""


class TileRows(NamedTuple):
    """Consecutive tile rows, with the tile columns in which any of them may be allowed."""

    rows: Integers
    columns: Integers
    verdicts: Verdicts  # (rows, columns)


def tile_rows(mask: Mask, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Iterator[TileRows]:
    """The verdicts on all tiles that are not known to be empty, a stack of rows at a time."""
    if not len(rows) or not len(columns):
        return
    coarse_columns = _coarser(columns)
    for first in range(0, len(rows), COARSE):
        picked = np.arange(first, min(first + COARSE, len(rows)))
        stack = rows.pick(picked)
        block = TiledAxis(stack.positions, np.zeros(1, np.int64))
        alive = mask.tiles(block, coarse_columns, extent)[0] != NONE
        chosen = np.flatnonzero(np.repeat(alive, COARSE)[: len(columns)])
        if len(chosen):
            # Usually the chosen tiles are all of them or one run; pick() handles any selection.
            held = columns if len(chosen) == len(columns) else columns.pick(chosen)
            yield TileRows(picked, chosen, mask.tiles(stack, held, extent))


def _coarser(axis: TiledAxis) -> TiledAxis:
    return TiledAxis(axis.positions, axis.starts[::COARSE])


def count_by_distance(mask: Mask, extent: Extent) -> int:
    """The exact number of pairs that a mask allows if only the distance matters (``mask.shifts``).

    It evaluates one pair per distance, so a million positions take only a moment.

    >>> from regard import masks
    >>> count_by_distance(masks.causal(), Extent(1 << 20, 1 << 20)) == (1 << 19) * ((1 << 20) + 1)
    True
    """
    nearest, furthest = 1 - extent.keys, extent.keys - 1 - extent.offset
    total = 0
    for start in range(nearest, furthest + 1, DISTANCES):
        distances = np.arange(start, min(start + DISTANCES, furthest + 1))
        allowed = mask.allows(Pairs(extent, np.zeros_like(distances), distances))
        first = np.maximum(extent.offset, -distances)
        last = np.minimum(extent.keys, extent.keys - distances)  # of the queries with a key at this distance
        total += int((last - first)[allowed].sum())
    return total


def count_pairs(mask: Mask, q: Integers, k: Integers, extent: Extent, *, tile: int) -> int:
    """The exact number of pairs of the given positions that the mask allows.

    Tiles that are ALL or NONE are counted whole; only the others are evaluated.
    """
    rows, columns = TiledAxis.cut(q, tile), TiledAxis.cut(k, tile)
    heights, widths = rows.stops - rows.starts, columns.stops - columns.starts
    total = 0
    for stack in tile_rows(mask, rows, columns, extent):
        areas = heights[stack.rows][:, None] * widths[stack.columns]
        total += int(areas[stack.verdicts == ALL].sum())
        for row, found in zip(stack.rows, stack.verdicts == SOME):
            if found.any():
                keys = columns.pick(stack.columns[found]).positions
                queries = q[rows.starts[row] : rows.stops[row]]
                allowed = mask.evaluate(extent, queries, keys)
                total += int(np.broadcast_to(allowed, (len(queries), len(keys))).sum())
    return total
