"""Heads with known answers: scores are written down, and Q and K are made to have them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard import masks
from regard.kernels import attention_with_lse
from regard.recording import Call, Recording, ScoredCall

SURE = 60.0
"""A score that leaves others e⁻⁶⁰."""


def call_with(scores: Tensor, kind: str = "encoder", **options: Any) -> Call:
    """A call whose scores are these, ``(batch, head, query, key)``: Q are the scores, K the unit vectors."""
    batch, heads, _, keys = scores.shape
    k = torch.eye(keys, dtype=scores.dtype).expand(batch, heads, keys, keys).contiguous()
    mask = options.pop("mask", masks.causal() if kind == "decoder" else masks.everything())
    _, lse = attention_with_lse(scores, k, k, mask=mask, scale=1.0, **options)
    return ScoredCall("made", kind, 0, scores, k, lse, mask=mask, scale=1.0, **options)


def recording_of(*heads: Tensor, kind: str = "encoder", **options: Any) -> Recording:
    """One call with one head per matrix ``(query, key)`` of scores."""
    return Recording("made", [call_with(torch.stack(heads)[None], kind, **options)])


def looking(queries: int, keys: int, choose: Any) -> Tensor:
    """Scores of a head whose query i looks at ``choose(i)`` alone, or at all if that is nothing."""
    scores = torch.zeros(queries, keys)
    for i in range(queries):
        for j in choose(i):
            if 0 <= j < keys:
                scores[i, j] = SURE
    return scores
