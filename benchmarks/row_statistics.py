"""Benchmarks of attention_statistics: compared with plain SDPA, and with the same from the dense matrix.

python benchmarks/row_statistics.py
python benchmarks/row_statistics.py --only-sdpa --lengths 2048 --threads 2     some rows, printed only

With the compiled row pass, if it was built, and without it; on one thread and on all.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from harness import THREADS, Row, compared, in_new_process, medians, report, seconds
from torch import Tensor

import regard
from regard import masks
from regard.kernels.compiled_pass import SWITCH, compiled_pass

HEADS, CHANNELS = 8, 64
PATHS = ("compiled", "torch")


def tensors(n: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, n, CHANNELS) for _ in range(3))
    return q, k, v


def from_the_matrix(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> tuple[Tensor, ...]:
    """The same statistics as you would write them in PyTorch: build the matrix, then reduce it."""
    n = q.shape[-2]
    scores = q @ k.transpose(-1, -2) * CHANNELS**-0.5
    if causal:
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
    weights = scores.softmax(-1)
    place = torch.arange(n)
    peak, peak_key = weights.max(-1)
    return (
        weights @ v,
        scores.logsumexp(-1),
        torch.special.entr(weights).sum(-1),
        (scores > -torch.inf).sum(-1),
        weights.sum(-2),
        weights.diagonal(dim1=-2, dim2=-1),
        weights.diagonal(-1, dim1=-2, dim2=-1),
        weights[..., 0],
        (weights * (place[:, None] - place).abs()).sum(-1),
        peak,
        peak_key,
    )


@contextmanager
def switched(on: bool) -> Iterator[None]:
    """With or without the compiled row pass."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = "1" if on else "0"
    try:
        yield
    finally:
        del os.environ[SWITCH]
        if before is not None:
            os.environ[SWITCH] = before


def sdpa_row(n: int, *, causal: bool, compiled: bool, threads: int, rounds: int) -> Row:
    q, k, v = tensors(n)
    mask = masks.causal() if causal else None
    most = (1.3 if causal else 1.4) if compiled else 2.4
    torch.set_num_threads(threads)
    with switched(compiled):
        found = compared(
            lambda: regard.attention_statistics(q, k, v, mask=mask),
            lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
            rounds=rounds,
        )
    torch.set_num_threads(THREADS)
    return Row(
        f"{'causal' if causal else 'full'}, n = {n}, {'compiled' if compiled else 'torch'}, "
        f"threads: {threads}: all statistics and output, against plain SDPA",
        f"{1000 * found.ours:.0f} ms",
        f"{1000 * found.peer:.0f} ms",
        f"{found.ratio:.2f} of its time",
        f"≤ {most:g}",
        found.ratio <= most,
        found.in_words(),
        found.disturbed,
    )


def dense_row(n: int, *, causal: bool) -> Row:
    q, k, v = tensors(n)
    mask = masks.causal() if causal else None
    mine, dense = medians(
        lambda: regard.attention_statistics(q, k, v, mask=mask),
        lambda: from_the_matrix(q, k, v, causal=causal),
        rounds=3,
    )
    return Row(
        f"{'causal' if causal else 'full'}, n = {n}: against the same from the dense matrix in PyTorch",
        f"{1000 * mine:.0f} ms",
        f"{1000 * dense:.0f} ms",
        f"{dense / mine:.2f}×",
        "≥ 2.5×",
        dense / mine >= 2.5,
    )


def sdpa_rows(lengths: list[int], threads: list[int], paths: list[str]) -> list[Row]:
    return [
        sdpa_row(n, causal=causal, compiled=path == "compiled", threads=count, rounds=5 if n > 4096 else 9)
        for path in paths
        if path == "torch" or compiled_pass() is not None
        for count in threads
        for n in lengths
        for causal in (False, True)
    ]


def memory_row(n: int, *, causal: bool, most: int) -> Row:
    """Peak memory above inputs and outputs, in a separate process, warmed up on a short text."""
    mask = "masks.causal()" if causal else "None"
    code = f"""
def work(n):
    q, k, v = (torch.randn(1, {HEADS}, n, {CHANNELS}) for _ in range(3))
    took, grew, found = measured(lambda: regard.attention_statistics(q, k, v, mask={mask}))
    outputs = sum(x.numel() * x.element_size() for x in vars(found).values() if x is not None)
    return took, grew - outputs / 2**20
work(256)
print(*work({n}))
"""
    took, extra = in_new_process(code)
    return Row(
        f"{'causal' if causal else 'full'}, n = {n}: memory above inputs and outputs",
        f"{extra:.0f} MB, {took:.1f} s",
        f"{HEADS * n * n * 4 / 2**20:,.0f} MB for the matrix",
        "",
        f"≤ {most} MB",
        extra <= most,
    )


def window_seconds(n: int) -> float:
    q, k, v = tensors(n)

    def work() -> object:
        return regard.attention_statistics(q, k, v, mask=masks.window(128, 128))

    work()
    return sorted(seconds(work) for _ in range(3))[1]


def window_row(lengths: tuple[int, ...]) -> Row:
    """Time with a window over growing lengths: if it is linear, the last ratio is near the step."""
    times = [window_seconds(n) for n in lengths]
    growth = times[-1] / times[0]
    step = lengths[-1] / lengths[0]
    shown = ", ".join(f"{n // 1024}k {1000 * t:.0f} ms" for n, t in zip(lengths, times))
    return Row(
        "window(128, 128): time grows linearly",
        shown,
        "",
        f"{growth:.1f}× for {step:.0f}× the length",
        f"≤ {1.3 * step:g}×",
        growth <= 1.3 * step,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[2048, 4096, 8192])
    parser.add_argument("--only-sdpa", action="store_true", help="only the rows against plain SDPA")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, THREADS], help="by default 1 and all")
    parser.add_argument("--paths", nargs="+", choices=PATHS, default=list(PATHS))
    given = parser.parse_args()
    torch.set_num_threads(THREADS)
    title = f"Statistics: {HEADS} heads × {CHANNELS}, float32"
    rows = sdpa_rows(given.lengths, given.threads, given.paths)
    if given.only_sdpa:
        report("statistics_sdpa", title, rows, write=False)
        return
    rows += [dense_row(4096, causal=causal) for causal in (False, True)]
    rows += [memory_row(4096, causal=causal, most=64) for causal in (False, True)]
    rows += [memory_row(32768, causal=causal, most=400) for causal in (False, True)]
    rows.append(window_row((4096, 8192, 16384, 32768)))
    report("statistics", title, rows)


if __name__ == "__main__":
    main()
