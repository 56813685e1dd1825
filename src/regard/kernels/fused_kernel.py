"""One tile through torch's fused CPU kernel, which returns the log-sum-exp that SDPA does not.

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


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    additive: Tensor | None,
    sees: Tensor | None,
    *,
    scale: float,
    causal: bool,
) -> tuple[Tensor, Tensor]:
    """Output ``(batch, head, query, channel)`` and lse ``(batch, head, query)`` of one tile.

    ``additive`` is added to the scores; ``sees`` says which rows see any key (None: all do).
    """
    output, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(
        q, k, v, 0.0, causal, attn_mask=additive, scale=scale
    )
    return output, lse if sees is None else lse.masked_fill(~sees, -torch.inf)


def backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    output: Tensor,
    lse: Tensor,
    additive: Tensor | None,
    *,
    scale: float,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of one tile's q, k and v, given the output and lse of the *whole* rows.

    With the lse of the whole row, the tile's weights are those of the whole softmax, so the
    gradients of all tiles simply add up. The lse must be finite.
    """
    grads: tuple[Tensor, Tensor, Tensor] = (
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default(
            grad, q, k, v, output, lse, 0.0, causal, attn_mask=additive, scale=scale
        )
    )
    return grads
