"""Attention as a filter: keep the keys whose weight is above a threshold, and see what is lost.

What is kept is divided by its sum, so that it is a mean again: ``o' = Σ_kept w_j v_j / Σ_kept w_j``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from regard.checks import check_number
from regard.kernels.reference import Numbers, attention
from regard.lessons.facts import Fact, text, words
from regard.lessons.panels import Bars, draw

QUERY = (1.6, 1.2, -0.4)
KEYS = (
    (2.0, 1.0, 0.0),
    (0.2, -0.8, 1.0),
    (1.2, 2.0, 0.4),
    (-1.0, 0.3, 0.5),
    (0.1, 0.2, 0.3),
    (-0.6, -1.2, 0.8),
)
VALUES = (10.0, 2.0, 8.0, -3.0, 1.0, -6.0)


@dataclass(frozen=True, eq=False)
class FilteredWeights:
    """Weights, which of them pass, and the output before and after."""

    weights: Numbers
    values: Numbers
    threshold: float
    kept: tuple[int, ...]
    share: float  # the share of the weight that passes
    output: float
    filtered: float

    @property
    def bound(self) -> float:
        """A bound on the change of the output: the dropped weight times the range of the values."""
        return (1 - self.share) * float(np.ptp(self.values))

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        return (
            Fact(
                "filter.kept",
                {
                    "kept": len(self.kept),
                    "all": len(self.weights),
                    "threshold": self.threshold,
                    "share": 100 * self.share,
                },
            ),
            Fact("filter.output", {"before": self.output, "after": self.filtered, "bound": self.bound}),
        )


def filter_keys(
    threshold: float = 0.1,
    *,
    query: Sequence[float] = QUERY,
    keys: Sequence[Sequence[float]] = KEYS,
    values: Sequence[float] = VALUES,
) -> FilteredWeights:
    """Keep the keys with a weight of at least ``threshold``.

    >>> found = filter_keys(0.1)
    >>> found.kept, round(found.share, 3), round(found.output, 2), round(found.filtered, 2)
    ((0, 2), 0.909, 8.24, 9.07)
    """
    check_number("threshold", threshold, 0, 1, example=0.1)
    v = np.asarray(values, np.float64)
    weights = attention([query], keys, v[:, None])["weights"][0]
    passing = weights >= threshold
    share = float(weights[passing].sum())
    return FilteredWeights(
        weights,
        v,
        threshold,
        tuple(np.flatnonzero(passing).tolist()),
        share,
        float(weights @ v),
        # If nothing passes the output is 0, as for a query whose keys are all masked.
        float(weights[passing] @ v[passing] / share) if share else 0.0,
    )


def draw_filter(found: FilteredWeights, lang: str = "en") -> Figure:
    """The weights as bars with the threshold; what does not pass is pale."""
    names = words("filter.keys", lang)
    kept = np.where(np.isin(np.arange(len(found.weights)), found.kept), found.weights, 0.0)
    after = kept / kept.sum() if kept.any() else kept
    return draw(
        Bars(text("filter.before", lang), names, found.weights, found.values, least=found.threshold),
        Bars(text("filter.after", lang), names, after, found.values),
        title=text("demo.filter.claim", lang),
    )
