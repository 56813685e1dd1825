"""Texts on the command line: as typed, ``@path`` for a file, ``-`` for standard input."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from regard.errors import Phrase, TextError, reason

HELP = "TEXT may be @path for a file, or - for standard input."


def read_argument(given: str) -> str:
    """The text that an argument stands for; ``@@`` starts a text that begins with ``@``."""
    if given == "-":
        return _decoded(_standard_input(), Phrase("standard input"))
    if given.startswith("@") and not given.startswith("@@"):
        return _read_file(given[1:])
    broken = re.search("[\ud800-\udfff]", given)
    if broken is not None:
        # Python passes bytes that are not UTF-8 as lone surrogates, which no tokenizer accepts.
        raise TextError(
            "A text on the command line must be in the system's encoding.",
            got="{given!r}, with a broken character at {start}",
            do="Save it as UTF-8 and pass @path.",
            given=given[:40],
            start=broken.start(),
        )
    return given[1:] if given.startswith("@@") else given


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise TextError(
            "- needs a text on standard input.",
            got="closed standard input",
            do="Pipe a text into the command, or pass @path or the text itself.",
        )
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise TextError(
            "- needs a text on standard input.",
            got="{reason}",
            do="Pipe a text into the command, or pass @path or the text itself.",
            reason=reason(error),
        ) from error


def _decoded(raw: bytes, where: Path | Phrase) -> str:
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise TextError(
            "A text file must be in UTF-8.",
            got="byte {object:#04x} at {start} in {where}",
            do="Save it as UTF-8.",
            object=error.object[error.start],
            start=error.start,
            where=where,
        ) from error


def _read_file(name: str) -> str:
    path = Path(name)
    try:
        raw = path.expanduser().read_bytes()
    except (OSError, ValueError, RuntimeError) as error:  # ~nobody is a RuntimeError
        raise TextError(
            "@ must be followed by the path of a readable file.",
            got="{path}: {reason}",
            do="Correct the path, or write @@ to begin a text with @.",
            path=path,
            reason=reason(error),
        ) from error
    return _decoded(raw, path)
