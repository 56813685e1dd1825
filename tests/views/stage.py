"""A page with everything on it, and the numbers that it must show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from parity import definition, tensors
from regard import biases, masks
from regard.recording import Recording, ScoredCall

SOURCE = ["[CLS]", "un", "##believ", "##able", "cats", "sat", "on", "the", "wall", "##paper", "[SEP]"]
TARGET = ["<s>", "猫", "坐", "在", "地", "上", "</s>"]


@dataclass(frozen=True)
class Stage:
    """A recording with the trace of the definition for each of its calls."""

    recording: Recording
    traces: list[Any]

    def weights(self, call: int, head: int) -> np.ndarray:
        """The exact weights ``(query, key)``."""
        return self.traces[call]["weights"][0, head]


def everything() -> Stage:
    """Encoder, decoder and cross-attention, two layers each, with every option somewhere."""
    calls, traces = [], []

    def add(kind: Any, layer: int, sizes: dict[str, int], size: float, **options: Any) -> None:
        q, k, v = tensors(1, dtype=torch.float32, seed=len(calls), **sizes)
        q = q * size
        traces.append(definition(q, k, v, **options))
        mask = options.pop("mask", masks.everything())
        lse = torch.from_numpy(traces[-1]["lse"]).float()
        scale = options.pop("scale", q.shape[-1] ** -0.5)
        calls.append(
            ScoredCall(
                f"{kind}.{layer}.attention", kind, layer, q, k, lse, v, mask=mask, scale=scale, **options
            )
        )

    source, target = len(SOURCE), len(TARGET)
    for layer in (0, 1):
        add("encoder", layer, {"heads": 5, "queries": source, "channels": 8}, 2.0)
    sinks = torch.linspace(-1, 1, 4)
    bias = biases.alibi(4)
    decoder = {"heads": 4, "key_heads": 2, "queries": target, "channels": 6, "values": 3}
    add("decoder", 0, decoder, 2.0, mask=masks.causal(), softcap=3.0, sinks=sinks, bias=bias)
    add("decoder", 1, decoder, 1.0, mask=masks.causal())
    for layer in (0, 1):
        add("cross", layer, {"heads": 4, "queries": target, "keys": source, "channels": 6}, 1.5)
    recording = Recording("Toy", calls)
    recording.tokens = TARGET
    recording.source_tokens = SOURCE
    return Stage(recording, traces)


def long(length: int, heads: int = 2) -> Stage:
    """One causal call over many tokens."""
    q, k, v = tensors(1, heads=heads, queries=length, channels=4, dtype=torch.float32)
    trace = definition(3 * q, k, v, mask=masks.causal())
    lse = torch.from_numpy(trace["lse"]).float()
    call = ScoredCall("layers.0", "decoder", 0, 3 * q, k, lse, mask=masks.causal(), scale=0.5)
    recording = Recording("Toy", [call])
    recording.tokens = [f"w{i}" for i in range(length)]
    return Stage(recording, [trace])
