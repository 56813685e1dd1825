"""``alignment``: the weights between two texts as a heat map, with the pairs that were found marked in it."""

from __future__ import annotations

from matplotlib.figure import Figure

from regard.errors import DtypeError
from regard.heads.token_alignment import Alignment
from regard.views.figures.figure_texts import TEXTS, place_name
from regard.views.figures.heat_map import HeatmapStyle, draw_heatmap
from regard.views.figures.style import COLOURS
from regard.views.figures.weight_matrix import Matrix, shown_tokens

DOT = 4.0
"""Points of the mark of a pair where cells are large."""

CELLS_WITH_DOTS = 60
"""Rows or columns up to which every pair is marked; longer paths are lines."""


def alignment(
    found: Alignment,
    *,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """What ``regard.align`` found: rows are queries, columns are keys, and each pair is marked.

    Args:
        found: what ``regard.align(...)`` returned.
        title: by default the heads and the method; "" for none.
        size: the longer side in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> import regard
    >>> from regard.translator import embedded, look
    >>> seen = look(embedded(), "The cat sat on the mat.").recording
    >>> figure = alignment(regard.align(seen, method="argmax"))
    >>> len(figure.axes[0].lines)
    1
    """
    if not isinstance(found, Alignment):
        raise DtypeError(
            "figures.alignment needs the result of regard.align.",
            got="{type}",
            do="Pass regard.align(seen).",
            type=type(found).__name__,
        )
    rows = {position: at for at, position in enumerate(found.queries)}
    columns = {position: at for at, position in enumerate(found.keys)}
    matrix = Matrix(
        found.weights.shape,
        lambda rows: (found.weights[rows], None),
        shown_tokens(found.query_tokens),
        shown_tokens(found.key_tokens),
        kind=found.kind,
    )
    title = _title(found, lang) if title is None else title
    figure = draw_heatmap(matrix, size, HeatmapStyle("linear", None, None, False, title, lang))
    few = max(found.weights.shape) <= CELLS_WITH_DOTS
    figure.axes[0].plot(
        [columns[pair.key] for pair in found.pairs],
        [rows[pair.query] for pair in found.pairs],
        color=COLOURS[1],
        linewidth=1.0 if found.method == "dtw" else 0.0,
        marker="o" if few else None,
        markersize=DOT,
        markeredgecolor="white",
        markeredgewidth=0.8,
        scalex=False,
        scaley=False,
    )
    return figure


def _title(found: Alignment, lang: str) -> str:
    (layer, head), *others = found.heads
    heads = (
        TEXTS.say("alignment.heads", lang, count=len(found.heads))
        if others
        else place_name(layer, head, found.kind, lang)
    )
    return TEXTS.say(f"alignment.{found.method}", lang, heads=heads)
