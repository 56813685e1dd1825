"""Texts on the command line: as typed, ``@path`` for a file, ``-`` for standard input."""

from __future__ import annotations

from pathlib import Path

import click

from regard.errors import TextError

HELP = "TEXT may be @path for a file, or - for standard input."


def read_argument(given: str) -> str:
    """The text that was meant; ``@@`` begins a text with one ``@``."""
    if given == "-":
        with click.open_file("-", encoding="utf-8") as stream:
            return str(stream.read())
    if given.startswith("@@"):
        return given[1:]
    if not given.startswith("@"):
        return given
    path = Path(given[1:]).expanduser()
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(
            "A text is a file in UTF-8.",
            got=f"byte {error.object[error.start]:#04x} at {error.start} in {path}",
            do="Save it as UTF-8.",
        ) from error
    except OSError as error:
        raise TextError(
            "@ names a file that can be read.",
            got=f"{path}: {error.strerror or error}",
            do="Correct the path, or write @@ to begin a text with @.",
        ) from error
