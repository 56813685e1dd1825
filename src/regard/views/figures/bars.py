"""``bars``: what one query gives to each key, as bars with the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.checks import check_integer
from regard.errors import ArgumentError, ShapeError
from regard.recording import Call, Recording
from regard.views.figures.figure_layout import Sheet, checked_size
from regard.views.figures.style import ACCENT, FAINT, QUIET, house_style
from regard.views.figures.weight_matrix import Numbers, checked_labels, numbers_of, one_matrix
from regard.views.figures.wording import TEXTS

MOST = 40
"""Bars of one figure. Of more keys the strongest are shown, and the others as one bar."""

PITCH = 0.27
"""Inches from bar to bar."""


@dataclass(frozen=True)
class Row:
    """What is drawn: a name, a weight and what stands behind it."""

    name: str
    weight: float
    value: str = ""
    other: bool = False  # the sum of all that are not shown


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
    lang: str = "en",
) -> Figure:
    """The weights of one query as bars; with ``values``, also what they mix: ``Σ_j w_j v_j``.

    Args:
        weights: numbers ``(key,)``; or a recording or call, and ``layer``, ``head`` and ``query``.
        labels: a name for each key; the recorded tokens unless told.
        values: numbers ``(key,)`` or ``(key, channel)``, printed behind the weights.
        kind, run, batch: as for ``heatmap``.
        most: how many bars; of more keys the strongest are shown and the rest is added up.
        title: the mix of the values, or the query, unless told; "" for none.
        size: the length of the axis in inches.
        lang: the language of what the figure itself says, "en" or "zh".

    >>> figure = bars([0.75, 0.25], ["cat", "mat"], values=[4.0, 8.0])
    >>> [float(bar.get_width()) for bar in figure.axes[0].patches], figure.axes[0].get_title("left")
    ([0.75, 0.25], 'Σ w v = 5')
    """
    row, known, said = _row(weights, labels, layer, head, query, kind, run, batch, lang)
    shown_values = None if values is None else _checked_values(values, len(row))
    check_integer("most", most, example=40)
    names = known or [str(key) for key in range(len(row))]
    rows = rows_of(row, names, shown_values, most, placed=known is None, lang=lang)
    if shown_values is not None:
        said = f"Σ w v = {_listed(row @ shown_values)}"
    with house_style():
        sheet = Sheet([*(one.name for one in rows), title or "", said], lang)
        axes = sheet.area(2, 1, checked_size(size, 3.4), PITCH * len(rows))
        draw_bars(sheet, axes, rows)
        sheet.title(axes, title, said)
        return sheet.fit()


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
) -> tuple[Numbers, Sequence[str] | None, str]:
    """The weights, the names of the keys where they have any, and what the figure is called."""
    if isinstance(weights, (Recording, Call)):
        matrix = one_matrix(weights, head=head, layer=layer, kind=kind, run=run, batch=batch, keys=labels)
        if query is None:
            raise ArgumentError(
                "Bars show one query (0 … {shape}).", got="none", do="Say query=0.", shape=matrix.shape[0] - 1
            )
        values = matrix.row(query).values[0]
        said = {"place": matrix.name(lang), "query": query}
        if matrix.queries:
            return values, matrix.keys, TEXTS.say("row.token", lang, **said, token=matrix.queries[query])
        return values, matrix.keys, TEXTS.say("row", lang, **said)
    values = numbers_of(weights, "Weights")
    if values.ndim != 1 or not len(values):
        raise ShapeError(
            "Bars show the weights of one query, (key,), at least one.",
            got="shape {shape}",
            do="Choose a row: weights[0].",
            shape=values.shape,
        )
    if not np.isfinite(values).all():
        raise ArgumentError(
            "Weights are finite numbers.",
            got="{values}",
            do="Look at the scores that they come from.",
            values=values[~np.isfinite(values)][0],
        )
    return values, checked_labels("keys", labels, len(values)), ""


def _checked_values(values: object, keys: int) -> Numbers:
    found = numbers_of(values, "Values")
    if found.ndim not in (1, 2) or len(found) != keys:
        raise ShapeError(
            "Values are (key,) or (key, channel), one for each weight (keys = {keys}).",
            got="shape {shape}",
            do="Pass the values of the same keys.",
            keys=keys,
            shape=found.shape,
        )
    return found


def rows_of(
    weights: Numbers,
    names: Sequence[str],
    values: Numbers | None = None,
    most: int = MOST,
    *,
    placed: bool = False,
    lang: str = "en",
) -> list[Row]:
    """One row for each key in the order of the text, or for the strongest and the rest together.

    Of the strongest it is said where they stand, unless their names do (``placed``).

    >>> [row.name for row in rows_of(np.array([0.1, 0.6, 0.3]), ["a", "b", "c"], most=2)]
    ['1 b', '2 others']
    """
    count = len(weights)
    few = count <= most
    kept = range(count) if few else sorted(np.argsort(-weights, kind="stable")[: most - 1].tolist())
    rows = [
        Row(
            names[key] if few or placed else f"{key} {names[key]}",
            float(weights[key]),
            "" if values is None else _listed(values[key]),
        )
        for key in kept
    ]
    if not few:
        rest = float(np.delete(weights, list(kept)).sum())
        rows.append(Row(TEXTS.say("others", lang, count=count - len(rows)), rest, other=True))
    return rows


def draw_bars(sheet: Sheet, axes: Axes, rows: Sequence[Row]) -> None:
    """Horizontal bars from top to bottom, each with its number."""
    weights = [row.weight for row in rows]
    axes.barh(range(len(rows)), weights, height=0.68, color=[FAINT if row.other else ACCENT for row in rows])
    axes.set(
        ylim=(len(rows) - 0.5, -0.5), xlim=(min(0.0, *weights, 0.0), max(0.0, *weights, 0.0) * 1.02 or 1.0)
    )
    sheet.label(axes, "y", [row.name for row in rows], len(rows), PITCH)
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    for place, row in enumerate(rows):
        number = f"{row.weight:.3f}".replace("-", "−")
        axes.annotate(
            f"{number} × {row.value}" if row.value else number,
            (max(row.weight, 0.0), place),
            (3, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=7.5,
            color=QUIET,
        )


def _listed(values: Numbers | np.floating) -> str:
    """A number, or the first few of several."""
    several = np.atleast_1d(values)
    said = ", ".join(f"{value:.3g}".replace("-", "−") for value in several[:4])
    if np.ndim(values) == 0:
        return said
    return f"[{said}, …]" if len(several) > 4 else f"[{said}]"
