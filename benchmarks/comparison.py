"""Two ways of doing the same work, measured in turns, and whether something disturbed the measurement.

    ours, peer → rounds of (ours, peer) → Comparison

Both sides are treated alike. Whether rounds are repeated depends on how much they differ among themselves and
on what other processes did meanwhile, never on the ratio or on what was wanted of it.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Work = Callable[[], object]
Clock = Callable[[], float]

MAX_SPREAD = 0.08
"""Rounds are repeated if the middle half of their ratios spreads over more than this (0.1: about 10 %)."""

MAX_OTHERS = 0.08
"""And if other processes took more than this share of the processors."""

TRIES = 3
"""How often rounds are taken at most; the calmest ones count."""


@dataclass(frozen=True)
class Comparison:
    """What some rounds say about two sides."""

    ours: float  # median seconds
    peer: float
    ratio: float  # the median of ours / peer, round by round: a slow moment of the machine hits both
    spread: float  # between the quartiles of these ratios, as a logarithm: 0.1 is about 10 %
    others: float  # the share of the processors that other processes had; 0 where that is unknown
    tries: int = 1

    @classmethod
    def of(cls, rounds: list[tuple[float, float]], others: float = 0.0) -> Comparison:
        """The comparison that some rounds of ``(ours, peer)`` make."""
        # Logarithms, so that with the sides exchanged the ratio is the inverse and the spread the same.
        ratios = [math.log(ours / peer) for ours, peer in rounds]
        first, middle, third = (
            statistics.quantiles(ratios, method="inclusive") if len(ratios) > 1 else ratios * 3
        )
        ours, peer = (statistics.median(side) for side in zip(*rounds))
        return cls(ours, peer, math.exp(middle), third - first, others)

    @property
    def disturbed(self) -> bool:
        """Whether the figures may be due to something else than the two sides."""
        return self.spread > MAX_SPREAD or self.others > MAX_OTHERS

    @property
    def calmness(self) -> float:
        """Greater for rounds that agree and had the machine for themselves."""
        return -max(self.spread / MAX_SPREAD, self.others / MAX_OTHERS)

    def in_words(self) -> str:
        """The spread, and what else is worth knowing."""
        words = [f"± {50 * self.spread:.1f} %"]
        words += [f"others {100 * self.others:.0f} %"] * (self.others > MAX_OTHERS)
        words += [f"best of {self.tries}"] * (self.tries > 1)
        return ", ".join(words)


def compare(
    ours: Work,
    peer: Work,
    *,
    rounds: int,
    clock: Clock = time.perf_counter,
    finish: Work = lambda: None,
    others: Callable[[], Clock] | None = None,
) -> Comparison:
    """Both sides in turns, each first in every other round; repeated while something disturbs them.

    ``finish`` waits until a side has ended. ``others()`` starts to watch other processes; what it returns
    says which share of the processors they had since.
    """
    watch = others or watch_others

    def took(work: Work) -> float:
        finish()
        start = clock()
        work()
        finish()
        return clock() - start

    def one_round(number: int) -> tuple[float, float]:
        if number % 2:
            second = took(peer)
            return took(ours), second
        return took(ours), took(peer)

    ours(), peer()
    found: list[Comparison] = []
    while len(found) < TRIES and all(one.disturbed for one in found):
        share = watch()
        taken = [one_round(number) for number in range(rounds)]
        found.append(Comparison.of(taken, share()))
    best = max(found, key=lambda one: one.calmness)
    return Comparison(best.ours, best.peer, best.ratio, best.spread, best.others, len(found))


def watch_others() -> Clock:
    """Watch other processes, and what the host of a virtual machine took away as far as Linux knows it."""
    before = _busy_seconds()
    if before is None:
        return lambda: 0.0
    own, start = _own_seconds(), time.perf_counter()

    def share() -> float:
        after = _busy_seconds()
        assert before is not None
        assert after is not None
        available = (time.perf_counter() - start) * (os.cpu_count() or 1)
        return max(0.0, (after - before) - (_own_seconds() - own)) / max(available, 1e-9)

    return share


def _own_seconds() -> float:
    return sum(os.times()[:4])


def _busy_seconds() -> float | None:
    """Processor seconds since the machine started that were not idle, or were stolen; None outside Linux."""
    try:
        first = Path("/proc/stat").read_text().split("\n", 1)[0]
    except OSError:
        return None
    user, nice, system, _idle, _waiting, interrupt, soft, stolen = map(int, first.split()[1:9])
    ticks: float = user + nice + system + interrupt + soft + stolen
    return ticks / os.sysconf("SC_CLK_TCK")
