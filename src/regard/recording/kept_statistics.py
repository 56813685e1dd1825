"""Statistics in a recording: select heads, join rows, or compute them from a matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels import Statistics

PER_QUERY = (
    "lse", "entropy", "visible", "self_weight", "previous_weight", "first_weight", "distance",
    "peak", "peak_key",
)  # fmt: skip


def each_statistic(found: Statistics, change: Callable[[Tensor], Tensor]) -> Statistics:
    """The statistics with every tensor changed."""
    changed: dict[str, Any] = {
        name: None if value is None else change(value) for name, value in vars(found).items()
    }
    return Statistics(**changed)


def some_heads(found: Statistics, heads: Tensor) -> Statistics:
    """The statistics of some heads, without the output, which belongs to the model."""
    return replace(each_statistic(found, lambda value: value.index_select(1, heads)), output=None)


def placed(found: Statistics, first_key: int) -> Statistics:
    """Statistics over the last keys of a text as statistics over all of it.

    A sliding cache has dropped ``first_key`` keys that no query sees any more: they receive
    nothing, and keys are counted from the beginning of the text.
    """
    if not first_key:
        return found
    return replace(
        found,
        received=F.pad(found.received, (first_key, 0)),
        first_weight=torch.zeros_like(found.first_weight),
        peak_key=_later(found.peak_key, first_key),
        top_keys=None if found.top_keys is None else _later(found.top_keys, first_key),
    )


def _later(keys: Tensor, first_key: int) -> Tensor:
    return torch.where(keys < 0, keys, keys + first_key)


def joined(before: Statistics, after: Statistics) -> Statistics:
    """The statistics of all rows, where the later rows may see more keys."""
    longer = after.received.shape[-1] - before.received.shape[-1]
    rows = {name: torch.cat([getattr(before, name), getattr(after, name)], -1) for name in PER_QUERY}
    tops = {
        name: None
        if getattr(before, name) is None or getattr(after, name) is None
        else torch.cat([getattr(before, name), getattr(after, name)], -2)
        for name in ("top_weights", "top_keys")
    }
    received = F.pad(before.received, (0, longer)) + after.received
    return Statistics(**{**rows, **tops, "received": received, "output": None})  # type: ignore[arg-type]


def statistics_of_weights(weights: Tensor, top: int) -> Statistics:
    """The statistics of a dense matrix ``(batch, head, query, key)``; a key with weight 0 counts as unseen.

    The matrix says nothing about the scores, so lse is 0 where a row has weights: that of weights
    that sum to 1. A query that sees nothing has lse −inf and keys −1.
    """
    weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
    queries, keys = weights.shape[-2:]
    position = torch.arange(keys - queries, keys, device=weights.device)
    key = torch.arange(keys, device=weights.device)
    peak, peak_key = weights.max(-1)
    top_weights, top_keys = F.pad(weights, (0, max(0, top - keys))).topk(top, -1)
    mass = weights.sum(-1)
    sees = mass > 0
    gaps = (position[:, None] - key).abs().to(weights.dtype)
    return Statistics(
        output=None,
        lse=torch.where(sees, 0.0, -torch.inf).to(weights.dtype),
        entropy=(-torch.xlogy(weights, weights).sum(-1)).clamp(min=0),
        visible=(weights > 0).sum(-1),
        received=weights.sum(-2),
        self_weight=_on_key(weights, position),
        previous_weight=_on_key(weights, position - 1),
        first_weight=weights[..., 0],
        distance=(weights * gaps).sum(-1) / torch.where(mass > 0, mass, 1.0),
        peak=peak,
        peak_key=torch.where(sees, peak_key, -1),
        top_weights=top_weights if top else None,
        top_keys=torch.where(top_weights > 0, top_keys, -1) if top else None,
    )


def _on_key(weights: Tensor, key: Tensor) -> Tensor:
    """The weight of each row on its key; 0 where that key does not exist."""
    inside = (key >= 0) & (key < weights.shape[-1])
    index = key.clamp(0, weights.shape[-1] - 1)[:, None].expand(*weights.shape[:-1], 1)
    return weights.gather(-1, index)[..., 0] * inside
