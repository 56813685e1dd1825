"""Numbers as colours: the scale, the image and its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from regard.checks import check_choice, check_positive
from regard.errors import ArgumentError
from regard.views.figures.downsampling import BlockMaxima, range_of
from regard.views.figures.figure_layout import FigureLayout
from regard.views.figures.style import FAINT, HATCH, PAPER, SIGNED_MAP, TEXT

DECADES = 4
"""The lower end of a logarithmic scale; smaller weights have its lowest colour."""


@dataclass(frozen=True)
class ColourScale:
    """The mapping from numbers to colours."""

    norm: Normalize
    map: Colormap
    log: bool = False

    def colour(self, value: float) -> tuple[float, float, float, float]:
        """Red, green, blue and opacity of a number."""
        red, green, blue, alpha = self.map(self.norm(value))
        return red, green, blue, alpha

    def ink(self, value: float) -> str:
        """Dark or white, whichever is easier to read on the colour of a number."""
        linear = [
            part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in self.colour(value)
        ]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        return TEXT if luminance > 0.2 else "white"


def scale_for(
    pictures: Sequence[BlockMaxima],
    scale: str,
    largest: float | None = None,
    cmap: str | Colormap | None = None,
) -> ColourScale:
    """One scale for all pictures: from 0, or around 0 where there are numbers below it.

    ``largest`` is the number that gets the last colour, by default the greatest. ``cmap`` is a colour map
    of matplotlib, by default the one in its settings.
    """
    check_choice("scale", scale, ("linear", "log"))
    if largest is not None:
        check_positive("largest", largest, example=1.0)
    low, high = range_of(pictures)
    top = largest or max(high, -low if low < 0 else 0.0) or 1.0
    if low < 0:
        if scale == "log":
            raise ArgumentError(
                "A logarithmic scale needs numbers of 0 or more.",
                got="{low:.4g}",
                do='Use scale="linear".',
                low=low,
            )
        return ColourScale(Normalize(-top, top, clip=True), _map(cmap or SIGNED_MAP))
    colours = _map(cmap or mpl.rcParams["image.cmap"])
    if scale == "linear":
        return ColourScale(Normalize(0.0, top, clip=True), colours)
    positive = [values[values > 0] for values in (np.ma.compressed(one.values) for one in pictures)]
    least = min((float(values.min()) for values in positive if len(values)), default=top)
    bottom = min(max(least, top * 10.0**-DECADES), top / 10)
    return ColourScale(LogNorm(bottom, top, clip=True), colours, log=True)


def _map(name: str | Colormap) -> Colormap:
    if isinstance(name, str) and name not in mpl.colormaps:
        raise ArgumentError(
            "cmap must be a colour map of matplotlib.",
            got="{name!r}",
            do='Choose one of matplotlib.colormaps, such as "viridis" or "Greys".',
            name=name,
        )
    # Masked pairs show the hatched paper behind them.
    return mpl.colormaps[name].with_extremes(bad=(0, 0, 0, 0))  # type: ignore[index]


def paint(axes: Axes, picture: BlockMaxima, scale: ColourScale) -> AxesImage:
    """The picture in the axes; pairs that may not attend show hatched paper."""
    values = picture.values
    if scale.log:
        # Zero has no logarithm. It gets the lowest colour, not that of masked pairs.
        assert scale.norm.vmin is not None
        values = np.ma.maximum(values, scale.norm.vmin)
    image = axes.imshow(
        values, cmap=scale.map, norm=scale.norm, extent=picture.extent, aspect="auto", interpolation="nearest"
    )
    queries, keys = picture.shape
    if np.ma.getmaskarray(picture.values).any():
        box = Rectangle(
            (-0.5, -0.5), keys, queries, facecolor=PAPER, edgecolor=HATCH, hatch="////", linewidth=0
        )
        axes.add_patch(box).set_zorder(image.get_zorder() - 1)
    axes.set(xlim=(-0.5, keys - 0.5), ylim=(queries - 0.5, -0.5))
    axes.spines[:].set_visible(False)
    return image


def colour_key(
    layout: FigureLayout, image: AxesImage, scale: ColourScale, box: tuple[float, float, float, float]
) -> None:
    """The key of the colours, as a narrow bar."""
    axes = layout.area(*box)
    bar = layout.figure.colorbar(image, cax=axes)
    bar.outline.set_visible(False)
    assert scale.norm.vmin is not None
    assert scale.norm.vmax is not None
    ticks = _decades(scale.norm.vmin, scale.norm.vmax) if scale.log else bar.get_ticks()
    inside = [tick for tick in ticks if scale.norm.vmin <= tick <= scale.norm.vmax]
    bar.set_ticks(inside, labels=[f"{tick:g}".replace("-", "−") for tick in inside])
    bar.minorticks_off()
    axes.tick_params(labelsize=layout.sizes.y, color=FAINT)


def _decades(low: float, high: float) -> list[float]:
    powers = [10.0**power for power in range(floor(log10(low)), ceil(log10(high)) + 1)]
    inside = [power for power in powers if low <= power <= high]
    return inside if len(inside) > 1 else [low, high]
