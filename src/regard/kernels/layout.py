"""How the pairs that a mask allows are cut into calls of a kernel.

A rectangle of queries × keys becomes *parts*, and each part becomes *row tiles*: a few
neighbouring queries with the ranges of keys that they may see.

Most masks make one part. Scattered positions (``every(64)``, a ragged padding) are different:
they touch every tile, so that no tile is empty. There the queries and keys are first sorted into
classes that such a pattern treats alike. Within a class the pattern is a constant, the rest of
the mask simplifies, and the class is gathered into a part of its own::

    local_global(64)  =  the queries at 64, 128, … see every key        →  part 1
                         the others see the keys at 64, 128, …          →  part 2
                         the others see the other keys by window(64, 64) →  part 3

The parts do not overlap, so their results add up by log-sum-exp.

The rectangle is the whole text, or a *region* of it where one process holds only a share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from regard.masks.extent import Bools, Extent, Integers, Strip
from regard.masks.mask import NONE, SOME, Constant, Mask
from regard.masks.patterns import OneAxis
from regard.masks.tiles import count_pairs, tile_rows

TILE = 64
"""Side of a tile. 32 and 128 measure within a tenth of it; it fits short windows better than 128."""

MAX_TILE_ROWS = 512
"""Queries of one row tile after neighbours were joined."""

MAX_TILE_PAIRS = 1 << 21
"""Pairs of one joined row tile: what its mask takes in memory stays at 8 MB."""

MAX_WASTE = 1.12
"""Neighbouring row tiles are joined while that computes at most this many times the pairs."""

MAX_SCATTERED = 3
"""Scattered patterns that are split by; each doubles the number of classes at worst."""

Run = tuple[int, int]


class Region(NamedTuple):
    """Which of all queries and keys the tensors hold: neighbours, counted from the first of all."""

    queries: range
    keys: range

    @classmethod
    def whole(cls, extent: Extent) -> Region:
        """All of them."""
        return cls(range(extent.queries), range(extent.keys))

    @property
    def pairs(self) -> int:
        """How many pairs it has."""
        return len(self.queries) * len(self.keys)

    def query_positions(self, extent: Extent) -> Integers:
        """Absolute positions of its queries."""
        return np.arange(self.queries.start, self.queries.stop) + extent.offset

    def key_positions(self) -> Integers:
        """Absolute positions of its keys."""
        return np.arange(self.keys.start, self.keys.stop)


@dataclass(frozen=True)
class RowTile:
    """Queries ``start:stop`` of a part, and the runs of its keys that they may see."""

    start: int
    stop: int
    runs: tuple[Run, ...]
    checked: tuple[Run, ...]  # where inside the runs the mask must still be asked

    @property
    def width(self) -> int:
        """How many keys the runs hold."""
        return sum(stop - start for start, stop in self.runs)

    @property
    def pairs(self) -> int:
        """How many pairs are computed."""
        return (self.stop - self.start) * self.width

    def column(self, key: int) -> int:
        """Where a key of the runs stands when they are laid side by side."""
        before = 0
        for start, stop in self.runs:
            if key < stop:
                return before + key - start
            before += stop - start
        return before


@dataclass(frozen=True, eq=False)
class MaskPart:
    """Some queries and keys of a region, and what is left of the mask between them."""

    queries: Integers | None  # indices in the region, in order; None: all of them
    keys: Integers | None
    mask: Mask
    rows: tuple[RowTile, ...]
    region: Region

    def query_positions(self, extent: Extent) -> Integers:
        """Absolute positions of the part's queries."""
        if self.queries is None:
            return self.region.query_positions(extent)
        return self.queries + (self.region.queries.start + extent.offset)

    def key_positions(self) -> Integers:
        """Absolute positions of the part's keys."""
        return self.region.key_positions() if self.keys is None else self.keys + self.region.keys.start

    def questions(self, row: RowTile, extent: Extent) -> Iterator[tuple[slice, Bools]]:
        """Where the mask must still be asked in a row tile, and its answers.

        Columns count along the runs laid side by side. The answers ``(..., query, key)`` broadcast;
        everything outside these columns is allowed.
        """
        q = self.query_positions(extent)[row.start : row.stop]
        k = self.key_positions()
        for start, stop in row.checked:
            column = row.column(start)
            yield slice(column, column + stop - start), self.mask.evaluate(extent, q, k[start:stop])

    def allowed(self, extent: Extent) -> int:
        """How many of its pairs the mask allows, exactly."""
        return count_pairs(
            self.mask, self.query_positions(extent), self.key_positions(), extent, tile=2 * TILE
        )


