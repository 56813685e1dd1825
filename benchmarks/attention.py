"""Benchmarks of attention: regard compared with torch on the same work, in one run.

python benchmarks/attention.py            the table, and the plot of growth
python benchmarks/attention.py --quick    fewer rounds
python benchmarks/attention.py --device cuda    the rows that a GPU can run, both sides there
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# So that the compile time of FlexAttention is that of a first use.
os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")

import matplotlib as mpl
import torch
import torch.nn.functional as F
from comparison import Work
from harness import THREADS, Row, faster, in_new_process, not_slower, report, seconds
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from torch import Tensor

import regard
from regard import masks

HEADS, CHANNELS = 8, 64
DEVICE = torch.device("cpu")  # set by --device
PLOT = Path(__file__).parent.parent / "docs" / "pictures" / "growth.png"


def tensors(n: int, *, grad: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, n, CHANNELS, requires_grad=grad, device=DEVICE) for _ in range(3))
    return q, k, v


def against_dense(
    name: str, mask: masks.Mask, n: int, *, least: float, backward: bool = False, rounds: int
) -> Row:
    """Ours with the lazy mask against SDPA with the same mask as a dense bool tensor, made beforehand."""
    q, k, v = tensors(n, grad=backward)
    dense = mask.dense(n, device=DEVICE)
    grad = torch.randn_like(q)

    def finish(output: Tensor) -> None:
        if backward:
            torch.autograd.grad(output, (q, k, v), grad)

    return faster(
        name,
        lambda: finish(regard.attention(q, k, v, mask=mask)),
        lambda: finish(F.scaled_dot_product_attention(q, k, v, attn_mask=dense)),
        least=least,
        rounds=rounds,
    )


def against_flex(mask: masks.Mask, n: int, *, least: float, rounds: int) -> Row:
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = tensors(n)
    block_mask = mask.block_mask(n, device=DEVICE)
    compiled: Any = torch.compile(flex_attention)

    def peer() -> Tensor:
        with torch.no_grad():
            return compiled(q, k, v, block_mask=block_mask)  # type: ignore[no-any-return]

    compile_time = seconds(peer)
    return faster(
        f"window(128, 128), n = {n}, forward, against compiled flex_attention",
        lambda: regard.attention(q, k, v, mask=mask),
        peer,
        least=least,
        rounds=rounds,
        note=f" (+ {compile_time:.1f} s compile)",
    )


def sdpa_itself(n: int, *, causal: bool, rounds: int) -> Row:
    q, k, v = tensors(n)
    mask = masks.causal() if causal else None
    return not_slower(
        f"{'causal' if causal else 'dense'}, n = {n}, against SDPA itself",
        lambda: regard.attention(q, k, v, mask=mask),
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
        most=1.05,
        rounds=rounds,
    )


def linear(n: int, *, rounds: int) -> Row:
    q, k, v = tensors(n)
    return faster(
        f"causal linear_attention, n = {n}, against causal SDPA",
        lambda: regard.linear_attention(q, k, v, causal=True),
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        least=10,
        rounds=rounds,
    )


def planning(n: int) -> Row:
    """Time and memory of a plan with its exact count, in a separate process."""
    code = f"""
regard.plan(masks.window(3, 0), 4096).pairs
print(*measured(lambda: regard.plan(masks.causal() & masks.window(1024, 0), {n}).pairs)[:2])
"""
    took, grew = in_new_process(code)
    from torch.nn.attention.flex_attention import create_block_mask

    peer_n = 4096
    mod: Any = (masks.causal() & masks.window(1024, 0)).mask_mod()
    peer = seconds(lambda: create_block_mask(mod, None, None, peer_n, peer_n, device="cpu"))
    return Row(
        f"planning causal() & window(1024, 0), n = {n}, with the exact count",
        f"{took:.2f} s, {grew:.0f} MB",
        f"{peer:.2f} s at n = {peer_n} (create_block_mask)",
        "",
        "< 0.5 s, < 100 MB",
        took < 0.5 and grew < 100,
    )


def long_window(n: int) -> Row:
    code = f"""
