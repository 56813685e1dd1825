"""Indices and masks of all tiles of a call on another device than the CPU, sent in a single copy.

    Inputs, HeadGroups → one array of bytes on the device → views of it, tile by tile

Masks are evaluated on the CPU. Sending them tile by tile would make the device wait for each of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.kernels.inputs import Inputs
from regard.kernels.layout import MaskPart, RowTile

ALIGNED = 8
"""Arrays begin at multiples of this many bytes, so that bytes can be read as int64."""


class ArraySlice(NamedTuple):
    """Where an array is among the bytes."""

    start: int
    stop: int
    shape: tuple[int, ...]
    dtype: torch.dtype


class DeviceTables:
    """What the tiles of some parts need on a device: positions, indices, and what each row may see.

    >>> import regard
    >>> from regard.kernels.inputs import prepare
    >>> q = torch.zeros(1, 300, 8)
    >>> inputs = prepare(q, q, q, mask=regard.masks.window(3, 0))
    >>> (part,) = regard.plan(inputs.mask, 300).elements[0].parts
    >>> tables = DeviceTables(inputs, {part: part.rows})
    >>> tables.allowed(part, part.rows[0]).shape == (part.rows[0].stop, part.rows[0].width)
    True
    """

    def __init__(self, inputs: Inputs, tiles: Mapping[MaskPart, Sequence[RowTile]]) -> None:
        self._inputs = inputs
        self._places: dict[Hashable, ArraySlice] = {}
        self._blind: set[Hashable] = set()  # tiles with a row that sees nothing
        self._stop = 0
        arrays: list[NDArray[Any]] = []
        for part, rows in tiles.items():
            for name, array in self._arrays(part, rows):
                if name not in self._places:
                    start = -(-self._stop // ALIGNED) * ALIGNED
                    self._stop = start + array.nbytes
                    dtype = torch.bool if array.dtype == np.bool_ else torch.int64
                    self._places[name] = ArraySlice(start, self._stop, array.shape, dtype)
                    arrays.append(array)
        self._bytes = sent(self._joined(arrays), inputs.q.device)

    def queries(self, part: MaskPart) -> Tensor | None:
        """The chosen queries of a part; None for all."""
        return None if part.queries is None else self._found((part, "queries"))

    def keys(self, part: MaskPart) -> Tensor | None:
        """The chosen keys of a part; None for all."""
        return None if part.keys is None else self._found((part, "keys"))

    def positions(self, part: MaskPart, row: RowTile) -> tuple[Tensor, Tensor]:
        """The positions of the queries and of the keys of a row tile."""
        q = self._found((part, "query positions"))[row.start : row.stop]
        k = self._found((part, "key positions"))
        return q, k[slice(*row.runs[0])] if len(row.runs) == 1 else k[self.key_index(part, row)]

    def key_index(self, part: MaskPart, row: RowTile) -> Tensor:
        """The keys of a row tile of several runs, one by one."""
        return self._found((part, row.runs))

    def allowed(self, part: MaskPart, row: RowTile) -> Tensor:
        """Which keys the rows of a tile may see, ``(..., query, key)`` with the leading axes of the mask."""
        return self._found(self._name(part, row))

    def all_see(self, part: MaskPart, row: RowTile) -> bool:
        """Whether every row of a tile sees a key; known without asking the device."""
        return self._name(part, row) not in self._blind

    # ---- one array -----------------------------------------------------------------------------

    def _name(self, part: MaskPart, row: RowTile) -> Hashable:
        """Tiles with equal masks, as those of a window, share a name."""
        key = part.tile_key(row, self._inputs.extent)
        return (part, row.start, row.stop, row.runs) if key is None else key

    def _arrays(self, part: MaskPart, rows: Sequence[RowTile]) -> Iterator[tuple[Hashable, NDArray[Any]]]:
        extent = self._inputs.extent
        if part.queries is not None:
            yield (part, "queries"), part.queries
        if part.keys is not None:
            yield (part, "keys"), part.keys
        if self._inputs.bias is not None:
            yield (part, "query positions"), part.query_positions(extent)
            yield (part, "key positions"), part.key_positions()
        for row in rows:
            if len(row.runs) > 1:
                yield (part, row.runs), row.key_index
            if row.checked and not row.causal:
                name, allowed = self._name(part, row), part.table(row, extent)
                if not allowed.any(-1).all():
                    self._blind.add(name)
                yield name, allowed

    def _joined(self, arrays: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
        whole = np.zeros(self._stop, np.uint8)
        for place, array in zip(self._places.values(), arrays):
            whole[place.start : place.stop] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return whole

    def _found(self, name: Hashable) -> Tensor:
        place = self._places[name]
        return self._bytes[place.start : place.stop].view(place.dtype).view(place.shape)


def sent(array: NDArray[np.uint8], device: torch.device) -> Tensor:
    """The bytes on the device."""
    return torch.from_numpy(array).to(device, non_blocking=True)
