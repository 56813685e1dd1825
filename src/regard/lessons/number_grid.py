"""Named numbers and the strongest keys of each query: the parts that every explanation has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.kernels.reference import Numbers
from regard.lessons.facts import text as say
from regard.views.explanation import Grid, StrongestKeys

MOST = 3
"""The number of keys named for each word."""


def grid_of(
    values: Numbers, rows: Sequence[str], columns: Sequence[str], *, title: str = "", weights: bool = False
) -> Grid:
    """Numbers with their names."""
    numbers = tuple(tuple(float(value) for value in line) for line in values)
    return Grid(tuple(rows), tuple(columns), numbers, title, weights)


def looks_of(
    words: Sequence[str], keys: Sequence[str], weights: Numbers, lang: str
) -> tuple[StrongestKeys, ...]:
    """For each word the three that it attends to most; ``weights`` is (query, key)."""
    return tuple(
        StrongestKeys(
            word,
            tuple(
                (keys[key], float(row[key])) for key in np.argsort(-row, kind="stable")[:MOST] if row[key] > 0
            ),
            say("explain.nothing", lang),
        )
        for word, row in zip(words, weights)
    )
