"""Positions: products of sinusoidal vectors depend on the distance, rotary products on nothing else.

With ``p_i = [sin iω₁, cos iω₁, sin iω₂, …]`` the product of two is ``p_i · p_j = Σ_c cos((i − j) ω_c)``: it
depends on the distance alone. Rotary positions turn q and k themselves, so that their product does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from regard.kernels.reference import Numbers
from regard.lessons.facts import Fact, text
from regard.lessons.panels import Cells, Curves, draw
from regard.nn import RotaryPositions, SinusoidalPositions


@dataclass(frozen=True, eq=False)
class PositionTable:
    """The table of sinusoidal positions, and products over the distance."""

    table: Numbers  # (position, channel)
    products: Numbers  # (position, position), p_i · p_j
    rotary: Numbers  # (position, position), turned q_i · turned k_j of one q and one k

    @property
    def spread(self) -> float:
        """The largest difference between sinusoidal products at the same distance."""
        return _spread(self.products)

    @property
    def rotary_spread(self) -> float:
        """The same for rotary products."""
        return _spread(self.rotary)

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        length, width = self.table.shape
        norms = np.linalg.norm(self.table, axis=1)
        return (
            Fact("positions.norm", {"width": width, "low": float(norms.min()), "high": float(norms.max())}),
            Fact("positions.sinusoidal", {"length": length, "spread": self.spread}),
            Fact(
                "positions.near",
                {"same": self.products[0, 0], "next": self.products[0, 1], "far": self.products[0, 32]},
            ),
            Fact("positions.rotary", {"spread": self.rotary_spread}),
        )


def _spread(products: Numbers) -> float:
    """The largest spread of the products at one distance, over all distances."""
    length = len(products)
    return max(float(np.ptp(np.diagonal(products, distance))) for distance in range(1 - length, length))


def place_tokens(length: int = 96, *, width: int = 64, seed: int = 0) -> PositionTable:
    """Products between all positions, of sinusoidal vectors and of one query and key turned.

    >>> found = place_tokens()
    >>> found.spread < 1e-4, found.rotary_spread < 1e-4
    (True, True)
    """
    table = SinusoidalPositions(width, length=length)(torch.zeros(1, length, width))[0].double()
    chance = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 1, 1, 1, width, generator=chance)
    turn = RotaryPositions(width, length=length)
    turned = [turn(x.expand(1, 1, length, width))[0, 0].double() for x in (q, k)]
    return PositionTable(table.numpy(), (table @ table.T).numpy(), (turned[0] @ turned[1].T).numpy())


def draw_places(found: PositionTable, lang: str = "en") -> Figure:
    """The table as a heat map, and both products over the distance."""
    length = len(found.table)
    distances = range(length)
    return draw(
        Cells(
            text("positions.table", lang),
            found.table,
            sides=(text("axis.position", lang), text("axis.channel", lang)),
        ),
        Curves(
            text("positions.product", lang),
            distances,
            {"p": [float(found.products[0, d]) for d in distances]},
            side=text("axis.distance", lang),
        ),
        Curves(
            text("positions.rotary.title", lang),
            distances,
            {"q": [float(found.rotary[length - 1, length - 1 - d]) for d in distances]},
            side=text("axis.distance", lang),
        ),
        title=text("demo.positions.claim", lang),
    )
