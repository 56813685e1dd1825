"""Attention with dense weights whose gradients autograd keeps: the oracle for recorded gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils


class DenseAttention:
    """Computes attention as softmax over a matrix, and keeps scores, weights and outputs with gradients."""

    def __init__(self) -> None:
        self.scores: list[Tensor] = []
        self.weights: list[Tensor] = []
        self.outputs: list[Tensor] = []

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        *,
        scale: float,
        softcap: float | None = None,
        bias: Tensor | None = None,
        sinks: Tensor | None = None,
    ) -> Tensor:
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ k.mT * scale
        if softcap is not None:
            scores = softcap * (scores / softcap).tanh()
        if bias is not None:
            scores = scores + bias
        visible = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
        columns = visible
        if sinks is not None:
            sink = sinks.to(scores)[None, :, None, None].expand(*scores.shape[:3], 1)
            columns = torch.cat([visible, sink], -1)
        weights = columns.softmax(-1)[..., : k.shape[2]]
        output = weights @ v
        for kept, tensor in ((self.scores, scores), (self.weights, weights), (self.outputs, output)):
            tensor.retain_grad()
            kept.append(tensor)
        return output


@contextmanager
def dense_transformers(model: Any) -> Iterator[DenseAttention]:
    """Let a transformers model compute its attention densely."""
    dense = DenseAttention()

    def attention(
        module: nn.Module,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        scaling: float | None = None,
        softcap: float | None = None,
        s_aux: Tensor | None = None,
        position_bias: Tensor | None = None,
        **options: Any,
    ) -> tuple[Tensor, None]:
        scale = q.shape[-1] ** -0.5 if scaling is None else scaling
        output = dense.attend(q, k, v, mask, scale=scale, softcap=softcap, bias=position_bias, sinks=s_aux)
        return output.transpose(1, 2).contiguous(), None

    def whole_mask(*args: Any, **options: Any) -> Tensor | None:
        skips = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        return masking_utils.sdpa_mask(*args, **{**options, **skips})

    AttentionInterface.register("dense_oracle", attention)
    AttentionMaskInterface.register("dense_oracle", whole_mask)
    before = model.config._attn_implementation
    model.set_attn_implementation("dense_oracle")
    try:
        yield dense
    finally:
        model.set_attn_implementation(before)


@contextmanager
def dense_torch() -> Iterator[DenseAttention]:
    """Let ``torch.nn`` compute its attention densely."""
    dense, original = DenseAttention(), F.scaled_dot_product_attention

    def attention(
        q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, causal: bool
    ) -> Tensor:
        bias = None
        if mask is not None and mask.dtype != torch.bool:
            mask, bias = mask > -torch.inf, mask.masked_fill(mask == -torch.inf, 0)
        if causal:
            mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        return dense.attend(q, k, v, mask, scale=q.shape[-1] ** -0.5, bias=bias)

    F.scaled_dot_product_attention = attention
    try:
        yield dense
    finally:
        F.scaled_dot_product_attention = original