def lay_out(
    mask: Mask, extent: Extent, region: Region | None = None, *, max_rows: int = MAX_TILE_ROWS
) -> tuple[MaskPart, ...]:
    """The parts of a mask without leading axes, cut into row tiles of at most ``max_rows`` joined rows."""
    region = Region.whole(extent) if region is None else region
    if not region.pairs:
        return ()
    parts = []
    for queries, keys, rest in _split(mask, extent, region):
        part = MaskPart(queries, keys, rest, (), region)
        places = (part.query_positions(extent), part.key_positions())
        rows = tuple(_row_tiles(rest, *places, extent, max_rows))
        if rows:
            parts.append(replace(part, rows=rows))
    return tuple(parts)


def one_tile(mask: Mask, region: Region) -> tuple[MaskPart, ...]:
    """A single part with a single row tile, for what one call of the kernel does best."""
    whole = ((0, len(region.keys)),)
    checked = () if mask == Constant(True) else whole
    return (MaskPart(None, None, mask, (RowTile(0, len(region.queries), whole, checked),), region),)


# ---- parts -----------------------------------------------------------------------------------


def _split(
    mask: Mask, extent: Extent, region: Region
) -> Iterator[tuple[Integers | None, Integers | None, Mask]]:
    """Classes of queries × classes of keys, with what is left of the mask; None stands for all."""
    by_query = _classes(mask, extent, region.query_positions(extent), transposed=True)
    by_key = _classes(mask, extent, region.key_positions(), transposed=False)
    for queries, known_of_queries in by_query:
        rest_of_row = mask.substitute(known_of_queries)
        # Key classes that the rest of the mask treats alike become one again.
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
    """Positions of one axis, sorted by what the scattered patterns say of them."""
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
    """Whether so many tiles are mixed that leaving out whole tiles would not help."""
    if len(truth) <= TILE:
        return False
    least, greatest = Strip.cut(np.arange(len(truth)), TILE).span(truth)
    return bool((least != greatest).mean() > 0.25)


# ---- row tiles -------------------------------------------------------------------------------


def _row_tiles(mask: Mask, q: Integers, k: Integers, extent: Extent, max_rows: int) -> Iterator[RowTile]:
    """Row tiles in order, with neighbours joined where that wastes little."""
    if mask == Constant(True):
        yield RowTile(0, len(q), ((0, len(k)),), ())
        return
    current: RowTile | None = None
    needed = 0  # pairs of the tiles joined so far, before joining
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
    rows, columns = Strip.cut(q, TILE), Strip.cut(k, TILE)
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
    """Two neighbouring row tiles as one, unless they lie apart or grow too large."""
    if upper.stop != lower.start or lower.stop - upper.start > max_rows:
        return None
    if upper.runs == lower.runs:
        return RowTile(upper.start, lower.stop, upper.runs, _union(upper.checked + lower.checked))
    if len(upper.runs) > 1 or len(lower.runs) > 1:
        return None
    (a, b), (c, d) = upper.runs[0], lower.runs[0]
    # What only one of them sees must be asked of the other.
    ends = ((min(a, c), max(a, c)), (min(b, d), max(b, d)))
    runs = ((min(a, c), max(b, d)),)
    joined = RowTile(upper.start, lower.stop, runs, _union(upper.checked + lower.checked + ends))
    return joined if joined.pairs <= MAX_TILE_PAIRS else None


def _union(ranges: tuple[Run, ...]) -> tuple[Run, ...]:
    """Ranges in order, overlapping and touching ones joined, empty ones left out."""
    joined: list[Run] = []
    for start, stop in sorted(ranges):
        if start == stop:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return tuple(joined)
