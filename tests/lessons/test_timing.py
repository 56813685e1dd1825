"""Timing: what is planned, what is refused, and what is concluded. No test looks at how fast anything is."""

import os

import pytest
import torch

from regard.errors import ArgumentError
from regard.lessons import process_memory, timing
from regard.lessons.timing import Timing, Timings, Variant, measure, plan_bench, run_bench
from regard.lessons.timing_figure import draw_bench


def work(variant="standard", length=64, **options):
    return Variant(**{"variant": variant, "length": length, "batch": 2, "heads": 3, "channels": 8,
                   "rounds": 1, "threads": 1, **options})  # fmt: skip


def measured(variant, length, seconds, bytes=1 << 20):
    return Timing(work(variant, length), seconds, bytes, 5000, 9000)


def test_the_exercise_is_the_first_row():
    first = plan_bench([1024])[0]
    assert (first.batch, first.length, first.channels, first.rounds) == (8, 1024, 64, 100)


def test_every_variant_gives_attention():
    q, k, v = (torch.randn(1, 2, 200, 8) for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    for name in ("textbook", "standard", "sdpa"):
        assert torch.allclose(timing.CALLS[name](q, k, v), wanted, atol=1e-5)
    for name in ("causal", "window", "sparse", "linear"):
        assert timing.CALLS[name](q, k, v).shape == wanted.shape
        assert not torch.allclose(timing.CALLS[name](q, k, v), wanted, atol=1e-5)


def test_the_textbook_needs_two_matrices():
    matrix = 2 * 3 * 64 * 64 * 4
    plain = 4 * 2 * 3 * 64 * 8 * 4
    assert work("textbook").needed == plain + 2 * matrix
    assert plain <= work("window").needed < plain + matrix


def test_sparse_and_linear_need_more_than_their_output():
    output = 2 * 3 * 64 * 8 * 4
    assert work("linear").needed == work("window").needed + 3 * output
    assert work("sparse").needed == work("window").needed + 9 * output


def test_what_does_not_fit_is_not_tried(monkeypatch):
    tried = []
    monkeypatch.setattr(timing, "_in_own_process", lambda work: tried.append(work) or (0.5, 7))
    works = [work("textbook", 512), work("linear", 512)]
    free = works[1].needed
    assert works[0].needed > free
    reported = []
    found = run_bench(works, available=lambda: free, report=reported.append)
    assert tried == [works[1]]
    assert reported == works
    refused, done = found.rows
    assert refused.refused
    assert (refused.needed, refused.available) == (works[0].needed, free)
    assert (done.seconds, done.bytes) == (0.5, 7)
    # A system that says nothing of its memory is trusted.
    assert not any(row.refused for row in run_bench(works, available=lambda: None).rows)


def test_nothing_that_fits_is_an_error():
    one = work("textbook", 1 << 20)
    message = rf"available = 1,000 bytes\). Got {one.needed:,} bytes for textbook at length 1,048,576. Choose"
    with pytest.raises(ArgumentError, match=message):
        run_bench([one], available=lambda: 1000)


def test_a_measurement_in_its_own_process_is_true_of_memory():
    found = run_bench([work("textbook", 1024, batch=1, heads=2), work("standard", 1024, batch=1, heads=2)])
    matrix = 2 * 1024 * 1024 * 4
    textbook, standard = found.rows
    assert textbook.seconds > 0
    assert 1.5 * matrix < textbook.bytes < 4 * matrix
    assert standard.bytes < matrix


def _die(work):
    os._exit(1)


def test_a_process_that_is_killed_is_said_so(monkeypatch):
    monkeypatch.setattr(timing, "measure", _die)
    with pytest.raises(ArgumentError, match="killed from outside: textbook at length 64, which needs about"):
        run_bench([work("textbook")])


def test_measuring_here():
    seconds, grown = measure(work("sparse", 130))
    assert seconds > 0
    assert grown is None or grown >= 0


def test_crossovers():
    rows = [measured("standard", n, n * n) for n in (1, 2, 4, 8)]
    rows += [measured("linear", n, s) for n, s in ((1, 0.5), (2, 9), (4, 9), (8, 9))]
    found = Timings(tuple(rows))
    assert found.crossover("linear", "standard") == 4  # the early win does not last
    assert found.crossover("standard", "linear") is None
    assert found.crossover("window", "standard") is None
    gaps = Timings((*rows[:4], measured("linear", 2, None), measured("linear", 8, 1)))
    assert gaps.crossover("linear", "standard") == 8


def test_records_and_figure():
    rows = (
        measured("standard", 64, 0.1),
        measured("textbook", 64, None, None),
        measured("standard", 128, 0.2),
    )
    found = Timings(rows)
    assert found.lengths == (64, 128)
    assert found.records()[1]["seconds"] is None
    assert found.row(128, "textbook") is None
    for lang in ("en", "zh"):
        assert len(draw_bench(found, lang).axes) == 2


@pytest.mark.parametrize("grown", [0, None])
def test_times_are_drawn_where_no_process_grew_or_the_system_does_not_say(grown):
    figure = draw_bench(
        Timings((measured("standard", 64, 0.1, grown), measured("standard", 128, 0.2, grown)))
    )
    figure.draw_without_rendering()
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "linear"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lengths": [0]}, "length must be a whole number, 1 or more. Got length = 0"),
        ({"lengths": [4], "batch": 0}, "batch must be a whole number, 1 or more. Got batch = 0"),
        ({"lengths": []}, "At least one length and one variant"),
        ({"lengths": [4], "variants": ["flash"]}, "A variant must be one of textbook, .* Got 'flash'"),
    ],
)
def test_bad_plans_are_named(options, message):
    with pytest.raises(ArgumentError, match=message):
        plan_bench(**options)


def test_available_memory(tmp_path, monkeypatch):
    file = tmp_path / "meminfo"
    file.write_text("MemTotal: 9 kB\nMemAvailable:   123 kB\n", encoding="ascii")
    monkeypatch.setattr(process_memory, "MEMINFO", file)
    monkeypatch.setattr(process_memory, "_limit", lambda: None)
    assert process_memory.available_bytes() == 123 * 1024
    monkeypatch.setattr(process_memory, "_limit", lambda: 1000)
    assert process_memory.available_bytes() == 1000
    file.write_text("nothing of use", encoding="ascii")
    monkeypatch.setattr(process_memory, "_limit", lambda: None)
    assert process_memory.available_bytes() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(process_memory.os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert process_memory.available_bytes() is None
