"""The commands cost, mask, bench and demo: what they print, write and refuse."""

import csv
import io

import pytest
from click.testing import CliRunner

import regard
from regard.app.commands.bench import crossovers
from regard.app.main import main
from regard.lessons import demonstrations, timing
from regard.lessons.timing import Timing, Timings, Variant


def run(*arguments, columns="100"):
    return CliRunner(env={"COLUMNS": columns}).invoke(main, arguments)


# ---- cost ----------------------------------------------------------------------------------------


def test_cost_takes_several_lengths_behind_one_option():
    shown = run("cost", "--length", "512", "2048", "8192", "--width", "512", "--heads", "8")
    assert shown.exit_code == 0
    for length in ("512", "2,048", "8,192"):
        assert f"length {length}: operations" in shown.output
    assert "φ(k) [v, 1]ᵀ" in shown.output  # brackets are no markup
    found = regard.cost(8192)
    assert f"{found[8192, 'dense'].operations / 1e9:.3g} G" in shown.output
    assert run("cost").output == shown.output  # the defaults are those of the lesson


def test_cost_fits_a_terminal_of_80_columns():
    shown = run("cost", "--length", "8192", "--mask", "causal", columns="80")
    assert "…" not in shown.output


def test_cost_csv_is_exact():
    options = ["--mask", "causal & window(3, 0)", "--layers", "3", "--kv-heads", "2", "--dtype", "bfloat16"]
    shown = run("cost", "--length", "64", "--csv", "--batch", "5", "--no-projections", *options)
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    wanted = regard.cost(
        64, layers=3, key_heads=2, batch=5, dtype="bfloat16", mask="causal & window(3, 0)", projections=False
    )
    assert [int(row["operations"]) for row in rows] == [row["operations"] for row in wanted.records()]


def test_cost_draws_and_speaks_chinese(tmp_path):
    path = tmp_path / "cost.png"
    shown = run("cost", "--length", "64", "32", "--figure", str(path), "--lang", "zh", "--csv")
    assert path.stat().st_size > 1000
    assert f"已保存 {path}" in shown.stderr.replace("\n", "")
    assert "运算量" in run("cost", "--length", "64", "--lang", "zh").output


def test_cost_errors_are_clean():
    for arguments, says in (
        (["--mask", "causal & widow(1)"], "Did you mean window?"),
        (["--heads", "7"], "heads must divide width"),
        (["--dtype", "int8"], "dtype must be one of"),
        (["--length", "8", "--figure", "x.gif"], ".png, .svg or .pdf"),
    ):
        shown = run("cost", *arguments)
        assert shown.exit_code == 1
        assert says in shown.output
        assert "Traceback" not in shown.output


