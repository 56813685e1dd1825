"""Timing the variants of attention: time, memory, and the length from which one is faster.

| variant    | what is run                                             | grows as |
|------------|---------------------------------------------------------|----------|
| `textbook` | ``softmax(q kᵀ / √c) v`` in plain torch, matrix and all | n²       |
| `standard` | ``regard.attention(q, k, v)``                           | n²       |
| `causal`   | the same with ``masks.causal()``                        | n² / 2   |
| `window`   | the same with ``masks.window(64, 64)``                  | n        |
| `sparse`   | the same with ``masks.local_global(64)``                | n² / 64  |
| `linear`   | ``regard.linear_attention(q, k, v)``                    | n        |
| `sdpa`     | torch's ``scaled_dot_product_attention``                | n²       |

Every measurement runs in its own process, forked from one that has loaded torch and done nothing else. Its
memory is how much the process grew at its peak during the first whole call, without the inputs; its time is
the median of the calls after that.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.checks import check_integer
from regard.errors import ArgumentError
from regard.kernels import attention, cost, linear_attention
from regard.lessons.process_memory import available_bytes, peak_bytes
from regard.masks import causal, local_global, window

REACH = 64
"""Half width of the window, and stride of the sparse mask."""

FEWEST = 3
"""Rounds at the largest lengths."""

EXTRA_MEMORY = {"sparse": 9, "linear": 3}
"""Extra memory of each variant, in sizes of the output: measured at 1,024 to 4,096 tokens, rounded up.

