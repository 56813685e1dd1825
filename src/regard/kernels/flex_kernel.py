"""FlexAttention on CUDA, where its compiled kernels beat tiles launched one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from regard.kernels.inputs import Inputs
from regard.kernels.plain_kernel import add_sinks
from regard.kernels.plan import Plan


def flex_can(inputs: Inputs, plan: Plan) -> bool:
    """Whether FlexAttention can compute this call, and faster."""
    return (
        inputs.q.device.type == "cuda"
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
    block_mask = inputs.mask.block_mask(*inputs.extent, device=inputs.q.device)
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
