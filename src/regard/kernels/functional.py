"""``attention()``, ``attention_with_lse()`` and ``attention_weights()``: the functions that users call.

    q, k, v and options → Inputs → Plan → output, lse

A plan that one call of torch computes best goes to SDPA, on CUDA to FlexAttention; all others are
computed tile by tile (``tiled.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import is_fake
from torch.overrides import handle_torch_function, has_torch_function

from regard.kernels.bias import BiasLike
from regard.kernels.direct_call import allowed_by, dense_mask, direct_call
from regard.kernels.inputs import Inputs, prepare
from regard.kernels.plain_kernel import ScoreOptions, add_sinks, exp, scores_of
from regard.kernels.planner import Plan, plan_extent
from regard.kernels.precision import full_precision
from regard.kernels.tile_pass import flatten_lead
from regard.kernels.tiled import run
from regard.masks import Mask, MaskLike
from regard.masks.extent import Extent

FLEX_DEVICES = ("cuda",)
"""Where compiled FlexAttention computes what one call of SDPA cannot."""


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: MaskLike | None = None,
    bias: BiasLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Softmax attention: ``output_i = Σ_j exp(s_ij − lse_i) · v_j``, exact, and never n×n for a lazy mask.

    Scores are ``s_ij = cap(scale · q_i · k_j) + bias_ij``, −∞ where the mask forbids. A query that
    sees no key gets output 0.

    Args:
        q: queries ``(..., head, query, channel)``; the head axis is optional.
        k: keys ``(..., key head, key, channel)``; fewer heads than q means grouped-query attention.
        v: values ``(..., key head, key, value channel)``.
        mask: a regard mask, a bool tensor (True = may attend) or an additive float tensor.
        bias: a tensor that broadcasts to ``(..., head, query, key)``, or one of ``regard.biases``.
        scale: factor on the dot products; 1/√channel by default.
        softcap: squash the scaled products smoothly into ±softcap.
        sinks: ``(head,)``, one extra logit per head that takes weight but has no value.
        dropout: probability of dropping a weight. It is applied whenever it is above 0.

    Returns:
        ``(..., head, query, value channel)`` in the dtype of q.

    >>> from regard import masks
    >>> q, k, v = (torch.randn(2, 8, 1000, 64) for _ in range(3))
    >>> attention(q, k, v).shape
    torch.Size([2, 8, 1000, 64])
    >>> attention(q, k, v, mask=masks.window(10, 0)).shape
    torch.Size([2, 8, 1000, 64])
    >>> attention(q, k[:, :2], v[:, :2]).shape  # four query heads share a key head
    torch.Size([2, 8, 1000, 64])
    """
    if torch.compiler.is_compiling():
        from regard.kernels.traced_call import traced_call

        return traced_call(q, k, v, mask, bias, scale, softcap, sinks, dropout)
    observed = has_torch_function((q, k, v))
    if not observed and bias is None and softcap is None and sinks is None and dropout == 0.0:
        output = direct_call(q, k, v, mask, scale)
        if output is not None:
            return output
    options: dict[str, Any] = {
        "mask": mask,
        "bias": bias,
        "scale": scale,
        "softcap": softcap,
        "sinks": sinks,
        "dropout": dropout,
    }
    if observed:
        # Torch's protocol for observing or replacing a call; regard.watch uses it.
        seen: Tensor = handle_torch_function(attention, (q, k, v), q, k, v, **options)
        return seen
    inputs = prepare(q, k, v, **options)
    plan = plan_extent(inputs.mask, inputs.extent)
    if _sdpa_can(inputs, plan):
        with full_precision(inputs.q):
            return inputs.restore(_sdpa(inputs, plan))
    return inputs.restore(run_planned(inputs, plan)[0])


