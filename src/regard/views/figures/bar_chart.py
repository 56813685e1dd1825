"""``bars``: what one query gives to each key, as bars with the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np
from matplotlib.figure import Figure

from regard.checks import check_integer
from regard.errors import ArgumentError, ShapeError
from regard.recording import Call, Recording
from regard.views.figures.bar_rows import MOST, PITCH, draw_bars, listed, rows_of
from regard.views.figures.figure_layout import FigureLayout, checked_size, drawn_to_width
from regard.views.figures.figure_texts import TEXTS
from regard.views.figures.style import StyledFigure, house_style
from regard.views.figures.weight_matrix import Floats, checked_labels, numbers_of, one_matrix


def bars(
    weights: object,
    labels: Sequence[str] | None = None,
    *,
    values: object = None,
    layer: int | None = None,
    head: int | None = None,
    query: int | None = None,
    kind: str | None = None,
    run: int | None = None,
    batch: int = 0,
    most: int = MOST,
    title: str | None = None,
    size: float | None = None,
    width: float | str | None = None,
    lang: str = "en",
) -> Figure:
    """The weights of one query as bars; with ``values``, also what they mix: ``Σ_j w_j v_j``.

    Args:
        weights: numbers ``(key,)``; or a recording or call, and ``layer``, ``head`` and ``query``.
        labels: a name for each key; by default the recorded tokens.
        values: numbers ``(key,)`` or ``(key, channel)``, printed after the weights.
        kind, run, batch: as for ``heatmap``.
        most: how many bars; if there are more keys, the strongest are shown and the rest is summed.
        title: by default the mix of the values, or the query; "" for none.
        size: the length of the axis in inches.
        width: the width of the whole figure in inches, or "column" or "page" for one or both columns of a
            paper; in place of ``size``.
        lang: the language of the figure's own text, "en" or "zh".

    >>> figure = bars([0.75, 0.25], ["cat", "mat"], values=[4.0, 8.0])
    >>> [float(bar.get_width()) for bar in figure.axes[0].patches], figure.axes[0].get_title("left")
    ([0.75, 0.25], 'Σ w v = 5')
    """
    if width is not None:
        again = partial(
            bars, weights, labels, values=values, layer=layer, head=head, query=query, kind=kind, run=run,
            batch=batch, most=most, title=title, lang=lang,
        )  # fmt: skip
        return drawn_to_width(lambda inches: cast(StyledFigure, again(size=inches)), width)
    row, known, said = _row(weights, labels, layer, head, query, kind, run, batch, lang)
    shown_values = None if values is None else _checked_values(values, len(row))
    check_integer("most", most, example=40)
    names = known or [str(key) for key in range(len(row))]
    rows = rows_of(row, names, shown_values, most, placed=known is None, lang=lang)
    if shown_values is not None:
        said = f"Σ w v = {listed(row @ shown_values)}"
    with house_style():
        layout = FigureLayout([*(one.name for one in rows), title or "", said], lang)
        axes = layout.area(2, 1, checked_size(size, 3.4), PITCH * layout.sizes.room * len(rows))
        draw_bars(layout, axes, rows)
        layout.title(axes, title, said)
        return layout.fit()


def _row(
    weights: object,
    labels: Sequence[str] | None,
    layer: int | None,
    head: int | None,
    query: int | None,
    kind: str | None,
    run: int | None,
    batch: int,
    lang: str,
) -> tuple[Floats, Sequence[str] | None, str]:
    """The weights, the names of the keys if they have any, and the title of the figure."""
    if isinstance(weights, (Recording, Call)):
        matrix = one_matrix(weights, head=head, layer=layer, kind=kind, run=run, batch=batch, keys=labels)
        if query is None:
            raise ArgumentError(
                "Bars show one query, which must be given (0 … {shape}).",
                got="none",
                do="Pass query=0.",
                shape=matrix.shape[0] - 1,
            )
        values = matrix.row(query).values[0]
        said = {"place": matrix.name(lang), "query": query}
        if matrix.queries:
            return values, matrix.keys, TEXTS.say("row.token", lang, **said, token=matrix.queries[query])
        return values, matrix.keys, TEXTS.say("row", lang, **said)
    values = numbers_of(weights, "Weights")
    if values.ndim != 1 or not len(values):
        raise ShapeError(
            "Bars need the weights of one query, (key,), at least one.",
            got="shape {shape}",
            do="Choose a row: weights[0].",
            shape=values.shape,
        )
    if not np.isfinite(values).all():
        raise ArgumentError(
            "Weights must be finite numbers.",
            got="{values}",
            do="Check the scores that they come from.",
            values=values[~np.isfinite(values)][0],
        )
    return values, checked_labels("keys", labels, len(values)), ""


def _checked_values(values: object, keys: int) -> Floats:
    found = numbers_of(values, "Values")
    if found.ndim not in (1, 2) or len(found) != keys:
        raise ShapeError(
            "Values must be (key,) or (key, channel), one for each weight (keys = {keys}).",
            got="shape {shape}",
            do="Pass the values of the same keys.",
            keys=keys,
            shape=found.shape,
        )
    return found
