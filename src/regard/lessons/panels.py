"""Panels side by side: matrices, curves and bars, in the style of ``regard.figures``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from regard.views.figures.bar_rows import PITCH, draw_bars, rows_of
from regard.views.figures.colours import ColourScale
from regard.views.figures.figure_layout import FigureLayout
from regard.views.figures.heat_map import print_numbers
from regard.views.figures.style import ACCENT, FAINT, MAP, PAPER, QUIET, SIGNED_MAP, head_style, house_style

SIDE = 2.1
"""Inches of a panel."""

GAP = 0.45
"""Inches between the labels of one panel and the next."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A matrix as coloured cells; for booleans the true ones are filled."""

    title: str
    values: Any  # (row, column)
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    sides: tuple[str, str] = ("", "")  # what rows and columns count
    numbers: bool = False  # print each value in its cell


@dataclass(frozen=True, eq=False)
class Curves:
    """Named series over the same positions."""

    title: str
    places: Sequence[float]
    series: Mapping[str, Sequence[float]]
    side: str = ""
    logarithmic: bool = False


@dataclass(frozen=True, eq=False)
class Bars:
    """Weights with names; those below ``least`` are pale."""

    title: str
    names: Sequence[str]
    weights: Any
    values: Any = None
    least: float | None = None


Panel = Cells | Curves | Bars


def draw(*panels: Panel, title: str = "") -> Figure:
    """The panels from left to right under one title.

    >>> figure = draw(Bars("a", ["x", "y"], [0.75, 0.25]), Cells("b", [[1.0, 0.0]]))
    >>> [axes.get_title("left") for axes in figure.axes]
    ['a', 'b']
    """
    with house_style():
        layout = FigureLayout([title, *(word for panel in panels for word in _words(panel))])
        left, first = 1.0, None
        lines = max(panel.title.count("\n") + 1 for panel in panels)
        for panel in panels:
            axes = layout.area(left, 1.5, *_size(panel))
            _DRAWN[type(panel)](layout, axes, panel)
            axes.set_title(layout.sentence(panel.title), family=layout.families, fontsize=layout.sizes.text)
            # The labels around the cells are measured, and the panel is moved to the right of the last one.
            box = axes.get_tightbbox(layout.renderer)
            assert box is not None
            moved = left + max(0.0, left - box.x0 / layout.figure.dpi)
            place = axes.get_position(original=True)
            paper = float(layout.figure.get_size_inches()[0])
            axes.set_position((moved / paper, place.y0, place.width, place.height))
            left = moved + (box.x1 / layout.figure.dpi - left) + GAP
            first = first or axes
        if title and first is not None:
            first.annotate(
                layout.sentence(title),
                (0, 1),
                (0, layout.sizes.small(16 + 11 * lines)),
                xycoords="axes fraction",
                textcoords="offset points",
                family=layout.families,
                fontsize=layout.sizes.heading,
            )
        return layout.fit()


def _words(panel: Panel) -> list[str]:
    if isinstance(panel, Cells):
        return [panel.title, *(panel.rows or ()), *(panel.columns or ()), *panel.sides]
    names = panel.names if isinstance(panel, Bars) else [*panel.series, panel.side]
    return [panel.title, *names]


def _size(panel: Panel) -> tuple[float, float]:
    if isinstance(panel, Bars):
        return SIDE * 0.8, min(PITCH * len(panel.names), 2 * SIDE)
    return SIDE, SIDE


def _cells(layout: FigureLayout, axes: Axes, panel: Cells) -> None:
    values = np.asarray(panel.values)
    count, wide = values.shape
    if values.dtype == np.bool_:
        axes.imshow(values, cmap=ListedColormap([PAPER, ACCENT]), vmin=0, vmax=1, aspect="auto")
    else:
        signed = bool((values < 0).any())
        limit = float(np.abs(values).max()) or 1.0
        cmap = colormaps[SIGNED_MAP if signed else MAP]
        colours = ColourScale(Normalize(-limit if signed else 0.0, limit), cmap)
        axes.imshow(values, cmap=cmap, norm=colours.norm, aspect="auto", interpolation="nearest")
        if panel.numbers:
            print_numbers(axes, values, colours, SIDE / wide, layout.sizes.text)
    axes.spines[:].set_visible(False)
    layout.label(axes, "y", panel.rows, count, SIDE / count)
    layout.label(axes, "x", panel.columns, wide, SIDE / wide)
    for side, name in zip("yx", panel.sides):
        if name:
            layout.side_name(axes, side, name)


def _curves(layout: FigureLayout, axes: Axes, panel: Curves) -> None:
    for place, (name, values) in enumerate(panel.series.items()):
        axes.plot(panel.places, values, label=layout.text(name), **head_style(place))
    # Without any number, as where a system does not say what memory is used, no axis can be logarithmic.
    if panel.logarithmic and any(value > 0 for values in panel.series.values() for value in values):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")  # powers would be drawn as formulas
        axes.set_xticks(list(panel.places), [f"{place:,g}" for place in panel.places])
        axes.minorticks_off()
    axes.grid(visible=True)
    if len(panel.series) > 1:
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.22), prop={"family": layout.families, "size": 9}
        )
    if panel.side:
        layout.side_name(axes, "x", panel.side)


def _bars(layout: FigureLayout, axes: Axes, panel: Bars) -> None:
    weights = np.asarray(panel.weights, np.float64)
    values = None if panel.values is None else np.asarray(panel.values, np.float64)
    draw_bars(layout, axes, rows_of(weights, list(panel.names), values))
    if panel.least is not None:
        axes.axvline(panel.least, color=QUIET, linewidth=0.8, linestyle=(0, (3, 2)))
        for bar, weight in zip(axes.patches, weights):
            if weight < panel.least:
                bar.set_color(FAINT)


_DRAWN: dict[type, Any] = {Cells: _cells, Curves: _curves, Bars: _bars}
