"""``monitor``: what a monitor measured over the steps of a training, a line for each head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from regard.checks import check_choice, check_integer
from regard.errors import ArgumentError, DtypeError
from regard.heads import Monitor, read_monitor
from regard.heads.monitor_file import NUMBERS, PLACE
from regard.interception.call_types import KINDS
from regard.views.figures.figure_layout import FigureLayout, checked_size
from regard.views.figures.style import head_style, house_style

SIDE = 2.7
"""Inches of one panel."""

_WIDE = 100.0
"""Numbers that differ by more than this factor get a logarithmic axis."""

LayerHead = tuple[int, int]
"""The numbers of a layer and of a head."""

Lines = dict[LayerHead, tuple[NDArray[np.float64], NDArray[np.float64]]]


def monitor(
    found: Monitor | Sequence[Mapping[str, Any]] | str | Path,
    number: str = "entropy",
    *,
    kind: str | None = None,
    smooth: int = 1,
    named: int = 3,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """What ``regard.monitor`` measured: steps to the right, a line for each head, a colour for each layer.

    Args:
        found: a monitor, its rows, or the CSV file that it wrote.
        number: "entropy", "score", "first", "gradient" or "information".
        kind: only "encoder", "decoder" or "cross"; by default a panel for each.
        smooth: draw means over this many neighbouring measurements; batches of long and of short texts
            have different entropies.
        named: how many lines of a panel are named at their end, as layer.head: those with the least entropy,
            or the most of what else is drawn.
        title: by default what is drawn; "" for none.
        size: the side of a panel in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> rows = [
    ...     {"step": step, "kind": "cross", "layer": 0, "head": head, "entropy": 2.0 - step * head / 9,
    ...      "score": 1.0, "first": 0.1, "gradient": 0.5}
    ...     for step in range(5) for head in range(2)
    ... ]
    >>> [text.get_text() for text in monitor(rows, named=1).axes[0].texts]
    ['0.1']
    """
    check_choice("number", number, NUMBERS)
    panels = _panels(_rows(found, number), number, kind, check_integer("smooth", smooth, example=5))
    named = check_integer("named", named, least=0)
    side = checked_size(size, SIDE)
    with house_style():
        layout = FigureLayout([title or ""], lang)
        drawn = None
        for place, (one, lines) in enumerate(panels.items()):
            axes = layout.area(1 + place * (side + 0.75), 1, side, 0.8 * side)
            _draw(layout, axes, lines, number, named)
            steps, name = layout.say("monitor.step"), layout.say(f"monitor.kind.{one}")
            several = layout.say("monitor.one", title=steps, kind=name)
            layout.side_name(axes, "x", several if len(panels) > 1 else steps)
            if drawn is None:
                layout.side_name(axes, "y", layout.say(f"monitor.{number}"))
            drawn = drawn or axes
        assert drawn is not None
        _name_layers(layout, axes, [layer for lines in panels.values() for layer, _ in lines])
        said = layout.say(f"monitor.title.{number}")
        layout.title(
            drawn, title, said if len(panels) > 1 else layout.say("monitor.one", title=said, kind=name)
        )
        return layout.fit()


def _rows(found: object, number: str) -> Sequence[Mapping[str, Any]]:
    if isinstance(found, str | Path):
        return read_monitor(found)
    rows = found.rows if isinstance(found, Monitor) else found
    whole = isinstance(rows, Sequence) and all(
        isinstance(row, Mapping) and {*PLACE, number} <= row.keys() for row in rows
    )
    if not whole:
        raise DtypeError(
            "figures.monitor needs a monitor, its rows, or its CSV file.",
            got="{type}",
            do="Pass what regard.monitor(model) gives, or monitor.csv of regard train.",
            type=type(found).__name__,
        )
    return rows  # type: ignore[return-value]


def _panels(
    rows: Sequence[Mapping[str, Any]], number: str, kind: str | None, smooth: int
) -> dict[str, Lines]:
    """The lines of each kind; numbers that are missing or not finite are gaps."""
    if kind is not None:
        check_choice("kind", kind, KINDS)
    found: dict[str, dict[LayerHead, list[tuple[float, float]]]] = {}
    for row in rows:
        if kind in (None, row["kind"]):
            value = np.nan if row[number] is None else row[number]
            place = row["layer"], row["head"]
            found.setdefault(row["kind"], {}).setdefault(place, []).append((row["step"], value))
    if not found:
        raise ArgumentError(
            "A figure of a monitor needs at least one measured step.",
            got="no rows" if not rows else "no rows of kind {kind!r}",
            do="Train for a few steps, or choose another kind.",
            kind=kind,
        )
    if all(row[number] is None for row in rows):
        raise ArgumentError(
            "At least one measured step must have the number that is drawn ({number}).",
            got="rows without it",
            do="Choose another number; files of earlier versions do not have all of them.",
            number=number,
        )
    return {
        one: {place: _line(points, smooth) for place, points in sorted(found[one].items())}
        for one in KINDS
        if one in found
    }


def _line(points: list[tuple[float, float]], smooth: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    steps, values = np.array(points, np.float64).T
    values = np.where(np.isfinite(values), values, np.nan)
    around = np.arange(len(values))[:, None] + np.arange(smooth) - smooth // 2
    # At both ends fewer measurements are averaged.
    inside = (around >= 0) & (around < len(values))
    taken = np.where(inside, values[around.clip(0, len(values) - 1)], 0.0)
    return steps, taken.sum(1) / inside.sum(1)


def _draw(layout: FigureLayout, axes: Axes, lines: Lines, number: str, named: int) -> None:
    for (layer, _), (steps, values) in lines.items():
        style = head_style(layer) | {"linewidth": 1.1, "alpha": 0.85}
        axes.plot(steps, values, marker="o" if len(steps) == 1 else None, markersize=3, **style)
    known = np.concatenate([values[~np.isnan(values)] for _, values in lines.values()])
    positive = len(known) > 0 and known.min() > 0
    if positive and number in ("score", "gradient") and known.max() > _WIDE * known.min():
        axes.set_yscale("log")
    elif positive:
        axes.set_ylim(bottom=0.0)
    axes.grid(axis="y")
    axes.margins(x=0.0)
    axes.tick_params(axis="x", labelsize=layout.sizes.x)
    axes.tick_params(axis="y", labelsize=layout.sizes.y)
    ends = {place: values[-1] for place, (_, values) in lines.items() if not np.isnan(values[-1])}
    strongest = sorted(ends, key=ends.__getitem__, reverse=number != "entropy")[: max(0, named)]
    _name_ends(
        layout, axes, {place: ends[place] for place in strongest}, max(x[0][-1] for x in lines.values())
    )


def _name_ends(layout: FigureLayout, axes: Axes, ends: Mapping[LayerHead, float], last: float) -> None:
    """The names of some lines at their right ends, moved apart where they would touch."""
    heights = axes.transData.transform([(last, value) for value in ends.values()])
    moved, lowest = 0.0, -np.inf
    for at in np.argsort(heights[:, 1]) if len(ends) else ():
        (layer, head), value = list(ends.items())[at]
        height = heights[at, 1] * 72 / layout.figure.dpi  # points
        moved = max(0.0, lowest + layout.sizes.small(8.0) - height)
        lowest = height + moved
        axes.annotate(
            f"{layer}.{head}", (last, value), (4, moved), textcoords="offset points", va="center",
            fontsize=layout.sizes.text, color=head_style(layer)["color"], annotation_clip=False,
        )  # fmt: skip


def _name_layers(layout: FigureLayout, axes: Axes, layers: Sequence[int]) -> None:
    """The colour of each layer, to the right of the last panel."""
    known = sorted(set(layers))
    if len(known) < 2:
        return
    for line, layer in enumerate(known):
        axes.annotate(
            layout.say("layer.n", layer=layer), (1, 1), (30, -5 - layout.sizes.small(11) * line),
            xycoords="axes fraction", textcoords="offset points", va="top", fontsize=layout.sizes.text,
            color=head_style(layer)["color"], family=layout.families, annotation_clip=False,
        )  # fmt: skip
