"""``grid``: every head of a layer side by side, or every head of every layer as a thumbnail."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import ceil, sqrt
from typing import cast

from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from regard.checks import check_integer
from regard.errors import ArgumentError
from regard.recording import Call, Recording
from regard.views.figures.colours import colour_key, paint, scale_for
from regard.views.figures.downsampling import BlockMaxima, picture_of
from regard.views.figures.figure_layout import FigureLayout, area_of, checked_size, drawn_to_width, planned
from regard.views.figures.style import QUIET, StyledFigure, house_style
from regard.views.figures.weight_matrix import Matrix, calls_of, matrices_of

SIDE = 2.4
"""Inches of the longer side of one head."""

LABELLED = 40
"""Tokens up to which panels are labelled; more labels do not fit beside so small a map."""

THUMBNAIL = 0.55
"""Inches of the longer side of a head among all layers."""


def grid(
    weights: object,
    *,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    kind: str | None = None,
    run: int | None = None,
    batch: int = 0,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    scale: str = "linear",
    largest: float | None = None,
    cmap: str | Colormap | None = None,
    columns: int | None = None,
    title: str | None = None,
    size: float | None = None,
    width: float | str | None = None,
    lang: str = "en",
) -> Figure:
    """Every head of a layer, with one scale of colours for all of them.

    Without ``layer``, a recording of several layers is shown whole: a row of thumbnails for each
    layer, a column for each head.

    Args:
        weights: a recording, one of its calls, or numbers ``(head, query, key)``.
        layer, heads, kind, run, batch: which part of the recording.
        queries, keys: labels, if the recording has no tokens or you want others.
        scale, largest, cmap: as for ``heatmap``.
        columns: how many heads are side by side.
        title: by default what is shown; "" for none.
        size: the longer side of one head in inches.
        width: the width of the whole figure in inches, or "column" or "page" for one or both columns of a
            paper; in place of ``size``.
        lang: the language of the figure's own text, "en" or "zh".

    >>> import torch
    >>> figure = grid(torch.rand(3, 5, 5).softmax(-1))
    >>> [axes.get_title("left") for axes in figure.axes[:3]]
    ['head 0', 'head 1', 'head 2']
    """
    if width is not None:
        again = partial(
            grid, weights, layer=layer, heads=heads, kind=kind, run=run, batch=batch, queries=queries,
            keys=keys, scale=scale, largest=largest, cmap=cmap, columns=columns, title=title, lang=lang,
        )  # fmt: skip
        return drawn_to_width(lambda inches: cast(StyledFigure, again(size=inches)), width)
    if isinstance(weights, Recording) and layer is None:
        calls = _one_of_each_layer(calls_of(weights, kind=kind, run=run))
        if len(calls) > 1:
            return _thumbnails(calls, weights, heads, batch, scale, largest, cmap, title, size, lang)
    matrices = matrices_of(
        weights, layer=layer, heads=heads, kind=kind, run=run, batch=batch, queries=queries, keys=keys
    )
    across, height = area_of(matrices[0].shape, checked_size(size, SIDE))
    pictures = [picture_of(matrix, across, height) for matrix in matrices]
    colours = scale_for(pictures, scale, largest, cmap)
    side_by_side = _columns(columns, len(matrices))
    with house_style():
        first = matrices[0]
        layout = FigureLayout([*(first.queries or ()), *(first.keys or ()), title or ""], lang)
        above = 0.32 * layout.sizes.room  # for the name of each head
        step, down = across + 0.18, height + above
        panels = [
            layout.area(1 + place % side_by_side * step, 1 + place // side_by_side * down, across, height)
            for place in range(len(matrices))
        ]
        images = [paint(axes, picture, colours) for axes, picture in zip(panels, pictures)]
        for place, (axes, matrix) in enumerate(zip(panels, matrices)):
            name = layout.say("head.n", head=matrix.head) if matrix.head is not None else ""
            axes.set_title(name, fontsize=layout.sizes.text, pad=3.5, color=QUIET, family=layout.families)
            leftmost, lowest = place % side_by_side == 0, place + side_by_side >= len(matrices)
            _label_shared(layout, axes, matrix, across, height, leftmost, lowest)
        rows = ceil(len(matrices) / side_by_side)
        right = 1 + side_by_side * step - 0.18 + 0.14
        tall = min(rows * down - above, 3.0)
        colour_key(layout, images[0], colours, (right, 1, 0.11, tall))
        _title_above(layout, panels[0], title, first.layer_name(lang))
        return layout.fit()


def _columns(columns: int | None, count: int) -> int:
    if columns is None:
        # Wider than tall, and no row with a single head.
        return min(count, max(ceil(sqrt(count)), ceil(count / ceil(count / 4)) if count > 4 else count))
    return min(check_integer("columns", columns, example=4), count)


def _label_shared(
    layout: FigureLayout,
    axes: Axes,
    matrix: Matrix,
    width: float,
    height: float,
    leftmost: bool,
    lowest: bool,
) -> None:
    """Tokens only at the left and at the bottom, because all panels have the same."""
    axes.set_xticks([])
    axes.set_yticks([])
    rows, columns = matrix.shape
    if leftmost:
        _label(layout, axes, "y", matrix.queries, rows, height / rows)
    if lowest:
        _label(layout, axes, "x", matrix.keys, columns, width / columns)


def _label(
    layout: FigureLayout, axes: Axes, side: str, labels: Sequence[str] | None, count: int, pitch: float
) -> None:
    if count <= LABELLED and planned(count, pitch, layout.sizes.small(7.5)).step == 1:
        layout.label(axes, side, labels, count, pitch)
    else:
        # Positions are more useful than every twentieth token.
        layout.label(axes, side, None, count, pitch)
        layout.side_name(axes, side, layout.say("query" if side == "y" else "key"))


def _title_above(layout: FigureLayout, axes: Axes, title: str | None, otherwise: str) -> None:
    said = otherwise if title is None else title
    if said:
        layout.figure.alt = said
        axes.annotate(
            layout.sentence(said),
            (0, 1),
            (0, layout.sizes.small(21)),
            xycoords="axes fraction",
            textcoords="offset points",
            family=layout.families,
            fontsize=layout.sizes.heading,
        )


# ---- all layers --------------------------------------------------------------------------------


def _one_of_each_layer(calls: list[Call]) -> list[Call]:
    for name in ("kind", "run"):
        values = sorted({getattr(call, name) for call in calls})
        if len(values) > 1:
            raise ArgumentError(
                "This figure can show each layer only once.",
                got="calls whose {name} is one of {values}",
                do="Pass {name}={first!r}.",
                name=name,
                values=", ".join(map(str, values)),
                first=values[0],
            )
    return sorted(calls, key=lambda call: call.layer)


def _thumbnails(
    calls: list[Call],
    recording: Recording,
    heads: Sequence[int] | None,
    batch: int,
    scale: str,
    largest: float | None,
    cmap: str | Colormap | None,
    title: str | None,
    size: float | None,
    lang: str,
) -> Figure:
    width, height = area_of((calls[0].queries, calls[0].keys), checked_size(size, THUMBNAIL))
    wanted = (
        tuple(heads) if heads is not None else tuple(dict.fromkeys(h for c in calls for h in c.head_numbers))
    )
    numbers = {head: column for column, head in enumerate(wanted)}
    pictures: dict[tuple[int, int], BlockMaxima] = {}
    for row, call in enumerate(calls):
        # A model may have fewer heads in some layers; heads that are asked for by name must exist.
        chosen = wanted if heads is not None else call.head_numbers
        for matrix in matrices_of(call, heads=chosen, batch=batch):
            assert matrix.head is not None
            pictures[row, numbers[matrix.head]] = picture_of(matrix, width, height)
    colours = scale_for(list(pictures.values()), scale, largest, cmap)
    with house_style():
        layout = FigureLayout([title or ""], lang)
        across, down = width + 0.07, height + 0.07
        panels: dict[tuple[int, int], Axes] = {}
        image: AxesImage | None = None
        for (row, column), picture in pictures.items():
            axes = panels[row, column] = layout.area(1 + column * across, 1 + row * down, width, height)
            image = paint(axes, picture, colours)
            axes.set_xticks([])
            axes.set_yticks([])
        _name_rows_and_columns(layout, panels, calls, wanted)
        assert image is not None
        tall = min(len(calls) * down - 0.07, 3.0)
        colour_key(layout, image, colours, (1 + len(wanted) * across + 0.07, 1, 0.11, max(tall, 0.8)))
        _title_above(layout, panels[min(panels)], title, layout.say("model", model=recording.model))
        return layout.fit()


def _name_rows_and_columns(
    layout: FigureLayout, panels: dict[tuple[int, int], Axes], calls: list[Call], heads: Sequence[int]
) -> None:
    for row, call in enumerate(calls):
        first = min(column for one, column in panels if one == row)
        panels[row, first].set_ylabel(
            layout.say("layer.n", layer=call.layer),
            rotation=0,
            ha="right",
            va="center",
            fontsize=layout.sizes.axis,
            color=QUIET,
            family=layout.families,
        )
    for column, head in enumerate(heads):
        top = min(row for row, one in panels if one == column)
        name = layout.say("head.n", head=head) if column == 0 else str(head)
        panels[top, column].set_title(
            name, fontsize=layout.sizes.text, color=QUIET, pad=3, loc="center", family=layout.families
        )
