"""Measuring two ways of doing the same work side by side, and reporting the result."""

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
from comparison import Comparison, Work, compare
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
THREADS = 2


@dataclass(frozen=True)
class Row:
    """One line of a table: what was measured, on both sides, and the goal.

    It is printed to stderr as soon as it is made: a whole benchmark can take a quarter of an hour.
    """

    work: str
    ours: str
    peer: str
    ratio: str
    wanted: str
    met: bool
    spread: str = ""  # how much the rounds of a comparison differ, and what disturbed them
    disturbed: bool = False

    def __post_init__(self) -> None:
        goal = f"{self.wanted} {'met' if self.met else 'missed'}" if self.wanted != "–" else ""
        say(" | ".join(filter(None, (self.work, self.ours, self.peer, self.ratio, self.spread, goal))))


def say(*words: object) -> None:
    """Tell how far a benchmark is; the table itself goes to stdout."""
    print(*words, file=sys.stderr, flush=True)


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
    """CPU time on one thread, which excludes the time when another process had the core; else wall time."""
    return time.process_time if torch.get_num_threads() == 1 else time.perf_counter


def medians(
    ours: Work, peer: Work, *, rounds: int, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, float]:
    """Median seconds of both, taken in turns so that a slow moment of the machine hits both.

    On one thread, ``clock=time.process_time`` excludes the time in which another process had the core.
    """
    ours(), peer()
    times = [(seconds(ours, clock), seconds(peer, clock)) for _ in range(rounds)]
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


def compared(ours: Work, peer: Work, *, rounds: int) -> Comparison:
    """Both sides in turns, by the clock that fits the number of threads; repeated if disturbed."""
    return compare(ours, peer, rounds=rounds, clock=own_clock(), finish=finish)


def faster(work: str, ours: Work, peer: Work, *, least: float, rounds: int = 5, note: str = "") -> Row:
    """A row that is met when ours is at least ``least`` times as fast as the peer."""
    found = compared(ours, peer, rounds=rounds)
    ratio = 1 / found.ratio
    times = (_ms(found.ours), _ms(found.peer) + note)
    disturbance = (found.in_words(), found.disturbed)
    return Row(work, *times, f"{ratio:.2f}×", f"≥ {least:g}×", ratio >= least, *disturbance)


def not_slower(work: str, ours: Work, peer: Work, *, most: float, rounds: int = 5) -> Row:
    """A row that is met when ours takes at most ``most`` times what the peer takes."""
    found = compared(ours, peer, rounds=rounds)
    times, said = (_ms(found.ours), _ms(found.peer)), f"{found.ratio:.3f} of its time"
    return Row(work, *times, said, f"≤ {most:g}", found.ratio <= most, found.in_words(), found.disturbed)


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
    """Run ``code`` in a fresh interpreter and return the numbers that it prints, one per line.

    For peak memory, which is only clear in a process that did nothing else. The code finds
    ``measured(work)`` and ``megabytes(name)`` defined; Linux only.
    """
    whole = WITH_MEMORY.format(threads=THREADS) + code
    done = subprocess.run([sys.executable, "-c", whole], check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


IN_TURNS = (
    "Both sides in one run, in turns; medians, and the median of the ratios of all rounds. The spread is "
    "half the distance between the quartiles of these ratios. A row that was disturbed (a large spread, or "
    "other processes on the machine) was measured up to three times; its calmest rounds count, whatever "
    "their ratio."
)


def report(name: str, title: str, rows: list[Row], how: str = "", *, write: bool = True) -> None:
    """Print the table and write it to ``benchmarks/results/``."""
    with_spread = any(row.spread for row in rows)
    how = how or (IN_TURNS if with_spread else "Both sides in one run, medians.")
    columns = ["work", "regard", "peer", "ratio", *["spread"] * with_spread, "wanted", "met"]
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column("" if column == "met" else column)
    for row in rows:
        table.add_row(*_cells(row, with_spread=with_spread), ("✓" if row.met else "✗") + "?" * row.disturbed)
    Console(width=150).print(table)
    if not write:
        return
    threads = torch.get_num_threads()
    lines = [
        f"# {title}",
        "",
        f"{threads} thread{'s' * (threads > 1)}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}, {processor()}, "
        f"{torch.backends.cpu.get_cpu_capability()}. {how}",
        "",
        "| " + " | ".join(columns) + " |",
        "|---" * len(columns) + "|",
    ]
    for row in rows:
        met = ("yes" if row.met else "**no**") + ", disturbed" * row.disturbed
        lines.append("| " + " | ".join([*_cells(row, with_spread=with_spread), met]) + " |")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cells(row: Row, *, with_spread: bool) -> list[str]:
    return [row.work, row.ours, row.peer, row.ratio, *[row.spread] * with_spread, row.wanted]


def processor() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(": ", 1)[1] for line in lines if line.startswith("model name")), "unknown processor"
    )
