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

The parts do not overlap, so their results can be merged by log-sum-exp.

Documents are laid out in another way: their positions are sorted by document, unless they already
are, and each document is a separate square. So are dilated windows, ``documents(i % d) & window(…)``.
The blocks of an image under ``neighbourhood(…)`` are too, each with the box of keys that it sees.
The cheapest layout is chosen by what a kernel call and a pair cost (``cost_of``).

The rectangle covers the whole sequence, or a *region* of it if the sequence is sharded.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from regard.masks.extent import Bools, Extent, Integers, TiledAxis
from regard.masks.grid_patterns import Neighbourhood
from regard.masks.id_table import aligned
from regard.masks.mask import NONE, SOME, Both, Constant, Mask
from regard.masks.pair_patterns import Documents
from regard.masks.patterns import OneAxis, causal
from regard.masks.tiles import count_pairs, tile_rows

TILE = 64
"""Side of a tile. 32 and 128 are within 10 % of its speed; it fits short windows better than 128."""

MAX_TILE_ROWS = 512
"""The most queries in one row tile after joining neighbours."""

MAX_TILE_PAIRS = 1 << 21
"""The most pairs in one joined row tile, so that its mask takes at most 8 MB."""

MAX_WASTE = 1.12
"""Neighbouring row tiles are joined as long as that multiplies the computed pairs by at most this factor."""

BLOCK_SIDES = (1, 2, 4, 8, 16, 32, 64)
"""Sides of the blocks into which a grid may be divided."""

CALL_PAIRS = 5000
"""A kernel call's cost apart from its pairs, in pairs. Like the next three, measured on one thread for 8
heads of 64 channels, by ``benchmarks/cost_constants.py``, and rounded."""

MASKED_PAIR = 0.15
"""What evaluating the mask adds to the cost of a pair."""

GATHERED_POSITION = 50
"""What sorting one position costs, in pairs: its query and output, or its key and value, are copied once."""

COPIED_KEY = 10
"""What copying a key and its value from a short run costs, in pairs. Shuffled keys are further apart."""

MAX_SCATTERED = 3
"""The greatest number of scattered patterns to split by; each one can double the number of classes."""

CAUSAL = causal()

Run = tuple[int, int]


class Region(NamedTuple):
    """The consecutive queries and keys that the tensors hold, as indices into the whole sequence."""

    queries: range
    keys: range

    @classmethod
    def whole(cls, extent: Extent) -> Region:
        """All queries and keys."""
        return cls(range(extent.queries), range(extent.keys))

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.queries) * len(self.keys)

    def query_positions(self, extent: Extent) -> Integers:
        """Absolute positions of its queries."""
        return np.arange(self.queries.start, self.queries.stop) + extent.offset

    def key_positions(self) -> Integers:
        """Absolute positions of its keys."""
        return np.arange(self.keys.start, self.keys.stop)


@dataclass(frozen=True)
class RowTile:
    """Queries ``start:stop`` of a part, and the ranges of its keys that they may see."""

    start: int
    stop: int
    runs: tuple[Run, ...]
    mixed: tuple[Run, ...]  # where within the runs the mask must still be evaluated
    causal: bool = False  # a square in which a kernel's built-in causal mask does that

    @property
    def width(self) -> int:
        """The number of keys in all runs."""
        return sum(stop - start for start, stop in self.runs)

    @property
    def pairs(self) -> int:
        """The number of pairs of its queries and keys."""
        return (self.stop - self.start) * self.width

    @cached_property
    def key_index(self) -> Integers:
        """The keys of all runs, one by one."""
        return np.concatenate([np.arange(start, stop) for start, stop in self.runs])

    @property
    def computed(self) -> int:
        """The number of computed pairs: a built-in causal mask skips its empty half."""
        return (self.pairs + self.width) // 2 if self.causal else self.pairs

    def column(self, key: int) -> int:
        """The column of a key when the runs are laid side by side."""
        before = 0
        for start, stop in self.runs:
            if key < stop:
                return before + key - start
            before += stop - start
        return before


