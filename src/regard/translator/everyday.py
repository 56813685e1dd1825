"""Everyday sentences to measure translators by; none of them is ever trained on.

There are two sets. Whoever develops a recipe may look at the development sentences and at their translations.
The everyday sentences were written later, by somebody who never saw a translation of the model, and only
measure.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from regard.translator.sentence_pairs import HeldOut


@cache
def everyday_sentences() -> tuple[HeldOut, ...]:
    """200 everyday sentences that only measure, each with one to three translations.

    >>> everyday_sentences()[1].english
    'The baby finally fell asleep at midnight.'
    """
    return _read("everyday.tsv")


@cache
def development_sentences() -> tuple[HeldOut, ...]:
    """200 everyday sentences that were looked at during development, each with one to three translations.

    >>> development_sentences()[0]
    HeldOut(english='The soup tastes salty.', references=('这汤尝起来很咸。', '这汤很咸。', '汤是咸的。'))
    """
    return _read("development.tsv")


def _read(name: str) -> tuple[HeldOut, ...]:
    lines = files("regard.translator").joinpath(name).read_text(encoding="utf-8").splitlines()
    return tuple(
        HeldOut(english, tuple(chinese)) for english, *chinese in (line.split("\t") for line in lines)
    )
