"""One query per sequence, as in decoding with a cache: output and lse in one small call.

A single row needs no plan. The query heads that share a key head become the rows of one product, so
grouped keys and values are read once and never repeated.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from regard.kernels import fused_kernel
from regard.kernels.inputs import Inputs
from regard.kernels.plain_kernel import Rules, Tile, add_sinks, full_precision
from regard.masks import Mask, causal, everything
from regard.masks.extent import Extent

KEPT_ROWS = 8
"""How many evaluated masks are cached: all layers of a forward pass need the same row."""


def single_query(inputs: Inputs) -> tuple[Tensor, Tensor] | None:
    """Output ``(batch, head, 1, channel)`` and lse ``(batch, head, 1)``; None if this path does not apply."""
    batch, heads, queries, channels = inputs.q.shape
    groups = inputs.k.shape[1]
    mask = inputs.mask
    if (
        queries != 1
        or inputs.extent != (1, inputs.k.shape[2])
        or inputs.bias is not None
        or inputs.softcap is not None
        or inputs.dropout
        or inputs.scale <= 0
        or inputs.q.device.type != "cpu"
        or inputs.v.shape[-1] != channels
        or not inputs.k.numel()
        or len(inputs.lead) > 1
        or (mask.lead and mask.lead[-1] != 1)
        or (torch.is_grad_enabled() and any(x.requires_grad for x in (inputs.q, inputs.k, inputs.v)))
        or not fused_kernel.available()
    ):
        return None
    added, sees = _row(mask, inputs.extent, inputs.q.dtype)
    rows = inputs.q.reshape(batch, groups, heads // groups, channels)
    if added is not None:
        added = added.expand(-1, -1, heads // groups, -1)
    with full_precision(rows):
        output, lse = fused_kernel.forward(Tile(rows, inputs.k, inputs.v, added, sees, Rules(inputs.scale)))
    output, lse = output.reshape(batch, heads, 1, channels), lse.reshape(batch, heads, 1)
    return add_sinks(output, lse, inputs.sinks)


@lru_cache(maxsize=KEPT_ROWS)
def _row(mask: Mask, extent: Extent, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
    """The additive mask of the last query, and whether it sees any key; None if it sees all keys."""
    if mask in (causal(), everything()):
        return None, None
    row = np.broadcast_to(mask.evaluate(extent), (*mask.lead, *extent))
    if row.all():
        return None, None
    allowed = torch.from_numpy(row.reshape(-1, 1, 1, extent.keys).copy())  # (batch, 1, 1, key)
    added = torch.zeros(allowed.shape, dtype=dtype).masked_fill_(~allowed, -torch.inf)
    sees = allowed.any(-1)
    return added, None if bool(sees.all()) else sees
