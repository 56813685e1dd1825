"""Write docs/reference.md: every public name with its signature and the first sentence of its docstring.

python docs/make_reference.py [folder]
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent
NAME = "reference.md"
MOST = 4
"""The most arguments that are shown; the rest are in the docstring."""

ROOMS = {
    "regard": "attention.md",
    "regard.masks": "masks.md",
    "regard.kernels": "attention.md",
    "regard.kernels.biases": "attention.md",
    "regard.nn": "nn.md",
    "regard.recording": "recording.md",
    "regard.edits": "edits.md",
    "regard.metrics": "edits.md",
    "regard.heads": "heads.md",
    "regard.heads.survey": "survey.md",
    "regard.speech": "speech.md",
    "regard.translator": "translator.md",
    "regard.views.figures": "figures.md",
    "regard.views.page": "pages.md",
    "regard.views.bertviz": "pages.md",
    "regard.lessons": "lessons.md",
    "regard.diagnosis": "doctor.md",
    "regard.errors": "README.md",
}
"""The public modules, and the page that explains each."""

HEAD = """# Reference

Every public name, with the first sentence of its docstring; written by `python docs/make_reference.py`.
`help(regard.attention)` shows the whole docstring with arguments and examples, and `make docs` builds all
of them as pages into `build/docs/api`.
"""


def public_names(module: ModuleType) -> list[str]:
    """The names that a module exports; of one without ``__all__``, the classes that it defines."""
    if hasattr(module, "__all__"):
        return sorted(set(module.__all__) - {"__version__"}, key=lambda name: (name.lower(), name))
    found = inspect.getmembers(module, inspect.isclass)
    return [name for name, value in found if value.__module__ == module.__name__ and name[0] != "_"]


def described(name: str, value: object) -> str:
    """One row of a table."""
    text = (inspect.getdoc(value) or "").strip().partition("\n\n")[0]
    first = " ".join(text.split()).partition(". ")[0].rstrip(".") + "."
    first = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", first).replace("``", "`").replace("|", "\\|")
    return f"| {_shown(name, value)} | {first} |"


def _shown(name: str, value: object) -> str:
    if isinstance(value, ModuleType) or inspect.isclass(value) or not callable(value):
        return f"`{name}`"
    parameters = inspect.signature(value).parameters.values()
    names = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD][:MOST]
    return f"`{name}({', '.join(names + ['…'] * (len(parameters) > len(names)))})`"


def reference() -> str:
    """The whole page."""
    sections = [HEAD]
    for room, page in ROOMS.items():
        module = importlib.import_module(room)
        rows = [described(name, getattr(module, name)) for name in public_names(module)]
        lines = [
            f"## `{room}`",
            "",
            f"See [{page}]({page}).",
            "",
            "| name | what it is |",
            "|---|---|",
            *rows,
        ]
        sections.append("\n".join(lines) + "\n")
    return "\n".join(sections)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    (folder / NAME).write_text(reference(), encoding="utf-8")
    print(folder / NAME)
