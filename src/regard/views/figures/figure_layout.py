"""Layout: areas in inches, labels that fit, and paper cut to its content.

The area of the data has a planned size, so its number of pixels is known. Everything around it is
measured, and the paper is made exactly large enough. So nothing is cut off and no space is wasted,
however long the tokens are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.transforms import Bbox
from numpy.typing import NDArray
from rich.cells import cell_len

from regard.checks import check_number
from regard.errors import ArgumentError
from regard.views.figures.figure_texts import TEXTS
from regard.views.figures.fonts import families_for, readable
from regard.views.figures.style import DOTS, PAPER, QUIET, StyledFigure
from regard.views.figures.text_sizes import USUAL, text_sizes

POINT = 1 / 72
"""Inches."""

MARGIN = 0.1
"""Inches of paper around everything."""

WIDEST_LABEL = 18
"""Columns of a label; a Chinese character takes two."""

CELL = 0.6
"""Inches of a cell where there are few."""

SIDE = 6.3
"""Inches of the longer side where there are many."""

THINNEST = 0.16
"""Inches of a row or column on the shorter side of a long, narrow matrix, so that it can be named."""

FEW_NUMBERS = 16
"""Positions without a name up to which all are numbered."""

SMALLEST = 5.5
"""The smallest size of a label in points, unless the user wants smaller ones."""


class FigureLayout:
    """Paper on which axes are placed in inches from the upper left corner, then cut by :meth:`fit`."""

    def __init__(self, texts: Sequence[str] = (), lang: str = "en") -> None:
        self.lang = lang
        self.sizes = text_sizes()
        self.families = families_for([*texts, *TEXTS.table(lang).values()])
        self.figure = StyledFigure(figsize=(10, 10), dpi=DOTS)
        self.filled: dict[Axes, Bbox] = {}  # what axes really fill, in pixels, where that is less than all
        self.renderer = self.figure.canvas.get_renderer()  # type: ignore[attr-defined]

    def area(self, left: float, top: float, width: float, height: float, **options: object) -> Axes:
        """Axes whose data fill this rectangle."""
        paper_width, paper_height = self.figure.get_size_inches()
        box = (
            left / paper_width,
            1 - (top + height) / paper_height,
            width / paper_width,
            height / paper_height,
        )
        axes: Axes = self.figure.add_axes(box, **options)  # type: ignore[call-overload]
        return axes

    def width_of(self, text: str, size: float) -> float:
        """How wide a text is, in inches."""
        font = FontProperties(family=self.families, size=size)
        width, _, _ = self.renderer.get_text_width_height_descent(self.text(text), font, False)
        return float(width) / DOTS

    def fit(self) -> StyledFigure:
        """The figure, cut to what is on it; every area keeps its size in inches."""
        boxes = [self.filled.get(axes) or axes.get_tightbbox(self.renderer) for axes in self.figure.axes]
        box = Bbox.union([box for box in boxes if box is not None]).transformed(
            self.figure.dpi_scale_trans.inverted()
        )
        width, height = self.figure.get_size_inches()
        placed = [(axes, axes.get_position(original=True)) for axes in self.figure.axes]
        new_width, new_height = box.width + 2 * MARGIN, box.height + 2 * MARGIN
        self.figure.set_size_inches(new_width, new_height)
        for axes, old in placed:
            left = (old.x0 * width - box.x0 + MARGIN) / new_width
            bottom = (old.y0 * height - box.y0 + MARGIN) / new_height
            axes.set_position((left, bottom, old.width * width / new_width, old.height * height / new_height))
        return self.figure

    # ---- labels --------------------------------------------------------------------------------

    def label(
        self,
        axes: Axes,
        side: str,
        labels: Sequence[str] | None,
        count: int,
        pitch: float,
    ) -> None:
        """The tokens along an axis (``side`` is "x" or "y"), ``pitch`` inches apart.

        The font shrinks with the pitch; below the smallest size only every second, fifth, tenth …
        token is named, then with its position.
        """
        plan = planned(count, pitch, self.sizes.along(side), numbers=labels is None)
        shown = [_name(labels, i, numbered=plan.step > 1) for i in plan.positions]
        shown = [shortened(text) for text in readable(shown, self.families)]
        font = {"fontsize": plan.size, "family": self.families, "parse_math": False}
        if side == "y":
            axes.set_yticks(plan.positions, shown, **font)  # type: ignore[arg-type]
            return
        room = pitch * plan.step
        widest = max(self.width_of(text, plan.size) for text in shown)
        if widest <= room - 0.3 * plan.size * POINT:
            axes.set_xticks(plan.positions, shown, **font)  # type: ignore[arg-type]
        elif room >= 0.22:
            turned = {"rotation": 45, "rotation_mode": "anchor", "ha": "right", "va": "center"}
            axes.set_xticks(plan.positions, shown, **font, **turned)  # type: ignore[arg-type]
        else:
            axes.set_xticks(plan.positions, shown, **font, rotation=90)  # type: ignore[arg-type]

    def text(self, text: str) -> str:
        """A token as it can be drawn with the fonts of this layout."""
        return readable([text], self.families)[0]

    def sentence(self, text: str) -> str:
        """A title as it can be drawn; it may have several lines."""
        return "\n".join(self.text(line) if line else "" for line in text.split("\n"))

    def say(self, key: str, /, **values: object) -> str:
        """One of regard's texts, in the language of this layout."""
        return TEXTS.say(key, self.lang, **values)

    def side_name(self, axes: Axes, side: str, name: str) -> None:
        """The name of an axis, small and grey."""
        set_label = axes.set_xlabel if side == "x" else axes.set_ylabel
        set_label(self.text(name), color=QUIET, fontsize=self.sizes.axis, labelpad=5, family=self.families)

    def side_names(self, axes: Axes, kind: str, width: float, height: float) -> None:
        """The names of both axes, which say who attends to whom where there is room for that."""
        for side, name, room in (("y", "query", height), ("x", "key", width)):
            long = self.say(f"{name}.written" if name == "query" and kind == "cross" else f"{name}.attends")
            self.side_name(
                axes, side, long if self.width_of(long, self.sizes.axis) <= 1.15 * room else self.say(name)
            )

    def say_masked(self, axes: Axes, hidden: NDArray[np.bool_], width: float, height: float) -> None:
        """The word "masked" in the upper right corner, if all of its cells are masked."""
        word = self.say("masked")
        rows, columns = hidden.shape
        size = self.sizes.text
        across = ceil(columns * (self.width_of(word, size) + 0.12) / width)
        down = ceil(rows * self.sizes.small(0.2) / height)
        if across <= columns and down <= rows and hidden[:down, -across:].all():
            box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.2}
            axes.annotate(
                word, (1, 1), (-4, -4), xycoords="axes fraction", textcoords="offset points", ha="right",
                va="top", fontsize=size, color=QUIET, family=self.families, bbox=box,
            )  # fmt: skip

    def title(self, axes: Axes, title: str | None, otherwise: str) -> None:
        """The user's title, or the default title of the figure; "" for none."""
        said = otherwise if title is None else title
        if said:
            axes.set_title(self._in_lines(axes, self.sentence(said)), family=self.families)
            self.figure.alt = self.figure.alt or said

    def _in_lines(self, axes: Axes, said: str) -> str:
        """A title, in several lines if the figure must have a width that it does not fit into."""
        paper = _PAPER.get()
        whole = axes.get_tightbbox(self.renderer)
        if paper is None or whole is None:
            return said
        before = (axes.get_window_extent(self.renderer).x0 - whole.x0) / self.figure.dpi
        room = max(0.3, paper - before - 2 * MARGIN)
        lines: list[str] = []
        for word in said.split(" "):
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and self.width_of(longer, self.sizes.title) <= room:
                lines[-1] = longer
            else:
                lines.append(word)
        return "\n".join(lines)


