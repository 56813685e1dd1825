"""Short calls, mask tensors, decoding, documents, images, compiled layers: regard and torch in one run.

python benchmarks/dispatch.py                                  on one thread and on all
python benchmarks/dispatch.py --quick                          fewer rounds
python benchmarks/dispatch.py --only tensors --threads 2       some rows, printed only
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from harness import THREADS, Row, compared, faster, not_slower, report
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

import regard
from regard import masks

HEADS, CHANNELS = 8, 64
sdpa = F.scaled_dot_product_attention


def tensors(n: int, *, batch: int = 1, keys: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(batch, HEADS, length, CHANNELS) for length in (n, keys or n, keys or n))
    return q, k, v


def mask_tensors(rounds: int) -> Iterator[Row]:
    for n in (512, 1024, 2048, 4096):
        q, k, v = tensors(n)
        keep = torch.rand(n, n) > 0.3
        added = torch.zeros(n, n).masked_fill(~keep, -torch.inf)
        for name, mask in (("bool", keep), ("float", added)):
            yield not_slower(
                f"dense {name} tensor, n = {n}",
                partial(regard.attention, q, k, v, mask=mask),
                partial(sdpa, q, k, v, attn_mask=mask),
                most=1.05,
                rounds=max(5, rounds * min(4, 2048 // n)),
            )


def hundred(work: Callable[..., object], *tensors: torch.Tensor) -> None:
    """A hundred calls, since one is too short to be timed."""
    for _ in range(100):
        work(*tensors)


def tiny_calls(rounds: int) -> Iterator[Row]:
    """What a call costs apart from its work; SDPA's own time is next to it."""
    q, k, v = (torch.randn(1, 1, 4, 8) for _ in range(3))
    allowed = masks.window(1, 0).dense(4)
    added = torch.zeros(4, 4).masked_fill(~allowed, -torch.inf)
    kinds: tuple[tuple[str, masks.MaskLike | None, Tensor | None], ...] = (
        ("no mask", None, None),
        ("window", masks.window(1, 0), allowed),
        ("padding", masks.padding([True, True, True, False]), allowed),
        ("bool tensor", allowed, allowed),
        ("float tensor", added, added),
    )
    for name, mask, peer in kinds:
        found = compared(
            partial(hundred, partial(regard.attention, q, k, v, mask=mask)),
            partial(hundred, partial(sdpa, q, k, v, attn_mask=peer)),
            rounds=10 * rounds,
        )
        ours, other = (f"{1e4 * one:.1f} µs" for one in (found.ours, found.peer))
        disturbance = (found.in_words(), found.disturbed)
        work, met = f"tiny call, 4 × 4, {name}", found.ours <= 25e-4
        yield Row(work, ours, other, "", "≤ 25 µs", met, *disturbance)


def short_calls(rounds: int) -> Iterator[Row]:
    for n in (32, 64, 128, 256):
        q, k, v = tensors(n, batch=32)
        keep = torch.arange(n) < torch.randint(1, n + 1, (32, 1))
        mask, dense = masks.padding(keep), keep[:, None, None]
        yield not_slower(
            f"ragged padding, batch 32, n = {n}",
            partial(regard.attention, q, k, v, mask=mask),
            partial(sdpa, q, k, v, attn_mask=dense),
            most=1.1,
            rounds=rounds * max(2, 256 // n),
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
    block_mask = mask.block_mask(n)
    flex: Any = torch.compile(flex_attention)
    yield faster(
        "the same, against compiled flex_attention",
        lambda: regard.attention(q, k, v, mask=mask),
        lambda: flex(q, k, v, block_mask=block_mask),
        least=1,
        rounds=2 * rounds,
    )
    shuffled = torch.randint(0, 40, (n,))
    dilated = masks.documents(torch.arange(n) % 4) & masks.window(256, 256)
    for name, sparse, least in (
        ("40 shuffled documents", masks.documents(shuffled), 8),
        ("dilated window: every 4th key, 64 on either side", dilated, 6),
        ("image of 64 × 64, neighbourhood of 13 × 13", masks.neighbourhood((64, 64), 6), 5),
    ):
        dense = sparse.dense(n)
        yield faster(
            f"{name}, n = 4096, against the dense mask",
            partial(regard.attention, q, k, v, mask=sparse),
            partial(sdpa, q, k, v, attn_mask=dense),
            least=least,
            rounds=max(5, rounds // 2),
        )


class Layer(torch.nn.Module):
    """A projection and an attention, to be compiled and exported."""

    def __init__(self, mask: masks.Mask | None) -> None:
        super().__init__()
        self.mask = mask
        self.project = torch.nn.Linear(32, 96)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        return regard.attention(q, k, v, mask=self.mask).transpose(1, 2).flatten(2)


def compiled_layers() -> Iterator[Row]:
    """The greatest difference of output and gradients, by inductor in one graph, and exported."""
    for mask in (None, masks.causal() & masks.window(20, 0), masks.local_global(32)):
        torch._dynamo.reset()
        layer, x = Layer(mask), torch.randn(2, 700, 32)

        def run(module: Any, layer: Layer = layer, x: Tensor = x) -> tuple[Tensor, Tensor]:
            output = module(x)
            (grad,) = torch.autograd.grad(output.square().sum(), layer.project.weight)
            return output.detach(), grad

        wanted, compiled = run(layer), run(torch.compile(layer, fullgraph=True))
        exported = torch.export.export(layer, (x,), strict=True).module()(x).detach()
        errors = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(compiled, wanted)]
        errors.append(float((exported - wanted[0]).abs().max()))
        yield Row(
            f"torch.compile(fullgraph=True) forward, backward, and torch.export; mask: {mask}",
            " / ".join(f"{error:.1e}" for error in errors),
            "uncompiled",
            "greatest relative difference",
            "≤ 1e-5",
            max(errors) <= 1e-5,
        )


def layers(rounds: int) -> Iterator[Row]:
    del rounds
    with torch.enable_grad():
        yield from compiled_layers()


GROUPS: dict[str, Callable[[int], Iterator[Row]]] = {
    "tiny": tiny_calls,
    "tensors": mask_tensors,
    "short": short_calls,
    "documents": documents,
    "layers": layers,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", nargs="+", choices=GROUPS, help="print only these rows, and write no file")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, THREADS], help="by default 1 and all")
    given = parser.parse_args()
    rounds = 3 if given.quick else 7
    for threads in given.threads:
        torch.set_num_threads(threads)
        with torch.no_grad():
            rows = [row for name in given.only or GROUPS for row in GROUPS[name](rounds)]
        name = "dispatch" if threads > 1 else "dispatch_one_thread"
        title = f"Planning and dispatch, torch at {threads} of {THREADS} threads"
        report(name, title, rows, write=not given.only)


if __name__ == "__main__":
    main()
