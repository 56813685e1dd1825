"""Write docs/commands.md and docs/commands.zh-CN.md: what ``--help`` says of every command.

python docs/make_commands.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from regard.app.languages import click_in
from regard.app.main import CONTEXT, main

FOLDER = Path(__file__).parent
WIDTH = 100

NAMES = {"en": "commands.md", "zh": "commands.zh-CN.md"}
HEADS = {
    "en": """# Commands

What `regard COMMAND --help` says, of every command; written by `python docs/make_commands.py`.
[简体中文](commands.zh-CN.md)
""",
    "zh": """# 命令

每个命令的 `regard --lang zh 命令 --help` 的内容；由 `python docs/make_commands.py` 写出。
[English](commands.md)
""",
}


def context_of(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """Where the help of a command is written: as wide as the page, whatever the terminal."""
    settings: dict[str, Any] = {**CONTEXT, "terminal_width": WIDTH}
    return click.Context(command, parent, name, **settings)


def reference(lang: str) -> str:
    """The whole page of a language."""
    top = context_of(main, "regard")
    with click_in(lang):
        sections = [HEADS[lang], f"```text\n{main.get_help(top)}\n```\n"]
        for name, command in sorted(main.commands.items()):
            shown = command.get_help(context_of(command, name, top))
            sections.append(f"## regard {name}\n\n```text\n{shown}\n```\n")
    return "\n".join(sections)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for lang, name in NAMES.items():
        (folder / name).write_text(reference(lang), encoding="utf-8")
        print(folder / name)
