"""``picture``: what a query attends to in a picture, as colour over its patches."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from torch import Tensor

from regard.checks import check_number
from regard.errors import ArgumentError, DtypeError, RecordingError, ShapeError
from regard.recording import Picture, Recording
from regard.views.figures.colours import ColourScale, colour_key, scale_for
from regard.views.figures.downsampling import BlockMaxima
from regard.views.figures.figure_layout import FigureLayout, checked_size, drawn_to_width
from regard.views.figures.style import COLOURS, StyledFigure, house_style
from regard.views.figures.weight_matrix import Matrix, one_matrix

SIDE = 3.4
"""Inches of the longer side of a picture."""


def picture(
    source: object,
    values: object = None,
    *,
    query: int = 0,
    layer: int | None = None,
    head: int | None = None,
    kind: str | None = None,
    run: int | None = None,
    batch: int = 0,
    overlay: float = 0.75,
    borders: bool = False,
    largest: float | None = None,
    cmap: str | Colormap | None = None,
    title: str | None = None,
    size: float | None = None,
    width: float | str | None = None,
    lang: str = "en",
) -> Figure:
    """A picture, its patches coloured by the weights of one query, or by other numbers.

    Args:
        source: a recording with ``seen.picture``, or a ``regard.Picture`` together with ``values``.
        values: one number per token or ``(row, column)`` of patches: ``regard.relevance(seen, row=0).own``,
            say, or a row of ``regard.heads.rollout(seen).own``; by default the weights of a head.
        query: the position that attends: 0 is the class token of most encoders. A patch is outlined.
        layer, head, kind, run, batch: which head of the recording.
        overlay: how much the strongest colour covers the picture, 0 to 1.
        borders: draw the borders of patches.
        largest: the number that gets the last colour, by default the greatest.
        cmap: a colour map of matplotlib.
        title: by default the head and how much of its weight is on the picture; "" for none.
        size: the longer side in inches.
        width: the width of the whole figure in inches, or "column" or "page" for one or both columns of a
            paper; in place of ``size``.
        lang: the language of the figure's own text, "en" or "zh".

    >>> import numpy as np, regard
    >>> seen = regard.Picture(np.zeros((8, 12)), grid=(2, 3), tokens=slice(0, 6))
    >>> figure = picture(seen, [[0, 0.5, 0], [0, 0, 0.25]])
    >>> figure.axes[0].images[1].get_array().shape
    (2, 3)
    """
    if width is not None:
        again = partial(
            picture, source, values, query=query, layer=layer, head=head, kind=kind, run=run, batch=batch,
            overlay=overlay, borders=borders, largest=largest, cmap=cmap, title=title, lang=lang,
        )  # fmt: skip
        return drawn_to_width(lambda inches: cast(StyledFigure, again(size=inches)), width)
    check_number("overlay", overlay, 0, 1, example=0.75)
    shown = _picture_of(source)
    matrix: Matrix | None = None
    if values is None:
        matrix = one_matrix(
            source, layer=layer, head=head, kind=kind, run=run, batch=batch, queries=None, keys=None
        )
        if not 0 <= query < matrix.shape[0]:
            raise ArgumentError(
                "query must be a position of the text (0 … {last}).",
                got="query = {query}",
                do="Count from 0.",
                last=matrix.shape[0] - 1,
                query=query,
            )
        row = torch.from_numpy(np.ma.filled(matrix.row(query).values[0], 0.0).astype(np.float64))
        folded, outlined = shown.fold(row).numpy(), shown.patch_at(query)
        share = float(folded.sum())
    else:
        folded, outlined, share = _folded(shown, values), None, None
    rows, columns = shown.image.shape[:2]
    longer = checked_size(size, SIDE)
    wide, tall = longer * min(1.0, columns / rows), longer * min(1.0, rows / columns)
    with house_style():
        layout = FigureLayout([title or ""], lang)
        colours = scale_for([BlockMaxima(np.ma.masked_array(folded), folded.shape)], "linear", largest, cmap)
        axes = layout.area(1, 1, wide, tall)
        image = _paint(axes, shown, folded, colours, overlay)
        if borders:
            _draw_borders(axes, shown.grid)
        if outlined is not None:
            _outline(axes, outlined)
        colour_key(layout, image, colours, (1 + wide + 0.12, 1, 0.11, max(tall, 0.9)))
        place = "" if matrix is None else matrix.name(lang)
        said = "" if share is None else layout.say("picture.share", place=place, share=100 * share)
        layout.title(axes, title, said)
        return layout.fit()


def _picture_of(source: object) -> Picture:
    if isinstance(source, Picture):
        return source
    if isinstance(source, Recording) and source.picture is not None:
        return source.picture
    if isinstance(source, Recording):
        raise RecordingError(
            "figures.picture needs a recording that knows its picture.",
            got="a recording without one",
            do="Set seen.picture = regard.Picture(image, grid=…, tokens=…).",
        )
    raise DtypeError(
        "figures.picture needs a recording or a regard.Picture.",
        got="{type}",
        do="Pass seen, or regard.Picture(image, grid=…, tokens=…) and values.",
        type=type(source).__name__,
    )


def _folded(shown: Picture, values: Any) -> NDArray[np.float64]:
    """Numbers of tokens or of patches, as ``(row, column)``."""
    found = values.detach().cpu().double() if isinstance(values, Tensor) else torch.tensor(values).double()
    if tuple(found.shape) == shown.grid:
        numbers: NDArray[np.float64] = found.numpy()
    elif found.ndim == 1:
        numbers = shown.fold(found).numpy()
    else:
        raise ShapeError(
            "values must have one number per token, or one per patch (rows = {rows}, columns = {columns}).",
            got="{shape}",
            do="Pass one row.",
            rows=shown.grid[0],
            columns=shown.grid[1],
            shape=tuple(found.shape),
        )
    if not np.isfinite(numbers).all():
        raise ArgumentError("values must be finite numbers.", got="NaN or infinity", do="Check them.")
    return numbers


def _paint(
    axes: Axes, shown: Picture, folded: NDArray[np.float64], colours: ColourScale, overlay: float
) -> Any:
    rows, columns = shown.grid
    extent = (0.0, float(columns), float(rows), 0.0)
    # Grey, so that only attention has colour.
    luminance = shown.image.numpy() @ np.array([0.2126, 0.7152, 0.0722])
    axes.imshow(luminance, cmap="gray", vmin=0, vmax=255, extent=extent, aspect="auto")
    greatest = max(abs(colours.norm.vmin or 0.0), abs(colours.norm.vmax or 0.0)) or 1.0
    strength = np.clip(np.abs(folded) / greatest, 0, 1)
    image = axes.imshow(
        folded,
        cmap=colours.map,
        norm=colours.norm,
        alpha=overlay * np.sqrt(strength),
        extent=extent,
        aspect="auto",
        interpolation="nearest",
    )
    axes.set(xticks=[], yticks=[], xlim=(0, columns), ylim=(rows, 0))
    axes.spines[:].set_visible(False)
    return image


def _draw_borders(axes: Axes, grid: tuple[int, int]) -> None:
    for row in range(1, grid[0]):
        axes.axhline(row, color="white", linewidth=0.4, alpha=0.6)
    for column in range(1, grid[1]):
        axes.axvline(column, color="white", linewidth=0.4, alpha=0.6)


def _outline(axes: Axes, patch: tuple[int, int]) -> None:
    row, column = patch
    axes.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor=COLOURS[1], linewidth=1.8))
