"""Masks side by side: padding, causal, both, a window, and local with global tokens.

A mask says which keys each query may see. ``&`` allows what both allow, ``|`` what either allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from regard.checks import check_integer
from regard.kernels import plan
from regard.lessons.facts import Fact, text
from regard.lessons.panels import Cells, draw
from regard.masks import Mask, causal, local_global, padding, window
from regard.masks.extent import Bools

LONG = 8192
"""The length at which the savings of the sparse mask are shown."""


@dataclass(frozen=True, eq=False)
class MaskedText:
    """One mask over a short text."""

    name: str
    mask: Mask
    allowed: Bools  # (query, key)

    @property
    def pairs(self) -> int:
        """How many pairs may attend."""
        return int(self.allowed.sum())


@dataclass(frozen=True, eq=False)
class MaskGallery:
    """Masks over the same text, and what the sparse one computes at a large length."""

    length: int
    masks: tuple[MaskedText, ...]
    long: int
    long_pairs: int
    long_computed: int

    def __getitem__(self, name: str) -> MaskedText:
        return next(one for one in self.masks if one.name == name)

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        each = (
            Fact(
                "masks.pairs",
                {"mask": repr(one.mask), "pairs": one.pairs, "all": self.length**2},
            )
            for one in self.masks
        )
        share = 100 * self.long_computed / self.long**2
        return (
            *each,
            Fact(
                "masks.saved",
                {"length": self.long, "computed": self.long_computed, "all": self.long**2, "share": share},
            ),
        )


def show_masks(length: int = 16, *, kept: int = 11, reach: int = 2, stride: int = 5) -> MaskGallery:
    """The five masks of the lessons over ``length`` tokens, of which ``kept`` are not padding.

    >>> found = show_masks()
    >>> [(one.name, one.pairs) for one in found.masks]
    [('padding', 176), ('causal', 136), ('both', 121), ('window', 74), ('sparse', 200)]
    """
    check_integer("kept", kept, most=length)
    pad = padding(np.arange(length) < kept)
    chosen = {
        "padding": pad,
        "causal": causal(),
        "both": pad & causal(),
        "window": window(reach, reach),
        "sparse": local_global(stride),
    }
    long = plan(local_global(64), LONG)
    return MaskGallery(
        length,
        tuple(MaskedText(name, mask, mask.dense(length).numpy()) for name, mask in chosen.items()),
        LONG,
        long.pairs,
        long.computed,
    )


def draw_masks(found: MaskGallery, lang: str = "en") -> Figure:
    """One panel for each mask: rows are queries, columns are keys, filled means may attend."""
    sides = (text("axis.query", lang), text("axis.key", lang))
    return draw(
        *(
            Cells(
                f"{text(f'masks.{one.name}', lang)}\n{one.pairs} / {found.length**2}",
                one.allowed,
                sides=sides,
            )
            for one in found.masks
        ),
        title=text("demo.masks.claim", lang),
    )
