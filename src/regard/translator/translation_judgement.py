"""What readers said about translations of everyday sentences: good or wrong, one by one.

Scores against references miss good translations that nobody wrote down. So two readers judged all
translations of the built-in translator, both sets mixed, neither knowing which set a sentence was from nor
what the other said. A translation is good if a teacher would mark no error in it, and counts as good if both
say so. The judgements are kept with the exact words that were judged: a model that says something else has to
be read again. Where a later version says something else, one of them read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

GOOD, WRONG, UNREAD = "good", "wrong", "unread"


class JudgedTranslation(NamedTuple):
    """A sentence, its translation, and what each reader said about it.

    >>> JudgedTranslation("Hello.", "你好。", ("good", "wrong")).judgement
    'wrong'
    """

    english: str
    chinese: str
    readers: tuple[str, ...] = ()

    @property
    def judgement(self) -> str:
        """Good if all readers say so; unread without any."""
        if not self.readers:
            return UNREAD
        return GOOD if set(self.readers) == {GOOD} else WRONG


@cache
def judgements() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """What each reader said about each pair of a sentence and a translation that was read."""
    folder = files("regard.translator")
    texts = [
        folder.joinpath(f"{name}_judged.tsv").read_text(encoding="utf-8")
        for name in ("everyday", "development")
    ]
    rows = [line.split("\t") for text in texts for line in text.splitlines()]
    return {(english, chinese): tuple(readers) for english, chinese, *readers in rows}


def judge(translations: Mapping[str, str]) -> list[JudgedTranslation]:
    """The judgements of these translations, by sentence.

    >>> judge({"The cat sat on the mat.": "猫猫猫"})[0].judgement
    'unread'
    """
    known = judgements()
    return [
        JudgedTranslation(english, chinese, known.get((english, chinese), ()))
        for english, chinese in translations.items()
    ]
