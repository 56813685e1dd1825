"""Measuring two ways of doing the same work side by side, and writing down what was found."""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
THREADS = 2
Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of a table: what was measured, on both sides, and what was to be reached."""

    work: str
    ours: str
    peer: str
    ratio: str
    wanted: str
    met: bool


def seconds(work: Work, clock: Callable[[], float] = time.perf_counter) -> float:
    finish()
    start = clock()
    work()
    finish()
    return clock() - start


def finish() -> None:
    """Wait until a GPU has done everything that was launched."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def own_clock() -> Callable[[], float]:
    """CPU time on one thread, which leaves out the time in which a neighbour had the core; else wall time."""
    return time.process_time if torch.get_num_threads() == 1 else time.perf_counter


def medians(
    ours: Work, peer: Work, *, rounds: int, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, float]:
    """Median seconds of both, taken in turns so that a slow moment of the machine hits both.

    On one thread, ``clock=time.process_time`` leaves out the time in which a neighbour had the core.
    """
    ours(), peer()
    times = [(seconds(ours, clock), seconds(peer, clock)) for _ in range(rounds)]
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


def faster(work: str, ours: Work, peer: Work, *, least: float, rounds: int = 5, note: str = "") -> Row:
    """A row that is met when ours is at least ``least`` times as fast as the peer."""
    mine, theirs = medians(ours, peer, rounds=rounds, clock=own_clock())
    ratio = theirs / mine
    return Row(work, _ms(mine), _ms(theirs) + note, f"{ratio:.2f}×", f"≥ {least:g}×", ratio >= least)


def not_slower(work: str, ours: Work, peer: Work, *, most: float, rounds: int = 5) -> Row:
    """A row that is met when ours takes at most ``most`` times what the peer takes."""
    mine, theirs = medians(ours, peer, rounds=rounds, clock=own_clock())
    ratio = mine / theirs
    return Row(work, _ms(mine), _ms(theirs), f"{ratio:.3f} of its time", f"≤ {most:g}", ratio <= most)


def _ms(value: float) -> str:
    return f"{1000 * value:.1f} ms"


WITH_MEMORY = """
import time, torch, regard
from regard import masks
torch.set_num_threads({threads})

def megabytes(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024

def measured(work):
    \"\"\"Seconds, megabytes by which the process grew at its highest, and the result.\"\"\"
    open("/proc/self/clear_refs", "w").write("5")  # forget the highest so far
    before, start = megabytes("VmRSS"), time.perf_counter()
    result = work()
    return time.perf_counter() - start, megabytes("VmHWM") - before, result
"""


def in_new_process(code: str) -> list[float]:
    """Run ``code`` in a fresh interpreter and return the numbers that it prints, one a line.

    For peak memory, which is only clear in a process that did nothing else. The code finds
    ``measured(work)`` and ``megabytes(name)`` defined; Linux only.
    """
    whole = WITH_MEMORY.format(threads=THREADS) + code
    done = subprocess.run([sys.executable, "-c", whole], check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


def report(name: str, title: str, rows: list[Row], how: str = "Both sides in one run, medians.") -> None:
    """Print the table and write it to ``benchmarks/results/``."""
    table = Table(title=title, title_justify="left")
    for column in ("work", "regard", "peer", "ratio", "wanted", ""):
        table.add_column(column)
    for row in rows:
        table.add_row(row.work, row.ours, row.peer, row.ratio, row.wanted, "✓" if row.met else "✗")
    Console(width=150).print(table)
    threads = torch.get_num_threads()
    lines = [
        f"# {title}",
        "",
        f"{threads} thread{'s' * (threads > 1)}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}, "
        f"{torch.backends.cpu.get_cpu_capability()}. {how}",
        "",
        "| work | regard | peer | ratio | wanted | met |",
        "|---|---|---|---|---|---|",
        *(
            f"| {r.work} | {r.ours} | {r.peer} | {r.ratio} | {r.wanted} | {'yes' if r.met else '**no**'} |"
            for r in rows
        ),
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
