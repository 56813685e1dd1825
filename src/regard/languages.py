"""The languages that people read, and the tables of texts that a room keeps in both.

A room that says something to people has a folder ``texts`` with one JSON file per language, and the
same keys in each. A text may have places for numbers, ``{variance:.1f}``. Where both languages need
the same words but in another order, each table has its own sentence; nothing is put together from
pieces.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from regard.errors import ArgumentError

LANGUAGES = ("en", "zh")
"""English, and Chinese in simplified characters."""


def check_language(lang: object) -> None:
    """Raise unless this is one of the languages.

    >>> check_language("fr")
    Traceback (most recent call last):
    regard.errors.ArgumentError: lang is one of en, zh. Got lang = 'fr'. Choose one of them.
    """
    if lang not in LANGUAGES:
        raise ArgumentError(
            f"lang is one of {', '.join(LANGUAGES)}.", got=f"lang = {lang!r}", do="Choose one of them."
        )


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes: a Chinese character two, an accent of its own none.

    >>> columns_of("AI 技术"), columns_of("e\\u0301")
    (7, 1)
    """
    return sum(map(_columns_of_sign, text))


def _columns_of_sign(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def padded(text: str, columns: int) -> str:
    """The text in so many columns, to the right; to the left where ``columns`` is below 0.

    >>> padded("键", 4) + "|", padded("键", -4) + "|"
    ('  键|', '键  |')
    """
    blanks = " " * (abs(columns) - columns_of(text))
    return blanks + text if columns > 0 else text + blanks


class Texts:
    """The texts of one room by their keys, read when the first of them is said.

    >>> from regard.heads.role_results import TEXTS
    >>> TEXTS.say("role.previous"), TEXTS.say("role.previous", "zh")
    ('looks at the previous token', '看前一个词元')
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read = cache(self._table)

    def table(self, lang: str) -> Mapping[str, str]:
        """Every text of a language by its key."""
        check_language(lang)
        return self._read(lang)

    def say(self, key: str, lang: str = "en", /, **values: object) -> str:
        """One text, with its numbers in their places."""
        found = self.table(lang)[key]
        return found.format(**values) if values else found

    def _table(self, lang: str) -> Mapping[str, str]:
        found: dict[str, str] = json.loads((self.folder / f"{lang}.json").read_text(encoding="utf-8"))
        return found
