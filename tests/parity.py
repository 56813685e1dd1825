"""Comparing with the definition: the float64 reference in NumPy, and how close is close enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.kernels import biases, reference
from regard.masks import Mask

# The greatest error seen in the tests of each dtype, times about four.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 6e-3, torch.bfloat16: 5e-2}


def as_numbers(x: Any) -> Any:
    return x.detach().double().numpy() if isinstance(x, Tensor) else x


def definition(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> reference.Trace:
    """The reference on what the tensors really hold, in float64."""
    bias = options.get("bias")
    if isinstance(bias, biases.Bias):
        options["bias"] = bias.dense(q.shape[-2], k.shape[-2])
    mask = options.get("mask")
    if isinstance(mask, Tensor) and mask.is_floating_point():
        extra = torch.where(mask == -torch.inf, 0.0, mask)
        options["bias"] = extra if options.get("bias") is None else options["bias"] + extra
        options["mask"] = mask != -torch.inf
    if isinstance(options.get("mask"), Tensor):
        options["mask"] = options["mask"].numpy()
    return reference.attention(
        *map(as_numbers, (q, k, v)),
        **{name: value if isinstance(value, Mask) else as_numbers(value) for name, value in options.items()},
    )


def assert_close(found: Tensor, wanted: Any, dtype: torch.dtype, what: str = "output") -> None:
    """Equal shapes, equal infinities, no NaN, and values within the tolerance of the dtype."""
    found_numbers, wanted_numbers = as_numbers(found), np.asarray(as_numbers(wanted))
    assert found_numbers.shape == wanted_numbers.shape, (
        f"{what}: {found_numbers.shape} ≠ {wanted_numbers.shape}"
    )
    assert not np.isnan(found_numbers).any(), f"{what}: NaN"
    infinite = np.isinf(wanted_numbers)
    assert (np.isinf(found_numbers) == infinite).all(), f"{what}: −inf in other places"
    error = np.abs(np.where(infinite, 0, found_numbers) - np.where(infinite, 0, wanted_numbers))
    scale = np.maximum(1, np.abs(np.where(infinite, 0, wanted_numbers)))
    worst = (error / scale).max(initial=0)
    assert worst <= TOLERANCE[dtype], f"{what}: error {worst:.2e} is above {TOLERANCE[dtype]:.0e} for {dtype}"


def tensors(
    *lead: int,
    heads: int = 3,
    key_heads: int | None = None,
    queries: int = 7,
    keys: int | None = None,
    channels: int = 5,
    values: int | None = None,
    dtype: torch.dtype = torch.float64,
    grad: bool = False,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v with a different size for every axis."""
    chance = torch.Generator().manual_seed(seed)
    keys = queries if keys is None else keys
    key_heads = heads if key_heads is None else key_heads
    shapes = [(heads, queries, channels), (key_heads, keys, channels), (key_heads, keys, values or channels)]
    q, k, v = (
        torch.randn(*lead, *shape, generator=chance, dtype=torch.float64).to(dtype).requires_grad_(grad)
        for shape in shapes
    )
    return q, k, v
