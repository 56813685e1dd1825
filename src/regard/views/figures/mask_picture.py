"""``mask``: which keys each query may see."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from regard.errors import ArgumentError, MaskError
from regard.kernels import plan
from regard.masks import Mask, MaskLike, as_mask, parse
from regard.masks.extent import Extent, TiledAxis
from regard.masks.mask import ALL, NONE, extent_of, verdicts
from regard.views.figures.figure_layout import FigureLayout, area_of, shortened
from regard.views.figures.style import ACCENT, DOTS, PAPER, QUIET, house_style
from regard.views.figures.weight_matrix import checked_labels

CELL = 0.36
"""Inches of a cell where there are few."""

LINED = 48
"""Positions up to which a thin line separates the cells."""

_HALF = "#8fbcd8"
"""The colour of a pixel that covers both pairs that may attend and pairs that may not."""

_LONGEST_NAME = 60


def mask(
    mask: MaskLike | str,
    queries: int | Sequence[str],
    keys: int | Sequence[str] | None = None,
    *,
    index: tuple[int, ...] | None = None,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """Which keys each query may see: rows are queries, columns are keys, filled means may attend.

    Args:
        mask: a regard mask, its text such as "causal & window(4, 0)", or a tensor.
        queries, keys: how many there are, or their labels; by default as many keys as queries.
        index: for a mask that differs over batch or heads, which of them: ``(batch, head)``.
        title: by default the mask, and how many pairs attend; "" for none.
        size: the longer side in inches.
        lang: the language of the figure's own text, "en" or "zh".

    In long texts each pixel represents a block of pairs: all, none or some of them attend. The mask
    is evaluated for blocks, never for n×n pairs, so a million positions can be drawn. The number of
    pairs is exact.

    >>> figure = mask("causal", 4)
    >>> figure.axes[0].get_title("left")
    'causal(): 10 of 16 pairs, 62.5 %'
    """
    extent = extent_of(_count(queries), None if keys is None else _count(keys))
    if 0 in extent:
        raise ArgumentError(
            "A figure needs at least one query and one key.", got="{extent}", do="Try 8.", extent=extent
        )
    row_labels = None if isinstance(queries, int) else checked_labels("queries", queries, extent.queries)
    column_labels = (
        None if keys is None or isinstance(keys, int) else checked_labels("keys", keys, extent.keys)
    )
    if keys is None:
        column_labels = row_labels
    one = _only(_read(mask), index)
    width, height = area_of(extent, size, CELL)
    tall, wide = (ceil(count / max(1, int(side * DOTS))) for count, side in zip(extent, (height, width)))
    picture = verdict_map(one, extent, tall, wide)
    pairs = plan(one, *extent).pairs
    with house_style():
        layout = FigureLayout([*(row_labels or ()), *(column_labels or ()), title or ""], lang)
        axes = layout.area(1, 1, width, height)
        rows, columns = picture.shape
        axes.imshow(
            picture,
            cmap=ListedColormap([PAPER, _HALF, ACCENT]),
            vmin=NONE,
            vmax=ALL,
            extent=(-0.5, columns * wide - 0.5, rows * tall - 0.5, -0.5),
            aspect="auto",
            interpolation="nearest",
        )
        axes.set(xlim=(-0.5, extent.keys - 0.5), ylim=(extent.queries - 0.5, -0.5))
        axes.spines[:].set_visible(False)
        layout.label(axes, "y", row_labels, extent.queries, height / extent.queries)
        layout.label(axes, "x", column_labels, extent.keys, width / extent.keys)
        layout.side_name(axes, "y", layout.say("query"))
        layout.side_name(axes, "x", layout.say("key"))
        _lines_between(axes, extent)
        said = layout.say("mask.count", pairs=pairs, all=prod(extent), share=100 * pairs / prod(extent))
        _title(layout, axes, title, shortened(repr(one), _LONGEST_NAME), said, width)
        return layout.fit()


def verdict_map(mask: Mask, extent: Extent, tall: int, wide: int) -> NDArray[np.uint8]:
    """NONE, SOME or ALL for each block of ``tall`` × ``wide`` pairs; of single pairs never SOME.

    >>> verdict_map(parse("causal"), Extent(4, 4), 2, 2).tolist()
    [[1, 0], [2, 1]]
    """
    mask.check(extent)
    if tall == wide == 1:
        allowed = np.broadcast_to(mask.evaluate(extent), extent)
        return verdicts(allowed, ~allowed)
    rows = TiledAxis.cut(extent.query_positions(), tall)
    columns = TiledAxis.cut(extent.key_positions(), wide)
    return mask.tiles(rows, columns, extent)


def _count(given: int | Sequence[str]) -> int:
    return given if isinstance(given, int) else len(given)


def _read(given: MaskLike | str) -> Mask:
    return parse(given) if isinstance(given, str) else as_mask(given)


def _only(mask: Mask, index: tuple[int, ...] | None) -> Mask:
    """The mask of one sequence and head."""
    lead = mask.lead
    if index is None:
        if prod(lead) > 1:
            raise MaskError(
                "This figure shows the mask of one sequence and head, but this mask has leading axes {lead}.",
                got="no index",
                do="Pass index={value}.",
                lead=lead,
                value=(0,) * len(lead),
            )
        index = (0,) * len(lead)
    if len(index) != len(lead) or any(not 0 <= i < max(size, 1) for i, size in zip(index, lead)):
        raise ArgumentError(
            "index must name one element of the leading axes {lead}.",
            got="index = {index!r}",
            do="Count from 0.",
            lead=lead,
            index=index,
        )
    return mask.select(index)


def _lines_between(axes: Axes, extent: Extent) -> None:
    if max(extent) > LINED:
        return
    for edge in range(1, extent.queries):
        axes.axhline(edge - 0.5, color="white", linewidth=0.8)
    for edge in range(1, extent.keys):
        axes.axvline(edge - 0.5, color="white", linewidth=0.8)


def _title(layout: FigureLayout, axes: Axes, title: str | None, name: str, said: str, width: float) -> None:
    """The name and the count: on one line if they fit, otherwise on two."""
    whole = layout.say("mask", mask=name, count=said)
    if title is None and layout.width_of(whole, layout.sizes.heading) > width + 1:
        axes.set_title(said, fontsize=layout.sizes.text, color=QUIET, pad=6, family=layout.families)
        axes.annotate(
            name,
            (0, 1),
            (0, layout.sizes.small(21)),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=layout.sizes.heading,
        )
    else:
        layout.title(axes, title, whole)
