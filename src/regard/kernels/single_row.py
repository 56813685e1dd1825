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
from regard.kernels.mask_parts import Run
from regard.kernels.plain_kernel import ScoreOptions, Tile, add_sinks
from regard.kernels.precision import full_precision
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
    (start, stop), added, sees = _row(mask, inputs.extent, inputs.q.dtype)
    k, v = inputs.k[:, :, start:stop], inputs.v[:, :, start:stop]
    rows = inputs.q.reshape(batch, groups, heads // groups, channels)
    if added is not None:
        added = added.expand(-1, -1, heads // groups, -1)
    with full_precision(rows):
        output, lse = fused_kernel.forward(Tile(rows, k, v, added, sees, ScoreOptions(inputs.scale)))
    output, lse = output.reshape(batch, heads, 1, channels), lse.reshape(batch, heads, 1)
    return add_sinks(output, lse, inputs.sinks)


@lru_cache(maxsize=KEPT_ROWS)
def _row(mask: Mask, extent: Extent, dtype: torch.dtype) -> tuple[Run, Tensor | None, Tensor | None]:
    """The keys from the first to the last that the last query sees, the additive mask over them, and
    whether it sees any key; None if it sees all of these."""
    whole = (0, extent.keys)
    if mask in (causal(), everything()):
        return whole, None, None
    row = np.broadcast_to(mask.evaluate(extent), (*mask.lead, *extent)).reshape(-1, extent.keys)
    seen = np.flatnonzero(row.any(0))
    run = (int(seen[0]), int(seen[-1]) + 1) if len(seen) else whole
    row = row[:, slice(*run)]
    if row.all():
        return run, None, None
    allowed = torch.from_numpy(row[:, None, None].copy())  # (batch, 1, 1, key)
    added = torch.zeros(allowed.shape, dtype=dtype).masked_fill_(~allowed, -torch.inf)
    sees = allowed.any(-1)
    return run, added, None if bool(sees.all()) else sees
