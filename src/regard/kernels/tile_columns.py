"""The columns of a row tile as arrays for the compiled pass: positions, and what each row may see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from regard.kernels.mask_parts import MaskPart, RowTile
from regard.kernels.tile_pass import flatten_lead
from regard.masks.extent import Bools, Extent, Integers

MAX_KEPT_TABLES = 1 << 25
"""The most bytes of mask tables that a part keeps, so that all heads can use them."""


@dataclass(frozen=True, eq=False)
class TileColumns:
    """The columns of one row tile; ranges and table have axes (batch or 1, head or 1, row, ...)."""

    queries: Integers  # (row): indices among all queries
    query_places: NDArray[np.float32]  # (row): positions relative to the first key, exact up to 2^24
    key_places: NDArray[np.float32]  # (column)
    key_positions: Integers  # (column): positions in the sequence
    special_columns: Integers  # (3, row): of the own, the previous and the first key; −1 for none
    starts: Integers  # the columns that a row sees are among starts … stops
    stops: Integers
    allowed: NDArray[np.uint8] | None  # which of these columns it sees; None for all

    @cached_property
    def addresses(self) -> dict[str, int]:
        """Where each array is in memory; asking NumPy takes a microsecond."""
        arrays = {name: array for name, array in vars(self).items() if isinstance(array, np.ndarray)}
        assert all(array.flags.c_contiguous for array in arrays.values())
        return {name: array.ctypes.data for name, array in arrays.items()}


class PartColumns:
    """The columns of every row tile of a part, computed once for all heads."""

    def __init__(self, part: MaskPart, extent: Extent, lead: tuple[int, ...]) -> None:
        self._part, self._extent, self._lead = part, extent, lead
        self._query_positions = part.query_positions(extent)
        self._key_positions = part.key_positions()
        self._first = int(self._key_positions[0])
        self._key_places = (self._key_positions - self._first).astype(np.float32)
        self._kept: dict[tuple[int, int], TileColumns] = {}
        self._tables = 0

    def of(self, tile: RowTile) -> TileColumns:
        """The columns of a tile. Two threads may compute the same ones; either result will do."""
        name = (tile.start, tile.stop)
        found = self._kept.get(name)
        if found is None:
            found = self._new(tile)
            if found.allowed is None:
                self._kept[name] = found
            elif self._tables + found.allowed.nbytes <= MAX_KEPT_TABLES:
                self._tables += found.allowed.nbytes
                self._kept[name] = found
        return found

    def forget_tables(self) -> None:
        """Keep only what is small, after all heads have been computed."""
        for name in [name for name, found in self._kept.items() if found.allowed is not None]:
            self._kept.pop(name, None)
        self._tables = 0

    def _new(self, tile: RowTile) -> TileColumns:
        rows = slice(tile.start, tile.stop)
        own, keys = self._query_positions[rows], _side_by_side(self._key_positions, tile)
        chosen = self._part.queries
        return TileColumns(
            np.arange(tile.start, tile.stop) if chosen is None else chosen[rows],
            (own - self._first).astype(np.float32),
            _side_by_side(self._key_places, tile),
            keys,
            np.stack([_columns_of(positions, keys) for positions in (own, own - 1, np.zeros_like(own))]),
            *self._visible(tile),
        )

    def _visible(self, tile: RowTile) -> tuple[Integers, Integers, NDArray[np.uint8] | None]:
        """Each row's first visible column, the one after its last, and a table if there are gaps between."""
        rows = tile.stop - tile.start
        blocks = [
            (columns, np.broadcast_to(allowed, (*allowed.shape[:-2], rows, columns.stop - columns.start)))
            for columns, allowed in self._part.mask_values(tile, self._extent)
        ]
        starts, stops, counts = _ranges(blocks, rows, tile.width)
        table = None
        if (counts < stops - starts).any():
            whole = np.ones((*starts.shape, tile.width), np.bool_)
            for columns, allowed in blocks:
                whole[..., columns] = allowed
            table = self._flat(whole).view(np.uint8)
        return self._flat(starts[..., None])[..., 0], self._flat(stops[..., None])[..., 0], table

    def _flat(self, x: NDArray) -> NDArray:
        """The leading axes of the user's tensors as (batch or 1, head or 1)."""
        flat: NDArray = flatten_lead(torch.from_numpy(x), self._lead).contiguous().numpy()
        return flat


def columns_of(part: MaskPart, extent: Extent, lead: tuple[int, ...]) -> PartColumns:
    """The columns of a part; cached, because every layer needs the same, unless its mask holds tables."""
    tables = any(pattern.table_lengths() for pattern in part.mask.patterns())
    return (PartColumns if tables else _cached_columns)(part, extent, lead)


_cached_columns = lru_cache(maxsize=16)(PartColumns)


def _ranges(blocks: list[tuple[slice, Bools]], rows: int, width: int) -> tuple[Integers, Integers, Integers]:
    """First column, column after the last, and number of visible columns of each row ``(..., row)``.

    Columns outside the blocks are all visible. A row that sees nothing has the range 0 … 0.
    """
    lead = np.broadcast_shapes(*(allowed.shape[:-2] for _, allowed in blocks))
    starts, stops, counts = (np.full((*lead, rows), number) for number in (width, 0, 0))
    done = 0
    for columns, allowed in [*blocks, (slice(width, width), None)]:
        if columns.start > done:
            starts = np.minimum(starts, done)
            stops = np.full_like(stops, columns.start)
            counts = counts + (columns.start - done)
        if allowed is not None:
            any_seen = allowed.any(-1)
            last = columns.stop - allowed[..., ::-1].argmax(-1)
            starts = np.where(any_seen, np.minimum(starts, columns.start + allowed.argmax(-1)), starts)
            stops = np.where(any_seen, last, stops)
            counts = counts + allowed.sum(-1)
        done = columns.stop
    return np.where(counts > 0, starts, 0), stops, counts


def _side_by_side(x: NDArray, tile: RowTile) -> NDArray:
    """The entries of a tile's keys: a view if they are one run."""
    runs = [x[start:stop] for start, stop in tile.runs]
    return runs[0] if len(runs) == 1 else np.concatenate(runs)


def _columns_of(positions: Integers, keys: Integers) -> Integers:
    """The column of the key at each position, −1 if no key is there; the keys are sorted."""
    column = np.searchsorted(keys, positions).clip(max=len(keys) - 1)
    return np.where(keys[column] == positions, column, -1)