@dataclass(frozen=True, eq=False)
class MaskPart:
    """Some queries and keys of a region, and what remains of the mask between them."""

    queries: Integers | None  # sorted indices in the region, unless reordered; None for all of them
    keys: Integers | None
    mask: Mask
    rows: tuple[RowTile, ...]
    region: Region
    reordered: bool = False  # queries are sorted by document or by block of a grid, each with separate rows

    @cached_property
    def _steps(self) -> dict[tuple[str, int, int], slice | None]:
        return {}

    def regular(self, axis: Literal["queries", "keys"], start: int, stop: int) -> slice | None:
        """The chosen positions ``start:stop`` as a slice of the region; None if their distances differ.

        A slice is a view, and anything else a copy. The residue classes of a dilated window are slices.
        """
        name = (axis, start, stop)
        if name not in self._steps:
            chosen = self.queries if axis == "queries" else self.keys
            assert chosen is not None
            self._steps[name] = _as_slice(chosen[start:stop])
        return self._steps[name]

    def query_positions(self, extent: Extent) -> Integers:
        """Absolute positions of the part's queries."""
        if self.queries is None:
            return self.region.query_positions(extent)
        return self.queries + (self.region.queries.start + extent.offset)

    def key_positions(self) -> Integers:
        """Absolute positions of the part's keys."""
        return self.region.key_positions() if self.keys is None else self.keys + self.region.keys.start

    def mask_values(self, row: RowTile, extent: Extent) -> Iterator[tuple[slice, Bools]]:
        """The columns of a row tile where the mask must be evaluated, and its values there.

        Columns count along the runs laid side by side. The values ``(..., query, key)`` broadcast;
        everything outside these columns is allowed.
        """
        q = self.query_positions(extent)[row.start : row.stop]
        k = self.key_positions()
        if len(row.runs) > 1 and row.mixed == row.runs:  # all at once: every evaluation has a fixed cost
            yield slice(0, row.width), self.mask.evaluate(extent, q, k[row.key_index])
            return
        for start, stop in row.mixed:
            column = row.column(start)
            yield slice(column, column + stop - start), self.mask.evaluate(extent, q, k[start:stop])

    def table(self, row: RowTile, extent: Extent) -> Bools:
        """Which keys the rows of a tile may see, ``(..., query, key)``, keys side by side."""
        found = np.ones((*self.mask.lead, row.stop - row.start, row.width), np.bool_)
        for columns, allowed in self.mask_values(row, extent):
            found[..., columns] = allowed
        return found

    def tile_key(self, row: RowTile, extent: Extent) -> Hashable:
        """A key that is equal for tiles with equal masks, or None if the tile is like no other."""
        if self.mask.shifts and self.queries is None and self.keys is None:
            first = row.start + self.region.queries.start + extent.offset - self.region.keys.start
            return self.mask, row.stop - row.start, tuple((a - first, b - first) for a, b in row.runs)
        if not self.mask.shifts and len(row.runs) == 1:
            return None
        rows = slice(row.start, row.stop)
        q = np.arange(row.start, row.stop) if self.queries is None else self.queries[rows]
        q = q + (self.region.queries.start + extent.offset)
        k = np.arange(*row.runs[0]) if len(row.runs) == 1 else row.key_index
        k = (k if self.keys is None else self.keys[k]) + self.region.keys.start
        if self.mask.shifts:
            return self.mask, *((positions - q[:1]).tobytes() for positions in (q, k))
        key = self.mask.tile_key(q, k)
        return None if key is None else (self.mask, key)

    def allowed(self, extent: Extent) -> int:
        """The exact number of pairs that the mask allows."""
        if self.reordered:
            return sum(self._allowed_in(row, extent) for row in self.rows)
        return count_pairs(
            self.mask, self.query_positions(extent), self.key_positions(), extent, tile=2 * TILE
        )

    def _allowed_in(self, row: RowTile, extent: Extent) -> int:
        if row.causal:
            return row.computed
        height = row.stop - row.start
        total = height * (row.width - sum(stop - start for start, stop in row.mixed))
        for columns, allowed in self.mask_values(row, extent):
            total += int(np.broadcast_to(allowed, (height, columns.stop - columns.start)).sum())
        return total


def lay_out(
    mask: Mask,
    extent: Extent,
    region: Region | None = None,
    *,
    max_rows: int = MAX_TILE_ROWS,
    squares: bool = False,
) -> tuple[MaskPart, ...]:
    """The parts of a mask without leading axes, in row tiles of at most ``max_rows`` rows after joining.

    ``squares`` allows one square for each document, or each block of a grid, if that is cheaper.
    """
    region = Region.whole(extent) if region is None else region
    if not region.pairs:
        return ()
    layouts = [_in_order(mask, extent, region, max_rows)]
    if squares:
        reordered = (_by_document(mask, extent, region, max_rows), _by_block(mask, extent, region))
        layouts += ((part,) for part in reordered if part is not None)
    return min(layouts, key=cost_of)  # the first of equals


