"""How benchmarks compare two sides, with a clock that only this test moves."""

import itertools
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def comparison(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import comparison

    yield comparison
    sys.modules.pop("comparison", None)


class Machine:
    """A clock, and work that takes what it is told: the seconds of each call, one after the other."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def clock(self):
        return self.now

    def work(self, name, *seconds):
        left = itertools.chain([0.0], itertools.cycle(seconds))  # the first call warms up

        def run():
            self.calls.append(name)
            self.now += next(left)

        return run


def quiet():
    return lambda: 0.0


def compared(comparison, ours, peer, *, rounds=5, others=quiet):
    machine = Machine()
    found = comparison.compare(
        machine.work("ours", *ours),
        machine.work("peer", *peer),
        rounds=rounds,
        clock=machine.clock,
        others=others,
    )
    return found, machine.calls


def test_both_sides_take_turns_and_each_is_first_in_every_other_round(comparison):
    found, calls = compared(comparison, [3.0], [2.0], rounds=3)
    assert calls == ["ours", "peer", "ours", "peer", "peer", "ours", "ours", "peer"]
    assert (found.ours, found.peer, found.spread) == (3.0, 2.0, 0.0)
    assert found.ratio == pytest.approx(1.5)
    assert (found.tries, found.disturbed) == (1, False)


def test_a_slow_moment_of_the_machine_hits_both(comparison):
    slow = [1.0, 1.0, 5.0, 5.0, 5.0]
    found, _ = compared(comparison, [1.2 * s for s in slow], slow)
    assert found.ratio == pytest.approx(1.2)
    assert not found.disturbed


def test_rounds_that_differ_are_taken_again(comparison):
    calm, rough = [1.0] * 5, [1.0, 2.0, 1.0, 3.0, 2.0]
    found, calls = compared(comparison, [1.0], [*rough, *calm])
    assert found.tries == 2
    assert len(calls) == 2 + 2 * 2 * 5
    assert found.ratio == pytest.approx(1.0)
    assert "best of 2" in found.in_words()


def test_what_stays_disturbed_is_said_to_be(comparison):
    found, _ = compared(comparison, [1.0], [1.0, 2.0, 1.0, 3.0, 2.0])
    assert found.tries == comparison.TRIES
    assert found.disturbed


def test_rounds_beside_another_process_are_taken_again(comparison):
    shares = iter([0.4, 0.0])
    found, _ = compared(comparison, [1.0], [1.0], others=lambda: lambda: next(shares))
    assert (found.tries, found.others, found.disturbed) == (2, 0.0, False)
    shares = iter([0.4, 0.3, 0.5])
    found, _ = compared(comparison, [1.0], [1.0], others=lambda: lambda: next(shares))
    assert (found.tries, found.others, found.disturbed) == (3, 0.3, True)
    assert "others 30 %" in found.in_words()


@pytest.mark.parametrize(
    "peer", [[2.0] * 15, [1.0, 2.0, 1.0, 3.0, 2.0, *[1.0] * 5], [1.0, 2.0, 1.0, 3.0, 2.0]]
)
def test_neither_side_is_favoured(comparison, peer):
    """With the sides exchanged the ratio is the inverse, and as many rounds are taken."""
    one, _ = compared(comparison, [1.0], peer)
    other, _ = compared(comparison, peer, [1.0])
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.tries == other.tries


def test_other_processes_are_seen_in_the_machines_own_account(comparison, monkeypatch):
    busy, own, now = iter([100.0, 130.0]), iter([50.0, 60.0]), iter([0.0, 10.0])
    monkeypatch.setattr(comparison, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(comparison, "_own_seconds", lambda: next(own))
    monkeypatch.setattr(comparison.time, "perf_counter", lambda: next(now))
    monkeypatch.setattr(comparison.os, "cpu_count", lambda: 4)
    assert comparison.watch_others()() == pytest.approx((30 - 10) / (10 * 4))


def test_a_row_is_told_as_soon_as_it_is_measured(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import harness

    harness.Row("work", "1 ms", "2 ms", "2.00×", "≥ 3×", False)
    harness.Row("other work", "1 GB", "–", "–", "–", True)
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        "work | 1 ms | 2 ms | 2.00× | ≥ 3× missed",
        "other work | 1 GB | – | –",
    ]
    assert shown.out == ""  # the table goes there
    for name in ("harness", "comparison"):
        sys.modules.pop(name, None)
