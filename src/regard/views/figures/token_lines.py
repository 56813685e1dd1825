"""``lines``: from each token on the left, lines to tokens on the right, as wide as the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from regard.checks import check_number
from regard.views.figures.figure_layout import (
    POINT,
    FigureLayout,
    checked_size,
    drawn_to_width,
    planned,
    shortened,
)
from regard.views.figures.fonts import readable
from regard.views.figures.style import QUIET, StyledFigure, head_style, house_style
from regard.views.figures.weight_matrix import Floats, Matrix, matrices_of

WIDEST = 5.0
"""Width in points of a line of weight 1, if the tokens are far enough apart."""

PITCH = 0.26
"""Inches from token to token where there are few."""

TALLEST = 9.0
"""Inches of the longer column of tokens where there are many."""

MOST = 4000
"""Lines of a head; the strongest are drawn."""


@dataclass(frozen=True)
class DrawnLines:
    """The weights that are drawn, strongest last, so that they are on top."""

    queries: NDArray[np.int64]
    keys: NDArray[np.int64]
    weights: Floats


def lines(
    weights: object,
    *,
    layer: int | None = None,
    heads: int | Sequence[int] | None = None,
    kind: str | None = None,
    run: int | None = None,
    batch: int = 0,
    query: int | None = None,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    least: float = 0.02,
    title: str | None = None,
    size: float | None = None,
    width: float | str | None = None,
    lang: str = "en",
) -> Figure:
    """Queries on the left, keys on the right, and a line for each weight.

    A line is as wide as its weight: 5 points for weight 1, less if tokens are closer than that.

    Args:
        weights: a recording, one of its calls, or numbers ``(query, key)`` or ``(head, query, key)``.
        layer, heads, kind, run, batch: which heads of the recording; each has a colour.
        query: draw only the lines of this query.
        queries, keys: labels, if the recording has no tokens or you want others.
        least: weights below this are left out.
        title: by default the layer; "" for none.
        size: the length of the longer column of tokens in inches.
        width: the width of the whole figure in inches, or "column" or "page" for one or both columns of a
            paper.
        lang: the language of the figure's own text, "en" or "zh".

    >>> figure = lines([[0.75, 0.25], [0.0, 1.0]], queries=["I", "am"])
    >>> [float(width) for width in figure.axes[0].collections[0].get_linewidths()]
    [1.25, 3.75, 5.0]
    """
    check_number("least", least, 0, 1, example=0.02)
    matrices = matrices_of(
        weights, layer=layer, heads=heads, kind=kind, run=run, batch=batch, queries=queries, keys=keys
    )
    found = [drawn_lines(matrix, least, query) for matrix in matrices]
    if width is None:
        return _drawn(matrices, found, title, size, None, lang)
    return drawn_to_width(lambda inches: _drawn(matrices, found, title, size, inches, lang), width)


def _drawn(
    matrices: Sequence[Matrix],
    found: Sequence[DrawnLines],
    title: str | None,
    size: float | None,
    across: float | None,
    lang: str,
) -> StyledFigure:
    """The figure with its two columns ``across`` inches apart, by default in proportion to their length."""
    first = matrices[0]
    longest = max(first.shape)
    with house_style():
        layout = FigureLayout([*(first.queries or ()), *(first.keys or ()), title or ""], lang)
        height = checked_size(size, min(PITCH * layout.sizes.room * longest, TALLEST))
        pitch = height / longest
        width = across or min(max(1.6, 0.55 * height), 3.2)
        axes = layout.area(3, 1, width, height)
        axes.set(xlim=(0, 1), ylim=(longest - 0.5, -0.5))
        axes.axis("off")
        gap = 0.06 / width
        widest = min(WIDEST, max(1.0, 1.2 * pitch / POINT))
        for place, drawn in enumerate(found):
            # Heads are shifted a little, so that equal lines do not cover each other.
            shift = (place - (len(found) - 1) / 2) * min(0.7 / len(found), 0.26)
            _draw(axes, drawn, head_style(place), shift, gap, widest)
        for x, side, labels, count in (
            (0, "right", first.queries, first.shape[0]),
            (1, "left", first.keys, first.shape[1]),
        ):
            _tokens(layout, axes, x, side, labels, count, pitch)
        said = first.name(lang) if len(found) == 1 else first.layer_name(lang)
        layout.title(axes, title, said)
        if len(found) > 1:
            # A narrow figure has fewer names beside each other; one needs about twelve times its size.
            fit = 4 if across is None else int((across + 1.2) / (0.12 * layout.sizes.legend))
            _legend(layout, axes, matrices, max(1, min(fit, 4)))
        return layout.fit()


def drawn_lines(matrix: Matrix, least: float, query: int | None = None) -> DrawnLines:
    """The weights of at least ``least``, and of those the strongest :data:`MOST`, in ascending order."""
    kept: list[tuple[NDArray[np.int64], NDArray[np.int64], Floats]] = []
    blocks = matrix.blocks() if query is None else [matrix.row(query)]
    for block in blocks:
        rows, columns = np.nonzero((block.values >= least) & (block.values > 0))
        start = block.start if query is None else query
        kept.append((rows + start, columns, block.values[rows, columns]))
        if sum(len(weights) for _, _, weights in kept) > 4 * MOST:
            kept = [_strongest(kept)]
    return DrawnLines(*_strongest(kept))


def _strongest(
    kept: list[tuple[NDArray[np.int64], NDArray[np.int64], Floats]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    rows, columns, weights = (np.concatenate(part) for part in zip(*kept))
    order = np.argsort(weights, kind="stable")[-MOST:]
    return rows[order], columns[order], weights[order]


def _draw(
    axes: Axes, drawn: DrawnLines, style: dict[str, Any], shift: float, gap: float, widest: float
) -> None:
    ends = np.empty((len(drawn.weights), 2, 2))
    ends[:, 0, 0], ends[:, 1, 0] = gap, 1 - gap
    ends[:, 0, 1], ends[:, 1, 1] = drawn.queries + shift, drawn.keys + shift
    # Weak lines are paler too: many of them together would otherwise hide the strong ones.
    strength = np.clip(drawn.weights, 0.0, 1.0)
    colours = np.tile(to_rgba(style["color"]), (len(strength), 1))
    colours[:, 3] = 0.25 + 0.65 * strength
    axes.add_collection(
        LineCollection(
            list(ends),
            linewidths=widest * strength,
            colors=colours,
            linestyles=[style["linestyle"]],
            capstyle="butt",
        ),
        autolim=False,
    )


def _tokens(
    layout: FigureLayout,
    axes: Axes,
    x: float,
    side: str,
    labels: Sequence[str] | None,
    count: int,
    pitch: float,
) -> None:
    plan = planned(count, pitch, layout.sizes.y, numbers=labels is None)
    for position in plan.positions:
        name = str(position) if labels is None else labels[position]
        if plan.step > 1 and labels is not None:
            name = f"{position} {name}" if side == "right" else f"{name} {position}"
        axes.text(
            x,
            position,
            shortened(readable([name], layout.families)[0]),
            ha=side,
            va="center_baseline" if pitch > 2 * plan.size * POINT else "center",
            fontsize=plan.size,
            family=layout.families,
        )


def _legend(layout: FigureLayout, axes: Axes, matrices: Sequence[Matrix], columns: int) -> None:
    handles = [
        Line2D([], [], linewidth=1.8, label=layout.say("head.n", head=matrix.head), **head_style(place))
        for place, matrix in enumerate(matrices)
    ]
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=min(len(handles), columns),
        labelcolor=QUIET,
        prop={"family": layout.families, "size": layout.sizes.legend},
        handlelength=2.2,
        columnspacing=1.2,
    )
