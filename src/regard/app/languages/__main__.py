"""List the texts that have no Chinese, as lines of JSON to complete, and the Chinese that is unused.

Run ``python -m regard.app.languages``. The texts of errors are the literals in calls such as
``ShapeError("…", got="…", do="…")`` and ``Phrase("…")``; the texts of help are what its formatter looks up.
"""

from __future__ import annotations

import ast
import builtins
import errno
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from regard.app.languages.help_formatter import ChineseFormatter
from regard.app.languages.option import LANGUAGE, LanguageContext
from regard.texts import read_table

SOURCE = Path(__file__).parents[2]

_SAYS = re.compile(r"_?[A-Z]\w*Error|Phrase|_fail|_refuse")
"""Calls whose first argument is a template; ``_fail`` and ``_refuse`` are helpers that pass it on."""

_PARTS = ("must", "got", "do")
"""Arguments that are templates, in any call."""

_SAME = re.compile(r"--\w+|\w+ ?= ?\w*|\w+\([^()]*\)|\w+_\w+|\{.*?\}")
"""What is the same in every language: places, options, named values, calls, names of code."""


def templates(code: str) -> Iterator[tuple[int, str | None]]:
    """The templates of errors in some code, with their lines; None for one that is not a literal.

    >>> list(templates('raise ShapeError("Keys are long.", got=f"{n} keys", do="Cut." if n else "Wait.")'))
    [(1, 'Keys are long.'), (1, None), (1, 'Cut.'), (1, 'Wait.')]
    """
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            for part in (*_first(node), *(one.value for one in node.keywords if one.arg in _PARTS)):
                yield from _written(part)


def _first(call: ast.Call) -> list[ast.expr]:
    """The first argument of an error; of the server's errors the second, after the status."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if not _SAYS.fullmatch(name) or hasattr(builtins, name) or ast.unparse(call.func).startswith("click."):
        return []
    return call.args[1:2] if name == "RequestError" else call.args[:1]


def _written(part: ast.expr) -> Iterator[tuple[int, str | None]]:
    if isinstance(part, ast.IfExp):
        yield from (*_written(part.body), *_written(part.orelse))
    elif isinstance(part, ast.Constant) and isinstance(part.value, str):
        yield part.lineno, part.value
    elif not (isinstance(part, ast.Name) and part.id in (*_PARTS, "problem")):  # passed on
        yield part.lineno, None


def error_texts() -> set[str]:
    """The templates of all errors, except those without words, such as ``{name} = {n}``."""
    found = (text for file in SOURCE.rglob("*.py") for _, text in templates(file.read_text(encoding="utf-8")))
    return {text for text in found if text and re.search("[A-Za-z]{2}", _SAME.sub(" ", text))}


class _RecordingFormatter(ChineseFormatter):
    """Remembers what it looks up."""

    def __init__(self) -> None:
        super().__init__(width=78)
        self.asked: set[str] = set()

    def say(self, english: str) -> str:
        self.asked.add(english)
        return super().say(english)


def help_texts(program: click.Group) -> set[str]:
    """Every text in the help of a program and its commands."""
    # With its settings: click keeps the help option that it first made for a command.
    top = LanguageContext(program, info_name="regard", **program.context_settings)
    top.meta[LANGUAGE] = "zh"
    formatter = _RecordingFormatter()
    program.format_help(top, formatter)
    for name, command in program.commands.items():
        command.format_help(LanguageContext(command, parent=top, info_name=name), formatter)
    return formatter.asked


def compare(subject: str, wanted: Iterable[str]) -> tuple[list[str], list[str]]:
    """The texts that the Chinese table of a subject lacks, and its entries that are no longer used."""
    of_system = {os.strerror(number) for number in errno.errorcode}
    known = read_table(subject, "zh").keys()
    return sorted(set(wanted) - known), sorted(known - set(wanted) - of_system)


def main() -> int:
    """Print both for errors and help; 1 if there are any."""
    from regard.app.main import main as program

    failed = False
    for subject, wanted in (("errors", error_texts()), ("help", help_texts(program))):
        missing, stale = compare(subject, wanted)
        for text in missing:
            print(f'  {json.dumps(text, ensure_ascii=False)}: "",')
        for text in stale:
            print(f"stale: {text}")
        print(f"{subject}.json: {len(missing)} missing, {len(stale)} stale", file=sys.stderr)
        failed |= bool(missing or stale)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
