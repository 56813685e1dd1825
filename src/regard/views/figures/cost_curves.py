"""``cost``: operations and bytes over the length of the text, a line for each kind of attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.errors import ArgumentError, ShapeError
from regard.views.figures.figure_layout import FigureLayout, checked_size, shortened
from regard.views.figures.style import FAINT, head_style, house_style
from regard.views.figures.units import binary, si
from regard.views.figures.weight_matrix import Floats, numbers_of

SIDE = 3.1
"""Inches of one panel."""

_MOST_TICKS = 7
_LINE = 0.15
"""Inches from one name to the next."""


def cost(
    lengths: Sequence[int],
    *,
    operations: Mapping[str, Sequence[float]] | None = None,
    bytes: Mapping[str, Sequence[float]] | None = None,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """What attention costs over the length, both axes logarithmic, so that a power is a straight line.

    Args:
        lengths: how many tokens, in ascending order.
        operations, bytes: named series with a number for each length; a panel for each that is given.
            The same name has the same colour in both. A length that was not measured is None or NaN.
        title: by default none.
        size: the side of a panel in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> figure = cost([512, 2048], operations={"dense": [1e9, 16e9], "linear": [1e8, 4e8]})
    >>> [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    ['512', '2,048']
    """
    places = _checked_lengths(lengths)
    panels = [
        (name, {key: _checked(key, values, len(places)) for key, values in series.items()}, unit)
        for name, series, unit in (("operations", operations, si), ("bytes", bytes, binary))
        if series
    ]
    if not panels:
        raise ArgumentError(
            "A figure of costs needs at least one series.",
            got="neither operations nor bytes",
            do='Pass operations={{"dense": [...]}}.',
        )
    names = list(dict.fromkeys(key for _, series, _ in panels for key in series))
    side = checked_size(size, SIDE)
    with house_style():
        layout = FigureLayout([*names, title or ""], lang)
        widest = max(layout.width_of(shortened(layout.text(name)), layout.sizes.text) for name in names)
        for place, (name, series, unit) in enumerate(panels):
            axes = layout.area(1 + place * (side + widest + 0.9), 1, side, side)
            _panel(layout, axes, places, series, names, unit, side)
            layout.side_name(axes, "x", layout.say("tokens"))
            axes.set_title(layout.say(name), fontsize=layout.sizes.text, family=layout.families)
            if place == 0 and title:
                axes.annotate(
                    layout.sentence(title),
                    (0, 1),
                    (0, layout.sizes.small(22)),
                    xycoords="axes fraction",
                    textcoords="offset points",
                    family=layout.families,
                    fontsize=layout.sizes.heading,
                )
        return layout.fit()


def _checked_lengths(lengths: Sequence[int]) -> Floats:
    found = numbers_of(lengths, "Lengths")
    if found.ndim != 1 or not len(found) or not (found > 0).all() or not (np.diff(found) > 0).all():
        raise ArgumentError(
            "lengths must be positive numbers of tokens in ascending order.",
            got="{text}",
            do="Sort them and remove duplicates.",
            text=f"{lengths!r}"[:60],
        )
    return found.astype(np.float64)


def _checked(name: str, values: Sequence[float], count: int) -> Floats:
    found = numbers_of([np.nan if value is None else value for value in values], "Costs").astype(np.float64)
    if found.shape != (count,):
        raise ShapeError(
            "A series needs one number for each length (lengths = {count}).",
            got="{name!r} with {found_count}",
            do="Pass None where nothing was measured.",
            count=count,
            name=name,
            found_count=len(found),
        )
    known = found[~np.isnan(found)]
    if not len(known) or not ((known > 0) & (known < np.inf)).all():
        raise ArgumentError(
            "Costs must be above 0, because the axis is logarithmic.",
            got="{text}",
            do="Pass None where nothing was measured.",
            text=f"{name!r}: {values!r}"[:80],
        )
    return found


def _panel(
    layout: FigureLayout,
    axes: Axes,
    lengths: Floats,
    series: Mapping[str, Floats],
    names: Sequence[str],
    unit: Callable[[float], str],
    side: float,
) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2 if unit is binary else 10)
    for name, values in series.items():
        axes.plot(lengths, values, marker="o", markersize=3, label=name, **head_style(names.index(name)))
    everything = np.concatenate(list(series.values()))
    ticks = _powers(
        float(np.nanmin(everything)), float(np.nanmax(everything)), 1024 if unit is binary else 1000
    )
    axes.set_yticks(ticks, [unit(tick) for tick in ticks])
    axes.set_ylim(ticks[0], ticks[-1])
    shown = lengths[:: max(1, ceil(len(lengths) / _MOST_TICKS))]
    axes.set_xticks(shown, [f"{length:,.0f}" for length in shown])
    room = side / max(len(shown) - 1, 1)
    if max(layout.width_of(f"{length:,.0f}", 9) for length in shown) > room - 0.05:
        axes.tick_params(axis="x", labelrotation=45)
    axes.minorticks_off()
    axes.grid(visible=True)
    _name_lines(layout, axes, lengths, series, names, side)


def _powers(low: float, high: float, base: int) -> list[float]:
    """Powers around the numbers: of the base where they span several, of 10 or 2 where they do not.

    >>> _powers(3e3, 5e12, 1000)
    [1000.0, 1000000.0, 1000000000.0, 1000000000000.0, 1000000000000000.0]
    >>> _powers(300, 5000, 1000)
    [100.0, 1000.0, 10000.0]
    """
    small = 10.0 if base == 1000 else 2.0
    for step in (
        small,
        *((4.0, 16.0) if base == 1024 else ()),
        float(base),
        float(base) ** 2,
        float(base) ** 4,
    ):
        first, last = floor(log(low, step) + 1e-9), ceil(log(high, step) - 1e-9)
        if last - first <= _MOST_TICKS:
            break
    return [step**power for power in range(first, max(last, first + 1) + 1)]


def _name_lines(
    layout: FigureLayout,
    axes: Axes,
    lengths: Floats,
    series: Mapping[str, Floats],
    names: Sequence[str],
    side: float,
) -> None:
    """Each line is named at its end, so no legend is needed; names do not overlap."""
    low, high = (log(limit) for limit in axes.get_ylim())
    ends = {name: values[~np.isnan(values)][-1] for name, values in series.items()}
    heights = {name: side * (log(end) - low) / (high - low) for name, end in ends.items()}
    placed = spread([heights[name] for name in series], _LINE * layout.sizes.room)
    for name, height in zip(series, placed):
        axes.annotate(
            shortened(layout.text(name)),
            (lengths[~np.isnan(series[name])][-1], ends[name]),
            (1 + 0.14 / side, height / side),
            textcoords="axes fraction",
            family=layout.families,
            fontsize=layout.sizes.text,
            color=head_style(names.index(name))["color"],
            va="center",
            # A line may end before the last length, and names may have been moved apart.
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 3},
        )


def spread(heights: Sequence[float], distance: float) -> list[float]:
    """The heights, moved apart as little as needed and in the same order.

    >>> spread([1.0, 1.0, 3.0], 0.5)
    [0.75, 1.25, 3.0]
    """
    order = sorted(range(len(heights)), key=heights.__getitem__)
    groups: list[list[float]] = []  # each is [middle, count], and takes count · distance
    for i in order:
        groups.append([heights[i], 1])
        while (
            len(groups) > 1 and groups[-1][0] - groups[-2][0] < distance * (groups[-1][1] + groups[-2][1]) / 2
        ):
            middle, count = groups.pop()
            before, earlier = groups[-1]
            groups[-1] = [(before * earlier + middle * count) / (earlier + count), earlier + count]
    places = [
        middle + distance * (place - (count - 1) / 2)
        for middle, count in groups
        for place in range(int(count))
    ]
    found = [0.0] * len(heights)
    for i, place in zip(order, places):
        found[i] = place
    return found
