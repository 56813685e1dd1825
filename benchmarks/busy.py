"""What a busy machine costs: the benchmarks of attention and statistics again, beside busy processes.

python benchmarks/busy.py            one busy process for every two processors
python benchmarks/busy.py --quick    fewer rounds, and without the compiled flex_attention

A busy process takes its share from both sides of a ratio, so the ratio should not change.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch.nn.functional as F
from attention import tensors
from comparison import Work
from harness import THREADS, Row, in_new_process, medians, report
from pages import LICENCE, MINILM
from row_statistics import from_the_matrix

import regard
from regard import masks

KEPT = 0.7
"""The least share of the ratio that must be left beside busy processes."""

TURNS = 3
"""How often each row is measured quiet and busy; the median counts."""

PAGE = """
with torch.no_grad(), regard.watch(model) as seen:
    model(**inputs)
seen.tokens = tokens
regard.page(seen, path)
took = sorted(measured(lambda: regard.page(seen, path))[0] for _ in range(3))
print(took[1])
"""


class Case(NamedTuple):
    """The same work on both sides."""

    name: str
    ours: Work
    peer: Work


@contextmanager
def neighbours() -> Iterator[None]:
    """Processes that do nothing but take time, one for every two processors."""
    spin = "while True: pass"
    count = max(1, (os.cpu_count() or 2) // 2)
    running = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def cases(*, flex: bool) -> Iterator[Case]:
    """The rows of attention.md and statistics.md that are ratios, one after another."""
    n = 8192
    window = masks.window(128, 128)
    chosen = {
        f"window(128, 128), n = {n}, forward": window,
        f"16 documents of 512, causal inside, n = {n}": masks.documents(torch.arange(n) // 512)
        & masks.causal(),
        f"local_global(64), n = {n}": masks.local_global(64),
    }
    for name, mask in chosen.items():
        yield against_dense(name, mask, n, backward=False)
    yield against_dense(f"window(128, 128), n = {n}, forward + backward", window, n, backward=True)
    if flex:
        yield against_flex(window, n)
    for causal in (False, True):
        yield against_sdpa(1024, causal=causal)
    yield linear(2 * n)
    for causal in (False, True):
        yield from row_statistics(n // 2, causal=causal)


def against_dense(name: str, mask: masks.Mask, n: int, *, backward: bool) -> Case:
    q, k, v = tensors(n, grad=backward)
    dense, grad = mask.dense(n), torch.randn_like(q)

    def finish(output: torch.Tensor) -> None:
        if backward:
            torch.autograd.grad(output, (q, k, v), grad)

    return Case(
        f"{name}, against SDPA with the dense mask",
        lambda: finish(regard.attention(q, k, v, mask=mask)),
        lambda: finish(F.scaled_dot_product_attention(q, k, v, attn_mask=dense)),
    )


def against_flex(mask: masks.Mask, n: int) -> Case:
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = tensors(n)
    block_mask = mask.block_mask(n)
    compiled: Any = torch.compile(flex_attention)
    return Case(
        f"window(128, 128), n = {n}, forward, against compiled flex_attention",
        lambda: regard.attention(q, k, v, mask=mask),
        torch.no_grad()(lambda: compiled(q, k, v, block_mask=block_mask)),
    )


def against_sdpa(n: int, *, causal: bool) -> Case:
    q, k, v = tensors(n)
    mask = masks.causal() if causal else None
    return Case(
        f"{'causal' if causal else 'dense'}, n = {n}, against SDPA itself",
        lambda: [regard.attention(q, k, v, mask=mask) for _ in range(5)],
        lambda: [F.scaled_dot_product_attention(q, k, v, is_causal=causal) for _ in range(5)],
    )


def linear(n: int) -> Case:
    q, k, v = tensors(n)
    return Case(
        f"causal linear_attention, n = {n}, against causal SDPA",
        lambda: regard.linear_attention(q, k, v, causal=True),
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    )


def row_statistics(n: int, *, causal: bool) -> Iterator[Case]:
    q, k, v = tensors(n)
    mask = masks.causal() if causal else None
    name = f"statistics, {'causal' if causal else 'full'}, n = {n}"

    def ours() -> object:
        return regard.attention_statistics(q, k, v, mask=mask)

    yield Case(
        f"{name}, against plain SDPA",
        ours,
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
    )
    yield Case(f"{name}, against the dense matrix", ours, lambda: from_the_matrix(q, k, v, causal=causal))


def row(case: Case, rounds: int) -> Row:
    """How many times as fast as the peer, quiet and busy in turns, so that a slow minute hits both."""
    quiet_ratios, busy_ratios = [], []
    for _ in range(TURNS):
        mine, theirs = medians(case.ours, case.peer, rounds=rounds)
        quiet_ratios.append(theirs / mine)
        with neighbours():
            mine, theirs = medians(case.ours, case.peer, rounds=rounds)
        busy_ratios.append(theirs / mine)
    quiet, busy = statistics.median(quiet_ratios), statistics.median(busy_ratios)
    return Row(
        case.name,
        f"{1000 * mine:.0f} ms busy",
        f"{1000 * theirs:.0f} ms busy",
        f"{quiet:.2f}× quiet, {busy:.2f}× busy: {100 * busy / quiet:.0f} %",
        f"≥ {100 * KEPT:.0f} %",
        busy >= KEPT * quiet,
    )


def page_row(n: int, most: float) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        facts = {"n": n, "licence": str(LICENCE), "path": str(Path(folder) / "page.html")}
        code = MINILM.format(how="sdpa", **facts) + PAGE
        (quiet,) = in_new_process(code)
        with neighbours():
            (busy,) = in_new_process(code)
    return Row(
        f"a page of MiniLM, {n} tokens",
        f"{busy:.2f} s busy",
        f"{quiet:.2f} s quiet",
        f"{100 * quiet / busy:.0f} %",
        f"≤ {most:g} s",
        busy <= most,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="2 rounds instead of 5, and no flex_attention")
    quick = parser.parse_args().quick
    torch.set_num_threads(THREADS)
    rounds = 2 if quick else 5
    rows = [page_row(508, most=1.5), *(row(case, rounds=rounds) for case in cases(flex=not quick))]
    report("busy", "A busy machine: the ratios of attention and statistics beside busy processes", rows)


if __name__ == "__main__":
    main()
