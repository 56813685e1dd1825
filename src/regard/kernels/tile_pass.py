"""One part of a plan with its tensors, and its row tiles run through a kernel.

    TiledCall, HeadGroup, MaskPart → TilePass → a Tile for each RowTile → output, lse

A part may have gathered some queries and keys; its tiles are slices of what was gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.kernels import fused_kernel, plain_kernel
from regard.kernels.bias import WHOLE
from regard.kernels.device_tables import DeviceTables
from regard.kernels.inputs import Inputs
from regard.kernels.mask_parts import MaskPart, RowTile
from regard.kernels.plain_kernel import BackwardRows, Tile
from regard.masks.extent import Extent, Integers

HOST = "cpu"
"""The device on which reading a tensor waits for nothing."""

MAX_BIAS_VALUES = 1 << 21
"""The most bias values in memory at once: 8 MB in float32."""

MAX_JOINED_RUNS = 8
"""Runs of keys that are copied one by one; more are gathered by their indices."""

MAX_COPIES = 2
"""How often tiles copy a scattered key and its value; beyond, all of them are gathered once."""

MIN_ROW_TILES = 16
"""The least number of row tiles of a part, if it has enough rows."""

MIN_TILE_ROWS = 64
"""A row tile of this many rows is not split further."""

PartTiles = dict[MaskPart, tuple[RowTile, ...]]
"""Row tiles of some parts."""


@dataclass(frozen=True, eq=False)
class HeadGroup:
    """Some batch elements and query heads that are computed together because they share one layout."""

    batch: slice
    heads: slice
    causal: bool  # the kernel's built-in causal mask is all that is needed
    parts: tuple[MaskPart, ...]

    @property
    def calls(self) -> int:
        """The number of row tiles; each one is a kernel call."""
        return sum(len(part.rows) for part in self.parts)

    def own(self, x: Tensor) -> Tensor:
        """The entries of ``x (batch or 1, head or 1, ...)`` for these batch elements and heads."""
        batch, heads = (WHOLE if size == 1 else own for size, own in zip(x.shape, (self.batch, self.heads)))
        return x[batch, heads]

    def cut(self, batch: int, heads: int, group_size: int, count: int) -> list[HeadGroup]:
        """Split it into about ``count`` smaller groups; heads that share a key head stay together.

        ``batch`` and ``heads`` are the sizes of the tensors; ``group_size`` heads share a key head.
        """
        elements, own = range(batch)[self.batch], range(heads)[self.heads]
        group_size = min(group_size, len(own))
        by_batch = min(len(elements), count)
        by_head = min(len(own) // group_size, -(-count // by_batch))
        return [
            replace(self, batch=some, heads=others)
            for some in _slices(elements, by_batch, 1)
            for others in _slices(own, by_head, group_size)
        ]


@dataclass(frozen=True, eq=False)
class TiledCall:
    """A planned call: everything that is not a tensor of the autograd graph."""

    inputs: Inputs
    head_groups: tuple[HeadGroup, ...]
    use_fused: bool
    seed: int
    device_tables: DeviceTables | None = None  # on other devices than the CPU
    # Cached additive masks of windows, which look the same all along the diagonal.
    cached: dict[Any, tuple[Tensor | None, Tensor | None]] = field(default_factory=dict)


class PartTensors:
    """One part for one head group: its queries, the indices of its keys, and the positions of both."""

    def __init__(
        self,
        q: Tensor,
        k: Tensor,
        head_group: HeadGroup,
        part: MaskPart,
        extent: Extent,
        device_tables: DeviceTables | None = None,
    ) -> None:
        self.head_group, self.part, self.device_tables = head_group, part, device_tables
        self.key_heads, self.group_size = key_heads_of(head_group.heads, q.shape[1], k.shape[1])
        if device_tables is not None:
            self.queries, self.keys = device_tables.queries(part), device_tables.keys(part)
        else:
            self.queries = None if part.queries is None else torch.from_numpy(part.queries).to(q.device)
            self.keys = None if part.keys is None else torch.from_numpy(part.keys).to(q.device)
        self.q_positions: Integers = part.query_positions(extent)
        self.k_positions: Integers = part.key_positions()
        self.all_q = q[head_group.batch, head_group.heads]

    @cached_property
    def q(self) -> Tensor:
        """All queries of this part."""
        return gather(self.all_q, self.queries)

    def of_keys(self, x: Tensor) -> Tensor:
        """The entries of ``x (batch, key head, key, ...)`` for the keys of this part."""
        return gather(x[self.head_group.batch, self.key_heads], self.keys)

    def positions(self, row: RowTile) -> tuple[Tensor, Tensor]:
        """The positions of the queries and of the keys of a row tile."""
        if self.device_tables is not None:
            return self.device_tables.positions(self.part, row)
        q, k = self.q_positions[row.start : row.stop], take_positions(self.k_positions, row)
        return torch.from_numpy(q), torch.from_numpy(k)

    def key_index(self, row: RowTile) -> Tensor:
        """The keys of a row tile of several runs, one by one."""
        if self.device_tables is not None:
            return self.device_tables.key_index(self.part, row)
        return torch.from_numpy(row.key_index)

    def take(self, x: Tensor, row: RowTile, *, axis: int = -2) -> Tensor:
        """The keys of a row tile side by side, of all keys of the part: a view if they are one run."""
        if len(row.runs) > MAX_JOINED_RUNS:
            return x.index_select(axis, self.key_index(row))
        runs = [x.narrow(axis, start, stop - start) for start, stop in row.runs]
        return runs[0] if len(runs) == 1 else torch.cat(runs, axis)


class TilePass(PartTensors):
    """Forward and backward of one part for one head group: its queries, keys and values, tile by tile."""

    def __init__(
        self,
        call: TiledCall,
        head_group: HeadGroup,
        part: MaskPart,
        tensors: tuple[Tensor, Tensor, Tensor],
        bias_tables: tuple[Tensor, ...],
        table_grads: tuple[Tensor, ...],
        seed: int,
    ) -> None:
        q, k, v = tensors
        super().__init__(q, k, head_group, part, call.inputs.extent, call.device_tables)
        self.call, self.seed = call, seed
        self.all_k, self.all_v = (x[head_group.batch, self.key_heads] for x in (k, v))
        self.gathered: tuple[Tensor, Tensor] | None = None  # all of this part, if tiles share them
        self.options = plain_kernel.ScoreOptions(call.inputs.scale, call.inputs.softcap, call.inputs.dropout)
        bias = call.inputs.bias
        self.rows = rows_of(part, call.inputs)
        self.bias_tables = (
            bias.narrow(bias_tables, head_group.batch, head_group.heads) if bias is not None else ()
        )
        self.table_grads = (
            bias.narrow(table_grads, head_group.batch, head_group.heads)
            if bias is not None and table_grads
            else ()
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Batch, heads and the number of queries of this part."""
        queries = self.all_q.shape[2] if self.queries is None else len(self.queries)
        return self.all_q.shape[0], self.all_q.shape[1], queries

    # ---- the two passes ----------------------------------------------------------------------

    def forward(self, output: Tensor, lse: Tensor, *, in_place: bool) -> list[Callable[[], None]]:
        """Functions that write output and lse of the part's queries; they may run in any order, in parallel.

        ``in_place`` says that these have the rows of all queries; otherwise those of the part only. Rows
        outside its tiles stay unchanged.
        """
        # Dropout draws once per tile of the layout, so that the backward pass can draw the same numbers.
        # Other devices run one tile after the other.
        whole = self.head_group.causal or self.options.dropout or self.head_group.calls == 1
        whole = whole or self.call.device_tables is not None
        rows = self.rows if whole else tuple(_split_for_threads(self.rows))
        self._gather_keys(rows)
        return [partial(self._write, output, lse, in_place, number, row) for number, row in enumerate(rows)]

    def _write(self, output: Tensor, lse: Tensor, in_place: bool, number: int, row: RowTile) -> None:
        rows, tile = slice(row.start, row.stop), self._tile(number, row)
        found = fused_kernel.forward(tile) if self.call.use_fused else plain_kernel.forward(tile)
        place = self._place(rows) if in_place else rows
        for target, own in zip((output, lse), found):
            if isinstance(place, slice):
                target[:, :, place] = own
            else:
                target.index_copy_(2, place, own.to(target.dtype))

    def _place(self, rows: slice) -> slice | Tensor:
        """Rows of this part among all queries."""
        if self.queries is None:
            return rows
        place = self.part.as_slice("queries", rows.start, rows.stop)
        return self.queries[rows] if place is None else place

    def backward(self, saved: BackwardRows, grad_q: Tensor, grad_k: Tensor, grad_v: Tensor) -> None:
        """Add the part's gradients to ``grad_q``, ``grad_k``, ``grad_v`` and those of the bias."""
        whole = BackwardRows(*(gather(x, self.queries) for x in saved))
        self._gather_keys(self.rows)
        shape = None if self.keys is None else (*self.all_k.shape[:2], len(self.keys))
        own_k = grad_k if shape is None else grad_k.new_zeros((*shape, grad_k.shape[-1]))
        own_v = grad_v if shape is None else grad_v.new_zeros((*shape, grad_v.shape[-1]))
        for number, row in enumerate(self.rows):
            rows, tile = slice(row.start, row.stop), self._tile(number, row)
            if self.call.use_fused:
                of_q, of_k, of_v = fused_kernel.backward(tile, whole.at(rows))
            else:
                of_q, of_k, of_v = plain_kernel.backward(tile, whole.at(rows), self._collector(row))
            _add(grad_q, rows if self.queries is None else self.queries[rows], of_q)
            self._add_keys(own_k, row, self._sum_heads(of_k))
            self._add_keys(own_v, row, self._sum_heads(of_v))
        if self.keys is not None:
            _add(grad_k, self.keys, own_k)
            _add(grad_v, self.keys, own_v)

    # ---- what a row tile needs ---------------------------------------------------------------

    def _tile(self, number: int, row: RowTile) -> Tile:
        """The tensors of a row tile, ready for a kernel."""
        additive, sees = self._additive(row)
        k, v = self._keys_of(row)
        return Tile(
            self._queries_of(row),
            self._repeat_heads(k),
            self._repeat_heads(v),
            additive,
            sees,
            self.options,
            causal=self.head_group.causal or row.causal,
            seed=self.seed + number,
        )

    def _queries_of(self, row: RowTile) -> Tensor:
        """The queries of a row tile. Gathered tile by tile, they and their output stay in the cache."""
        place = self._place(slice(row.start, row.stop))
        return self.all_q[:, :, place] if isinstance(place, slice) else self.all_q.index_select(2, place)

    def _keys_of(self, row: RowTile) -> tuple[Tensor, Tensor]:
        """The keys and values of a row tile."""
        both = (self.all_k, self.all_v) if self.gathered is None else self.gathered
        if self.keys is None or self.gathered is not None:
            return self.take(both[0], row), self.take(both[1], row)
        start, stop = row.runs[0]
        place = self.part.as_slice("keys", start, stop)
        if place is not None:
            return both[0][:, :, place], both[1][:, :, place]
        index = self.keys[start:stop]
        return both[0].index_select(2, index), both[1].index_select(2, index)

    def _gather_keys(self, rows: tuple[RowTile, ...]) -> None:
        """Gather all keys and values at once if tiles would copy them several times."""
        if self.keys is None or self.gathered is not None:
            return
        copied = sum(
            MAX_COPIES * len(self.keys) + 1
            if len(row.runs) > 1
            else row.width * (self.part.as_slice("keys", *row.runs[0]) is None)
            for row in rows
        )
        if copied > MAX_COPIES * len(self.keys):
            self.gathered = gather(self.all_k, self.keys), gather(self.all_v, self.keys)

    def _additive(self, row: RowTile) -> tuple[Tensor | None, Tensor | None]:
        """What is added to the scores of a row tile, and which of its rows see any key (None: all do)."""
        bias = self.call.inputs.bias
        masked = bool(row.mixed) and not (self.head_group.causal or row.causal)
        if not masked and bias is None:
            return None, None
        name = self.part.tile_key(row, self.call.inputs.extent) if bias is None else None
        if name is not None and name in self.call.cached:
            return self.call.cached[name]
        found = self._new_additive(row, masked)
        if name is not None:
            self.call.cached[name] = found
        return found

    def _new_additive(self, row: RowTile, masked: bool) -> tuple[Tensor, Tensor | None]:
        if self.call.inputs.bias is None:
            return self._forbidden(row)
        q, k = self.positions(row)
        additive = self.call.inputs.bias.tile(self.bias_tables, q, k, self.call.inputs.extent)
        # In at least float32, and expanded: the kernel does not broadcast queries and keys.
        additive = additive.to(torch.promote_types(self.all_q.dtype, torch.float32))
        additive = additive.expand(*additive.shape[:2], len(q), len(k))
        if masked:
            additive = additive + self._forbidden(row)[0]
        sees = (additive != -torch.inf).any(-1)
        # Elsewhere, asking whether all do would wait for the device, once for every tile.
        known = self.all_q.device.type == HOST and bool(sees.all())
        return additive, None if known else sees

    def _forbidden(self, row: RowTile) -> tuple[Tensor, Tensor | None]:
        """−inf where the mask forbids and 0 elsewhere, and which rows see any key (None: all do).

        In NumPy, because torch would wake its threads for every small tile.
        """
        if self.call.device_tables is not None:
            return self._sent(row, self.call.device_tables)
        inputs = self.call.inputs
        wide = np.float64 if self.all_q.dtype == torch.float64 else np.float32
        forbidden = np.zeros((*self.part.mask.lead, row.stop - row.start, row.width), wide)
        for columns, allowed in self.part.mask_values(row, inputs.extent):
            forbidden[..., columns] = np.where(allowed, wide(0), wide(-np.inf))
        unasked = row.width > sum(stop - start for start, stop in row.mixed)
        sees = np.ones(forbidden.shape[:-1], np.bool_) if unasked else (forbidden == 0).any(-1)
        additive = self.head_group.own(flatten_lead(torch.from_numpy(forbidden), inputs.lead))
        if sees.all():
            return additive, None
        # flatten_lead expects (..., query, key), so the rows get a key axis of size 1.
        return additive, self.head_group.own(flatten_lead(torch.from_numpy(sees)[..., None], inputs.lead))[
            ..., 0
        ]

    def _sent(self, row: RowTile, tables: DeviceTables) -> tuple[Tensor, Tensor | None]:
        """The same, from the tables that were sent to the device."""
        wide = torch.promote_types(self.all_q.dtype, torch.float32)
        shape = (*self.part.mask.lead, row.stop - row.start, row.width)
        forbidden = torch.zeros(shape, dtype=wide, device=self.all_q.device)
        for columns, allowed in tables.mask_values(self.part, row):
            forbidden[..., columns].masked_fill_(~allowed, -torch.inf)
        additive = self.head_group.own(flatten_lead(forbidden, self.call.inputs.lead))
        return additive, None if tables.all_see(self.part, row) else (additive == 0).any(-1)

    def _collector(self, row: RowTile) -> Any:
        """The function to which the plain kernel passes the gradients of the scores, if a bias needs them."""
        bias = self.call.inputs.bias
        if bias is None or not self.table_grads:
            return None
        q, k = self.positions(row)

        def collect(rows: slice, grad_scores: Tensor) -> None:
            bias.add_gradient(
                self.table_grads, grad_scores, self.bias_tables, q[rows], k, self.call.inputs.extent
            )

        return collect

    def _add_keys(self, total: Tensor, row: RowTile, values: Tensor) -> None:
        """Add what belongs to the keys of a row tile, in the order in which ``_keys_of`` returns them."""
        if len(row.runs) > MAX_JOINED_RUNS:
            _add(total, self.key_index(row), values)
            return
        done = 0
        for start, stop in row.runs:
            total[:, :, start:stop] += values[:, :, done : done + stop - start]
            done += stop - start

    def _repeat_heads(self, x: Tensor) -> Tensor:
        """Each key head repeated for every query head that shares it."""
        return x if self.group_size == 1 else x.repeat_interleave(self.group_size, dim=1)

    def _sum_heads(self, grad: Tensor) -> Tensor:
        """The gradient of ``_repeat_heads``."""
        return grad if self.group_size == 1 else grad.unflatten(1, (-1, self.group_size)).sum(2)


