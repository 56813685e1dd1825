"""The sizes of all text in figures, in points: which setting of matplotlib decides which text.

By default they are those of the house style. A size that the user has set in ``matplotlib.rcParams`` is
used as it stands; ``font.size`` alone changes all of them in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.font_manager import FontProperties

USUAL = 9.0
"""The size of ordinary text in the house style; distances between texts are planned for it."""

HEADING = 10 / 10.5
"""The size of a heading above several panels, as a share of that of a title."""


@dataclass(frozen=True)
class TextSizes:
    """Sizes of text in points."""

    text: float  # numbers, notes and names inside a figure
    x: float  # tokens and numbers along the horizontal axis
    y: float  # and along the vertical one
    axis: float  # names of axes
    title: float
    legend: float

    @property
    def heading(self) -> float:
        """A title above several panels."""
        return HEADING * self.title

    @property
    def room(self) -> float:
        """By how much distances between lines of text grow; small text keeps the usual ones."""
        return max(1.0, max(self.text, self.y) / USUAL)

    def along(self, side: str) -> float:
        """The size of what stands along an axis, "x" or "y"."""
        return self.x if side == "x" else self.y

    def small(self, of: float) -> float:
        """A size that is planned for text of 9 points, for the text of this figure."""
        return of * self.text / USUAL


def text_sizes() -> TextSizes:
    """The sizes under matplotlib's present settings, which are those of the house style inside its block.

    >>> from regard.views.figures.style import house_style
    >>> with house_style():
    ...     sizes = text_sizes()
    >>> sizes.text, sizes.x, sizes.title, sizes.heading
    (9.0, 9.0, 10.5, 10.0)
    >>> with mpl.rc_context({"font.size": 18}), house_style():
    ...     text_sizes().title
    21.0
    """
    return TextSizes(
        text=_points("font.size"),
        x=_points("xtick.labelsize"),
        y=_points("ytick.labelsize"),
        axis=_points("axes.labelsize"),
        title=_points("axes.titlesize"),
        legend=_points("legend.fontsize"),
    )


def _points(name: str) -> float:
    """A setting in points; it may be a word such as "small"."""
    settings: Any = mpl.rcParams
    return float(FontProperties(size=settings[name]).get_size_in_points())
