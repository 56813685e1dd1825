"""What a recipe trains on: pairs of the user's file, and those that come with regard if the recipe says so.

The pairs of Tatoeba leave many everyday words out, and show others once. ``written_pairs.tsv`` was written
for regard: sentences for each common English word that is rare there, and sentences about a hundred subjects
of everyday life. Whoever wrote them had seen neither the sentences that measure translators nor any
translation of a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from regard.translator.recipe import Recipe
from regard.translator.sentence_pairs import CorpusSplit, Pair, split


@cache
def written_pairs() -> tuple[Pair, ...]:
    """The sentence pairs that come with regard.

    >>> len(written_pairs()) > 25_000
    True
    """
    lines = files("regard.translator").joinpath("written_pairs.tsv").read_text(encoding="utf-8").splitlines()
    return tuple(Pair(english, chinese) for english, chinese in (line.split("\t") for line in lines))


def further_pairs(recipe: Recipe) -> tuple[Pair, ...]:
    """The pairs that a recipe trains on beside those of the user's file."""
    return written_pairs() if recipe.written_pairs else ()


def split_by(recipe: Recipe, pairs: Sequence[Pair]) -> CorpusSplit:
    """What a recipe trains on and what it keeps out of these pairs."""
    return split(
        pairs,
        held_out=recipe.held_out,
        validation=recipe.validation,
        seed=recipe.seed,
        further=further_pairs(recipe),
    )
