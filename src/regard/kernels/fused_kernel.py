"""One tile through torch's fused CPU kernel, which returns the log-sum-exp that SDPA does not.

    Tile → output (batch, head, query, channel), lse (batch, head, query)

The operator is private to torch, so its schema is compared with the one this file was written
for; if it differs, ``available`` is False and the plain kernel takes over.

What the operator (torch 2.13) requires and does, normalised here:

* the mask is an additive float tensor, never bool;
* q, k and v have the same number of channels, and their last axis is contiguous;
* a row that sees no key gets output 0, but lse 0.0 instead of −inf.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from regard.kernels.plain_kernel import BackwardRows, Tile

_FORWARD = (
    "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, "
    "float dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) "
    "-> (Tensor output, Tensor logsumexp)"
)
_BACKWARD = (
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, "
    "Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, "
    "float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)"
)


@cache
def available() -> bool:
    """Whether torch has both operators with the schemas this file was written for."""
    try:
        forward_op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        backward_op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    except AttributeError:
        return False
    return str(forward_op._schema) == _FORWARD and str(backward_op._schema) == _BACKWARD


def forward(tile: Tile) -> tuple[Tensor, Tensor]:
    """Output and lse of one tile; rows that see no key get 0 and −inf."""
    output, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(
        tile.q, tile.k, tile.v, 0.0, tile.causal, attn_mask=tile.additive, scale=tile.options.scale
    )
    return output, lse if tile.sees is None else lse.masked_fill(~tile.sees, -torch.inf)


def backward(tile: Tile, whole: BackwardRows) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of one tile's q, k and v, given the output and lse of the *whole* rows.

    With the lse of the whole row, the tile's weights are those of the whole softmax, so the
    gradients of all tiles simply add up.
    """
    grads: tuple[Tensor, Tensor, Tensor] = (
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default(
            whole.grad,
            *(tile.q, tile.k, tile.v),
            *(whole.output, whole.lse),
            *(0.0, tile.causal),
            attn_mask=tile.additive,
            scale=tile.options.scale,
        )
    )
    return grads
