"""One part of a plan for statistics: its tensors, its rows in tiles, and the product of queries and keys.

    Inputs, HeadGroup, MaskPart → StatisticsPass → Totals

What is done with the scores of a tile is left to subclasses: in torch (``statistics_torch.py``) or in one
compiled pass per row (``statistics_compiled.py``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from itertools import accumulate
from typing import ClassVar

import torch
from torch import Tensor

from regard.kernels.device_tables import DeviceTables
from regard.kernels.inputs import Inputs
from regard.kernels.mask_parts import MaskPart, RowTile
from regard.kernels.statistics_totals import Totals
from regard.kernels.tile_pass import HeadGroup, PartTensors, flatten_lead

MAX_ROWS = 128
"""The most rows computed at once, however short they are."""

MASKED_SCORE = -1e30
"""The score of a masked pair: finite, so that 0 · score is 0 and not NaN."""

LOG2_E = math.log2(math.e)
"""Scores are kept in bits, so that a weight is a power of 2."""


class ScoreBuffer:
    """Memory for scores, which stretches take in turns.

    Under a causal mask every tile is wider than the one before. Memory that grew with it would be new, and
    mapped page by page, for every tile, which took a fifth of the time.
    """

    def __init__(self) -> None:
        self._free: list[list[Tensor]] = []  # append and pop are atomic, so threads need no lock

    @contextmanager
    def taken(self, like: Tensor, sizes: tuple[int, ...]) -> Iterator[list[Tensor]]:
        """Memory of at least these sizes, for one thread."""
        try:
            store = self._free.pop()
        except IndexError:
            store = [like.new_empty(0) for _ in sizes]
        for number, size in enumerate(sizes):
            if store[number].numel() < size:
                store[number] = like.new_empty(size)
        yield store
        self._free.append(store)


class StatisticsPass(PartTensors, ABC):
    """The statistics of one part for one head group: its tensors, and the totals to add to."""

    max_scores: ClassVar[int]  # the most scores that a thread holds at once
    split_scores: ClassVar[int]  # heads are split if a tile has more; a lower number means more calls

    def __init__(
        self,
        inputs: Inputs,
        head_group: HeadGroup,
        part: MaskPart,
        totals: Totals,
        *,
        lse_known: bool,
        scratch: ScoreBuffer,
        tables: DeviceTables | None = None,
    ) -> None:
        super().__init__(inputs.q, inputs.k, head_group, part, inputs.extent, tables)
        self.inputs, self.totals, self.scratch = inputs, totals, scratch
        self.lse_known = lse_known  # whether the lse and the output have been computed already
        wide = totals.lse.dtype
        k = self.of_keys(inputs.k).to(wide)
        self.batch, self.key_head_count = k.shape[:2]
        # Keys as columns: the product is a quarter faster than with a transposed view. Transposing takes a
        # third of the time if the keys of a head are contiguous, which those of a model are not.
        columns = k.contiguous().transpose(-1, -2).contiguous()
        self.k_columns = columns.flatten(0, 1)  # (batch · key head, channel, key)
        scale = inputs.scale * LOG2_E if inputs.softcap is None else inputs.scale / inputs.softcap
        self.q = self.q.to(wide) * scale
        without_values = totals.output is None or lse_known
        self.v = None if without_values else self.of_keys(inputs.v).to(wide).flatten(0, 1)
        self.store: list[Tensor] = []
        self.received = torch.empty(0)

    @property
    def heads(self) -> int:
        """The number of query heads in the group."""
        return self.key_head_count * self.group_size

    @abstractmethod
    def add_tile(self, tile: RowTile) -> None:
        """Compute some rows and add their statistics to the totals, and to what the keys received."""

    # ---- tiles -------------------------------------------------------------------------------

    def stretches(self, count: int) -> list[list[RowTile]]:
        """All rows in tiles, grouped into about ``count`` stretches with equally many scores."""
        tiles = self.tiles
        done = list(accumulate(tile.pairs for tile in tiles))
        found: dict[int, list[RowTile]] = {}
        for tile, so_far in zip(tiles, done):
            found.setdefault(count * (so_far - 1) // done[-1], []).append(tile)
        return list(found.values())

    @cached_property
    def tiles(self) -> list[RowTile]:
        """The rows of the part in tiles of at most ``max_scores`` scores."""
        return list(score_tiles(self.part, self.batch * self.heads, self.max_scores))

    @cached_property
    def buffer_sizes(self) -> tuple[int, int]:
        """How many numbers the two buffers of a stretch hold: the scores of a tile, and one more."""
        return self.batch * self.heads * max(tile.pairs for tile in self.tiles), 0

    def stretch(self, tiles: list[RowTile]) -> Tensor:
        """Compute some rows; return what each key of the part received from them."""
        # Its own buffers, so that other stretches can be computed at the same time.
        own = copy(self)
        wide = self.k_columns
        own.received = wide.new_zeros(self.batch, self.heads, wide.shape[-1])
        with self.scratch.taken(wide, self.buffer_sizes) as own.store:
            for tile in tiles:
                own.add_tile(tile)
        return own.received

    def add_received(self, found: Tensor) -> None:
        """Add what the keys received from a stretch."""
        target = self.totals.received[self.head_group.batch, self.head_group.heads]
        if self.keys is None:
            target += found
        else:
            target.index_add_(2, self.keys, found)

    # ---- scores, and what is made of weights -------------------------------------------------

    def _scores(self, tile: RowTile) -> Tensor:
        """Scores ``(batch, key head, group size, query, key)`` in bits, without the mask."""
        count, softcap = tile.stop - tile.start, self.inputs.softcap
        q = self.q[:, :, tile.start : tile.stop]
        flat = q.reshape(self.batch * self.key_head_count, self.group_size * count, q.shape[-1])
        scores = self._buffer(0, (*flat.shape[:2], tile.width))
        torch.bmm(flat, self.take(self.k_columns, tile, axis=-1), out=scores)
        scores = scores.view(self.batch, self.key_head_count, self.group_size, count, tile.width)
        if softcap is not None:
            scores.tanh_().mul_(softcap * LOG2_E)
        if self.inputs.bias is not None:
            scores.add_(self._bias(tile))
        return scores

    def _bias(self, tile: RowTile) -> Tensor:
        bias = self.inputs.bias
        assert bias is not None
        q, k = self.positions(tile)
        tables = bias.narrow(bias.tables, self.head_group.batch, self.head_group.heads)
        values = bias.tile(tables, q, k, self.inputs.extent)
        return self._by_group(values.to(self.k_columns.dtype) * LOG2_E)

    def _forbidden(self, tile: RowTile) -> Iterator[tuple[slice, Tensor]]:
        """Columns of a tile, and which of them the mask forbids, with the axes of scores, to be broadcast."""
        for columns, forbidden in self._tables(tile):
            yield columns, self._by_group(self.head_group.own(flatten_lead(forbidden, self.inputs.lead)))

    def _tables(self, tile: RowTile) -> Iterator[tuple[slice, Tensor]]:
        if self.device_tables is not None:
            for columns, allowed in self.device_tables.mask_values(self.part, tile):
                yield columns, ~allowed
            return
        for columns, evaluated in self.part.mask_values(tile, self.inputs.extent):
            yield columns, torch.from_numpy(~evaluated)

    def _add_output(self, tile: RowTile, powers: Tensor, factor: Tensor | None = None) -> None:
        """Write ``powers · factor · v``, if it was asked for; without a factor, powers are weights."""
        if self.v is None or self.totals.output is None:
            return
        place = self._place(tile)
        flat, v = powers.flatten(0, 1).flatten(1, 2), self.take(self.v, tile)
        target = self.totals.output[self.head_group.batch, self.head_group.heads]
        alone = factor is None and target.dtype == flat.dtype and len(flat) == self.group_size == 1
        if alone and isinstance(place, slice):
            torch.bmm(flat, v, out=target[0, :, place])
            return
        found = torch.bmm(flat, v).view(*powers.shape[:-1], -1)
        found = found if factor is None else found * factor[..., None]
        target[:, :, place] = found.flatten(1, 2).to(target.dtype)

    def _merge_top(self, tile: RowTile, powers: Tensor, factor: Tensor | None = None) -> None:
        """Merge the greatest weights of these rows with those found before."""
        if not self.totals.top_weights.shape[-1]:
            return
        weights = self.totals.top_weights[self.head_group.batch, self.head_group.heads]
        keys = self.totals.top_keys[self.head_group.batch, self.head_group.heads]
        top, place = weights.shape[-1], self._place(tile)
        found, column = powers.topk(min(top, tile.width), dim=-1)
        found = (found if factor is None else found * factor[..., None]).flatten(1, 2)
        key = self.positions(tile)[1][column].flatten(1, 2)
        key = torch.where(found > 0, key, -1)
        both = torch.cat([weights[:, :, place], found], -1)
        both_keys = torch.cat([keys[:, :, place], key], -1)
        best, index = both.topk(top, dim=-1)
        weights[:, :, place], keys[:, :, place] = best, both_keys.gather(-1, index)

    def _receive(self, tile: RowTile, found: Tensor) -> None:
        """Add what the keys of a tile received, ``(batch, head, key)``."""
        column = 0
        for start, stop in tile.runs:
            width = stop - start
            self.received.narrow(-1, start, width).add_(found.narrow(-1, column, width))
            column += width

    # ---- places ------------------------------------------------------------------------------

    def _place(self, tile: RowTile) -> slice | Tensor:
        """The rows of a tile among all queries."""
        rows = slice(tile.start, tile.stop)
        return rows if self.queries is None else self.queries[rows]

    def _by_group(self, x: Tensor) -> Tensor:
        """``(batch or 1, head or 1, ...)`` with the head axis split into key heads and groups."""
        return x.unsqueeze(2) if x.shape[1] == 1 else x.reshape(x.shape[0], -1, self.group_size, *x.shape[2:])

    def _buffer(self, number: int, shape: tuple[int, ...]) -> Tensor:
        """Memory that every tile reuses."""
        size = math.prod(shape)
        if self.store[number].numel() < size:
            self.store[number] = self.store[number].new_empty(size)
        return self.store[number][:size].view(shape)


def score_tiles(part: MaskPart, elements: int, max_scores: int) -> Iterator[RowTile]:
    """The rows of a part in tiles of at most ``max_scores`` scores over all elements, heads of the batch."""
    for row in part.rows:
        yield from row.split(min(MAX_ROWS, max(1, max_scores // max(1, elements * row.width))))
