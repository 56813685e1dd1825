"""n separate heads and one joint projection split into heads are the same calculation.

Head h has its own ``W_q[h] (width, channel)``. Put side by side, the n of them are one
``W_q (width, n · channel)``: one product computes all heads, and splitting the result gives each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from matplotlib.figure import Figure

from regard.errors import ArgumentError
from regard.kernels.reference import Numbers, attention, multi_head
from regard.lessons.facts import Fact, text
from regard.lessons.panels import Cells, draw


@dataclass(frozen=True, eq=False)
class HeadSplit:
    """Outputs and weights of both calculations."""

    width: int
    heads: int
    separate: Numbers  # (length, width)
    joint: Numbers
    separate_weights: Numbers  # (head, query, key)
    joint_weights: Numbers

    @property
    def difference(self) -> float:
        """The largest difference between the two outputs."""
        return float(np.abs(self.separate - self.joint).max())

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        sizes = {"heads": self.heads, "width": self.width, "channels": self.width // self.heads}
        return (Fact("heads.shapes", sizes), Fact("heads.difference", {"difference": self.difference}))


def split_heads(length: int = 6, *, width: int = 12, heads: int = 3, seed: int = 0) -> HeadSplit:
    """The same random weights, head by head and as one projection.

    >>> split_heads().difference < 1e-12
    True
    """
    if length < 1 or heads < 1 or width % heads:
        raise ArgumentError(
            "length and heads must be at least 1, and heads must divide width.",
            got="length = {length}, width = {width}, heads = {heads}",
            do="Try width=12, heads=3.",
            length=length,
            width=width,
            heads=heads,
        )
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(length, width))
    w_q, w_k, w_v = rng.normal(size=(3, heads, width, width // heads)) / sqrt(width)
    w_o = rng.normal(size=(width, width)) / sqrt(width)

    each = [attention(x @ w_q[head], x @ w_k[head], x @ w_v[head]) for head in range(heads)]
    separate = np.concatenate([one.output for one in each], axis=-1) @ w_o

    # Side by side: (width, heads · channel).
    all_q, all_k, all_v = (np.concatenate(list(w), axis=-1) for w in (w_q, w_k, w_v))
    joint = multi_head(x, all_q, all_k, all_v, w_o, heads=heads)
    weights = np.stack([one["weights"] for one in each])
    return HeadSplit(width, heads, separate, joint.output, weights, joint["weights"])


def draw_split(found: HeadSplit, lang: str = "en") -> Figure:
    """The weights of each head, computed alone and together."""
    sides = (text("axis.query", lang), text("axis.key", lang))
    panels = []
    for head in range(found.heads):
        for key, weights in (("separate", found.separate_weights), ("joint", found.joint_weights)):
            panels.append(Cells(text(f"heads.{key}", lang, head=head), weights[head], sides=sides))
    return draw(*panels, title=text("demo.heads.claim", lang))
