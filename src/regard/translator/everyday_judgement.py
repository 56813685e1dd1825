"""What a reader said about translations of the everyday sentences: good or wrong, one by one.

Scores against references miss good translations that nobody wrote down. So each translation of the built-in
translator was read, and the judgement is kept with the exact words that were judged: a model that says
something else has to be read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

GOOD, WRONG, UNREAD = "good", "wrong", "unread"


class JudgedTranslation(NamedTuple):
    """A sentence, its translation, and whether it is good, wrong or unread."""

    english: str
    chinese: str
    judgement: str


@cache
def judgements() -> Mapping[tuple[str, str], str]:
    """The judgement of each pair of a sentence and a translation that was read."""
    text = files("regard.translator").joinpath("everyday_judged.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    return {(english, chinese): judgement for english, chinese, judgement in rows}


def judge(translations: Mapping[str, str]) -> list[JudgedTranslation]:
    """The judgements of these translations, by sentence.

    >>> judge({"The cat sat on the mat.": "猫猫猫"})
    [JudgedTranslation(english='The cat sat on the mat.', chinese='猫猫猫', judgement='unread')]
    """
    known = judgements()
    return [
        JudgedTranslation(english, chinese, known.get((english, chinese), UNREAD))
        for english, chinese in translations.items()
    ]
