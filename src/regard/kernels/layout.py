"""How the pairs that a mask allows are divided into kernel calls.

    Mask, Extent, Region → MaskParts, each with its RowTiles

A rectangle of queries × keys is split into *parts*, and each part into *row tiles*: a few
consecutive queries with the ranges of keys that they may see.

Most masks need one part. Scattered positions (``every(64)``, ragged padding) are different:
they touch every tile, so no tile is empty. In that case the queries and keys are first grouped
into classes that such a pattern treats alike. Within a class the pattern is constant, the rest of
the mask simplifies, and the class is gathered into a separate part::

    local_global(64)  =  the queries at 64, 128, … see every key        →  part 1
                         the others see the keys at 64, 128, …          →  part 2
                         the others see the other keys by window(64, 64) →  part 3

The parts do not overlap, so their results can be merged by log-sum-exp. Here positions keep their order;
``sorted_layouts.py`` has the layouts of documents and of images, whose positions are sorted.

The rectangle covers the whole sequence, or a *region* of it if the sequence is sharded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from regard.kernels.mask_parts import TILE, MaskPart, Region, RowTile, Run
from regard.masks.extent import Bools, Extent, Integers, TiledAxis
from regard.masks.mask import NONE, SOME, Constant, Mask
from regard.masks.patterns import OneAxis
from regard.masks.tiles import tile_rows

MAX_TILE_ROWS = 512
"""The most queries in one row tile after joining neighbours."""

MAX_TILE_PAIRS = 1 << 21
"""The most pairs in one joined row tile, so that its mask takes at most 8 MB."""

MAX_WASTE = 1.12
"""Neighbouring row tiles are joined as long as that multiplies the computed pairs by at most this factor."""

MAX_SCATTERED = 3
"""The greatest number of scattered patterns to split by; each one can double the number of classes."""


def lay_out(
    mask: Mask, extent: Extent, region: Region | None = None, *, max_rows: int = MAX_TILE_ROWS
) -> tuple[MaskPart, ...]:
    """The parts of a mask without leading axes, in row tiles of at most ``max_rows`` rows after joining."""
    region = Region.whole(extent) if region is None else region
    if not region.pairs:
        return ()
    parts = []
    for queries, keys, rest in _split(mask, extent, region):
        part = MaskPart(queries, keys, rest, (), region)
        places = (part.query_positions(extent), part.key_positions())
        rows = tuple(row_tiles(rest, *places, extent, max_rows))
        if rows:
            parts.append(replace(part, rows=rows))
    return tuple(parts)


# ---- parts -----------------------------------------------------------------------------------


def _split(
    mask: Mask, extent: Extent, region: Region
) -> Iterator[tuple[Integers | None, Integers | None, Mask]]:
    """Classes of queries × classes of keys, with what remains of the mask; None means all."""
    by_query = _classes(mask, extent, region.query_positions(extent), transposed=True)
    by_key = _classes(mask, extent, region.key_positions(), transposed=False)
    for queries, known_of_queries in by_query:
        rest_of_row = mask.substitute(known_of_queries)
        # Merge the key classes that the rest of the mask treats alike.
        together: dict[Mask, list[Integers | None]] = {}
        for keys, known_of_keys in by_key:
            rest = rest_of_row.substitute(known_of_keys)
            if rest != Constant(False):
                together.setdefault(rest, []).append(keys)
        for rest, classes in together.items():
            everything = len(classes) == len(by_key)
            indices = [keys for keys in classes if keys is not None]
            yield queries, None if everything else np.sort(np.concatenate(indices)), rest


def _classes(
    mask: Mask, extent: Extent, positions: Integers, *, transposed: bool
) -> list[tuple[Integers | None, dict[Mask, bool]]]:
    """Positions of one axis, grouped by the values of the scattered patterns there."""
    scattered: dict[OneAxis, Bools] = {}
    for pattern in mask.patterns():
        if isinstance(pattern, OneAxis) and pattern.transposed == transposed and pattern not in scattered:
            truth = pattern.along(positions, extent)
            if _is_scattered(truth):
                scattered[pattern] = truth
    if not 0 < len(scattered) <= MAX_SCATTERED:
        return [(None, {})]
    table = np.stack(list(scattered.values()), axis=1)
    kinds, kind_of = np.unique(table, axis=0, return_inverse=True)
    return [
        (np.flatnonzero(kind_of.reshape(-1) == number), dict(zip(scattered, map(bool, kind))))
        for number, kind in enumerate(kinds)
    ]


def _is_scattered(truth: Bools) -> bool:
    """Whether skipping empty tiles would not help, because most tiles are mixed."""
    if len(truth) <= TILE:
        return False
    least, greatest = TiledAxis.cut(np.arange(len(truth)), TILE).span(truth)
    return bool((least != greatest).mean() > 0.25)


# ---- row tiles -------------------------------------------------------------------------------


def row_tiles(mask: Mask, q: Integers, k: Integers, extent: Extent, max_rows: int) -> Iterator[RowTile]:
    """Row tiles in order, with neighbours joined if that wastes little."""
    if mask == Constant(True):
        yield RowTile(0, len(q), ((0, len(k)),), ())
        return
    current: RowTile | None = None
    needed = 0  # pairs that the joined tiles had before joining
    for tile in _narrow_row_tiles(mask, q, k, extent):
        joined = None if current is None else _join(current, tile, max_rows)
        if joined is not None and joined.pairs <= MAX_WASTE * (needed + tile.pairs):
            current, needed = joined, needed + tile.pairs
            continue
        if current is not None:
            yield current
        current, needed = tile, tile.pairs
    if current is not None:
        yield current


def _narrow_row_tiles(mask: Mask, q: Integers, k: Integers, extent: Extent) -> Iterator[RowTile]:
    rows, columns = TiledAxis.cut(q, TILE), TiledAxis.cut(k, TILE)
    for stack in tile_rows(mask, rows, columns, extent):
        starts, stops = columns.starts[stack.columns], columns.stops[stack.columns]
        for row, line in zip(stack.rows, stack.verdicts):
            runs = _runs(line != NONE, starts, stops)
            if runs:
                yield RowTile(
                    int(rows.starts[row]), int(rows.stops[row]), runs, _runs(line == SOME, starts, stops)
                )


def _runs(chosen: Bools, starts: Integers, stops: Integers) -> tuple[Run, ...]:
    """The chosen tiles as ranges of keys, neighbours joined."""
    tiles = np.flatnonzero(chosen)
    if not len(tiles):
        return ()
    breaks = np.flatnonzero(stops[tiles[:-1]] != starts[tiles[1:]]) + 1
    edges = [0, *breaks.tolist(), len(tiles)]
    return tuple((int(starts[tiles[a]]), int(stops[tiles[b - 1]])) for a, b in pairwise(edges))


def _join(upper: RowTile, lower: RowTile, max_rows: int) -> RowTile | None:
    """Two row tiles joined, or None if they are not adjacent or would grow too large."""
    if upper.stop != lower.start or lower.stop - upper.start > max_rows:
        return None
    if upper.runs == lower.runs:
        return RowTile(upper.start, lower.stop, upper.runs, union(upper.mixed + lower.mixed))
    if len(upper.runs) > 1 or len(lower.runs) > 1:
        return None
    (a, b), (c, d) = upper.runs[0], lower.runs[0]
    # Where only one of them sees a key, the mask must be evaluated for both.
    ends = ((min(a, c), max(a, c)), (min(b, d), max(b, d)))
    runs = ((min(a, c), max(b, d)),)
    joined = RowTile(upper.start, lower.stop, runs, union(upper.mixed + lower.mixed + ends))
    return joined if joined.pairs <= MAX_TILE_PAIRS else None


def union(ranges: tuple[Run, ...]) -> tuple[Run, ...]:
    """Ranges in order, with overlapping and adjacent ones joined and empty ones dropped."""
    joined: list[Run] = []
    for start, stop in sorted(ranges):
        if start == stop:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return tuple(joined)
