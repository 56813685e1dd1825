"""The pages of costs and lessons: calls run, commands parse, rows are complete, numbers are true."""

import re
import shlex
from pathlib import Path

import pytest
import torch

import regard
from regard.app.commands.bench import bench
from regard.app.commands.cost import cost
from regard.app.main import main
from regard.lessons import demonstrations
from regard.lessons.timing import VARIANTS
from regard.views.figures.units import binary, si

DOCS = Path(__file__).parents[2] / "docs"
COSTS, LESSONS = ((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("costs", "lessons"))
ROWS = [
    f"{lesson}{number}" for lesson, last in zip("ABCDE", (9, 3, 8, 5, 6)) for number in range(1, last + 1)
]


def row(name):
    (line,) = re.findall(rf"^\| {name} \|.*$", LESSONS, re.MULTILINE)
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def commands(page):
    inline = re.findall(r"`(regard [^`]*)`", page)
    blocks = "\n".join(re.findall(r"```\n(.*?)```", page, re.DOTALL)).splitlines()
    return [*inline, *(line for line in blocks if line.startswith("regard "))]


def test_every_row_is_there_once_and_in_order():
    assert re.findall(r"^\| ([A-E]\d) \|", LESSONS, re.MULTILINE) == ROWS


@pytest.mark.parametrize("name", ROWS)
def test_every_row_names_a_call(name):
    _, taught, place, shown = row(name)
    assert taught
    assert "](lessons/en/" in place
    assert "`" in shown


def test_demonstrations_stand_at_the_rows_they_show():
    for one in demonstrations():
        assert f"`regard demo {one.name}" in LESSONS
        for seed in one.seeds:
            assert seed in ROWS
            assert "regard" in row(seed)[3]


@pytest.mark.parametrize("line", sorted(set(commands(LESSONS) + commands(COSTS))))
def test_every_command_parses(line):
    _, name, *arguments = shlex.split(line)
    context = main.commands[name].make_context(name, arguments)
    if name == "demo" and context.params["name"]:
        assert context.params["name"] in {one.name for one in demonstrations()}


def test_names_of_regard_in_the_rows_exist():
    for path in re.findall(r"`regard\.([\w.]+)\(", LESSONS):
        found = regard
        for part in path.split("."):
            found = getattr(found, part)
        assert callable(found)


@pytest.mark.parametrize("page", [LESSONS, COSTS], ids=["lessons", "costs"])
def test_the_calls_run(page, capsys):
    torch.manual_seed(0)
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, {})


def test_the_table_of_costs_is_what_cost_says():
    found = regard.cost([512, 2048, 8192], width=512, heads=8)
    for n in found.lengths:
        dense, ours = found[n, "dense"], found[n, "regard"]
        cells = [f"{n:,}", *(si(dense[name].operations) for name in ("scores", "softmax", "sum"))]
        cells += [binary(dense["queries"].bytes), binary(dense["scores"].bytes)]
        cells += [binary(ours["softmax"].bytes), binary(dense["sum"].bytes)]
        assert f"| {' | '.join(cells)} |" in COSTS


def test_options_and_variants_are_named():
    for command in (cost, bench):
        options = {name for option in command.params for name in option.opts if name.startswith("--")}
        assert {name for name in options if name not in COSTS} - {
            "--projections",
            "--width",
            "--batch",
        } == set()
    for name in VARIANTS:
        assert f"`{name}`" in COSTS


def test_wrong_and_right_are_those_of_the_demonstration():
    from regard.lessons.common_mistakes import find_mistakes

    found = find_mistakes()
    wrong = LESSONS.partition("## Where the original lessons are wrong")[2]
    for number in (f"{found.dense_pairs:,}", f"{found.sparse_pairs:,}", f"{found.keys_product[0, 0]:g}",
                   str(found.padding_twice), str(found.padding_once), str(found.torch_shape),
                   *(f"{x:.3f}" for x in found.row_maximum)):  # fmt: skip
        assert number in wrong
    assert "0.820, 0.026, 0.154" in wrong
