"""The texts of the lessons in English and Chinese, and the facts that demonstrations find.

>>> text("demo.words.title", "zh")
'用词向量表做注意力'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from regard.languages import Texts

TEXTS = Texts("lessons")


def text(key: str, lang: str = "en", **values: object) -> str:
    """One text, with its numbers filled in.

    >>> text("bench.crossover", first="linear", other="standard", length=512)
    'linear is faster than standard from 512 tokens'
    """
    return TEXTS.say(key, lang, **values)


def words(key: str, lang: str = "en") -> tuple[str, ...]:
    """A text that is a list of words, separated by spaces."""
    return tuple(text(key, lang).split())


@dataclass(frozen=True)
class Fact:
    """One thing that a demonstration found: a sentence by its key, and the numbers in it."""

    key: str
    values: Mapping[str, object] = field(default_factory=dict)

    def say(self, lang: str = "en") -> str:
        """The sentence with its numbers."""
        return text(self.key, lang, **self.values)
