"""docs/lessons.md: every row of the five lessons stands in it, and whatever it names can be called."""

import ast
import importlib
import inspect
import re
import shlex

import click
import jupytext
import pytest
from docs.site import DOCS, script

import regard
from regard.app.command import main
from regard.lessons import demonstrations

PAGE = (DOCS / "lessons.md").read_text(encoding="utf-8")
ROWS = [*(f"A{n}" for n in range(1, 10)), "B1", "B2", "B3", *(f"C{n}" for n in range(1, 9))]
ROWS += [*(f"D{n}" for n in range(1, 6)), *(f"E{n}" for n in range(1, 7))]
SPANS = sorted(set(re.findall(r"`(regard[ .][^`]+)`", PAGE)))
COMMANDS = [span for span in SPANS if span.startswith("regard ")]
CALLS = [span for span in SPANS if span.startswith("regard.")]


def table_rows():
    """The cells of every row that begins with an id."""
    for line in PAGE.splitlines():
        row = [cell.strip() for cell in line.strip("|").split(" | ")]
        if re.fullmatch(r"[A-E]\d", row[0].strip("| ")):
            yield row


def check_command(text):
    """Parse a command as the shell and click would, without running it."""
    name, *arguments = shlex.split(text)[1:]
    command = main.commands.get(name)
    assert command is not None, f"no command {name}"
    return command.make_context(name, arguments, parent=click.Context(main))


def resolve(node):
    """The object that a dotted name stands for; rooms are imported on the way."""
    if isinstance(node, ast.Name):
        assert node.id == "regard"
        return regard
    owner = resolve(node.value)
    if not hasattr(owner, node.attr):
        importlib.import_module(f"{owner.__name__}.{node.attr}")
    return getattr(owner, node.attr)


def begins_with_regard(node):
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "regard"


def check_call(text):
    """Every dotted name exists, and every call of one could bind its arguments."""
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and begins_with_regard(node):
            resolve(node)
        if isinstance(node, ast.Call) and begins_with_regard(node.func):
            called = resolve(node.func)
            if called is regard.attention:
                called = regard.attention.attention
            inspect.signature(called).bind(*node.args, **{word.arg: word.value for word in node.keywords})


def test_every_row_stands_in_the_page_with_something_that_shows_it():
    rows = list(table_rows())
    assert [row[0] for row in rows] == ROWS
    for number, what, shown, lesson in rows:
        assert what, number
        assert re.search(r"`regard[ .]", shown), number
        assert "—" not in shown
        assert re.fullmatch(r"[1-8](, [1-8])?", lesson), number


@pytest.mark.parametrize("text", COMMANDS)
def test_every_command_can_be_parsed(text):
    check_command(text)


@pytest.mark.parametrize("text", CALLS)
def test_every_call_exists_and_takes_its_arguments(text):
    check_call(text)


@pytest.mark.parametrize(
    "wrong", ["regard nonsense", "regard mask", "regard demo --nonsense", "regard look x --layer -1"]
)
def test_a_wrong_command_would_be_noticed(wrong):
    with pytest.raises((AssertionError, click.UsageError)):
        check_command(wrong)


@pytest.mark.parametrize(
    "wrong", ["regard.nonsense(x)", "regard.masks.nonsense", "regard.cost(512, nonsense=1)", "regard.plan()"]
)
def test_a_wrong_call_would_be_noticed(wrong):
    with pytest.raises((ImportError, AttributeError, TypeError)):
        check_call(wrong)


def test_every_demonstration_of_a_row_is_named_in_it():
    shown = {row[0]: row[2] for row in table_rows()}
    for one in demonstrations():
        for seed in one.seeds:
            assert seed in shown
        named = [seed for seed, text in shown.items() if f"regard demo {one.name}" in text]
        assert named or not one.seeds, one.name


def test_every_lesson_is_linked_under_its_title():
    site = script("make_site")
    for lang in site.LANGUAGES:
        for lesson in site.lessons(lang):
            title = site.title_of(lesson).partition(" · ")[2]
            assert f"[{title}](lessons/{lang}/{lesson.name})" in PAGE


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_command_in_a_lesson_can_be_parsed(lang):
    found = 0
    for lesson in script("make_site").lessons(lang):
        for cell in jupytext.read(lesson).cells:
            if cell.cell_type == "markdown":
                # A command without its arguments is only named.
                for text in re.findall(r"`(regard [a-z]+ [^`]+)`", cell.source.replace("\n", " ")):
                    check_command(text)
                    found += 1
    assert found > 10
