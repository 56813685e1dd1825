"""Recordings whose lse is the real one, and the weights that a plane of them must show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from parity import definition
from regard.kernels import attention_with_lse
from regard.kernels.bias import TensorBias
from regard.masks import Mask, padding
from regard.recording import Call, Recording, ScoredCall


def with_lse(call: Call) -> Call:
    """The call with the lse that its own scores have."""
    q, k = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (call.q, call.k))
    _, lse = attention_with_lse(q, k, k, **options_of(call))
    return replace(call, lse=lse)


def options_of(call: Call) -> dict[str, Any]:
    return {name: getattr(call, name) for name in ("mask", "bias", "scale", "softcap", "sinks")}


def exact(call: Call, hidden: np.ndarray | None = None) -> np.ndarray:
    """The definition's weights ``(batch, head, query, key)``, with some keys hidden."""
    options = options_of(call)
    if isinstance(options["bias"], TensorBias):
        options["bias"] = options["bias"].values
    if hidden is not None:
        options["mask"] = options["mask"] & padding(~hidden)
    return definition(call.q, call.k, call.k, **options)["weights"]


def made(
    queries: int,
    keys: int,
    *,
    mask: Mask,
    channels: int = 3,
    heads: int = 1,
    size: float = 1.0,
    seed: int = 0,
) -> Call:
    """A call of random Q and K."""
    chance = torch.Generator().manual_seed(seed)
    q = size * torch.randn(1, heads, queries, channels, generator=chance)
    k = size * torch.randn(1, heads, keys, channels, generator=chance)
    return with_lse(
        ScoredCall("layers.0", "decoder", 0, q, k, torch.zeros(q.shape[:3]), mask=mask, scale=0.6)
    )


def blocks(weights: np.ndarray, step: int, kind: str) -> np.ndarray:
    """Mean or maximum of every block, by NumPy's own means."""
    down, across = (np.arange(0, size, step) for size in weights.shape)
    if kind == "max":
        return np.maximum.reduceat(np.maximum.reduceat(weights, down, 0), across, 1)
    sums, pairs = (
        np.add.reduceat(np.add.reduceat(of, down, 0), across, 1) for of in (weights, np.ones_like(weights))
    )
    return sums / pairs


def recording_of(call: Call) -> Recording:
    return Recording("Toy", [call])
