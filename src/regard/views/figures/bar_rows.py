"""Weights as rows of bars, which ``bars``, ``geometry`` and the lessons draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from regard.views.figures.figure_layout import FigureLayout
from regard.views.figures.figure_texts import TEXTS
from regard.views.figures.style import ACCENT, FAINT, QUIET
from regard.views.figures.weight_matrix import Floats

MOST = 40
"""Bars of one figure. If there are more keys, the strongest are shown, and the others as one bar."""

PITCH = 0.27
"""Inches from bar to bar."""


@dataclass(frozen=True)
class BarRow:
    """One bar: a name, a weight, and the text after it."""

    name: str
    weight: float
    value: str = ""
    other: bool = False  # the sum of all keys that are not shown


def rows_of(
    weights: Floats,
    names: Sequence[str],
    values: Floats | None = None,
    most: int = MOST,
    *,
    placed: bool = False,
    lang: str = "en",
) -> list[BarRow]:
    """One row for each key in the order of the text, or for the strongest and the rest together.

    The strongest are named with their positions, unless their names are positions (``placed``).

    >>> [row.name for row in rows_of(np.array([0.1, 0.6, 0.3]), ["a", "b", "c"], most=2)]
    ['1 b', '2 others']
    """
    count = len(weights)
    few = count <= most
    kept = range(count) if few else sorted(np.argsort(-weights, kind="stable")[: most - 1].tolist())
    rows = [
        BarRow(
            names[key] if few or placed else f"{key} {names[key]}",
            float(weights[key]),
            "" if values is None else listed(values[key]),
        )
        for key in kept
    ]
    if not few:
        rest = float(np.delete(weights, list(kept)).sum())
        rows.append(BarRow(TEXTS.say("others", lang, count=count - len(rows)), rest, other=True))
    return rows


def draw_bars(layout: FigureLayout, axes: Axes, rows: Sequence[BarRow]) -> None:
    """Horizontal bars from top to bottom, each with its number."""
    weights = [row.weight for row in rows]
    axes.barh(range(len(rows)), weights, height=0.68, color=[FAINT if row.other else ACCENT for row in rows])
    axes.set(
        ylim=(len(rows) - 0.5, -0.5), xlim=(min(0.0, *weights, 0.0), max(0.0, *weights, 0.0) * 1.02 or 1.0)
    )
    layout.label(axes, "y", [row.name for row in rows], len(rows), PITCH * layout.sizes.room)
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_visible(
        min(weights, default=0.0) >= 0
    )  # bars begin there, unless some are negative
    axes.set_xticks([])
    style = _number_format(max(map(abs, weights), default=0.0))
    for place, row in enumerate(rows):
        number = _number_text(row.weight, style)
        axes.annotate(
            f"{number} × {row.value}" if row.value else number,
            (max(row.weight, 0.0), place),
            (3, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=layout.sizes.text,
            color=QUIET,
        )


def _number_format(greatest: float) -> str:
    """Three decimals, or more where the greatest number is small.

    >>> [format(x / 3, _number_format(x)) for x in (1.0, 0.004, 0.0000004)]
    ['0.333', '0.00133', '1.3e-07']
    """
    if greatest == 0 or greatest >= 0.1:
        return ".3f"
    digits = 2 - math.floor(math.log10(greatest))
    return f".{digits}f" if digits <= 6 else ".1e"


def _number_text(weight: float, style: str) -> str:
    """A number as text: 0 only if it is 0, because a column of 0.000 says nothing.

    >>> [_number_text(x, ".3f") for x in (0.25, 0.0004, -0.0004, 0.0)]
    ['0.250', '<0.001', '>−0.001', '0']
    """
    if weight == 0:
        return "0"
    text = f"{weight:{style}}".replace("-", "−")
    if any(digit in text for digit in "123456789"):
        return text
    return f"{'<' if weight > 0 else '>'}{text[:-1]}1"


def listed(values: Floats | np.floating) -> str:
    """A number, or the first few of several, as text."""
    several = np.atleast_1d(values)
    said = ", ".join(f"{value:.3g}".replace("-", "−") for value in several[:4])
    if np.ndim(values) == 0:
        return said
    return f"[{said}, …]" if len(several) > 4 else f"[{said}]"
