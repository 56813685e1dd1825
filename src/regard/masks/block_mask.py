"""Masks for FlexAttention: ``mask_mod``, and a ``BlockMask`` planned from tiles."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch
from torch.nn.attention.flex_attention import BlockMask

from regard.errors import ArgumentError, ShapeError
from regard.masks.extent import Extent, Pairs, Strip
from regard.masks.mask import ALL, SOME, Mask, Verdicts, extent_of
from regard.masks.tiles import tile_rows

MaskMod = Callable[[Any, Any, Any, Any], torch.Tensor]


def mask_mod(mask: Mask, queries: int | None, keys: int | None, *, device: Any = None) -> MaskMod:
    """The predicate ``(batch, head, query, key)`` over tensors of indices."""
    if len(mask.lead) > 2:
        raise ShapeError(
            "FlexAttention has one batch axis and one head axis.",
            got="a mask with leading axes {lead}",
            do="Flatten the batch axes.",
            lead=mask.lead,
        )
    extent = _extent(mask, queries, keys)
    tables: dict[int, torch.Tensor] = {}

    def on_device(table: Any) -> torch.Tensor:
        # Cached by identity: a mask's tables are frozen and live as long as the mask does.
        if id(table) not in tables:
            tables[id(table)] = torch.from_numpy(np.array(table)).to(device)
        return tables[id(table)]

    _touch_tables(mask, extent, on_device)

    def allowed(batch: Any, head: Any, query: Any, key: Any) -> torch.Tensor:
        pairs = Pairs(extent, query + extent.offset, key, (batch, head), library=on_device)
        return torch.as_tensor(mask.allows(pairs))

    return allowed


def _touch_tables(mask: Mask, extent: Extent, on_device: Callable[[Any], torch.Tensor]) -> None:
    """Evaluate the mask once, so that its tables are on the device before FlexAttention traces it."""
    start = torch.tensor(max(extent.offset, 0))
    if all(extent):
        zero = torch.tensor(0)
        mask.allows(Pairs(extent, start, zero, (zero, zero), library=on_device))


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
            "mask_mod takes both lengths or neither.",
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
            "FlexAttention takes one batch axis, one head axis and at least one query and key.",
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
        Strip.cut(extent.query_positions(), block_size),
        Strip.cut(extent.key_positions(), block_size),
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
