"""我 喜欢 AI by hand, with vectors of two numbers: every step fits on a sheet of paper.

我 = (1.0, 0.5), 喜欢 = (0.8, 0.6), AI = (0.5, 1.0); queries, keys and values are the vectors themselves.
The query 我 has the scores 1.0·1.0 + 0.5·0.5 = 1.25, 1.0·0.8 + 0.5·0.6 = 1.10, 1.0·0.5 + 0.5·1.0 = 1.00.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from regard.kernels.reference import Numbers, Trace, attention
from regard.lessons.facts import Fact, text
from regard.lessons.panels import Bars, draw

WORDS = ("我", "喜欢", "AI")
VECTORS = ((1.0, 0.5), (0.8, 0.6), (0.5, 1.0))


@dataclass(frozen=True, eq=False)
class HandCalculation:
    """The row of 我, step by step."""

    trace: Trace

    @property
    def dots(self) -> Numbers:
        """``q · k`` for each key."""
        return np.asarray(self.trace["dots"][0])

    @property
    def scores(self) -> Numbers:
        """Divided by √2."""
        return np.asarray(self.trace["scores"][0])

    @property
    def weights(self) -> Numbers:
        """After softmax."""
        return np.asarray(self.trace["weights"][0])

    @property
    def output(self) -> Numbers:
        """The weighted mean of the values."""
        return np.asarray(self.trace.output[0])

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        return tuple(
            Fact(f"hand.{name}", {"numbers": ", ".join(f"{x:.{digits}f}" for x in row)})
            for name, row, digits in (
                ("dots", self.dots, 2),
                ("scores", self.scores, 2),
                ("weights", self.weights, 3),
                ("output", self.output, 3),
            )
        )


def calculate_by_hand() -> HandCalculation:
    """The query 我 on the three words.

    >>> found = calculate_by_hand()
    >>> found.dots.round(2), found.scores.round(2)
    (array([1.25, 1.1 , 1.  ]), array([0.88, 0.78, 0.71]))
    >>> found.weights.round(3), found.output.round(3)
    (array([0.365, 0.329, 0.306]), array([0.781, 0.686]))
    """
    return HandCalculation(attention(VECTORS[:1], VECTORS, VECTORS))


def draw_hand(found: HandCalculation, lang: str = "en") -> Figure:
    """Scores, scaled scores and weights as bars."""
    return draw(
        Bars("q · k", WORDS, found.dots),
        Bars("q · k / √2", WORDS, found.scores),
        Bars("softmax", WORDS, found.weights, VECTORS),
        title=text("demo.hand.claim", lang),
    )
