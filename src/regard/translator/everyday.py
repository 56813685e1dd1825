"""200 everyday sentences to measure translators by; none of them is ever trained on."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from regard.translator.sentence_pairs import HeldOut


@cache
def everyday_sentences() -> tuple[HeldOut, ...]:
    """200 everyday sentences that are in no training data, each with one to three translations.

    >>> everyday_sentences()[0]
    HeldOut(english='The soup tastes salty.', references=('这汤尝起来很咸。', '这汤很咸。', '汤是咸的。'))
    """
    lines = files("regard.translator").joinpath("everyday.tsv").read_text(encoding="utf-8").splitlines()
    return tuple(
        HeldOut(english, tuple(chinese)) for english, *chinese in (line.split("\t") for line in lines)
    )
