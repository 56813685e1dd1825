"""Tables as text: nested lists in which a run of equal values is abbreviated, ``0*512``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHORTEST_RUN = 6
"""Shorter runs are easier to read written out."""


def write_table(values: NDArray[Any]) -> str:
    """A table as text that ``masks.parse`` can read.

    >>> write_table(np.array([[True, False], [True, True]]))
    '[[1, 0], [1, 1]]'
    >>> write_table(np.repeat([3, 4], [8, 2]))
    '[3*8, 4, 4]'

    A single row of bools is written with True and False, because a list of 0 and 1 could also be lengths.

    >>> write_table(np.array([True, False]))
    '[True, False]'
    """
    if not values.ndim:
        return str(values.item())
    if values.ndim > 1:
        inner = values.astype(np.int64) if values.dtype == np.bool_ else values
        return f"[{', '.join(_runs(map(write_table, inner)))}]"
    return f"[{', '.join(_runs(values.tolist()))}]"


def _runs(items: Iterable[Any]) -> list[str]:
    words: list[str] = []
    for value, run in groupby(items):
        count = sum(1 for _ in run)
        words.extend([f"{value}*{count}"] if count >= SHORTEST_RUN else [str(value)] * count)
    return words
