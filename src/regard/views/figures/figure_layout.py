"""Where things stand: areas in inches, labels that fit, and a paper cut to what is on it.

The area of the data gets a planned size, so it is known how many pixels it has. What stands around
it is measured, and the paper is made exactly as large as all of it. So nothing is cut off and no
space is wasted, however long the tokens are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.transforms import Bbox

from regard.checks import check_number
from regard.languages import columns_of
from regard.views.figures.fonts import families_for, readable
from regard.views.figures.style import DOTS, QUIET, Picture
from regard.views.figures.wording import TEXTS

POINT = 1 / 72
"""Inches."""

MARGIN = 0.1
"""Inches of paper around everything."""

WIDEST_LABEL = 18
"""Columns of a label; a Chinese character takes two."""

FEW_NUMBERS = 16
"""Up to so many positions without a name are all numbered."""

SMALLEST, USUAL = 5.5, 8.5
"""Size of letters, in points."""


class Sheet:
    """Paper on which axes are placed in inches from the upper left corner, then cut by :meth:`fit`."""

    def __init__(self, texts: Sequence[str] = (), lang: str = "en") -> None:
        self.lang = lang
        self.families = families_for([*texts, *TEXTS.table(lang).values()])
        self.figure = Picture(figsize=(10, 10), dpi=DOTS)
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

    def fit(self) -> Picture:
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
        *,
        size: float | None = None,
    ) -> None:
        """The tokens along an axis (``side`` is "x" or "y"), ``pitch`` inches apart.

        Letters shrink with the pitch; below the smallest size only every second, fifth, tenth …
        token is named, then with its position.
        """
        plan = planned(count, pitch, size, numbers=labels is None)
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
        """A token as it can be drawn with the fonts of this sheet."""
        return readable([text], self.families)[0]

    def sentence(self, text: str) -> str:
        """A title as it can be drawn; it may have several lines."""
        return "\n".join(self.text(line) if line else "" for line in text.split("\n"))

    def say(self, key: str, /, **values: object) -> str:
        """What figures write of themselves, in the language of this sheet."""
        return TEXTS.say(key, self.lang, **values)

    def side_name(self, axes: Axes, side: str, name: str) -> None:
        """What an axis counts, small and quiet."""
        set_label = axes.set_xlabel if side == "x" else axes.set_ylabel
        set_label(self.text(name), color=QUIET, fontsize=8, labelpad=5, family=self.families)

    def title(self, axes: Axes, title: str | None, otherwise: str, *, size: float | None = None) -> None:
        """The title that the user gave, or the one the figure has of itself; "" is none."""
        said = otherwise if title is None else title
        if said:
            axes.set_title(self.sentence(said), family=self.families, fontsize=size)


@dataclass(frozen=True)
class LabelPlan:
    """Which positions are named, and how large the letters are."""

    positions: list[int]
    step: int
    size: float


def planned(count: int, pitch: float, size: float | None = None, *, numbers: bool = False) -> LabelPlan:
    """Names for ``count`` positions that stand ``pitch`` inches apart.

    Mere numbers can be counted on by the reader, so fewer of them are enough.

    >>> planned(13, 0.48).size, planned(13, 0.48).step
    (8.5, 1)
    >>> planned(508, 0.0124).positions[:4]
    [0, 10, 20, 30]
    """
    points = pitch / POINT
    usual = USUAL if size is None else size
    fitting = min(usual, 0.86 * points)
    if numbers and count > FEW_NUMBERS:
        step = next(step for step in _steps() if step * pitch >= 0.5)
        return LabelPlan(list(range(0, count, step)), step, min(usual, 7.5))
    if fitting >= SMALLEST:
        return LabelPlan(list(range(count)), 1, fitting)
    # Thinned labels have the room to be larger than the smallest.
    step = next(step for step in _steps() if step * points >= 1.35 * (SMALLEST + 1))
    return LabelPlan(list(range(0, count, step)), step, SMALLEST + 1)


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
    """The text, cut after so many columns; East Asian characters take two.

    >>> shortened("Donaudampfschifffahrt", 12)
    'Donaudampfs…'
    >>> shortened("学习学习", 6)
    '学习…'
    """
    if columns_of(text) <= columns:
        return text
    kept = ""
    for sign in text:
        if columns_of(kept + sign) > columns - 1:
            break
        kept += sign
    return f"{kept}…"


def checked_size(size: float | None, usual: float) -> float:
    """The size asked for in inches, or the usual one."""
    if size is None:
        return usual
    return check_number("size", size, 0.1, 60)  # inches
