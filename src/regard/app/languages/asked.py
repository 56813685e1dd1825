"""The texts of the help of all commands: what ``help.json`` must have.

They are collected by writing the whole help into a formatter that remembers what it looks up.
"""

from __future__ import annotations

import click

from regard.app.languages.context import LANGUAGE, LanguageContext
from regard.app.languages.helping import ChineseFormatter


class _Remembering(ChineseFormatter):
    def __init__(self) -> None:
        super().__init__(width=78)
        self.asked: list[str] = []

    def say(self, english: str) -> str:
        self.asked.append(english)
        return super().say(english)


def of_help(program: click.Group, name: str = "regard") -> dict[str, str]:
    """Every text of the help of a program, with the first command that has it.

    >>> from regard.app.main import main
    >>> of_help(main)["Print CSV."]
    'regard heads'
    """
    # With its settings: click keeps the help option that it once made for a command.
    top = LanguageContext(program, info_name=name, **program.context_settings)
    top.meta[LANGUAGE] = "zh"
    contexts = [
        LanguageContext(one, parent=top, info_name=called) for called, one in program.commands.items()
    ]
    found: dict[str, str] = {}
    for context in (top, *contexts):
        formatter = _Remembering()
        context.command.format_help(context, formatter)
        for text in formatter.asked:
            found.setdefault(text, context.command_path)
    return found