Sparse attention gathers parts of Q, K and V and merges their outputs; linear attention joins segments.
"""

TimedFunction = Callable[[Tensor, Tensor, Tensor], Tensor]


def _textbook(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.matmul(weights, v)


CALLS: dict[str, TimedFunction] = {
    "textbook": _textbook,
    "standard": attention,
    "causal": lambda q, k, v: attention(q, k, v, mask=causal()),
    "window": lambda q, k, v: attention(q, k, v, mask=window(REACH, REACH)),
    "sparse": lambda q, k, v: attention(q, k, v, mask=local_global(REACH)),
    "linear": linear_attention,
    "sdpa": F.scaled_dot_product_attention,
}
"""What is timed, by name."""

VARIANTS = tuple(CALLS)


@dataclass(frozen=True)
class Variant:
    """One thing to measure."""

    variant: str
    length: int
    batch: int
    heads: int
    channels: int
    rounds: int
    threads: int

    @property
    def needed(self) -> int:
        """Peak memory in bytes: inputs, output, and what the variant needs besides."""
        name = "dense" if self.variant == "textbook" else "regard"
        way = cost(
            self.length,
            width=self.heads * self.channels,
            heads=self.heads,
            batch=self.batch,
            projections=False,
            ways=[name],
        )[self.length, name]
        # The textbook holds scores and weights side by side while softmax runs; the cost model counts one.
        return way.bytes + way["scores"].bytes + EXTRA_MEMORY.get(self.variant, 0) * way["sum"].bytes


@dataclass(frozen=True)
class Timing:
    """One result: seconds and bytes, or why it was not tried."""

    work: Variant
    seconds: float | None
    bytes: int | None  # None if the system does not report it
    needed: int
    available: int | None

    @property
    def refused(self) -> bool:
        """Whether it would not have fit into memory."""
        return self.seconds is None


@dataclass(frozen=True)
class Timings:
    """Every measurement, in order."""

    rows: tuple[Timing, ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths in order."""
        return tuple(dict.fromkeys(row.work.length for row in self.rows))

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants in order."""
        return tuple(dict.fromkeys(row.work.variant for row in self.rows))

    def row(self, length: int, variant: str) -> Timing | None:
        """One measurement, or None."""
        return next((r for r in self.rows if (r.work.length, r.work.variant) == (length, variant)), None)

    def crossover(self, first: str, other: str) -> int | None:
        """The length from which ``first`` stays faster than ``other``; None if there is none."""
        found = None
        for length in sorted(self.lengths):
            a, b = self.row(length, first), self.row(length, other)
            if a is None or b is None or a.seconds is None or b.seconds is None:
                continue
            if a.seconds >= b.seconds:
                found = None
            elif found is None:
                found = length
        return found

    def records(self) -> list[dict[str, str | int | float | None]]:
        """A plain row for each measurement."""
        return [
            {
                "length": row.work.length,
                "variant": row.work.variant,
                "batch": row.work.batch,
                "heads": row.work.heads,
                "channels": row.work.channels,
                "rounds": row.work.rounds,
                "threads": row.work.threads,
                "seconds": row.seconds,
                "bytes": row.bytes,
                "needed": row.needed,
            }
            for row in self.rows
        ]


def rounds_at(length: int, shortest: int, rounds: int) -> int:
    """The rounds at a length, so that n² work takes the same time at each; at least three.

    >>> [rounds_at(length, 1024, 100) for length in (1024, 2048, 4096, 8192)]
    [100, 25, 6, 3]
    >>> rounds_at(4096, 1024, 1)
    1
    """
    return min(rounds, max(FEWEST, rounds * shortest**2 // length**2))


def plan_bench(
    lengths: Sequence[int],
    *,
    batch: int = 8,
    heads: int = 1,
    channels: int = 64,
    rounds: int = 100,
    threads: int | None = None,
    variants: Sequence[str] = VARIANTS,
) -> tuple[Variant, ...]:
    """The measurements to run, checked.

    >>> [(one.variant, one.length, one.rounds) for one in plan_bench([1024], variants=["linear"])]
    [('linear', 1024, 100)]
    """
    numbers = {"batch": batch, "heads": heads, "channels": channels, "rounds": rounds}
    for name, number in (*numbers.items(), *(("length", length) for length in lengths)):
        check_integer(name, number)
    for variant in variants:
        if variant not in CALLS:
            raise ArgumentError(
                "A variant must be one of {CALLS}.",
                got="{variant!r}",
                do="Choose one of them.",
                CALLS=", ".join(CALLS),
                variant=variant,
            )
    if not lengths or not variants:
        raise ArgumentError(
            "At least one length and one variant are needed.", got="none", do="Try --length 1024."
        )
    threads = torch.get_num_threads() if threads is None else threads
    shortest = min(lengths)
    return tuple(
        Variant(variant, length, batch, heads, channels, rounds_at(length, shortest, rounds), threads)
        for length in sorted(set(lengths))
        for variant in dict.fromkeys(variants)
    )


def run_bench(
    works: Sequence[Variant],
    *,
    available: Callable[[], int | None] = available_bytes,
    report: Callable[[Variant], None] = lambda work: None,
) -> Timings:
    """Measure one after another, each in its own process; what would not fit into memory is not tried.

    ``report`` is called before each measurement.
    """
    rows = []
    for work in works:
        report(work)
        free, needed = available(), work.needed
        if free is not None and needed > free:
            rows.append(Timing(work, None, None, needed, free))
            continue
        seconds, grown = _in_own_process(work)
        rows.append(Timing(work, seconds, grown, needed, free))
    if all(row.refused for row in rows):
        row = min(rows, key=lambda row: row.needed)
        raise ArgumentError(
            "A measurement must fit into memory (available = {available:,} bytes).",
            got="{needed:,} bytes for {variant} at length {length:,}",
            do="Choose smaller lengths or a smaller batch.",
            available=row.available,
            needed=row.needed,
            variant=row.work.variant,
            length=row.work.length,
        )
    return Timings(tuple(rows))


def _in_own_process(work: Variant) -> tuple[float, int | None]:
    kinds = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in kinds else "spawn")
    if "forkserver" in kinds:
        # The server loads torch once; a process forked from it has not used any memory yet.
        context.set_forkserver_preload([__name__])
    try:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(measure, work).result()
    except BrokenProcessPool as error:
        raise ArgumentError(
            "A measurement must run to its end.",
            got="a process killed from outside: {variant} at length {length:,}, "
            "which needs about {needed:,} bytes",
            do="Choose smaller lengths or a smaller batch, or free some memory.",
            variant=work.variant,
            length=work.length,
            needed=work.needed,
        ) from error


def measure(work: Variant) -> tuple[float, int | None]:
    """Median seconds of a call, and the bytes by which this process grew during the first.

    >>> seconds, grown = measure(Variant("linear", 32, 1, 1, 8, 2, torch.get_num_threads()))
    >>> seconds > 0
    True
    """
    torch.set_num_threads(work.threads)
    call = CALLS[work.variant]
    chance = torch.Generator().manual_seed(0)
    with torch.inference_mode():
        # Threads and kernels that a first call sets up once do not count.
        small = torch.randn(1, 1, 2 * REACH, work.channels, generator=chance)
        call(small, small, small)
        shape = (work.batch, work.heads, work.length, work.channels)
        q, k, v = (torch.randn(shape, generator=chance) for _ in range(3))
        before = peak_bytes()
        call(q, k, v)
        after = peak_bytes()
        times = []
        for _ in range(work.rounds):
            start = time.perf_counter()
            call(q, k, v)
            times.append(time.perf_counter() - start)
    grown = None if before is None or after is None else after - before
    return statistics.median(times), grown
