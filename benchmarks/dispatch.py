"""Short calls, mask tensors, decoding and documents: regard against torch on the same work, in one run.

python benchmarks/dispatch.py            on one thread and on all
python benchmarks/dispatch.py --quick    fewer rounds
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from harness import THREADS, Row, faster, not_slower, report
from torch import Tensor

import regard
from regard import masks

HEADS, CHANNELS = 8, 64
sdpa = F.scaled_dot_product_attention


def tensors(n: int, *, batch: int = 1, keys: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(batch, HEADS, length, CHANNELS) for length in (n, keys or n, keys or n))
    return q, k, v


def mask_tensors(rounds: int) -> Iterator[Row]:
    for n in (512, 2048):
        q, k, v = tensors(n)
        keep = torch.rand(n, n) > 0.3
        added = torch.zeros(n, n).masked_fill(~keep, -torch.inf)
        for name, mask in (("bool", keep), ("float", added)):
            yield not_slower(
                f"dense {name} tensor, n = {n}",
                partial(regard.attention, q, k, v, mask=mask),
                partial(sdpa, q, k, v, attn_mask=mask),
                most=1.05,
                rounds=rounds,
            )


def hundred(work: Callable[..., object], *tensors: torch.Tensor) -> None:
    """A hundred calls, since one is too short to be timed."""
    for _ in range(100):
        work(*tensors)


def short_calls(rounds: int) -> Iterator[Row]:
    for n in (32, 128):
        q, k, v = tensors(n, batch=32)
        keep = torch.arange(n) < torch.randint(1, n + 1, (32, 1))
        mask, dense = masks.padding(keep), keep[:, None, None]
        yield not_slower(
            f"ragged padding, batch 32, n = {n}",
            partial(regard.attention, q, k, v, mask=mask),
            partial(sdpa, q, k, v, attn_mask=dense),
            most=1.1,
            rounds=2 * rounds,
        )
    window = masks.window(256, 0)
    for keys, most in ((1024, 1.6), (4096, 1.5), (8192, 1.5)):
        q, k, v = tensors(1, keys=keys)
        yield not_slower(
            f"decode: one query, window(256, 0), cache of {keys}, against the slice; 100 calls",
            partial(hundred, partial(regard.attention, q, k, v, mask=window)),
            partial(hundred, lambda q, k, v: sdpa(q, k[:, :, -257:], v[:, :, -257:]), q, k, v),
            most=most,
            rounds=2 * rounds,
        )


def documents(rounds: int) -> Iterator[Row]:
    n, length = 4096, 256
    q, k, v = tensors(n)
    mask = masks.causal() & masks.documents(torch.arange(n) // length)
    starts = range(0, n, length)
    yield faster(
        "16 causal documents, n = 4096, against one is_causal call for each",
        lambda: regard.attention(q, k, v, mask=mask),
        lambda: [
            sdpa(q[:, :, a : a + length], k[:, :, a : a + length], v[:, :, a : a + length], is_causal=True)
            for a in starts
        ],
        least=0.95,
        rounds=2 * rounds,
    )
    shuffled = torch.randint(0, 40, (n,))
    dilated = masks.documents(torch.arange(n) % 4) & masks.window(256, 256)
    for name, sparse, least in (
        ("40 shuffled documents", masks.documents(shuffled), 8),
        ("dilated window: every 4th key, 64 on either side", dilated, 6),
    ):
        dense = sparse.dense(n)
        yield faster(
            f"{name}, n = 4096, against the dense mask",
            partial(regard.attention, q, k, v, mask=sparse),
            partial(sdpa, q, k, v, attn_mask=dense),
            least=least,
            rounds=max(2, rounds // 2),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    rounds = 3 if parser.parse_args().quick else 7
    for threads in (1, THREADS):
        torch.set_num_threads(threads)
        with torch.no_grad():
            rows = [*mask_tensors(rounds), *short_calls(rounds), *documents(rounds)]
        name = "dispatch" if threads > 1 else "dispatch_one_thread"
        report(name, f"Planning and dispatch, torch at {threads} of {THREADS} threads", rows)


if __name__ == "__main__":
    main()
