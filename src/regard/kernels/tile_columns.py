"""The columns of a row tile as arrays for the compiled pass: positions, and what each row may see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from regard.kernels.layout import MaskPart, RowTile
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


class PartColumns:
    """The columns of every row tile of a part, computed once for all heads."""

    def __init__(self, part: MaskPart, extent: Extent, lead: tuple[int, ...]) -> None:
        self._part, self._extent, self._lead = part, extent, lead
        self._query_positions = part.query_positions(extent)
        self._key_positions = part.key_positions()
        self._kept: dict[tuple[int, int], TileColumns] = {}
        self._tables = 0

    def of(self, tile: RowTile) -> TileColumns:
        """The columns of a tile. Two threads may compute the same ones; either result will do."""
        name = (tile.start, tile.stop)
        found = self._kept.get(name)
        if found is None:
            found = self._new(tile)
            size = 0 if found.allowed is None else found.allowed.nbytes
            if not size or self._tables + size <= MAX_KEPT_TABLES:
                self._tables += size
                self._kept[name] = found
        return found

    def _new(self, tile: RowTile) -> TileColumns:
        rows = slice(tile.start, tile.stop)
        own = self._query_positions[rows]
        keys = np.concatenate([self._key_positions[start:stop] for start, stop in tile.runs])
        part = self._part
        starts, stops, allowed = self._visible(tile)
        return TileColumns(
            np.arange(tile.start, tile.stop) if part.queries is None else part.queries[rows].copy(),
            (own - keys[0]).astype(np.float32),
            (keys - keys[0]).astype(np.float32),
            keys,
            np.stack([_columns_of(positions, keys) for positions in (own, own - 1, np.zeros_like(own))]),
            starts,
            stops,
            allowed,
        )

    def _visible(self, tile: RowTile) -> tuple[Integers, Integers, NDArray[np.uint8] | None]:
        """Each row's first visible column, the one after its last, and a table if there are gaps between."""
        rows = tile.stop - tile.start
        blocks = [
            (columns, np.broadcast_to(allowed, (*allowed.shape[:-2], rows, columns.stop - columns.start)))
            for columns, allowed in self._part.questions(tile, self._extent)
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


def _columns_of(positions: Integers, keys: Integers) -> Integers:
    """The column of the key at each position, −1 if there is no such key; the keys are sorted."""
    column = np.searchsorted(keys, positions).clip(max=len(keys) - 1)
    return np.where(keys[column] == positions, column, -1)
