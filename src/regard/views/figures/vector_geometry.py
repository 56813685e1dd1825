"""``geometry``: a query and its keys as arrows in space, beside the weights that their angles make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox
from mpl_toolkits.mplot3d import proj3d
from mpl_toolkits.mplot3d.axes3d import Axes3D

from regard.errors import ArgumentError, ShapeError
from regard.kernels.reference import attention
from regard.views.figures.bar_rows import PITCH, draw_bars, rows_of
from regard.views.figures.figure_layout import FigureLayout, checked_size, shortened
from regard.views.figures.figure_texts import TEXTS
from regard.views.figures.style import ACCENT, DOTS, FAINT, QUIET, house_style
from regard.views.figures.weight_matrix import Floats, checked_labels, numbers_of

SIDE = 3.6
"""Inches of the space."""

MOST, MOST_NAMES, MOST_BARS = 40, 12, 16
"""The most arrows; how many of them are named at their tips; and how many have a bar: the strongest."""

THINNEST, WIDEST = 0.8, 6.0
"""Width in points of an arrow of weight 0, and what weight 1 adds."""

NAME = 0.5, 0.18
"""Inches across and down that two names must be apart."""

_QUERY = "#d55e00"


@dataclass(frozen=True)
class VectorSpace:
    """Arrows in three dimensions, and how much of the original vectors they show."""

    query: Floats  # (3,)
    keys: Floats  # (key, 3)
    channels: int
    share: float  # of the squared lengths


def geometry(
    query: object,
    keys: object,
    labels: Sequence[str] | None = None,
    *,
    scale: float | None = None,
    name: str | None = None,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """A query and its keys as arrows, each key as wide as its weight ``softmax_j(scale · q · k_j)``.

    Args:
        query: numbers ``(channel,)``.
        keys: numbers ``(key, channel)``; at most 40.
        labels: a name for each key.
        scale: by default 1/√channels.
        name: what the query is called, by default "query".
        title: by default the share of the arrows that is visible; "" for none.
        size: the side of the space in inches.
        lang: the language of the figure's own text, "en" or "zh".

    Up to three channels are drawn directly. More are projected on the three directions that hold
    most of all arrows (their principal axes through the origin, so that the origin stays where it
    is); the title says which share of the squared lengths that is. The weights are always those of
    all channels.

    >>> figure = geometry([2.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], ["along", "across"])
    >>> [round(float(bar.get_width()), 3) for bar in figure.axes[1].patches]
    [0.804, 0.196]
    """
    q, k = _checked(query, keys)
    names = checked_labels("keys", labels, len(k)) or [TEXTS.say("key.n", lang, key=i) for i in range(len(k))]
    name = TEXTS.say("query", lang) if name is None else name
    weights = attention(q[None], k, k, scale=scale)["weights"][0]
    space = space_of(q, k)
    side = checked_size(size, SIDE)
    with house_style():
        layout = FigureLayout([*names, name, title or ""], lang)
        axes = layout.area(1, 1, side, side, projection="3d")
        assert isinstance(axes, Axes3D)
        _draw_space(layout, axes, space, weights, names, name)
        filled = layout.filled[axes]
        rows = rows_of(weights, names, most=MOST_BARS, placed=labels is None, lang=lang)
        height = PITCH * layout.sizes.room * len(rows)
        middle = 10 - (filled.y0 + filled.y1) / 2 / DOTS  # from the upper edge, as areas are placed
        widest = max(layout.width_of(shortened(layout.text(one)), layout.sizes.y) for one in names)
        chart = layout.area(filled.x1 / DOTS + widest + 0.45, middle - height / 2, 1.8, height)
        draw_bars(layout, chart, rows)
        chart.set_title(
            layout.say("weights"), fontsize=layout.sizes.text, color=QUIET, family=layout.families
        )
        said = layout.say("geometry", channels=space.channels, share=100 * space.share)
        _title(layout, axes, filled, ("" if space.channels <= 3 else said) if title is None else title)
        return layout.fit()


def _checked(query: object, keys: object) -> tuple[Floats, Floats]:
    q, k = numbers_of(query, "The query").astype(np.float64), numbers_of(keys, "The keys").astype(np.float64)
    if q.ndim != 1 or k.ndim != 2 or q.shape[0] != k.shape[1] or 0 in k.shape:
        raise ShapeError(
            "The query must be (channel,) and the keys (key, channel), with the same channels.",
            got="query {shape}, keys {k_shape}",
            do="Choose one head and one query.",
            shape=q.shape,
            k_shape=k.shape,
        )
    if len(k) > MOST:
        raise ArgumentError(
            "There can be at most {MOST} keys, so that arrows can be told apart.",
            got="{k_count} keys",
            do="Choose some of them.",
            MOST=MOST,
            k_count=len(k),
        )
    if not (np.isfinite(q).all() and np.isfinite(k).all()):
        raise ArgumentError(
            "Query and keys must be finite numbers.", got="NaN or infinity", do="Check the model."
        )
    return q, k


def space_of(query: Floats, keys: Floats) -> VectorSpace:
    """Query and keys in three dimensions: unchanged, or projected on their principal axes through the origin.

    >>> space_of(np.array([3.0, 0, 0, 0]), np.array([[0, 0, 0, 4.0]])).share
    1.0
    """
    arrows = np.vstack([query[None], keys])
    channels = arrows.shape[1]
    if channels <= 3:
        shown, share = np.pad(arrows, ((0, 0), (0, 3 - channels))), 1.0
    else:
        _, _, axes = np.linalg.svd(arrows, full_matrices=False)
        # The sign of an axis is arbitrary: its largest component is made positive, so pictures repeat.
        largest = axes[np.arange(len(axes)), np.abs(axes).argmax(1)]
        axes = axes[:3] * np.where(largest < 0, -1.0, 1.0)[:3, None]
        shown = arrows @ axes.T
        total = float((arrows**2).sum())
        share = float((shown**2).sum()) / total if total else 1.0
        shown = np.pad(shown, ((0, 0), (0, 3 - shown.shape[1])))
    return VectorSpace(shown[0], shown[1:], channels, share)


def _draw_space(
    layout: FigureLayout, axes: Axes3D, space: VectorSpace, weights: Floats, names: Sequence[str], name: str
) -> None:
    tips = np.vstack([space.keys, space.query[None]])
    reach = float(np.abs(tips).max()) or 1.0
    # The axes reach as far as the arrows do, and a little on both sides of the origin.
    low, high = np.minimum(tips.min(0), -0.15 * reach), np.maximum(tips.max(0), 0.15 * reach)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect(high - low, zoom=1.3)
    axes.view_init(elev=20, azim=-58)
    axes.set_proj_type("ortho")  # equal lengths stay equal, near or far
    axes.set_axis_off()
    for direction, ends in enumerate(zip(low, high)):
        line = np.zeros((2, 3))
        line[:, direction] = ends
        axes.plot(*line.T, color=FAINT, linewidth=0.6)
    named = np.argsort(-weights, kind="stable")[:MOST_NAMES]
    names = [layout.text(one) if i in named else "" for i, one in enumerate(names)]
    places = _name_places(layout, axes, tips, reach)
    for key, place, weight, label in zip(space.keys, places, weights, names):
        _arrow(layout, axes, key, place, ACCENT, THINNEST + WIDEST * float(weight), label)
    _arrow(layout, axes, space.query, places[-1], _QUERY, 2.0, layout.text(name))
    layout.filled[axes] = _filled(layout, axes, [*names, name], places, np.diag(low), np.diag(high))


def _title(layout: FigureLayout, axes: Axes3D, filled: Bbox, title: str) -> None:
    """The title above the drawn area, which is smaller than the axes."""
    if not title:
        return
    size = layout.sizes.heading
    bottom = filled.y1 + 0.12 * DOTS
    left, y = axes.transAxes.inverted().transform((filled.x0, bottom))
    axes.text2D(
        left, y, layout.sentence(title), transform=axes.transAxes, fontsize=size, family=layout.families
    )
    lines = title.split("\n")
    width = max(layout.width_of(line, size) for line in lines) * DOTS
    height = 1.3 * size * DOTS / 72 * len(lines)
    layout.filled[axes] = Bbox.union([filled, Bbox.from_bounds(filled.x0, bottom, width, height)])


def _name_places(layout: FigureLayout, axes: Axes3D, tips: Floats, reach: float) -> Floats:
    """Where the names are: a little beyond the tips; that of the query, the last, where no other one is."""
    layout.figure.draw_without_rendering()
    lengths = np.linalg.norm(tips, axis=-1, keepdims=True)
    steps = reach * tips / np.where(lengths, lengths, np.inf)
    places: Floats = tips + 0.12 * steps
    for by in (0.12, 0.24, 0.36, 0.48):
        places[-1] = tips[-1] + by * steps[-1]
        points = _on_paper(axes, places)
        apart = np.abs(points[:-1] - points[-1]) / (np.array(NAME) * DOTS)
        if apart.max(-1).min() >= 1:
            break
    return places


def _on_paper(axes: Axes3D, places: Floats) -> Floats:
    """Points in space as pixels."""
    x, y, _ = proj3d.proj_transform(*places.T, axes.get_proj())
    points: Floats = axes.transData.transform(np.column_stack([x, y]))
    return points


def _filled(layout: FigureLayout, axes: Axes3D, names: Sequence[str], places: Floats, *ends: Floats) -> Bbox:
    """What the arrows and names take on the paper, in pixels; matplotlib does not measure text in 3D axes."""
    layout.figure.draw_without_rendering()
    points = _on_paper(axes, np.vstack([places, *ends]))
    room = np.zeros_like(points)
    room[: len(names), 0] = [
        layout.width_of(shown, layout.sizes.text) * DOTS / 2 for shown in map(shortened, names)
    ]
    room[: len(names), 1] = layout.sizes.small(8.5) * DOTS / 72 / 2
    return Bbox([(points - room).min(0), (points + room).max(0)])


def _arrow(
    layout: FigureLayout, axes: Axes3D, tip: Floats, place: Floats, colour: str, width: float, label: str
) -> None:
    # A line down to the plane of the first two axes shows where in space the tip is.
    floor = np.array([tip, tip * [1, 1, 0]])
    axes.plot(*floor.T, color=FAINT, linewidth=0.7, linestyle=(0, (2, 2)))
    axes.add_artist(Arrow3D(tip, colour, width))
    if not label:
        return
    axes.text(
        *place,
        shortened(label),
        color=colour,
        fontsize=layout.sizes.text,
        family=layout.families,
        ha="center",
        va="center",
        zorder=10,
        path_effects=[withStroke(linewidth=2, foreground="white")],
    )


class Arrow3D(FancyArrowPatch):
    """An arrow from the origin; its width and head are in points, whatever its direction."""

    def __init__(self, tip: Floats, colour: str, width: float) -> None:
        self.tip = tip
        super().__init__(
            (0, 0),
            (0, 0),
            arrowstyle="-|>",
            mutation_scale=7 + 1.6 * width,
            shrinkA=0,
            shrinkB=0,
            color=colour,
            linewidth=width,
            joinstyle="miter",
            clip_on=False,
            capstyle="butt",
        )

    def do_3d_projection(self, renderer: object = None) -> float:
        """Where the arrow is on the paper; returns how near it is, which decides what covers what."""
        del renderer
        ends = np.stack([np.zeros(3), self.tip])
        assert isinstance(self.axes, Axes3D)
        x, y, z = proj3d.proj_transform(*ends.T, self.axes.M)
        self.set_positions((x[0], y[0]), (x[1], y[1]))
        return float(np.min(z))