FIGURES = {
    "demo": ["scaling"],
    "mask": ["causal"],
    "cost": [],
    "bench": [],
    "look": ["a cat"],
    "ablate": ["a cat"],
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_another_format_is_refused_before_anything_is_computed(name):
    shown = run(name, *FIGURES[name], "--figure", "x.docx")
    assert shown.exit_code == 1
    assert shown.output.startswith("Error: A figure must be saved as .png, .svg or .pdf. Got x.docx.")


def test_every_command_that_writes_figures_refuses_other_formats():
    with_figures = {
        name
        for name, command in main.commands.items()
        if any("--figure" in option.opts for option in command.params)
    }
    assert with_figures == set(FIGURES)


# ---- mask ----------------------------------------------------------------------------------------


def test_mask_is_drawn_with_its_numbers():
    shown = run("mask", "causal & window(4, 0)", "-n", "16")
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert lines[0] == "causal() & window(4, 0)"
    drawn = [
        [cell == "██" for cell in (line[3:][i : i + 2] for i in range(0, 32, 2))] for line in lines[1:17]
    ]
    assert drawn == regard.masks.parse("causal & window(4, 0)").dense(16).tolist()
    assert "allowed   70 of 256 pairs, density 27.3 %" in shown.output
    assert "path      masked" in shown.output
    assert "saved     nothing" in shown.output


def test_blocks_are_shaded_by_their_share():
    # Global tokens reach every block, so that only the shades show where the window is.
    rows = run("mask", "local_global(64)", "-n", "8192", columns="100").output.splitlines()[1:40]
    assert len({row.partition(" ")[2] for row in map(str.strip, rows)}) > 20
    assert all("░░" in row and "▒▒" in row for row in rows)


def test_large_masks_are_reduced_to_what_fits():
    shown = run("mask", "causal & window(1023, 0)", "-n", "65536", columns="60")
    lines = shown.output.splitlines()
    assert max(map(len, lines)) <= 60
    assert len(lines) < 60
    assert "░░" in lines[2]
    assert "· " in lines[2]
    assert "one cell is a block of" in shown.output
    plan = regard.plan(regard.masks.parse("causal & window(1023, 0)"), 65536)
    assert f"allowed   {plan.pairs:,} of {65536**2:,} pairs" in shown.output
    assert f"({plan.total / plan.computed:.3g} times less)" in shown.output.replace(" \n", " ")
    assert "path      banded" in shown.output


def test_mask_of_other_keys_and_of_a_batch(tmp_path):
    path = tmp_path / "mask.svg"
    shown = run("mask", "causal & padding(lengths=[3, 5])", "-n", "2", "--keys", "5", "--figure", str(path))
    assert shown.exit_code == 0
    assert "(the first of 2)" in shown.output
    assert "allowed   15 of 20 pairs" in shown.output
    assert path.read_text(encoding="utf-8").startswith("<?xml")


def test_a_mask_that_allows_nothing():
    assert "no query sees any key" in run("mask", "nothing").output
    assert "谁也看不见谁" in run("mask", "nothing", "--lang", "zh").output


def test_lengths_that_cannot_be_planned_are_refused_before_trying():
    for command in (["mask", "causal", "-n", "999999999"], ["cost", "--mask", "causal", "999999999"]):
        shown = run(*command)
        assert shown.exit_code == 1
        assert "plan() can take at most 134,217,728 queries and keys." in shown.output


def test_a_mask_error_keeps_its_mark():
    shown = run("mask", "causal & widow(1)")
    assert shown.exit_code == 1
    lines = shown.output.splitlines()
    assert lines[-1].index("^") == lines[-2].index("widow")
    assert run("mask", "documents([0, 1, 2])", "-n", "5").exit_code == 1


# ---- bench ---------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    """Times that are known: linear grows with the length, the others with its square."""
    times = {"linear": lambda n: 64 * n}
    monkeypatch.setattr(
        timing,
        "_in_own_process",
        lambda work: (times.get(work.variant, lambda n: n * n)(work.length) / 1e6, 1 << 20),
    )


def test_bench_shows_a_table_and_crossovers(quick):
    shown = run("bench", "--length", "32", "64", "128", "--rounds", "5")
    assert shown.exit_code == 0
    for name in timing.VARIANTS:
        assert name in shown.output
    assert "linear is faster than standard from 128 tokens" in shown.output
    assert "window is not faster than standard at these lengths" in shown.output
    assert "1 MiB" in shown.output
    assert "0.50" in shown.output  # linear at 128


def test_bench_begins_with_the_exercise(quick):
    rows = list(csv.DictReader(io.StringIO(run("bench", "--csv").stdout)))
    first = rows[0]
    assert [first[name] for name in ("batch", "length", "channels", "rounds")] == ["8", "1024", "64", "100"]
    assert {row["length"] for row in rows} == {"1024", "2048", "4096"}


def test_bench_draws(quick, tmp_path):
    path = tmp_path / "bench.pdf"
    shown = run("bench", "--length", "32", "64", "--figure", str(path), "--lang", "zh")
    assert path.read_bytes().startswith(b"%PDF")
    assert "不比 standard 快" in shown.output


def test_bench_says_what_was_not_tried(monkeypatch, quick):
    from regard.lessons.timing import run_bench

    monkeypatch.setattr(
        "regard.lessons.timing.run_bench",
        lambda works, report: run_bench(works, report=report, available=lambda: 100 << 20),
    )
    shown = run("bench", "--length", "4096", "--variant", "textbook", "--variant", "linear")
    assert "not tried: needs 1.03 GiB, 100 MiB are free" in shown.output


def test_bench_refuses_what_cannot_fit():
    shown = run("bench", "--length", "1000000000", "--variant", "textbook")
    assert shown.exit_code == 1
    assert "must fit into memory (available = " in shown.output
    assert "bytes for textbook at length 1,000,000,000" in shown.output


def test_bench_runs(monkeypatch):
    monkeypatch.setattr(timing, "_in_own_process", timing.measure)  # the process has its own tests
    shown = run("bench", "--length", "16", "--rounds", "1", "--batch", "1", "--threads", "1",
                "--variant", "standard", "--variant", "linear")  # fmt: skip
    assert shown.exit_code == 0, shown.output
    # Lines of the table begin with the length; a time may happen to hold the same digits.
    assert sum(line.split()[:1] == ["16"] for line in shown.output.splitlines()) == 2


def test_crossovers_need_both():
    only = Timings((Timing(Variant("linear", 8, 1, 1, 8, 1, 1), 1.0, 1, 1, 1),))
    assert crossovers(only, "en") == []


# ---- demo ----------------------------------------------------------------------------------------


def test_demo_lists_all():
    shown = run("demo")
    assert shown.exit_code == 0
    for one in demonstrations():
        assert one.name in shown.output


def test_demo_shows_its_numbers_and_figure(tmp_path):
    path = tmp_path / "hand.png"
    shown = run("demo", "hand", "--figure", str(path))
    assert "1.25, 1.10, 1.00" in shown.output
    assert "0.88, 0.78, 0.71" in shown.output
    assert path.stat().st_size > 1000
    assert "softmax：" in run("demo", "hand", "--lang", "zh").output


def test_demo_errors_are_clean():
    for arguments, says in (
        (["nonsense"], "A demonstration must be one of hand"),
        (["scalling"], "Did you mean scaling?"),
        (["--figure", "x.png"], "without a name"),
    ):
        shown = run("demo", *arguments)
        assert shown.exit_code == 1
        assert says in shown.output
