"""``effects`` and ``eviction``: what a sweep of edits did, and how much attention a smaller cache keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from regard.ablation import Ablation
from regard.errors import DtypeError, ShapeError
from regard.heads.cache_eviction import Eviction
from regard.views.figures.bar_rows import MOST, PITCH, BarRow, draw_bars
from regard.views.figures.colours import ColourScale, colour_key, paint, scale_for
from regard.views.figures.downsampling import BlockMaxima
from regard.views.figures.figure_layout import FigureLayout, checked_size
from regard.views.figures.style import FAINT, head_style, house_style

CELL, SIDE = 0.3, 6.3
"""Inches of a cell where there are few, and of the longer side where there are many."""


def effects(
    found: Ablation,
    *,
    kind: str | None = None,
    labels: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    largest: float | None = None,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """What ``regard.ablate`` found: layer × head or query × key as a map, layers or keys as bars.

    Colours and bars are the difference that the edit makes to the metric; white is none.

    Args:
        found: the result of ``regard.ablate(...)``.
        kind: only "encoder", "decoder" or "cross"; by default every kind that was changed.
        labels: the tokens, for a sweep by key or by edge; by kind, where kinds have different keys.
        largest: the difference that gets the last colour; by default the greatest one.
        title: by default what was measured; "" for none.
        size: the longer side in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=3)
    >>> figure = effects(regard.ablate(model, torch.arange(9)[None], regard.metrics.loss))
    >>> figure.axes[0].get_ylabel()
    'layer'
    """
    if not isinstance(found, Ablation):
        raise DtypeError(
            "figures.effects needs the result of regard.ablate.",
            got="{type}",
            do="Pass regard.ablate(model, inputs, metric).",
            type=type(found).__name__,
        )
    kinds = found.kinds if kind is None else (kind,)
    grids = {one: found.grid(one) for one in kinds}
    tokens = _checked_labels(labels, grids)
    with house_style():
        layout = FigureLayout([*chain(*tokens.values()), title or ""], lang)
        said = layout.say(f"effects.{found.by}", metric=found.metric, before=found.before)
        if found.by in ("layer", "key"):
            return _bars(layout, found, grids, tokens, title, said, size)
        names = ("layer", "head") if found.by == "head" else ("query", "key")
        return draw_maps(layout, names, grids, tokens.get(kinds[-1]), largest, title, said, size)


def _checked_labels(
    labels: Sequence[str] | Mapping[str, Sequence[str]] | None, grids: Mapping[str, NDArray[np.float64]]
) -> Mapping[str, Sequence[str]]:
    """The labels of each kind."""
    if labels is None:
        return {}
    last = list(grids)[-1]
    by_kind = labels if isinstance(labels, Mapping) else dict.fromkeys(grids, labels)
    for kind in set(by_kind) & set(grids) if isinstance(labels, Mapping) else {last}:
        if len(by_kind[kind]) != grids[kind].shape[1]:
            raise ShapeError(
                "There must be a label for every key (keys = {keys}).",
                got="{labels_count} labels",
                do="Pass the tokens of the same text.",
                keys=grids[kind].shape[1],
                labels_count=len(by_kind[kind]),
            )
    return by_kind


def draw_maps(
    layout: FigureLayout,
    names: tuple[str, str],
    grids: Mapping[str, NDArray[np.float64]],
    labels: Sequence[str] | None,
    largest: float | None,
    title: str | None,
    said: str,
    size: float | None,
    *,
    signed: bool = True,
) -> Figure:
    """A map for each kind, with one scale of colours for all of them."""
    most = max(max(grid.shape) for grid in grids.values())
    pitch = checked_size(size, min(CELL * most, SIDE)) / most
    pictures = {kind: BlockMaxima(np.ma.masked_invalid(grid), grid.shape) for kind, grid in grids.items()}
    colours = (
        _signed(list(pictures.values()), largest)
        if signed
        else scale_for(list(pictures.values()), "linear", largest)
    )
    left, first = 2.0, None
    for kind, picture in pictures.items():
        rows, columns = picture.shape
        axes = layout.area(left, 1, pitch * columns, pitch * rows)
        image = paint(axes, picture, colours)
        # Edges go from queries, the last tokens of the text, to keys.
        layout.label(axes, "y", None if labels is None else list(labels)[-rows:], rows, pitch)
        layout.label(axes, "x", labels, columns, pitch)
        if first is None:
            layout.side_name(axes, "y", layout.say(names[0]))
        layout.side_name(axes, "x", _side(layout, names[1], kind if len(pictures) > 1 else ""))
        left += pitch * columns + 0.45
        first = first or axes
    assert first is not None
    tall = pitch * max(picture.shape[0] for picture in pictures.values())
    colour_key(layout, image, colours, (left - 0.33, 1, 0.11, max(min(tall, 3.0), 0.9)))
    layout.title(first, title, said)
    return layout.fit()


def _side(layout: FigureLayout, name: str, kind: str) -> str:
    """What the columns are, and of which kind where there are several."""
    if not kind:
        return layout.say(name)
    return (
        layout.say(f"kind.{kind}.head")
        if name == "head"
        else layout.say(f"kind.{kind}.key", key=layout.say("key"))
    )


def _signed(pictures: Sequence[BlockMaxima], largest: float | None) -> ColourScale:
    """Colours on both sides of 0, also where every difference has one sign."""
    top = max(float(np.abs(np.ma.filled(picture.values, 0.0)).max()) for picture in pictures) or 1.0
    both = BlockMaxima(np.ma.array([[-top, top]]), (1, 2))
    return scale_for([both], "linear", largest or top)


def _bars(
    layout: FigureLayout,
    found: Ablation,
    grids: Mapping[str, NDArray[np.float64]],
    labels: Mapping[str, Sequence[str]],
    title: str | None,
    said: str,
    size: float | None,
) -> Figure:
    several = len(grids) > 1
    rows = [
        BarRow(_bar_name(layout, found.by, kind if several else "", at, labels.get(kind)), float(value))
        for kind, grid in grids.items()
        for at, value in enumerate(grid[0])
        if np.isfinite(value)
    ]
    weakest = sorted(range(len(rows)), key=lambda at: abs(rows[at].weight))[: max(0, len(rows) - MOST)]
    shown = [row for at, row in enumerate(rows) if at not in set(weakest)]
    axes = layout.area(2, 1, checked_size(size, 3.4), PITCH * layout.sizes.room * len(shown))
    draw_bars(layout, axes, shown)
    axes.axvline(0.0, color=FAINT, linewidth=0.6)
    layout.title(axes, title, said)
    return layout.fit()


def _bar_name(layout: FigureLayout, by: str, kind: str, at: int, labels: Sequence[str] | None) -> str:
    if by == "layer":
        return layout.say(f"kind.{kind}.layer" if kind else "layer.n", layer=at)
    name = f"{at} {labels[at]}" if labels and at < len(labels) else str(at)
    return layout.say(f"kind.{kind}.key", key=name) if kind else name


def eviction(
    found: Eviction, *, title: str | None = None, size: float | None = None, lang: str = "en"
) -> Figure:
    """How much attention later queries keep over the budget of the cache, a line for each policy.

    Lines are means over all heads; the band of a policy holds the middle half of the heads.

    Args:
        found: the result of ``regard.heads.eviction(seen)``.
        title: by default where the cache was cut; "" for none.
        size: the side in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> with torch.no_grad(), regard.watch(model) as seen:
    ...     _ = model(torch.arange(1, 41)[None])
    >>> figure = eviction(regard.heads.eviction(seen))
    """
    if not isinstance(found, Eviction):
        raise DtypeError(
            "figures.eviction needs the result of regard.heads.eviction.",
            got="{type}",
            do="Pass regard.heads.eviction(seen).",
            type=type(found).__name__,
        )
    side = checked_size(size, 3.4)
    with house_style():
        layout = FigureLayout([title or ""], lang)
        axes = layout.area(2, 1, side, 0.8 * side)
        for place, policy in enumerate(found.policies):
            per_head = np.array(
                [found.table.filter(policy=policy, budget=budget).column("kept") for budget in found.budgets],
                np.float64,
            )
            style = head_style(place)
            axes.plot(found.budgets, per_head.mean(1), marker="o", markersize=3.5, label=policy, **style)
            low, high = np.quantile(per_head, (0.25, 0.75), axis=1)
            axes.fill_between(found.budgets, low, high, color=style["color"], alpha=0.12, linewidth=0)
        axes.set_xticks(found.budgets, [f"{budget:g}" for budget in found.budgets])
        axes.set_ylim(top=1.0)
        axes.grid(axis="y")
        layout.side_name(axes, "x", layout.say("eviction.budget"))
        layout.side_name(axes, "y", layout.say("eviction.kept"))
        axes.legend(loc="lower right", prop={"family": layout.families, "size": layout.sizes.legend})
        layout.title(axes, title, layout.say("eviction", start=found.start, length=found.length))
        return layout.fit()
