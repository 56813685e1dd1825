"""Recordings of one call, made from tensors, and the weights that they must show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from parity import definition, tensors
from regard import biases, masks
from regard.recording import DenseCall, Recording, ScoredCall


def recorded(q: Tensor, k: Tensor, v: Tensor | None = None, **options: Any) -> Recording:
    """A recording of one call with these tensors, ``(batch, head, length, channel)``."""
    options.setdefault("scale", q.shape[-1] ** -0.5)
    mask = options.pop("mask", masks.everything())
    kind = "encoder" if q.shape[2] == k.shape[2] else "cross"
    call = ScoredCall("layers.0", kind, 0, q, k, torch.zeros(q.shape[:3]), v, mask=mask, **options)
    return Recording("Toy", [call])


def dense(weights: Tensor, kind: Any = "encoder") -> Recording:
    """A recording of weights alone."""
    return Recording("Toy", [DenseCall("layers.0", kind, 0, weights)])


def case(
    *,
    sizes: dict[str, Any] | None = None,
    dtype: torch.dtype = torch.float32,
    size: float = 1.0,
    **options: Any,
) -> tuple[Recording, np.ndarray]:
    """A recording of two sequences, and the exact weights ``(batch, head, query, key)``."""
    made = {"heads": 6, "queries": 13, "keys": 13, "channels": 7, **(sizes or {})}
    q, k, v = tensors(2, dtype=torch.float32, **made)
    q, k, v = ((size * x).to(dtype) for x in (q, k, v))
    options = {name: make(made) if callable(make) else make for name, make in options.items()}
    wanted = definition(q, k, v, **options)["weights"]
    return recorded(q, k, v, **options), wanted


def _table(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


KEEP = torch.ones(2, 13, dtype=torch.bool)
KEEP[0, :4] = False
KEEP[1, 9:] = False
PER_HEAD = torch.rand(2, 6, 13, 13, generator=torch.Generator().manual_seed(5)) < 0.4
PER_HEAD[:, :, 3] = False  # a row that sees nothing

CASES: dict[str, Callable[[], tuple[Recording, np.ndarray]]] = {
    "plain": case,
    "large scores": lambda: case(size=6.0),
    "very large scores": lambda: case(size=100.0),
    "enormous scores": lambda: case(size=3000.0),
    "scale": lambda: case(scale=0.3),
    "grouped": lambda: case(sizes={"key_heads": 2}),
    "one key head": lambda: case(sizes={"key_heads": 1}),
    "fewer keys": lambda: case(sizes={"keys": 5}),
    "more keys": lambda: case(sizes={"keys": 29}),
    "causal": lambda: case(mask=masks.causal()),
    "causal behind a cache": lambda: case(sizes={"queries": 3}, mask=masks.causal()),
    "causal with fewer keys": lambda: case(sizes={"keys": 5}, mask=masks.causal()),
    "window": lambda: case(mask=masks.window(3, 1)),
    "padding": lambda: case(mask=masks.padding(KEEP) & masks.causal()),
    "padded queries": lambda: case(mask=masks.padding(KEEP) & masks.padding(KEEP).T),
    "documents": lambda: case(mask=masks.documents([0] * 5 + [1] * 6 + [0] * 2) & masks.causal()),
    "a mask per head": lambda: case(mask=masks.dense(PER_HEAD)),
    "a mask per grouped head": lambda: case(sizes={"key_heads": 3}, mask=masks.dense(PER_HEAD)),
    "nothing": lambda: case(mask=masks.nothing()),
    "alibi": lambda: case(bias=lambda made: biases.alibi(made["heads"])),
    "relative": lambda: case(bias=biases.relative(_table(6, 9))),
    "relative with fewer keys": lambda: case(sizes={"keys": 5}, bias=biases.relative(_table(1, 5))),
    "relative behind a cache": lambda: case(sizes={"queries": 4}, bias=biases.relative(_table(6, 31))),
    "t5": lambda: case(bias=biases.t5(3 * _table(32, 6)), mask=masks.causal()),
    "two biases": lambda: case(bias=biases.alibi(6) + biases.relative(_table(6, 9))),
    "softcap": lambda: case(size=4.0, softcap=3.0),
    "softcap and bias": lambda: case(size=4.0, softcap=3.0, bias=biases.alibi(6)),
    "sinks": lambda: case(sinks=_table(6)),
    "sinks over nothing": lambda: case(sinks=_table(6), mask=masks.padding(KEEP) & masks.padding(KEEP).T),
    "bfloat16": lambda: case(dtype=torch.bfloat16, size=3.0),
    "float16": lambda: case(dtype=torch.float16),
    "float64": lambda: case(dtype=torch.float64),
}


def bias_of_tensors(*shape: int) -> tuple[Recording, np.ndarray]:
    """A bias that is not a function of distance."""
    from regard.kernels.bias import TensorBias

    q, k, v = tensors(2, heads=6, queries=13, keys=11, channels=7, dtype=torch.float32)
    table = 5 * _table(*shape)
    wanted = definition(q, k, v, bias=table)["weights"]
    return recorded(q, k, v, bias=TensorBias(table)), wanted


for shape in [(2, 6, 13, 11), (1, 6, 1, 11), (2, 1, 13, 1), (1, 1, 1, 1)]:
    CASES[f"a bias of shape {shape}"] = lambda shape=shape: bias_of_tensors(*shape)
