"""Whether attention is correct on this machine, and how fast: ratios to torch's own, in two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch.nn.functional import scaled_dot_product_attention

from regard import masks
from regard.kernels import attention, attention_statistics, reference

SECONDS = 2.0
HEADS, LENGTH, CHANNELS = 4, 2048, 64
NEAR = 128
"""The window of the benchmark, before and after."""


def error() -> float:
    """The greatest difference between the fast path and the definition, over every path that is planned."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 331, 32, generator=generator) for _ in range(3))
    worst = 0.0
    for mask in (masks.causal(), masks.window(20, 20), masks.local_global(32)):
        exact = reference.attention(q.double(), k.double(), v.double(), mask=mask.dense(331, 331)).output
        found = attention(q, k, v, mask=mask).double()
        worst = max(worst, float((found - torch.as_tensor(exact)).abs().max()))
    return worst


def statistics_error() -> float:
    """The greatest difference between the entropy and the definition, over what each row may see."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 331, 32, generator=generator) for _ in range(2))
    worst = 0.0
    for mask in (masks.everything(), masks.causal(), masks.local_global(32)):
        exact = reference.attention(q.double(), k.double(), k.double(), mask=mask.dense(331, 331))["weights"]
        entropy = torch.special.entr(torch.as_tensor(exact)).sum(-1)
        worst = max(worst, float((attention_statistics(q, k, mask=mask).entropy - entropy).abs().max()))
    return worst


def ratios(seconds: float = SECONDS) -> dict[str, float]:
    """A window, as a multiple of the speed of SDPA with its dense mask; statistics, of the time of SDPA."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, LENGTH, CHANNELS, generator=generator) for _ in range(3))
    window = masks.window(NEAR, NEAR)
    dense = window.dense(LENGTH, LENGTH)
    best = _best_times(
        {
            "window": lambda: attention(q, k, v, mask=window),
            "dense": lambda: scaled_dot_product_attention(q, k, v, attn_mask=dense),
            "statistics": lambda: attention_statistics(q, k, v),
            "sdpa": lambda: scaled_dot_product_attention(q, k, v),
        },
        seconds,
    )
    return {"window": best["dense"] / best["window"], "statistics": best["statistics"] / best["sdpa"]}


def _best_times(works: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The best time of each, taken in turn, so that other load affects all of them."""
    best = dict.fromkeys(works, float("inf"))
    end = time.perf_counter() + seconds
    with torch.no_grad():
        for work in works.values():
            work()
        while True:
            for name, work in works.items():
                start = time.perf_counter()
                work()
                best[name] = min(best[name], time.perf_counter() - start)
            if time.perf_counter() > end:
                return best
