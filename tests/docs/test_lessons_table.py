"""docs/lessons.md and the lessons: every call and command that they name is valid."""

import ast
import inspect
import re
import shlex

import click
import jupytext
import pytest

import regard
from docs.scripts import DOCS, script
from regard.app.main import main

PAGE = (DOCS / "lessons.md").read_text(encoding="utf-8")
SPANS = sorted(set(re.findall(r"`([\w.]+\([^`]*)`", "\n".join(re.findall(r"^\| .*", PAGE, re.MULTILINE)))))


@pytest.fixture(scope="module")
def names():
    """The names defined by the code block at the end of the page."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    found = {"biases": regard.biases}
    exec(code, found)
    return found


def check_command(text):
    """Parse a command as the shell and click do, without running it."""
    name, *arguments = shlex.split(text)[1:]
    command = main.commands.get(name)
    assert command is not None, f"no command {name}"
    # With its settings: click keeps the help option that it first made for a command.
    return command.make_context(name, arguments, parent=click.Context(main, **main.context_settings))


def check_call(text, names):
    """Check that every dotted name exists and that calls fit the signatures, without calling anything."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Call) and is_dotted(node.func):
            called = resolve(node.func, names)
            inspect.signature(called).bind(*node.args, **{word.arg: word.value for word in node.keywords})
        elif is_dotted(node) and isinstance(node, ast.Attribute):
            resolve(node, names)


def is_dotted(node):
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def resolve(node, names):
    if isinstance(node, ast.Name):
        return names[node.id]
    return getattr(resolve(node.value, names), node.attr)


@pytest.mark.parametrize("text", SPANS)
def test_every_call_in_a_row_exists_and_takes_its_arguments(text, names):
    check_call(text, names)


@pytest.mark.parametrize(
    "wrong", ["regard.nonsense(x)", "masks.nonsense(3)", "regard.cost(512, nonsense=1)", "regard.plan()"]
)
def test_a_wrong_call_would_be_noticed(wrong, names):
    with pytest.raises((AttributeError, TypeError)):
        check_call(wrong, names)


@pytest.mark.parametrize(
    "wrong", ["regard nonsense", "regard mask", "regard demo --nonsense", "regard look x --layer -1"]
)
def test_a_wrong_command_would_be_noticed(wrong):
    with pytest.raises((AssertionError, click.UsageError)):
        check_command(wrong)


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
                    if text.startswith("regard play") and "play" not in main.commands:
                        continue
                    check_command(text)
                    found += 1
    assert found > 10


ROWS = [*(f"A{n}" for n in range(1, 10)), *(f"B{n}" for n in range(1, 4)), *(f"C{n}" for n in range(1, 9))]
ROWS += [*(f"D{n}" for n in range(1, 6)), *(f"E{n}" for n in range(1, 7))]


def anchor(heading):
    """The name that GitHub and the site give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("row", ROWS)
def test_every_row_points_to_a_place_in_the_course(row):
    (line,) = re.findall(rf"^\| {row} \| .*$", PAGE, re.MULTILINE)
    places = re.findall(r"\[(\d+) · [^\]]+\]\((lessons/en/[\w-]+\.md)#([^)]+)\)", line)
    assert places
    for number, file, place in places:
        text = (DOCS / file).read_text(encoding="utf-8")
        assert file.startswith(f"lessons/en/{int(number):02}")
        assert place in map(anchor, re.findall(r"^## (.*)$", text, re.MULTILINE))
