"""The languages of regard, and tables of texts in each of them.

``texts`` has a folder for each language with one JSON file per subject, with the same keys in each
language. A text may have placeholders, ``{variance:.1f}``. Every language has whole sentences of its
own; none is assembled from pieces. The English of errors and of help is in the code, so their Chinese,
``errors.json`` and ``help.json``, has that English as keys.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from regard.checks import check_choice

TEXTS = Path(__file__).with_name("texts")

LANGUAGES = ("en", "zh")
"""English and Simplified Chinese."""


def check_language(lang: object) -> None:
    """Raise unless this is one of LANGUAGES.

    >>> check_language("fr")
    Traceback (most recent call last):
    regard.errors.ArgumentError: lang is one of en, zh. Got lang = 'fr'. Choose one of them.
    """
    check_choice("lang", lang, LANGUAGES)


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


@cache
def read_table(subject: str, lang: str) -> Mapping[str, str]:
    """The texts of a subject in a language by their keys; none if the language has no such file."""
    file = TEXTS / lang / f"{subject}.json"
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def error_template(english: str, lang: str) -> str:
    """A template of an error in a language; itself if it has no words to translate.

    >>> error_template("The text has at least one word.", "zh"), error_template("{name} = {given}", "zh")
    ('文本至少要有一个词。', '{name} = {given}')
    """
    if lang == "en":
        return english
    check_language(lang)
    return read_table("errors", lang).get(english, english)


class Texts:
    """The texts of one subject by their keys, loaded on first use.

    >>> Texts("heads").say("role.previous"), Texts("heads").say("role.previous", "zh")
    ('looks at the previous token', '看前一个词元')
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject

    def table(self, lang: str) -> Mapping[str, str]:
        """All texts of a language by their keys."""
        check_language(lang)
        return read_table(self.subject, lang)

    def say(self, key: str, lang: str = "en", /, **values: object) -> str:
        """One text, with its placeholders filled in."""
        found = self.table(lang)[key]
        return found.format(**values) if values else found