@dataclass(frozen=True)
class LabelPlan:
    """Which positions are named, and in which font size."""

    positions: list[int]
    step: int
    size: float


def planned(count: int, pitch: float, size: float, *, numbers: bool = False) -> LabelPlan:
    """Names of at most ``size`` points for ``count`` positions that are ``pitch`` inches apart.

    Readers can interpolate between numbers, so fewer of them are enough.

    >>> planned(13, 0.48, 9.0).size, planned(13, 0.48, 9.0).step
    (9.0, 1)
    >>> planned(508, 0.0124, 9.0).positions[:4]
    [0, 20, 40, 60]
    """
    points = pitch / POINT
    fitting = min(size, 0.86 * points)
    if numbers and (count > FEW_NUMBERS or fitting < size):
        step = next(step for step in _steps() if step * pitch >= 0.5 * max(1.0, size / USUAL))
        return LabelPlan(list(range(0, count, step)), step, size)
    if fitting >= min(SMALLEST, size):
        return LabelPlan(list(range(count)), 1, fitting)
    # Thinned labels have the room to be as large as usual.
    step = next(step for step in _steps() if step * points >= 1.2 * size)
    return LabelPlan(list(range(0, count, step)), step, size)


def _steps() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50, …"""
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


def _name(labels: Sequence[str] | None, position: int, *, numbered: bool) -> str:
    if labels is None:
        return f"{position:,}"
    return f"{position} {labels[position]}" if numbered else labels[position]


def shortened(text: str, columns: int = WIDEST_LABEL) -> str:
    """The text, cut after a number of columns; East Asian characters take two.

    >>> shortened("Donaudampfschifffahrt", 12)
    'Donaudampfs…'
    >>> shortened("学习学习", 6)
    '学习…'
    """
    if cell_len(text) <= columns:
        return text
    kept = ""
    for sign in text:
        if cell_len(kept + sign) > columns - 1:
            break
        kept += sign
    return f"{kept}…"


def checked_size(size: float | None, usual: float) -> float:
    """The requested size in inches, or the default."""
    if size is None:
        return usual
    return check_number("size", size, 0.1, 60)  # inches


_PAPER: ContextVar[float | None] = ContextVar("_PAPER", default=None)
"""Inches that the figure must have which is being drawn, if any: its title is broken to fit."""

WIDTHS = {"column": 3.3, "page": 6.9}
"""Inches of one column and of both, as most journals print them."""


def drawn_to_width(draw: Callable[[float], StyledFigure], width: float | str) -> StyledFigure:
    """The figure that ``draw(size)`` makes, at the size at which the whole paper has this width."""
    if isinstance(width, str) and width not in WIDTHS:
        raise ArgumentError(
            'width must be a number of inches, "column" or "page".',
            got="{width!r}",
            do='Use "column" for one column of a paper and "page" for both.',
            width=width,
        )
    wanted = check_number("width", WIDTHS[width] if isinstance(width, str) else width, 1, 60)
    token = _PAPER.set(wanted)
    try:
        return _at_width(draw, wanted)
    finally:
        _PAPER.reset(token)


def _at_width(draw: Callable[[float], StyledFigure], wanted: float) -> StyledFigure:
    size, figure = wanted, draw(wanted)
    best = None
    for _ in range(4):
        found = float(figure.get_size_inches()[0])
        if found <= wanted + 0.01 and (best is None or found > best.get_size_inches()[0]):
            best = figure
        if abs(found - wanted) < 0.01:
            break
        # Labels keep their size, so the drawn area grows or shrinks by the difference.
        size = max(0.3, size * (1 + (wanted - found) / max(0.3, _area_width(figure))))
        figure = draw(size)
    return _widened(best or figure, wanted)


def _widened(figure: StyledFigure, width: float) -> StyledFigure:
    """The figure on paper of this width: labels turn or vanish with the size, and some widths are skipped."""
    found, height = figure.get_size_inches()
    if found < width:
        figure.set_size_inches(width, height)
        for axes in figure.axes:
            box, share = axes.get_position(original=True), found / width
            axes.set_position((box.x0 * share, box.y0, box.width * share, box.height))
    return figure


def _area_width(figure: StyledFigure) -> float:
    """Inches of all panels side by side."""
    boxes = {round(box.x0, 4): box.width for box in (axes.get_position() for axes in figure.axes)}
    return float(sum(boxes.values()) * figure.get_size_inches()[0])


def area_of(shape: tuple[int, int], size: float | None, cell: float = CELL) -> tuple[float, float]:
    """Width and height of the drawn cells in inches: square cells, unless one side would be too thin.

    ``cell`` is the side of a cell where there are few.

    >>> area_of((3, 3), None)
    (1.8, 1.8)
    >>> area_of((7, 1000), None)
    (6.3, 1.12)
    """
    longest = max(shape)
    cell = checked_size(size, min(cell * longest, SIDE)) / longest
    height, width = (round(max(count * cell, min(count * THINNEST, longest * cell)), 3) for count in shape)
    return max(width, 0.3), max(height, 0.3)
