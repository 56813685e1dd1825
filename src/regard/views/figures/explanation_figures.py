"""``importance``, ``relevance`` and ``attribution``: which heads mattered, and which tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from regard.checks import check_choice, check_integer
from regard.errors import DtypeError, ShapeError
from regard.heads import Attribution, Relevance
from regard.table import Table
from regard.views.figures.bar_rows import MOST, PITCH, BarRow, draw_bars
from regard.views.figures.effect_map import draw_maps
from regard.views.figures.figure_layout import FigureLayout, checked_size
from regard.views.figures.style import FAINT, house_style


def importance(
    found: Table, *, title: str | None = None, size: float | None = None, lang: str = "en"
) -> Figure:
    """The importance of every head, layer × head, a map for each kind of attention.

    Args:
        found: the result of ``regard.heads.importance(seen)``.
        title: by default what is shown; "" for none.
        size: the longer side in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    >>> with regard.watch(model, gradients=True) as seen:
    ...     model(torch.randn(1, 5, 16)).square().sum().backward()
    >>> importance(regard.heads.importance(seen)).axes[0].get_ylabel()
    'layer'
    """
    if not isinstance(found, Table) or not {"importance", "layer", "head", "kind"} <= set(found.columns):
        raise DtypeError(
            "figures.importance needs the result of regard.heads.importance.",
            got="{type}",
            do="Pass regard.heads.importance(seen).",
            type=type(found).__name__,
        )
    grids = {str(kind): _grid(found.filter(kind=kind)) for kind in dict.fromkeys(found.column("kind"))}
    with house_style():
        layout = FigureLayout([title or ""], lang)
        said = layout.say("importance")
        return draw_maps(layout, ("layer", "head"), grids, None, None, title, said, size, signed=False)


def _grid(table: Table) -> NDArray[np.float64]:
    """The importance ``(layer, head)``; NaN where nothing was recorded."""
    rows = [(int(row["layer"]), int(row["head"]), float(row["importance"])) for row in table]  # type: ignore[arg-type]
    grid = np.full((max(row[0] for row in rows) + 1, max(row[1] for row in rows) + 1), np.nan)
    for layer, head, value in rows:
        grid[layer, head] = value
    return grid


def relevance(
    found: Relevance,
    labels: Sequence[str] | None = None,
    *,
    source_labels: Sequence[str] | None = None,
    most: int = MOST,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """The relevance of every token for one position as bars, those of the source first.

    Shown is what attention added, R − I: the 1 with which a position begins for itself is left out.

    Args:
        found: the result of ``regard.relevance(seen, row=…)``.
        labels, source_labels: the tokens of the text and of the source; by default those of the recording.
        most: how many bars; if there are more tokens, the strongest are shown.
        title: by default the position; "" for none.
        size: the length of the axis in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> import torch, regard
    >>> layer = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    >>> with regard.watch(layer, gradients=True) as seen:
    ...     layer(torch.randn(1, 3, 16))[0, 0].sum().backward()
    >>> figure = relevance(regard.relevance(seen, row=0), ["I", "love", "you"])
    """
    if not isinstance(found, Relevance):
        raise DtypeError(
            "figures.relevance needs the result of regard.relevance.",
            got="{type}",
            do="Pass regard.relevance(seen, row=0).",
            type=type(found).__name__,
        )
    rows = _token_rows(found.added.numpy(), labels or found.tokens)
    if found.source is not None:
        rows = _token_rows(found.source.numpy(), source_labels or found.source_tokens) + rows
    return _bars(rows, most, "relevance", {"row": found.row}, title, size, lang)


def attribution(
    found: Attribution,
    labels: Sequence[str] | None = None,
    *,
    by: str = "head",
    most: int = MOST,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """What each head gave to a logit as a map of layer × head, or what was taken from each token as bars.

    Args:
        found: the result of ``regard.attribution(…)``.
        labels: the tokens, for ``by="token"``.
        by: "head" or "token".
        most: how many bars; if there are more tokens, the strongest are shown.
        title: by default what is shown; "" for none.
        size: the longer side in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> figure = attribution(regard.attribution(model, torch.tensor([[5, 6, 7]]), target=9), by="token")
    """
    if not isinstance(found, Attribution):
        raise DtypeError(
            "figures.attribution needs the result of regard.attribution.",
            got="{type}",
            do="Pass regard.attribution(model, inputs, target).",
            type=type(found).__name__,
        )
    check_choice("by", by, ("head", "token"))
    if by == "token":
        rows = _token_rows(found.by_token().numpy(), labels)
        return _bars(rows, most, "attribution.token", {"logit": found.logit}, title, size, lang)
    with house_style():
        layout = FigureLayout([title or ""], lang)
        said = layout.say("attribution.head", logit=found.logit)
        grids = {"decoder": found.by_head().numpy()}
        return draw_maps(layout, ("layer", "head"), grids, None, None, title, said, size)


def _token_rows(values: NDArray[np.float64], labels: Sequence[str] | None) -> list[BarRow]:
    if labels is not None and len(labels) != len(values):
        raise ShapeError(
            "There must be a label for every token (tokens = {tokens}).",
            got="{labels} labels",
            do="Pass the tokens of the same text.",
            tokens=len(values),
            labels=len(labels),
        )
    names = [str(at) if labels is None else f"{at} {labels[at]}" for at in range(len(values))]
    return [BarRow(name, float(value)) for name, value in zip(names, values)]


def _bars(
    rows: list[BarRow],
    most: int,
    text: str,
    values: dict[str, float],
    title: str | None,
    size: float | None,
    lang: str,
) -> Figure:
    check_integer("most", most, example=40)
    strongest = sorted(range(len(rows)), key=lambda at: -abs(rows[at].weight))[:most]
    shown = [rows[at] for at in sorted(strongest)]
    with house_style():
        layout = FigureLayout([*(row.name for row in shown), title or ""], lang)
        axes = layout.area(2, 1, checked_size(size, 3.4), PITCH * layout.sizes.room * len(shown))
        draw_bars(layout, axes, shown)
        axes.axvline(0.0, color=FAINT, linewidth=0.6)
        layout.title(axes, title, layout.say(text, **values))
        return layout.fit()