def cost_of(parts: tuple[MaskPart, ...]) -> int:
    """What computing the parts costs, in pairs without a mask."""
    total = 0.0
    for part in parts:
        for row in part.rows:
            asked = 0 if row.causal else sum(stop - start for start, stop in row.mixed)
            total += CALL_PAIRS + row.computed + MASKED_PAIR * asked * (row.stop - row.start)
            total += COPIED_KEY * row.width * (len(row.runs) > 1)
        moved = [index for index in (part.queries, part.keys) if index is not None]
        total += GATHERED_POSITION * sum(map(len, moved))
    return int(total)


def _in_order(mask: Mask, extent: Extent, region: Region, max_rows: int) -> tuple[MaskPart, ...]:
    """Parts with their positions in order."""
    parts = []
    for queries, keys, rest in _split(mask, extent, region):
        part = MaskPart(queries, keys, rest, (), region)
        places = (part.query_positions(extent), part.key_positions())
        rows = tuple(_row_tiles(rest, *places, extent, max_rows))
        if rows:
            parts.append(replace(part, rows=rows))
    return tuple(parts)


def one_tile(
    mask: Mask, region: Region, run: Run | None = None, *, masked: bool = True
) -> tuple[MaskPart, ...]:
    """A single part with a single row tile, for masks that one kernel call handles best.

    ``run`` is the range of keys, all by default; ``masked`` says that the mask forbids some of them.
    """
    run = (0, len(region.keys)) if run is None else run
    checked = (run,) if masked and mask != Constant(True) else ()
    return (MaskPart(None, None, mask, (RowTile(0, len(region.queries), (run,), checked),), region),)


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


def _by_document(mask: Mask, extent: Extent, region: Region, max_rows: int) -> MaskPart | None:
    """One part with its positions sorted by document; None if the mask does not keep documents apart."""
    factors = mask.parts if isinstance(mask, Both) else (mask,)
    documents = next((one for one in factors if isinstance(one, Documents)), None)
    if documents is None:
        return None
    rest = mask.substitute({documents: True})
    positions = (region.query_positions(extent), region.key_positions())
    labels = _labels(documents, extent, *positions)
    queries, keys = map(_order, labels)
    sorted_labels = [x if order is None else x[order] for x, order in zip(labels, (queries, keys))]
    q, k = (x if order is None else x[order] for x, order in zip(positions, (queries, keys)))
    count = int(max(x.max() for x in labels)) + 1
    edges = [np.searchsorted(x, np.arange(count + 1)).tolist() for x in sorted_labels]
    rows: list[RowTile] = []
    for (a, b), (c, d) in zip(pairwise(edges[0]), pairwise(edges[1])):
        if a == b or c == d:
            continue
        if rest == Constant(True):
            rows.append(RowTile(a, b, ((c, d),), ()))
        elif rest == CAUSAL and np.array_equal(q[a:b], k[c:d]):
            rows.append(RowTile(a, b, ((c, d),), ((c, d),), causal=True))
        else:
            rows += (_moved(row, a, c) for row in _row_tiles(rest, q[a:b], k[c:d], extent, max_rows))
    joined = _join_documents(rows) if rest in (Constant(True), CAUSAL) else rows
    # Rows of one document need only what remains of the mask; joined ones need all of it.
    return MaskPart(
        queries, keys, rest if len(joined) == len(rows) else mask, tuple(joined), region, reordered=True
    )