q, k, v = (torch.randn(1, {HEADS}, {n}, {CHANNELS}) for _ in range(3))
took, _, _ = measured(lambda: regard.attention(q, k, v, mask=masks.window(256, 256)))
print(took, megabytes("VmHWM"))
"""
    took, peak = in_new_process(code)
    return Row(
        f"window(256, 256), n = {n}, forward, memory of the whole process",
        f"{took:.1f} s, {peak / 1024:.2f} GB",
        f"{n * n / 2**30:.0f} GB for the bool mask alone",
        "",
        "< 3 GB",
        peak < 3 * 1024,
    )


def rows(rounds: int) -> Iterator[tuple[str, Any]]:
    window, n = masks.window(128, 128), 8192
    packed = masks.documents(torch.arange(n) // 512) & masks.causal()
    yield (
        "window",
        lambda: against_dense(
            f"window(128, 128), n = {n}, forward, against SDPA with the dense mask",
            window,
            n,
            least=8,
            rounds=rounds,
        ),
    )
    yield (
        "window, backward",
        lambda: against_dense(
            "the same, forward + backward", window, n, least=5, backward=True, rounds=max(3, rounds // 2)
        ),
    )
    yield "window, flex", lambda: against_flex(window, n, least=1.2, rounds=rounds)
    yield (
        "documents",
        lambda: against_dense(
            f"16 documents of 512, causal inside, n = {n}, against SDPA with the dense mask",
            packed,
            n,
            least=8,
            rounds=rounds,
        ),
    )
    yield (
        "local_global",
        lambda: against_dense(
            f"local_global(64), n = {n}, against SDPA with the dense mask",
            masks.local_global(64),
            n,
            least=4,
            rounds=rounds,
        ),
    )
    yield "dense", lambda: sdpa_itself(1024, causal=False, rounds=10 * rounds)
    yield "causal", lambda: sdpa_itself(1024, causal=True, rounds=10 * rounds)
    yield "linear", lambda: linear(16384, rounds=max(3, rounds // 2))
    if DEVICE.type != "cpu":
        return
    yield "planning", lambda: planning(131072)
    yield "long window", lambda: long_window(131072)


def growth(lengths: tuple[int, ...]) -> dict[str, list[float]]:
    """Milliseconds of windows, documents and plain SDPA over growing lengths."""
    found: dict[str, list[float]] = {}
    for n in lengths:
        for name, times in growth_at(n).items():
            found.setdefault(name, []).append(times)
    return found


def growth_at(n: int) -> dict[str, float]:
    q, k, v = tensors(n)
    packed = masks.documents(torch.arange(n) // 512) & masks.causal()

    def middle(work: Work) -> float:
        work()
        return 1000 * sorted(seconds(work) for _ in range(3))[1]

    return {
        "window(128, 128)": middle(lambda: regard.attention(q, k, v, mask=masks.window(128, 128))),
        "documents of 512, causal": middle(lambda: regard.attention(q, k, v, mask=packed)),
        # Beyond 32k it would take minutes, and the trend is clear long before.
        "causal SDPA": 1000 * seconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        if n <= 32768
        else float("nan"),
    }


def plot_growth(lengths: tuple[int, ...], found: dict[str, list[float]]) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for (name, times), colour in zip(found.items(), ("#0072b2", "#009e73", "#999999")):
        axes.plot(lengths, times, marker="o", color=colour, linewidth=2)
        known = [(n, t) for n, t in zip(lengths, times) if t == t]
        axes.annotate(
            name, known[-1], (8, 0), textcoords="offset points", va="center", color=colour, fontsize=9
        )
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="milliseconds, forward")
    axes.set_xticks(lengths, [f"{n // 1024}k" for n in lengths])
    axes.set_xlim(lengths[0] * 0.9, lengths[-1] * 4)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(
        f"Windows and documents grow with n, not n²  ({HEADS} heads × {CHANNELS}, {THREADS} threads)",
        fontsize=10,
        loc="left",
    )
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOT, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 7")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    given = parser.parse_args()
    global DEVICE
    DEVICE = torch.device(given.device)
    rounds = 3 if given.quick else 7
    torch.set_num_threads(THREADS)
    done: list[Row] = []
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), transient=True
    ) as progress:
        task = progress.add_task("")
        for name, measure in rows(rounds):
            progress.update(task, description=f"measuring {name}")
            done.append(measure())
        title = "Attention: regard against torch, 8 heads × 64, float32"
        if DEVICE.type != "cpu":
            report(f"attention_{DEVICE.type}", f"{title}, {torch.cuda.get_device_name(DEVICE)}", done)
            return
        progress.update(task, description="measuring growth")
        lengths = (2048, 4096, 8192, 16384, 32768, 65536)
        found = growth(lengths)
    report("attention", title, done)
    plot_growth(lengths, found)
    for name, times in found.items():
        steps = "  ".join(f"{n // 1024}k {t:.0f}" for n, t in zip(lengths, times) if t == t)
        print(f"{name:26} ms: {steps}")
    print(f"plot: {PLOT.relative_to(Path.cwd()) if PLOT.is_relative_to(Path.cwd()) else PLOT.name}")


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"took {time.perf_counter() - start:.0f} s")
