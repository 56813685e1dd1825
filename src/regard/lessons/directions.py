"""Geometry: a query attends to keys that point in its direction, ``q · k = |q| |k| cos(q, k)``.

Among keys of equal length the nearest direction wins. A longer key can win at a wider angle: attention
compares products, not angles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from regard.kernels.reference import Numbers, attention
from regard.lessons.facts import Fact, text, words
from regard.views.figures import geometry

QUERY = (1.0, 0.8, 0.6)
KEYS = ((0.9, 0.9, 0.5), (0.9, -0.7, 0.8), (-0.8, -0.6, -0.9))
"""Along the query, sideways, and against it; of almost equal length."""


@dataclass(frozen=True, eq=False)
class Directions:
    """A query and its keys in space, the angles between them, and the weights."""

    query: Numbers  # (3,)
    keys: Numbers  # (key, 3)
    angles: Numbers  # degrees
    weights: Numbers
    longer_weights: Numbers  # if the second key is three times as long

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        pairs = ", ".join(f"{angle:.0f}° → {weight:.3f}" for angle, weight in zip(self.angles, self.weights))
        return (
            Fact("geometry.angles", {"pairs": pairs}),
            Fact("geometry.longer", {"before": self.weights[1], "after": self.longer_weights[1]}),
        )


def point_keys(query: Sequence[float] = QUERY, keys: Sequence[Sequence[float]] = KEYS) -> Directions:
    """Angles and weights of a query on its keys.

    >>> found = point_keys()
    >>> found.angles.round(), found.weights.round(3)
    (array([  7.,  65., 163.]), array([0.608, 0.322, 0.07 ]))
    """
    q, k = np.asarray(query, np.float64), np.asarray(keys, np.float64)
    cosines = k @ q / (np.linalg.norm(k, axis=1) * np.linalg.norm(q))
    longer = k.copy()
    longer[1] *= 3
    return Directions(
        q,
        k,
        np.degrees(np.arccos(np.clip(cosines, -1, 1))),
        attention(q[None], k, k)["weights"][0],
        attention(q[None], longer, longer)["weights"][0],
    )


def draw_directions(found: Directions, lang: str = "en") -> Figure:
    """Arrows in space, as wide as their weights, beside the bars."""
    return geometry(
        found.query,
        found.keys,
        words("geometry.keys", lang),
        title=text("demo.geometry.claim", lang),
        lang=lang,
    )
