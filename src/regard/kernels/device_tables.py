"""Indices and masks of all tiles of a call on another device than the CPU, sent in a single copy.

    Inputs, HeadGroups → one array of bytes on the device → views of it, tile by tile

Masks are evaluated on the CPU. Sending them tile by tile would make the device wait for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.kernels.inputs import Inputs
from regard.kernels.mask_parts import MaskPart, RowTile

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
    >>> ((columns, allowed),) = tables.mask_values(part, part.rows[0])
    >>> allowed.shape == (part.rows[0].stop, part.rows[0].width)
    True
    """

    def __init__(self, inputs: Inputs, tiles: Mapping[MaskPart, Iterable[RowTile]]) -> None:
        self._extent, self._device = inputs.extent, inputs.q.device
        self._places: dict[Hashable, ArraySlice] = {}
        self._hidden_rows: set[Hashable] = set()  # blocks with a row that sees nothing there
        self._stop = 0
        arrays: list[NDArray[Any]] = []
        for part, rows in tiles.items():
            for name, make in self._arrays(part, rows):
                if name not in self._places:
                    arrays.append(make())
                    self._places[name] = self._next(arrays[-1])
        self._bytes = sent(self._joined(arrays), self._device) if arrays else torch.empty(0)
        self._all_positions = cache(self._new_positions)

    def queries(self, part: MaskPart) -> Tensor | None:
        """The chosen queries of a part; None for all."""
        return None if part.queries is None else self._found((part, "queries"))

    def keys(self, part: MaskPart) -> Tensor | None:
        """The chosen keys of a part; None for all."""
        return None if part.keys is None else self._found((part, "keys"))

    def positions(self, part: MaskPart, row: RowTile) -> tuple[Tensor, Tensor]:
        """The positions of the queries and of the keys of a row tile."""
        q, k = self._all_positions(part)
        one_run = len(row.runs) == 1
        return q[row.start : row.stop], k[slice(*row.runs[0])] if one_run else k[self.key_index(part, row)]

    def key_index(self, part: MaskPart, row: RowTile) -> Tensor:
        """The keys of a row tile of several runs, one by one."""
        return self._found((part, row.runs))

    def mask_values(self, part: MaskPart, row: RowTile) -> Iterator[tuple[slice, Tensor]]:
        """What ``part.questions`` yields, on the device: columns, and which of them each row may see."""
        for columns, block in _blocks(row):
            yield columns, self._found(self._name(part, block))

    def all_see(self, part: MaskPart, row: RowTile) -> bool:
        """Whether every row of a tile is known to see a key; known without asking the device."""
        unasked = row.width > sum(stop - start for start, stop in row.mixed)
        return unasked or any(self._name(part, block) not in self._hidden_rows for _, block in _blocks(row))

    # ---- one array -----------------------------------------------------------------------------

    def _name(self, part: MaskPart, block: RowTile) -> Hashable:
        """Blocks with equal masks, as those along the diagonal of a window, share a name."""
        key = part.tile_key(block, self._extent)
        return (part, block.start, block.stop, block.runs) if key is None else key

    def _arrays(
        self, part: MaskPart, rows: Iterable[RowTile]
    ) -> Iterator[tuple[Hashable, Callable[[], NDArray[Any]]]]:
        """The name of each array, and what makes it."""
        for name, chosen in (("queries", part.queries), ("keys", part.keys)):
            if chosen is not None:
                yield (part, name), partial(np.asarray, chosen)
        for row in rows:
            if len(row.runs) > 1:
                yield (part, row.runs), partial(np.asarray, row.key_index)
            for _, block in () if row.causal else _blocks(row):
                yield self._name(part, block), partial(self._allowed, part, block)

    def _allowed(self, part: MaskPart, block: RowTile) -> NDArray[np.bool_]:
        ((_, allowed),) = part.mask_values(block, self._extent)
        if not allowed.any(-1).all():
            self._hidden_rows.add(self._name(part, block))
        return allowed

    def _new_positions(self, part: MaskPart) -> tuple[Tensor, Tensor]:
        """The positions of all queries and keys of a part, counted on the device."""
        both = (part.region.queries, self.queries(part), self._extent.offset), (
            part.region.keys, self.keys(part), 0
        )  # fmt: skip
        q, k = (
            torch.arange(own.start + first, own.stop + first, device=self._device)
            if chosen is None
            else chosen + (own.start + first)
            for own, chosen, first in both
        )
        return q, k

    def _next(self, array: NDArray[Any]) -> ArraySlice:
        """The place after all others."""
        start = -(-self._stop // ALIGNED) * ALIGNED
        self._stop = start + array.nbytes
        dtype = torch.bool if array.dtype == np.bool_ else torch.int64
        return ArraySlice(start, self._stop, array.shape, dtype)

    def _joined(self, arrays: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
        whole = np.zeros(self._stop, np.uint8)
        for place, array in zip(self._places.values(), arrays):
            whole[place.start : place.stop] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return whole

    def _found(self, name: Hashable) -> Tensor:
        place = self._places[name]
        return self._bytes[place.start : place.stop].view(place.dtype).view(place.shape)


def _blocks(row: RowTile) -> Iterator[tuple[slice, RowTile]]:
    """The columns of a row tile where its mask must be evaluated, each with a tile of only these keys.

    Under a causal mask that is the end of the row, which looks the same in every tile, however long it is.
    """
    if len(row.runs) > 1 and row.mixed == row.runs:
        yield slice(0, row.width), row
        return
    for start, stop in row.mixed:
        column = row.column(start)
        yield (
            slice(column, column + stop - start),
            replace(row, runs=((start, stop),), mixed=((start, stop),)),
        )


def sent(array: NDArray[np.uint8], device: torch.device) -> Tensor:
    """The bytes on the device."""
    return torch.from_numpy(array).to(device, non_blocking=True)
