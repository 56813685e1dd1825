"""``divergence``: how different heads are, as a map of heads × heads with similar heads side by side."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.errors import ArgumentError, DtypeError
from regard.heads import Divergence
from regard.views.figures.colours import colour_key, paint, scale_for
from regard.views.figures.downsampling import reduced
from regard.views.figures.figure_layout import FigureLayout, checked_size, planned
from regard.views.figures.style import DOTS, QUIET, house_style
from regard.views.figures.weight_matrix import one_matrix

CELL, NAMED = 0.3, 0.092
"""Inches of a head where there are few, and the least that has room for its name."""

SIDE, LARGEST = 6.3, 12.0
"""Inches of the side where there are many, and where each of very many would still have its name."""

TREE = 0.9
"""Inches of the tree above the map."""


def divergence(
    found: Divergence,
    *,
    clusters: int | None = None,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """The divergence between all pairs of heads, ordered by cluster, under the tree that joins them.

    Args:
        found: what ``regard.heads.divergence(seen)`` gave.
        clusters: draw white lines between this number of groups.
        title: by default what is shown; "" for none.
        size: the side of the map in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> figure = divergence(regard.heads.divergence(seen), clusters=2)
    >>> sorted(tick.get_text() for tick in figure.axes[0].get_yticklabels())
    ['0.0', '0.1', '0.2', '0.3']
    """
    if not isinstance(found, Divergence):
        raise DtypeError(
            "figures.divergence needs the result of regard.heads.divergence.",
            got="{type}",
            do="Pass regard.heads.divergence(seen).",
            type=type(found).__name__,
        )
    if clusters is not None and not 1 <= clusters <= len(found.heads):
        raise ArgumentError(
            "There must be between 1 and {heads_count} clusters.",
            got="clusters = {clusters!r}",
            do="Try 4.",
            heads_count=len(found.heads),
            clusters=clusters,
        )
    labels = [found.labels[at] for at in found.order]
    matrix = one_matrix(
        found.matrix[np.ix_(found.order, found.order)], head=None, queries=labels, keys=labels
    )
    side = checked_size(size, min(CELL * len(labels), max(SIDE, min(NAMED * len(labels), LARGEST))))
    picture = reduced(matrix, rows=max(1, int(side * DOTS)), columns=max(1, int(side * DOTS)))
    colours = scale_for([picture], "linear", 1.0)
    with house_style():
        layout = FigureLayout([*labels, title or ""], lang)
        axes = layout.area(1, 1 + TREE, side, side)
        image = paint(axes, picture, colours)
        _name_heads(layout, axes, labels, side / len(labels))
        layout.side_name(axes, "y", layout.say("layer.head"))
        layout.side_name(axes, "x", layout.say("layer.head"))
        if clusters is not None:
            _draw_borders(axes, [len(group) for group in found.clusters(clusters)])
        colour_key(layout, image, colours, (1 + side + 0.12, 1 + TREE, 0.11, max(side, 0.9)))
        tree = layout.area(1, 1, side, TREE - 0.06)
        _draw_tree(tree, found)
        layout.title(tree, title, layout.say("divergence"))
        return layout.fit()


def _name_heads(layout: FigureLayout, axes: Axes, labels: list[str], pitch: float) -> None:
    """The heads along both sides, or every second, fifth … of them; they are not in numeric order."""
    for side in ("y", "x"):
        plan = planned(len(labels), pitch, layout.sizes.along(side))
        names = [labels[at] for at in plan.positions]
        if side == "y":
            axes.set_yticks(plan.positions, names, fontsize=plan.size)
        else:
            axes.set_xticks(plan.positions, names, fontsize=plan.size, rotation=90)


def _draw_borders(axes: Axes, sizes: list[int]) -> None:
    for edge in np.cumsum(sizes)[:-1] - 0.5:
        axes.axhline(edge, color="white", linewidth=1.2)
        axes.axvline(edge, color="white", linewidth=1.2)


def _draw_tree(axes: Axes, found: Divergence) -> None:
    """Each join as a bracket at the height of its divergence."""
    count = len(found.heads)
    places = {group: float(place) for place, group in enumerate(found.order)}
    heights = dict.fromkeys(range(count), 0.0)
    for number, (left, right, height) in enumerate(found.joins):
        across = [places[left], places[left], places[right], places[right]]
        axes.plot(across, [heights[left], height, height, heights[right]], color=QUIET, linewidth=0.7)
        places[count + number] = (places[left] + places[right]) / 2
        heights[count + number] = height
    top = max(heights.values()) or 1.0
    axes.set(xlim=(-0.5, count - 0.5), ylim=(0, 1.05 * top))
    axes.set_axis_off()
