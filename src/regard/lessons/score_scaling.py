"""Why scores are divided by √d: without it softmax saturates and its gradients vanish.

For q and k with d independent channels of variance 1, ``q · k = Σ q_c k_c`` has variance d, and
``q · k / √d`` has variance 1, whatever the width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from matplotlib.figure import Figure

from regard.kernels.reference import Numbers, softmax
from regard.lessons.facts import Fact, text
from regard.lessons.panels import Bars, Curves, draw

KEYS = 10
"""The number of keys of a random query."""


@dataclass(frozen=True, eq=False)
class ScoreScaling:
    """Variances of dot products over the width, and softmax with and without √d."""

    widths: tuple[int, ...]
    variances: tuple[float, ...]  # of q · k
    scaled_variances: tuple[float, ...]  # of q · k / √d
    peaks: tuple[float, ...]  # the largest of KEYS weights, on average, without √d
    scaled_peaks: tuple[float, ...]
    scores: tuple[float, ...]
    weights: Numbers  # softmax(scores)
    scaled_weights: Numbers  # softmax(scores / √d) at the largest width
    row: Numbers  # the weights of one random query of the largest width on KEYS keys, without √d
    scaled_row: Numbers  # the same with √d

    @property
    def slope(self) -> float:
        """``w (1 − w)`` of the largest weight, by which gradients are multiplied."""
        return float(self.weights.max() * (1 - self.weights.max()))

    @property
    def scaled_slope(self) -> float:
        """The same with √d."""
        return float(self.scaled_weights.max() * (1 - self.scaled_weights.max()))

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        last = {"width": self.widths[-1], "keys": KEYS}
        return (
            Fact(
                "scaling.variance", {**last, "raw": self.variances[-1], "scaled": self.scaled_variances[-1]}
            ),
            Fact("scaling.peak", {**last, "raw": self.peaks[-1], "scaled": self.scaled_peaks[-1]}),
            Fact("scaling.raw", {"scores": _listed(self.scores), "weights": _listed(self.weights)}),
            Fact("scaling.scaled", {**last, "weights": _listed(self.scaled_weights)}),
            Fact("scaling.slope", {"raw": self.slope, "scaled": self.scaled_slope}),
        )


def scale_scores(
    widths: Sequence[int] = (8, 32, 128, 512),
    *,
    scores: Sequence[float] = (1.0, 2.0, 100.0),
    samples: int = 4000,
    seed: int = 0,
) -> ScoreScaling:
    """Random queries and keys of each width: their dot products, and the softmax of these.

    >>> found = scale_scores((512,), samples=1000)
    >>> 480 < found.variances[0] < 545, 0.94 < found.scaled_variances[0] < 1.06
    (True, True)
    >>> found.weights.round(3), found.scaled_weights.round(3)
    (array([0., 0., 1.]), array([0.012, 0.013, 0.975]))
    """
    rng = np.random.default_rng(seed)
    variances, peaks, scaled_variances, scaled_peaks = [], [], [], []
    for width in widths:
        q, k = rng.normal(size=(samples, 1, width)), rng.normal(size=(samples, KEYS, width))
        dots = (q * k).sum(-1)  # (sample, key)
        variances.append(float(dots.var()))
        peaks.append(float(softmax(dots)[0].max(-1).mean()))
        scaled_variances.append(float((dots / sqrt(width)).var()))
        scaled_peaks.append(float(softmax(dots / sqrt(width))[0].max(-1).mean()))
    one = rng.normal(size=(KEYS, max(widths))) @ rng.normal(size=max(widths))
    row = np.asarray(scores, np.float64)
    return ScoreScaling(
        tuple(widths),
        tuple(variances),
        tuple(scaled_variances),
        tuple(peaks),
        tuple(scaled_peaks),
        tuple(scores),
        softmax(row)[0],
        softmax(row / sqrt(max(widths)))[0],
        softmax(one)[0],
        softmax(one / sqrt(max(widths)))[0],
    )


def draw_scaling(found: ScoreScaling, lang: str = "en") -> Figure:
    """Variance over the width, the largest weight over the width, and the weights of one query."""
    with_root, without = text("scaling.with", lang), text("scaling.without", lang)
    names = [text("scaling.key", lang, number=number) for number in range(KEYS)]
    return draw(
        Curves(
            text("scaling.variance.title", lang),
            found.widths,
            {without: found.variances, with_root: found.scaled_variances},
            side=text("axis.width", lang),
            logarithmic=True,
        ),
        Curves(
            text("scaling.peak.title", lang),
            found.widths,
            {without: found.peaks, with_root: found.scaled_peaks},
            side=text("axis.width", lang),
        ),
        Bars(f"softmax, {without}", names, found.row),
        Bars(f"softmax, {with_root}", names, found.scaled_row),
        title=text("demo.scaling.claim", lang),
    )


def _listed(values: Sequence[float] | Numbers) -> str:
    return "[" + ", ".join(f"{value:.3g}" for value in values) + "]"