def attention_with_lse(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: MaskLike | None = None,
    bias: BiasLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """``attention()``, and the log-sum-exp of every row, ``(..., head, query)``.

    Any weight is ``exp(s_ij − lse_i)``. The lse is −inf for a query that sees no key, is computed in
    at least float32, and carries no gradient.

    >>> q = k = v = torch.zeros(1, 4, 8)
    >>> attention_with_lse(q, k, v)[1]  # four equal scores of 0: log 4
    tensor([[1.3863, 1.3863, 1.3863, 1.3863]])
    """
    inputs = prepare(
        q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, sinks=sinks, dropout=dropout
    )
    output, lse = run_planned(inputs, plan_extent(inputs.mask, inputs.extent))
    return inputs.restore(output), inputs.restore(lse)


def attention_weights(
    q: Tensor,
    k: Tensor,
    *,
    mask: MaskLike | None = None,
    bias: BiasLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """The dense attention weights ``(..., head, query, key)``: this one is n×n.

    A row sums to 1, to 0 if its query sees no key, and to less than 1 if a sink takes the rest.
    Gradients flow as in :func:`attention`.

    >>> q = k = torch.eye(2)
    >>> attention_weights(q, k, scale=1.0)
    tensor([[0.7311, 0.2689],
            [0.2689, 0.7311]])
    """
    inputs = prepare(q, k, None, mask=mask, bias=bias, scale=scale, softcap=softcap, sinks=sinks)
    wide = torch.float64 if inputs.steep else torch.promote_types(inputs.q.dtype, torch.float32)
    group = inputs.heads // max(1, inputs.k.shape[1])
    keys = inputs.k.repeat_interleave(group, 1) if group > 1 else inputs.k
    with full_precision(inputs.q):
        scores, _ = scores_of(
            inputs.q.to(wide), keys.to(wide), _dense_bias(inputs), ScoreOptions(inputs.scale, inputs.softcap)
        )
    allowed = dense_mask(inputs.mask, inputs.extent, (0, inputs.extent.keys), inputs.q.device)
    if allowed is not None:
        scores = scores.masked_fill(~flatten_lead(allowed, inputs.lead), -torch.inf)
    if not scores.shape[-1]:
        return inputs.restore(scores.to(inputs.q.dtype))
    highest = scores.detach().amax(-1, keepdim=True)
    sink = None if inputs.sinks is None else inputs.sinks.to(wide)[:, None, None]
    if sink is not None:
        highest = torch.maximum(highest, sink.detach())
    # For rows that see no key any finite number will do: their powers are 0.
    powers = exp(scores - torch.where(highest == -torch.inf, 0.0, highest))
    total = powers.sum(-1, keepdim=True)
    if sink is not None:
        total = total + torch.exp(sink - highest)
    return inputs.restore((powers / torch.where(total > 0, total, 1.0)).to(inputs.q.dtype))


# ---- the paths -------------------------------------------------------------------------------


def _sdpa_can(inputs: Inputs, plan: Plan) -> bool:
    """Whether a single call of torch's SDPA computes the result."""
    return (
        plan.single is not None
        and not inputs.steep
        and inputs.softcap is None
        and inputs.sinks is None
        and inputs.q.shape[-1] == inputs.v.shape[-1]
        and (plan.path == "masked" or inputs.bias is None)
        and all(inputs.q.shape)
        and all(inputs.k.shape)
    )


def _sdpa(inputs: Inputs, plan: Plan) -> Tensor:
    inputs = inputs.with_positive_scale()
    assert plan.single is not None
    keys = slice(*plan.single)
    added = allowed_by(plan, plan.single, inputs.q.device)
    added = None if added is None else flatten_lead(added, inputs.lead)
    if inputs.bias is not None:
        bias = _dense_bias(inputs)
        assert bias is not None
        bias = bias[..., keys] if bias.shape[-1] > 1 else bias
        added = bias if added is None else bias.masked_fill(~added, -torch.inf)
        added = added.to(inputs.q.dtype)
    return F.scaled_dot_product_attention(
        inputs.q,
        inputs.k[:, :, keys],
        inputs.v[:, :, keys],
        attn_mask=added,
        dropout_p=inputs.dropout,
        is_causal=plan.path == "causal",
        scale=inputs.scale,
        enable_gqa=inputs.heads != inputs.k.shape[1],
    )


def run_planned(inputs: Inputs, plan: Plan) -> tuple[Tensor, Tensor]:
    """Output and lse, by FlexAttention or tile by tile."""
    if inputs.q.device.type == "meta" or is_fake(inputs.q):
        wide = torch.promote_types(inputs.q.dtype, torch.float32)
        shape = inputs.q.shape[:-1]
        return inputs.q.new_empty((*shape, inputs.v.shape[-1])), inputs.q.new_empty(shape, dtype=wide)
    if inputs.steep and inputs.q.dtype != torch.float64:
        output, lse = run_planned(inputs.in_double(), plan)
        return output.to(inputs.q.dtype), lse.float()
    if _flex_can(inputs, plan):
        return run_flex(inputs)
    channels, values = inputs.q.shape[-1], inputs.v.shape[-1]
    if channels == values:
        return run(inputs, plan)
    # The fused kernel needs as many value channels as key channels. Padding with zeros changes no result.
    widest = max(channels, values)
    even = replace(
        inputs,
        q=F.pad(inputs.q, (0, widest - channels)),
        k=F.pad(inputs.k, (0, widest - channels)),
        v=F.pad(inputs.v, (0, widest - values)),
    )
    output, lse = run(even, plan)
    return output[..., :values], lse


def _flex_can(inputs: Inputs, plan: Plan) -> bool:
    """Whether FlexAttention can compute this call; its compiled kernels beat tiles launched one by one."""
    return (
        inputs.q.device.type in FLEX_DEVICES
        and plan.path not in ("full", "causal", "masked", "empty")
        and len(inputs.mask.lead) <= 2
        and len(inputs.lead) <= 1
        and inputs.bias is None
        and not inputs.dropout
        and inputs.q.dtype != torch.float64
        and inputs.q.shape[-1] >= 16  # the minimum of its kernels
    )


def run_flex(inputs: Inputs, *, compiled: bool = True) -> tuple[Tensor, Tensor]:
    """Output and lse by FlexAttention, with fully masked rows and sinks corrected."""
    from torch.nn.attention.flex_attention import AuxRequest

    inputs = inputs.with_positive_scale()
    attend = _compiled() if compiled else _uncompiled()
    block_mask = _cached_block_mask(inputs.mask, inputs.extent, inputs.q.device)
    output, extra = attend(
        inputs.q,
        inputs.k,
        inputs.v,
        score_mod=_softcapped(inputs.softcap),
        block_mask=block_mask,
        scale=inputs.scale,
        enable_gqa=inputs.heads != inputs.k.shape[1],
        return_aux=AuxRequest(lse=True),
    )
    output, lse = add_sinks(output, extra.lse, inputs.sinks)
    return output, lse.detach()


@lru_cache(maxsize=64)
def _cached_block_mask(mask: Mask, extent: Extent, device: torch.device) -> Any:
    # All layers of a model use the same mask.
    return mask.block_mask(*extent, device=device)


def _softcapped(softcap: float | None) -> Callable[..., Tensor] | None:
    if softcap is None:
        return None

    def bend(score: Tensor, *_: Tensor) -> Tensor:
        return softcap * torch.tanh(score / softcap)

    return bend


def _uncompiled() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention


@cache
def _compiled() -> Any:
    return torch.compile(_uncompiled(), dynamic=False)


# ---- dense masks and biases, for short sequences and on request ------------------------------


def _dense_bias(inputs: Inputs) -> Tensor | None:
    """The whole bias ``(batch or 1, head or 1, query, key)`` in at least float32."""
    if inputs.bias is None:
        return None
    extent: Extent = inputs.extent
    device = inputs.q.device
    q, k = torch.arange(extent.offset, extent.keys, device=device), torch.arange(extent.keys, device=device)
    return inputs.bias.tile(inputs.bias.tables, q, k, extent).to(
        torch.promote_types(inputs.q.dtype, torch.float32)
    )
