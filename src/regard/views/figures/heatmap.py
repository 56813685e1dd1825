"""``heatmap``: the weights of one head as a picture, tokens on both axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.views.figures.colours import Scale, colour_key, paint, scale_for
from regard.views.figures.downsampling import Reduced, picture_of
from regard.views.figures.figure_layout import Sheet, area_of
from regard.views.figures.style import house_style
from regard.views.figures.weight_matrix import one_matrix

ROOM_FOR_A_NUMBER = 0.34
"""Inches that "0.12" takes in the smallest font."""


def heatmap(
    weights: object,
    *,
    layer: int | None = None,
    head: int | None = None,
    kind: str | None = None,
    run: int | None = None,
    batch: int = 0,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    scale: str = "linear",
    largest: float | None = None,
    numbers: bool | None = None,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """The weights of one head as a heat map: rows are queries, columns are keys.

    Args:
        weights: a recording, one of its calls, or numbers ``(query, key)``.
        layer, head, kind, run, batch: which head of the recording; those that are not in doubt may be
            left out.
        queries, keys: labels, where the recording has no tokens or others are wanted. Of a square
            matrix the keys are called as the queries.
        scale: "linear" or "log".
        largest: the weight that gets the last colour, by default the greatest.
        numbers: print each weight in its cell; by default where there is room.
        title: by default the name of the head; "" for none.
        size: the longer side in inches.
        lang: the language of what the figure itself says, "en" or "zh".

    Pairs that may not attend show the paper. Long texts are reduced to the pixels by the greatest
    weight of each block. Numbers below 0 (scores, similarities) get a scale around 0.

    >>> figure = heatmap([[0.7, 0.3], [0.4, 0.6]], queries=["I", "am"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['0.70', '0.30', '0.40', '0.60']
    """
    matrix = one_matrix(
        weights, layer=layer, head=head, kind=kind, run=run, batch=batch, queries=queries, keys=keys
    )
    width, height = area_of(matrix.shape, size)
    picture = picture_of(matrix, width, height)
    colours = scale_for([picture], scale, largest)
    with house_style():
        sheet = Sheet([*(matrix.queries or ()), *(matrix.keys or ()), title or ""], lang)
        axes = sheet.area(1, 1, width, height)
        image = paint(axes, picture, colours)
        tall, wide = height / matrix.shape[0], width / matrix.shape[1]
        sheet.label(axes, "y", matrix.queries, matrix.shape[0], tall)
        sheet.label(axes, "x", matrix.keys, matrix.shape[1], wide)
        sheet.side_name(axes, "y", sheet.say("query"))
        sheet.side_name(axes, "x", sheet.say("key"))
        fits = picture.whole and wide >= ROOM_FOR_A_NUMBER and tall >= 0.16
        if numbers or (numbers is None and fits):
            _print_numbers(axes, picture, colours, wide)
        else:
            colour_key(sheet, image, colours, (1 + width + 0.12, 1, 0.11, max(height, 0.9)))
        sheet.title(axes, title, matrix.name(lang))
        return sheet.fit()


def _print_numbers(axes: Axes, picture: Reduced, colours: Scale, room: float) -> None:
    size = min(8.5, 8.5 * room / 0.42)
    hidden = np.ma.getmaskarray(picture.values)
    for row, column in np.argwhere(~hidden):
        value = float(picture.values[row, column])
        axes.text(
            column,
            row,
            f"{value:.2f}".replace("-", "−"),
            ha="center",
            va="center",
            fontsize=size,
            color=colours.ink(value),
        )