def device_tables_for(
    inputs: Inputs, head_groups: tuple[HeadGroup, ...], also: PartTiles | None = None
) -> DeviceTables | None:
    """What all tiles need on a device, in one copy; None on the CPU, where a tile makes what it needs.

    ``also`` are further tiles whose tables are sent in the same copy.
    """
    if on_host(inputs):
        return None
    tiles = dict(also or {})
    for part in dict.fromkeys(part for head_group in head_groups for part in head_group.parts):
        tiles[part] = rows_of(part, inputs) + tiles.get(part, ())
    return DeviceTables(inputs, tiles)


def on_host(inputs: Inputs) -> bool:
    """Whether the tensors are on the CPU, so that nothing has to be sent."""
    return inputs.q.device.type == HOST


def rows_of(part: MaskPart, inputs: Inputs) -> tuple[RowTile, ...]:
    """The row tiles of a part; shorter ones if a bias has to be computed for them."""
    return part.rows if inputs.bias is None else tuple(_split_for_bias(part.rows, inputs.heads))


def _split_for_threads(rows: tuple[RowTile, ...]) -> Iterator[RowTile]:
    """Row tiles split so that several can be computed in parallel."""
    height = max(MIN_TILE_ROWS, sum(row.stop - row.start for row in rows) // MIN_ROW_TILES)
    for row in rows:
        # A causal square is one call, however long: the kernel's causal mask begins at its first row.
        yield from row.split(row.stop - row.start if row.causal else height)


def _split_for_bias(rows: tuple[RowTile, ...], heads: int) -> Iterator[RowTile]:
    """Row tiles split so that the values of a bias, which differ by head, take little memory."""
    for row in rows:
        yield from row.split(max(1, MAX_BIAS_VALUES // max(1, heads * row.width)))


def _slices(of: range, count: int, step: int) -> Iterator[slice]:
    """``count`` slices of about equal length, each a multiple of ``step``."""
    edges = [of.start + step * (len(of) // step * number // count) for number in range(count + 1)]
    for start, stop in pairwise(edges):
        yield slice(start, stop)


def key_heads_of(heads: slice, query_heads: int, key_heads: int) -> tuple[slice, int]:
    """The key heads of some query heads, and how many of these query heads share each one."""
    group_size = query_heads // key_heads
    if heads == WHOLE:
        return WHOLE, group_size
    # Either a single query head, or all heads that share a key head.
    first, last = heads.start // group_size, (heads.stop - 1) // group_size
    return slice(first, last + 1), (heads.stop - heads.start) // (last + 1 - first)


def flatten_lead(x: Tensor, lead: tuple[int, ...]) -> Tensor:
    """``(..., head or 1, query, key)`` with any leading axes as ``(batch or 1, head or 1, query, key)``."""
    x = x[(None,) * max(0, 4 - x.ndim)]
    if all(size == 1 for size in x.shape[:-3]):
        return x.reshape(1, *x.shape[-3:])
    return x.expand(*lead, *x.shape[-3:]).reshape(prod(lead), *x.shape[-3:])


def gather(x: Tensor, index: Tensor | None) -> Tensor:
    """Some positions of ``(batch, head, position, ...)``; None means all."""
    return x if index is None else x.index_select(2, index)


def take_positions(positions: Integers, row: RowTile) -> Integers:
    """The positions of the keys of a row tile side by side: a view if they are one run."""
    return positions[slice(*row.runs[0])] if len(row.runs) == 1 else positions[row.key_index]


def _add(total: Tensor, index: Any, values: Tensor) -> None:
    """``total[index] += values`` along the positions; an index tensor names each position once."""
    if isinstance(index, slice):
        total[:, :, index] += values
    else:
        total.index_add_(2, index, values.to(total.dtype))
