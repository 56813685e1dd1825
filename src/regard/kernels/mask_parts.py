"""The parts of a mask, their row tiles, and what computing them costs.

    RowTile: some queries, and the runs of keys they see    MaskPart: some queries and keys, in RowTiles

Both are values: ``layout.py`` and ``sorted_layouts.py`` make them, ``planner.py`` chooses among them by their
cost, and the kernels run them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from regard.masks.extent import Bools, Extent, Integers
from regard.masks.mask import Constant, Mask
from regard.masks.tiles import count_pairs

TILE = 64
"""Side of a tile. 32 and 128 are within 10 % of its speed; it fits short windows better than 128."""

CALL_PAIRS = 5000
"""A kernel call's cost apart from its pairs, in pairs. Like the next three, measured on one thread for 8
heads of 64 channels, by ``benchmarks/cost_constants.py``, and rounded."""

MASKED_PAIR = 0.15
"""What evaluating the mask adds to the cost of a pair."""

GATHERED_POSITION = 50
"""What sorting one position costs, in pairs: its query and output, or its key and value, are copied once."""

COPIED_KEY = 10
"""What copying a key and its value from a short run costs, in pairs. Shuffled keys are further apart."""

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

    def split(self, rows: int) -> Iterator[RowTile]:
        """The same pairs in tiles of at most this many rows."""
        for start in range(self.start, self.stop, rows):
            yield replace(self, start=start, stop=min(start + rows, self.stop))

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
    def _slices(self) -> dict[tuple[str, int, int], slice | None]:
        return {}

    def as_slice(self, axis: Literal["queries", "keys"], start: int, stop: int) -> slice | None:
        """The chosen positions ``start:stop`` as a slice of the region; None if their distances differ.

        A slice is a view, and anything else a copy. The residue classes of a dilated window are slices.
        """
        name = (axis, start, stop)
        if name not in self._slices:
            chosen = self.queries if axis == "queries" else self.keys
            assert chosen is not None
            self._slices[name] = slice_of(chosen[start:stop])
        return self._slices[name]

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


def slice_of(positions: Integers) -> slice | None:
    """Positions with equal, positive distances as a slice; None for all others."""
    first, last = int(positions[0]), int(positions[-1])
    step = int(positions[1]) - first if len(positions) > 1 else 1
    if step < 1 or (len(positions) > 2 and (np.diff(positions) != step).any()):
        return None
    return slice(first, last + 1, step)


def one_tile(
    mask: Mask, region: Region, run: Run | None = None, *, masked: bool = True
) -> tuple[MaskPart, ...]:
    """A single part with a single row tile, for masks that one kernel call handles best.

    ``run`` is the range of keys, all by default; ``masked`` says that the mask forbids some of them.
    """
    run = (0, len(region.keys)) if run is None else run
    checked = (run,) if masked and mask != Constant(True) else ()
    return (MaskPart(None, None, mask, (RowTile(0, len(region.queries), (run,), checked),), region),)


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
