"""Write docs/commands.md: what ``--help`` says of every command.

python docs/make_commands.py [file]
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from regard.app.command import CONTEXT, main

PAGE = Path(__file__).parent / "commands.md"
WIDTH = 100

HEAD = """# Commands

What `regard COMMAND --help` says, of every command; written by `python docs/make_commands.py`.
"""


def context_of(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """Where the help of a command is written: as wide as the page, whatever the terminal."""
    return click.Context(command, parent, name, terminal_width=WIDTH, **CONTEXT)


def reference() -> str:
    """The whole page."""
    top = context_of(main, "regard")
    sections = [HEAD, f"```text\n{main.get_help(top)}\n```\n"]
    for name, command in sorted(main.commands.items()):
        shown = command.get_help(context_of(command, name, top))
        sections.append(f"## regard {name}\n\n```text\n{shown}\n```\n")
    return "\n".join(sections)


if __name__ == "__main__":
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    page.write_text(reference(), encoding="utf-8")
    print(page)
