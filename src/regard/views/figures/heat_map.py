"""``heatmap``: the weights of one head as a picture, tokens on both axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure

from regard.views.figures.colours import ColourScale, colour_key, paint, scale_for
from regard.views.figures.downsampling import BlockMaxima, picture_of
from regard.views.figures.figure_layout import FigureLayout, area_of, drawn_to_width
from regard.views.figures.figure_texts import TEXTS
from regard.views.figures.style import StyledFigure, house_style
from regard.views.figures.weight_matrix import Matrix, one_matrix

ROOM_FOR_A_NUMBER = 0.34
"""Inches that "0.12" takes in the smallest font."""

SMALLEST_PRINTED = 0.005
"""A column of "0.00" says no more than its colour."""


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
    cmap: str | Colormap | None = None,
    numbers: bool | None = None,
    title: str | None = None,
    sides: tuple[str, str] | None = None,
    size: float | None = None,
    width: float | str | None = None,
    lang: str = "en",
) -> Figure:
    """The weights of one head as a heat map: rows are queries, columns are keys.

    Args:
        weights: a recording, one of its calls, or numbers ``(query, key)``.
        layer, head, kind, run, batch: which head of the recording; omit those with only one possible
            value.
        queries, keys: labels, if the recording has no tokens or you want others. Keys of a square
            matrix have the labels of the queries by default.
        scale: "linear" or "log".
        largest: the weight that gets the last colour, by default the greatest.
        cmap: a colour map of matplotlib, by default the one in its settings.
        numbers: print each weight in its cell; by default where there is room.
        title: by default the name of the head; "" for none.
        sides: the names of rows and columns if they are not queries and keys, for example
            ``("key", "key")`` for similarities.
        size: the longer side in inches.
        width: the width of the whole figure in inches, or "column" or "page" for one or both columns of a
            paper; in place of ``size``.
        lang: the language of the figure's own text, "en" or "zh".

    Pairs that may not attend are hatched, and weights below 0.005 are not printed.
    Long texts are reduced to pixels by the greatest
    weight of each block. Numbers below 0 (scores, similarities) get a scale around 0.

    >>> figure = heatmap([[0.7, 0.3], [0.4, 0.6]], queries=["I", "am"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['0.70', '0.30', '0.40', '0.60']
    >>> heatmap([[1.0, 0.3], [0.3, 1.0]], sides=("key", "key")).axes[0].get_xlabel()
    'key'
    """
    matrix = one_matrix(
        weights, layer=layer, head=head, kind=kind, run=run, batch=batch, queries=queries, keys=keys
    )
    look = HeatmapStyle(scale, largest, cmap, numbers, title, lang, sides)
    if width is not None:
        return drawn_to_width(lambda inches: draw_heatmap(matrix, inches, look), width)
    return draw_heatmap(matrix, size, look)


@dataclass(frozen=True)
class HeatmapStyle:
    """How a heat map looks."""

    scale: str
    largest: float | None
    cmap: str | Colormap | None
    numbers: bool | None
    title: str | None
    lang: str
    sides: tuple[str, str] | None = None


def draw_heatmap(matrix: Matrix, size: float | None, look: HeatmapStyle) -> StyledFigure:
    """One matrix as a heat map; ``size`` is the longer side in inches."""
    width, height = area_of(matrix.shape, size)
    picture = picture_of(matrix, width, height)
    colours = scale_for([picture], look.scale, look.largest, look.cmap)
    numbers, title, lang = look.numbers, look.title, look.lang
    with house_style():
        texts = [*(matrix.queries or ()), *(matrix.keys or ()), title or "", *(look.sides or ())]
        layout = FigureLayout(texts, lang)
        axes = layout.area(1, 1, width, height)
        image = paint(axes, picture, colours)
        tall, wide = height / matrix.shape[0], width / matrix.shape[1]
        layout.label(axes, "y", matrix.queries, matrix.shape[0], tall)
        layout.label(axes, "x", matrix.keys, matrix.shape[1], wide)
        if look.sides is None:
            layout.side_names(axes, matrix.kind, width, height)
        for side, name in zip("yx", look.sides or ()):
            layout.side_name(axes, side, name)
        layout.say_masked(axes, np.ma.getmaskarray(picture.values), width, height)
        fits = picture.whole and wide >= ROOM_FOR_A_NUMBER and tall >= 0.16
        if numbers or (numbers is None and fits):
            print_numbers(axes, picture.values, colours, wide, layout.sizes.text)
        else:
            colour_key(layout, image, colours, (1 + width + 0.12, 1, 0.11, max(height, 0.9)))
        layout.title(axes, title, matrix.name(lang))
        layout.figure.alt = _in_words(matrix, picture, layout.figure.alt, lang)
        return layout.fit()


def _in_words(matrix: Matrix, picture: BlockMaxima, title: str, lang: str) -> str:
    """The title, the size and the strongest pair."""
    values = np.ma.filled(picture.values, -np.inf)
    row, column = map(int, np.unravel_index(int(values.argmax()), values.shape))
    names = {"title": title, "queries": matrix.shape[0], "keys": matrix.shape[1]}
    if not picture.whole or matrix.queries is None or matrix.keys is None or not np.isfinite(values.max()):
        return TEXTS.say("alt.map", lang, **names).removeprefix(": ")
    pair = {"query": matrix.queries[row], "key": matrix.keys[column], "weight": float(values[row, column])}
    return TEXTS.say("alt.map.strongest", lang, **names, **pair).removeprefix(": ")


def print_numbers(
    axes: Axes, values: np.ma.MaskedArray | np.ndarray, colours: ColourScale, room: float, text_size: float
) -> None:
    """Each number in its cell, where ``room`` is the width of a cell in inches; about 0 stays empty."""
    size = min(text_size, 9.0 * room / 0.42)
    for row, column in np.argwhere(~np.ma.getmaskarray(values)):
        value = float(values[row, column])
        if abs(value) < SMALLEST_PRINTED:
            continue
        axes.text(
            column,
            row,
            f"{value:.2f}".replace("-", "−"),
            ha="center",
            va="center",
            fontsize=size,
            color=colours.ink(value),
        )
