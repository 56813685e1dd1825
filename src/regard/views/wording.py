"""The words of tables, alignments and sizes, in English and Chinese."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.languages import LANGUAGES, Texts

TEXTS = Texts(Path(__file__).parent / "texts")

NAMES = {"kind": "kind", "best": "role"}
"""Columns whose cells are names that a language has its own words for, and where those words are."""


def heading(column: str, lang: str = "en") -> str:
    """A column as readers see it; a column that regard does not know by its own name.

    >>> heading("received_peak"), heading("received_peak", "zh"), heading("my_column", "zh")
    ('top key', '最受关注', 'my column')
    """
    return TEXTS.table(lang).get(f"column.{column}", column.replace("_", " "))


def named(column: str, name: str, lang: str = "en") -> str:
    """What stands in a cell of text: kinds and roles in the language, names and tokens as they are.

    >>> named("kind", "cross", "zh"), named("best", "previous", "zh"), named("key_token", "cross", "zh")
    ('交叉', '前一个', 'cross')
    """
    return TEXTS.table(lang).get(f"{NAMES.get(column)}.{name}", name)


def column_of(columns: Sequence[str], printed: str) -> str:
    """The column that is meant by its own name or by its heading in either language; else the name as given.

    >>> column_of(("layer", "previous_weight"), "previous"), column_of(("received_peak",), "最受关注")
    ('previous_weight', 'received_peak')
    """
    if printed in columns:
        return printed
    wanted = printed.strip().casefold()
    for column in columns:
        known = (
            words for lang in LANGUAGES for words in (heading(column, lang), named("best", column, lang))
        )
        if wanted in {word.casefold() for word in known}:
            return column
    return printed
