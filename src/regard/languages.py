"""The languages of regard, and tables of texts in each of them.

A package that shows text to users has a folder ``texts`` with one JSON file per language, with the
same keys in each. A text may have placeholders, ``{variance:.1f}``. Every language has whole
sentences of its own; none is assembled from pieces.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from regard.errors import ArgumentError

LANGUAGES = ("en", "zh")
"""English and Simplified Chinese."""


def check_language(lang: object) -> None:
    """Raise unless this is one of LANGUAGES.

    >>> check_language("fr")
    Traceback (most recent call last):
    regard.errors.ArgumentError: lang is one of en, zh. Got lang = 'fr'. Choose one of them.
    """
    if lang not in LANGUAGES:
        raise ArgumentError(
            f"lang is one of {', '.join(LANGUAGES)}.", got=f"lang = {lang!r}", do="Choose one of them."
        )


def columns_of(text: str) -> int:
    """The width of a text in terminal columns: two for a Chinese character, none for a combining accent.

    >>> columns_of("AI 技术"), columns_of("e\\u0301")
    (7, 1)
    """
    return sum(map(_columns_of_sign, text))


def _columns_of_sign(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def padded(text: str, columns: int) -> str:
    """The text aligned right in ``columns`` columns; aligned left if ``columns`` is negative.

    >>> padded("键", 4) + "|", padded("键", -4) + "|"
    ('  键|', '键  |')
    """
    blanks = " " * (abs(columns) - columns_of(text))
    return blanks + text if columns > 0 else text + blanks


class Texts:
    """The texts of one package by their keys, loaded on first use.

    >>> from regard.heads.role_results import TEXTS
    >>> TEXTS.say("role.previous"), TEXTS.say("role.previous", "zh")
    ('looks at the previous token', '看前一个词元')
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read = cache(self._table)

    def table(self, lang: str) -> Mapping[str, str]:
        """All texts of a language by their keys."""
        check_language(lang)
        return self._read(lang)

    def say(self, key: str, lang: str = "en", /, **values: object) -> str:
        """One text, with its placeholders filled in."""
        found = self.table(lang)[key]
        return found.format(**values) if values else found

    def _table(self, lang: str) -> Mapping[str, str]:
        found: dict[str, str] = json.loads((self.folder / f"{lang}.json").read_text(encoding="utf-8"))
        return found
