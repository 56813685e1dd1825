"""The texts that people read, in English and Chinese: one table per language, with the same keys.

>>> text("demo.words.title", "zh")
'用词向量表做注意力'

A text may have places for numbers, ``{variance:.1f}``. Where both languages need the same words but
in another order, each table has its own sentence; nothing is put together from pieces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from regard.errors import ArgumentError

LANGUAGES = ("en", "zh")
"""English, and Chinese in simplified characters."""

FOLDER = Path(__file__).parent / "texts"


@cache
def table(lang: str) -> Mapping[str, str]:
    """Every text of a language by its key."""
    if lang not in LANGUAGES:
        raise ArgumentError(
            f"lang is one of {', '.join(LANGUAGES)}.", got=f"lang = {lang!r}", do="Choose one of them."
        )
    found: dict[str, str] = json.loads((FOLDER / f"{lang}.json").read_text(encoding="utf-8"))
    return found


def text(key: str, lang: str = "en", **values: object) -> str:
    """One text, with its numbers in their places.

    >>> text("bench.crossover", first="linear", other="standard", length=512)
    'linear is faster than standard from 512 tokens on'
    """
    return table(lang)[key].format(**values) if values else table(lang)[key]


def words(key: str, lang: str = "en") -> tuple[str, ...]:
    """A text that is a list of words, parted by spaces."""
    return tuple(text(key, lang).split())


@dataclass(frozen=True)
class Fact:
    """One thing that a demonstration found: a sentence by its key, and the numbers in it."""

    key: str
    values: Mapping[str, object] = field(default_factory=dict)

    def say(self, lang: str = "en") -> str:
        """The sentence with its numbers."""
        return text(self.key, lang, **self.values)
