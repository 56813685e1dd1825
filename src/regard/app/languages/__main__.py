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
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from regard.app.languages import ChineseFormatter, click_in
from regard.texts import read_table

SOURCE = Path(__file__).parents[2]

_SAYS = re.compile(r"_?[A-Z]\w*Error|Phrase|_fail|_refuse|gettext")
"""Calls whose first argument is a template; ``_fail`` and ``_refuse`` are helpers that pass it on."""

_PARTS = ("must", "got", "do")
"""Arguments that are templates, in any call."""

SAME = re.compile(
    r'\{.*?\}|"[^"]*"|\[[a-z|]+\]|(?<![\w-])--?[a-z-]+|(默认|环境变量)：[^；\]]*'  # places, quotes, options
    r"|\w+ ?= ?\w*|\w+\([^()]*\)|[\w.:/-]*(/|[\d_.]\w)[\w.:/-]*",  # values, calls, names of code, files
    re.ASCII,
)
"""What is the same in every language."""


def templates(code: str) -> Iterator[tuple[int, str | None]]:
    """The templates of errors in some code, with their lines; None for one that is not a literal.

    >>> list(templates('raise ShapeError("Keys are long.", got=f"{n} keys", do="Cut." if n else "Wait.")'))
    [(1, 'Keys are long.'), (1, None), (1, 'Cut.'), (1, 'Wait.')]
    """
    for call in (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)):
        parts = [one.value for one in call.keywords if one.arg in _PARTS]
        name: str = getattr(call.func, "attr", "") or getattr(call.func, "id", "")
        if _SAYS.fullmatch(name) and not hasattr(builtins, name):
            # The server's errors have a status first.
            parts = [*(call.args[1:2] if name == "RequestError" else call.args[:1]), *parts]
        while parts:
            part = parts.pop(0)
            if isinstance(part, ast.IfExp):
                parts = [part.body, part.orelse, *parts]
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.lineno, part.value
            elif not (isinstance(part, ast.Name) and part.id in (*_PARTS, "problem")):  # passed on
                yield part.lineno, None


def error_texts() -> set[str]:
    """The templates of all errors, except those without words, such as ``{name} = {n}``."""
    found = (text for file in SOURCE.rglob("*.py") for _, text in templates(file.read_text(encoding="utf-8")))
    return {text for text in found if text and re.search("[A-Za-z]{2}", SAME.sub(" ", text))}


def help_texts(program: click.Group) -> set[str]:
    """Every text in the help of a program and its commands."""
    asked = set()

    class Collector(ChineseFormatter):
        def say(self, english: str) -> str:
            asked.add(english)
            return english

    with click_in("zh"):
        click.Context.formatter_class = Collector
        # With its settings: click keeps the help option that it first made for a command.
        top = click.Context(program, info_name="regard", **program.context_settings)
        program.get_help(top)
        for name, command in program.commands.items():
            command.get_help(click.Context(command, parent=top, info_name=name))
    return asked


def differences(wanted: Mapping[str, set[str]]) -> list[str]:
    """What is missing from the Chinese tables of these subjects, as lines of JSON, and what is not used."""
    of_system = {os.strerror(number) for number in errno.errorcode}
    found = []
    for subject, texts in wanted.items():
        known, of_click = read_table(subject, "zh").keys(), read_table("click", "zh").keys()
        missing = sorted(texts - known - of_click)
        found += [f'{subject}.json:  {json.dumps(text, ensure_ascii=False)}: "",' for text in missing]
        found += [f"{subject}.json, not used:  {text}" for text in sorted(known - texts - of_system)]
    return found


if __name__ == "__main__":
    from regard.app.main import main

    lines = differences({"errors": error_texts(), "help": help_texts(main)})
    print(*lines, f"{len(lines)} missing or not used", sep="\n")
    sys.exit(bool(lines))
