"""The references: public names from their docstrings, commands from their help."""

import importlib
import inspect
import re
import subprocess
import sys
from types import ModuleType

import pytest

import regard
from docs.scripts import DOCS, script
from regard.app.main import main

PAGES = ["commands.md", "commands.zh-CN.md"]


def test_every_public_name_is_rendered_without_a_warning(tmp_path):
    site, before = script("make_site"), set(vars(regard))
    site.write_reference(tmp_path)  # warnings are errors
    # Building does not change the package: names still load on first use.
    assert "attention_weights" in before or "attention_weights" not in vars(regard)
    for room in site.ROOMS:
        page = (tmp_path / f"{room.replace('.', '/')}.html").read_text(encoding="utf-8")
        module = importlib.import_module(room)
        for name in set(getattr(module, "__all__", ())) - {"__version__"}:
            value = getattr(module, name)
            # A module has its own page.
            shown = value.__name__ in site.ROOMS if isinstance(value, ModuleType) else f'id="{name}"' in page
            assert shown, f"{room}.{name}"
        there = set(re.findall(r'\bid="([^"]+)"', page))
        assert set(re.findall(r'href="#([^"]+)"', page)) <= there
        assert f'href="{"../" * (room.count(".") + 1)}index.html"' in page  # back to the site


def test_everything_public_in_regard_is_in_the_reference():
    shown = set(script("make_site").ROOMS)
    for name, where in {**regard._ROOMS, **regard._MODULES}.items():
        assert where in shown, name


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    # In its own process: click caches the help option of a command that was called before.
    folder = tmp_path_factory.mktemp("docs")
    subprocess.run([sys.executable, DOCS / "make_commands.py", folder], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_of_commands_is_current(written, name):
    kept = (DOCS / name).read_text(encoding="utf-8")
    assert kept == (written / name).read_text(encoding="utf-8"), "run: python docs/make_commands.py"


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_of_commands_names_every_command(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    for command in main.commands:
        assert f"\n## regard {command}\n" in text


# ---- every public name ---------------------------------------------------------------------------

REFERENCE = (DOCS / "reference.md").read_text(encoding="utf-8")
EXAMPLES = "\n".join(
    "\n".join(re.findall(r"```(?:python)?\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    for page in sorted(DOCS.glob("*.md"))
)


@pytest.mark.parametrize("room", script("make_reference").ROOMS)
def test_the_committed_reference_names_everything_public(room):
    section = REFERENCE.partition(f"\n## `{room}`\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| `(\w+)", section, re.MULTILINE)
    module = importlib.import_module(room)
    assert shown == script("make_reference").public_names(module), "run: python docs/make_reference.py"


def test_everything_public_in_regard_has_an_example():
    for name in set(regard.__all__) - {"__version__"}:
        value = getattr(regard, name)
        if not isinstance(value, ModuleType):
            assert ">>>" in value.__doc__, name


NEEDS_FILES = {
    "load_reader": "load_reader",
    "Reader": "load_reader",
    "load_picture_reader": "load_picture_reader",
    "PictureReader": "load_picture_reader",
    "VisionLanguageReader": "load_picture_reader",
    "load_speech_model": "load_speech_model",
    "words": "words",
    "transcribe": "transcribe",
    "Transcript": "transcribe",
    "speech_page": "speech_page",
    "survey": "survey",
    "Survey": "survey",
    "train": "train",
    "TrainingRun": "train",
    "export": "export",
}
"""What reads a model, a corpus or sentence pairs, and the function whose example is on a page."""


def has_example(value: object) -> bool:
    """Whether a docstring has an example, which doctest runs; of a class, also that of a method."""
    own = [getattr(value, "__doc__", None)]
    if inspect.isclass(value):
        own += [
            getattr(member, "__doc__", None) for member in vars(value).values() if not isinstance(member, str)
        ]
    return any(">>>" in text for text in own if text)


@pytest.mark.parametrize("room", script("make_reference").ROOMS)
def test_every_public_name_has_an_example(room):
    module = importlib.import_module(room)
    for name in script("make_reference").public_names(module):
        value = getattr(module, name)
        if isinstance(value, ModuleType) or (inspect.isclass(value) and issubclass(value, Exception)):
            continue  # modules have names of their own; errors are raised, and explained in errors.md
        if name in NEEDS_FILES:
            assert re.search(rf"\b{NEEDS_FILES[name]}\(", EXAMPLES), name
        elif (
            inspect.isroutine(value) or inspect.isclass(value) or type(value).__module__.startswith("regard.")
        ):
            assert has_example(value), name


def test_the_test_of_examples_would_notice():
    class Bare:
        """No example."""

        def method(self):
            """None either."""

    assert not has_example(Bare)
    Bare.method.__doc__ = ">>> 1"
    assert has_example(Bare)
