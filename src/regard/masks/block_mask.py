"""Masks for FlexAttention: ``mask_mod``, and a ``BlockMask`` planned from tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch.nn.attention.flex_attention import BlockMask

from regard.errors import ArgumentError, ShapeError
from regard.masks.extent import Extent, Pairs, TiledAxis
from regard.masks.grid_patterns import Neighbourhood
from regard.masks.id_table import IdTable
from regard.masks.mask import ALL, SOME, Both, Constant, Either, Mask, Not, Verdicts, extent_of
from regard.masks.pair_patterns import Dense, Documents
from regard.masks.patterns import Every, Lengths, Padding, Prefix, Span, Window
from regard.masks.tiles import tile_rows

PATTERNS = (
    *(Both, Either, Not, Constant, Window, Prefix, Span, Every, Padding, Lengths),
    *(Documents, Dense, Neighbourhood),
)
"""The masks of which ``with_tensors`` knows that they can be evaluated with tensors for their numbers."""

MaskMod = Callable[[Any, Any, Any, Any], torch.Tensor]


def mask_mod(mask: Mask, queries: int | None, keys: int | None, *, device: Any = None) -> MaskMod:
    """The predicate ``(batch, head, query, key)`` over tensors of indices."""
    if len(mask.lead) > 2:
        raise ShapeError(
            "FlexAttention needs one batch axis and one head axis.",
            got="a mask with leading axes {lead}",
            do="Flatten the batch axes.",
            lead=mask.lead,
        )
    extent = _extent(mask, queries, keys)
    of_tensors = with_tensors(mask, device)
    tables: dict[int, torch.Tensor] = {}

    def on_device(table: Any) -> torch.Tensor:
        """Tables of masks that ``with_tensors`` does not know, by identity: they live as long as the mask."""
        if isinstance(table, torch.Tensor):
            return table
        if id(table) not in tables:
            tables[id(table)] = torch.from_numpy(np.array(table)).to(device)
        return tables[id(table)]

    _touch_tables(of_tensors, extent, on_device, device)

    def allowed(batch: Any, head: Any, query: Any, key: Any) -> torch.Tensor:
        pairs = Pairs(extent, query + extent.offset, key, (batch, head), library=on_device)
        return torch.as_tensor(of_tensors.allows(pairs))

    return allowed


def _touch_tables(mask: Mask, extent: Extent, on_device: Callable[[Any], torch.Tensor], device: Any) -> None:
    """Evaluate the mask once, so that its tables are on the device before FlexAttention traces it."""
    if all(extent):
        start, zero = (torch.tensor(at, device=device) for at in (max(extent.offset, 0), 0))
        mask.allows(Pairs(extent, start, zero, (zero, zero), library=on_device))


@dataclass(frozen=True, eq=False)
class TensorTable:
    """An ``IdTable`` whose values are on a device."""

    values: torch.Tensor


def with_tensors(mask: Mask, device: Any) -> Mask:
    """The mask with its numbers and tables as tensors, to be evaluated at tensors of positions.

    Torch compiles a Python number or a NumPy array into the code that it generates, and compiles again for
    every other one; a tensor is an argument. So one compiled kernel serves all windows, and another all
    batches of documents.
    """
    if type(mask) not in PATTERNS:
        return mask
    own: Any = mask
    values = {field.name: _as_tensors(getattr(mask, field.name), device) for field in fields(own)}
    if isinstance(mask, Neighbourhood):
        # The grid has as many points as there are keys, so its shape changes with theirs anyway.
        values["shape"] = mask.shape
        if mask.shifted:
            values["radius"] = mask.radius
    found: Mask = replace(own, **values)
    return found


def _as_tensors(value: Any, device: Any) -> Any:
    if isinstance(value, Mask):
        return with_tensors(value, device)
    if isinstance(value, tuple):
        return tuple(_as_tensors(one, device) for one in value)
    if isinstance(value, IdTable):
        return TensorTable(torch.from_numpy(np.array(value.values)).to(device))
    if isinstance(value, int) and not isinstance(value, bool):
        return torch.tensor(value, device=device)
    return value


def _extent(mask: Mask, queries: int | None, keys: int | None) -> Extent:
    if queries is None and keys is None:
        # As many queries as keys; the number only matters if a table must be aligned.
        lengths = {size for pattern in mask.patterns() for size in pattern.table_lengths()}
        if len(lengths) > 1:
            raise ArgumentError(
                "Tables of different lengths need the number of queries and keys.",
                got="lengths {lengths}",
                do="Call mask_mod(queries, keys).",
                lengths=sorted(lengths),
            )
        length = lengths.pop() if lengths else 0
        return Extent(length, length)
    if queries is None or keys is None:
        raise ArgumentError(
            "mask_mod needs both lengths or neither.",
            got="queries = {queries}, keys = {keys}",
            do="Pass both.",
            queries=queries,
            keys=keys,
        )
    extent = extent_of(queries, keys)
    mask.check(extent)
    return extent


def block_mask(mask: Mask, extent: Extent, *, device: Any = None, block_size: int = 128) -> BlockMask:
    """A BlockMask from the verdicts on tiles of ``block_size``; nothing n×n is built."""
    mask.check(extent)
    if len(mask.lead) > 2 or not all(extent):
        raise ShapeError(
            "FlexAttention needs one batch axis, one head axis and at least one query and key.",
            got="leading axes {lead}, {extent}",
            do="Flatten the batch axes, or call regard.attention.",
            lead=mask.lead,
            extent=extent,
        )
    lead = (1,) * (2 - len(mask.lead)) + mask.lead
    grids = np.stack(
        [_verdict_grid(mask.select(index), extent, block_size) for index in product(*map(range, lead))]
    )
    grids = grids.reshape(*lead, *grids.shape[1:])
    some_count, some_index = _ordered(grids == SOME, device)
    all_count, all_index = _ordered(grids == ALL, device)
    return BlockMask.from_kv_blocks(
        some_count,
        some_index,
        all_count,
        all_index,
        BLOCK_SIZE=block_size,
        mask_mod=mask_mod(mask, extent.queries, extent.keys, device=device),
        seq_lengths=(extent.queries, extent.keys),
    )


def _verdict_grid(mask: Mask, extent: Extent, block_size: int) -> Verdicts:
    """The verdict on every block; blocks that extend past the end are at most SOME.

    In blocks that are ALL, FlexAttention skips the predicate and with it the check against the end.
    """
    rows, columns = (
        TiledAxis.cut(extent.query_positions(), block_size),
        TiledAxis.cut(extent.key_positions(), block_size),
    )
    grid = np.zeros((len(rows), len(columns)), np.uint8)
    for stack in tile_rows(mask, rows, columns, extent):
        grid[np.ix_(stack.rows, stack.columns)] = stack.verdicts
    if extent.queries % block_size:
        grid[-1] = np.minimum(grid[-1], SOME)
    if extent.keys % block_size:
        grid[:, -1] = np.minimum(grid[:, -1], SOME)
    return grid


def _ordered(chosen: Any, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The number of chosen blocks per row, and the columns with the chosen ones first."""
    count = chosen.sum(-1, dtype=np.int32)
    index = np.argsort(~chosen, axis=-1, kind="stable").astype(np.int32)
    return torch.from_numpy(count).to(device), torch.from_numpy(index).to(device)