def _by_block(mask: Mask, extent: Extent, region: Region) -> MaskPart | None:
    """One part with its queries sorted by blocks of a grid; None unless queries see only neighbours there."""
    factors = mask.parts if isinstance(mask, Both) else (mask,)
    near = next((one for one in factors if isinstance(one, Neighbourhood) and not one.transposed), None)
    if near is None or region != Region.whole(extent):
        return None
    block = _block_shape(near)
    positions = region.query_positions(extent)
    coordinates = near.coordinates(positions)
    blocks = [along // size for along, size in zip(coordinates, block)]
    labels = np.ravel_multi_index(blocks, [-(-a // b) for a, b in zip(near.shape, block)])
    order = np.argsort(labels, kind="stable")
    edges = [0, *(np.flatnonzero(np.diff(labels[order])) + 1).tolist(), len(order)]
    centres = near.centres(coordinates)
    rows = []
    for start, stop in pairwise(edges):
        inside = [along[order[start:stop]] for along in centres]
        box = [
            range(max(0, int(along.min()) - reach), min(size, int(along.max()) + reach + 1))
            for along, reach, size in zip(inside, near.radius, near.shape)
        ]
        row = _box_row(mask, positions[order[start:stop]], start, box, near.shape, extent)
        if row is not None:
            rows.append(row)
    return MaskPart(order, None, mask, tuple(rows), region, reordered=True) if rows else None


def _block_shape(near: Neighbourhood) -> tuple[int, ...]:
    """The block of queries of the least cost; a block and the keys that it sees make one kernel call."""

    def cost(block: tuple[int, ...]) -> float:
        calls = prod(-(-size // own) for size, own in zip(near.shape, block))
        keys = prod(min(size, own + 2 * reach) for size, own, reach in zip(near.shape, block, near.radius))
        return calls * (CALL_PAIRS + (1 + MASKED_PAIR) * prod(block) * keys + COPIED_KEY * keys)

    sides = [sorted({min(side, size) for side in BLOCK_SIDES}) for size in near.shape]
    blocks = [block for block in product(*sides) if prod(block) <= MAX_TILE_ROWS]
    return min(blocks or [tuple(min(side) for side in sides)], key=cost)


def _box_row(
    mask: Mask, q: Integers, start: int, box: list[range], shape: tuple[int, ...], extent: Extent
) -> RowTile | None:
    """The row tile of some queries that see keys in a box of a grid; None if they see none."""
    lines = np.zeros(1, np.int64)
    for along, size in zip(box[:-1], shape):
        lines = (lines[:, None] * size + np.asarray(along)).reshape(-1)
    firsts = lines * shape[-1] + box[-1].start
    runs = _union(tuple((int(first), int(first) + len(box[-1])) for first in firsts))
    keys = TiledAxis(
        np.concatenate([np.arange(*run) for run in runs]),
        np.cumsum([0, *(b - a for a, b in runs[:-1])]),
    )
    seen = mask.tiles(TiledAxis(q, np.zeros(1, np.int64)), keys, extent)[0]
    chosen = tuple(run for run, verdict in zip(runs, seen) if verdict != NONE)
    if not chosen:
        return None
    checked = chosen if (seen == SOME).any() else ()
    return RowTile(start, start + len(q), chosen, checked)


def _labels(documents: Documents, extent: Extent, q: Integers, k: Integers) -> tuple[Integers, Integers]:
    """The documents of queries and keys, numbered in the order in which they begin."""
    tables = ((documents.key_ids, k), (documents.query_ids, q))
    ids = np.concatenate([table.values[aligned(where, table, extent)] for table, where in tables])
    _, first, which = np.unique(ids, return_index=True, return_inverse=True)
    labels = np.argsort(np.argsort(first))[which.reshape(-1)]
    return labels[len(k) :], labels[: len(k)]


def _as_slice(positions: Integers) -> slice | None:
    """Positions with equal, positive distances as a slice; None for all others."""
    first, last = int(positions[0]), int(positions[-1])
    step = int(positions[1]) - first if len(positions) > 1 else 1
    if step < 1 or (len(positions) > 2 and (np.diff(positions) != step).any()):
        return None
    return slice(first, last + 1, step)


def _order(labels: Integers) -> Integers | None:
    """The order that sorts the labels, stable within each; None if they are sorted already."""
    return None if (labels[1:] >= labels[:-1]).all() else np.argsort(labels, kind="stable")


def _moved(row: RowTile, queries: int, keys: int) -> RowTile:
    runs, mixed = (tuple((a + keys, b + keys) for a, b in some) for some in (row.runs, row.mixed))
    return RowTile(row.start + queries, row.stop + queries, runs, mixed)


def _join_documents(rows: list[RowTile]) -> list[RowTile]:
    """Neighbouring squares joined where separate calls would cost more than the pairs they save."""
    joined: list[RowTile] = []
    for row in rows:
        if joined and joined[-1].stop == row.start and joined[-1].runs[0][1] == row.runs[0][0]:
            before = joined[-1]
            run = (before.runs[0][0], row.runs[0][1])
            both = RowTile(before.start, row.stop, (run,), (run,))
            if (1 + MASKED_PAIR) * both.pairs < CALL_PAIRS + before.computed + row.computed:
                joined[-1] = both
                continue
        joined.append(row)
    return joined


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


def _row_tiles(mask: Mask, q: Integers, k: Integers, extent: Extent, max_rows: int) -> Iterator[RowTile]:
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
        return RowTile(upper.start, lower.stop, upper.runs, _union(upper.mixed + lower.mixed))
    if len(upper.runs) > 1 or len(lower.runs) > 1:
        return None
    (a, b), (c, d) = upper.runs[0], lower.runs[0]
    # Where only one of them sees a key, the mask must be evaluated for both.
    ends = ((min(a, c), max(a, c)), (min(b, d), max(b, d)))
    runs = ((min(a, c), max(b, d)),)
    joined = RowTile(upper.start, lower.stop, runs, _union(upper.mixed + lower.mixed + ends))
    return joined if joined.pairs <= MAX_TILE_PAIRS else None


def _union(ranges: tuple[Run, ...]) -> tuple[Run, ...]:
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
