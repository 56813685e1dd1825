"""The style of every figure; nothing outside regard is affected by it.

matplotlib reads its settings when an artist is made, and again when it is drawn. So a figure of
regard is built under the style and carries it along: :class:`StyledFigure` draws itself under it too,
whatever the user has set in between. Fonts, colours, lines and formats that the user has set in
``matplotlib.rcParams`` before take precedence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any

import matplotlib as mpl
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DOTS = 150
"""Pixels per inch, on which it is planned how many cells of a matrix can be seen."""

LATIN = "DejaVu Sans"
"""Comes with matplotlib, so it is always available."""

TEXT, QUIET, FAINT, PAPER = "#222222", "#6b6b6b", "#b9b9b9", "#f1f1ef"
ACCENT = "#0072b2"
HATCH = "#d2d2cf"

MAP = "viridis"
"""Lightness grows evenly: it reads the same with every kind of colour vision, and in grey."""

SIGNED_MAP = "PuOr_r"
"""For numbers on both sides of 0."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d00")
"""Okabe and Ito's colours for heads; their yellow is darkened, because it is pale on white."""

DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)))
"""Beyond eight heads the colours repeat, dashed."""

STYLE: dict[Any, Any] = {
    "figure.dpi": DOTS,
    "savefig.dpi": "figure",
    "figure.facecolor": "white",
    "font.family": [LATIN],
    "font.size": 9.0,
    "text.color": TEXT,
    "text.parse_math": False,  # a token may hold dollar signs
    "text.usetex": False,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 7.0,
    "axes.labelsize": 9.0,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": TEXT,
    "ytick.labelcolor": TEXT,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.size": 0.0,
    "ytick.minor.size": 0.0,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.6,
    "image.interpolation": "nearest",  # averaging would hide single peaks
    "image.cmap": MAP,
    "hatch.linewidth": 0.5,
    "svg.fonttype": "none",  # text stays text: it can be searched, and read aloud
    "svg.hashsalt": "regard",  # the same figure is the same file
    "pdf.fonttype": 42,  # TrueType: journals refuse Type 3
    "ps.fonttype": 42,
}

SIZES = ("axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
"""The settings of text that follow ``font.size``; figures take all sizes from ``text_sizes.py``."""

HONOURED = (
    "font.", "text.color", "axes.", "grid.", "xtick.", "ytick.", "legend.", "lines.", "hatch.", "image.cmap",
    "figure.facecolor", "savefig.dpi", "savefig.transparent", "pdf.", "ps.fonttype", "svg.fonttype",
)  # fmt: skip
"""The user's settings that take precedence. The layout depends on the others, such as the pixels per inch."""

# matplotlib's settings belong to the whole process, and threads would undo each other's.
_ONE_AT_A_TIME = RLock()


def own_settings() -> dict[Any, Any]:
    """The settings in which the user differs from matplotlib's defaults, as far as figures honour them."""
    # Not items(): the value of "backend" is made when it is read, and imports pyplot.
    names = [name for name in mpl.rcParams if name.startswith(HONOURED)]
    own = {name: mpl.rcParams[name] for name in names if mpl.rcParams[name] != mpl.rcParamsDefault[name]}
    if "font.sans-serif" in own:
        own.setdefault("font.family", ["sans-serif"])
    return own


@contextmanager
def house_style(own: Mapping[Any, Any] | None = None) -> Iterator[None]:
    """matplotlib's defaults, the house style and the user's own settings on top, until the block ends.

    >>> before = mpl.rcParams["axes.titlelocation"]
    >>> with house_style():
    ...     mpl.rcParams["axes.titlelocation"]
    'left'
    >>> mpl.rcParams["axes.titlelocation"] == before
    True
    """
    with _ONE_AT_A_TIME, mpl.rc_context():
        over = own_settings() if own is None else own
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        mpl.rcParams.update(_in_proportion(over))
        mpl.rcParams.update(over)
        yield


def _in_proportion(own: Mapping[Any, Any]) -> dict[Any, Any]:
    """The sizes of all text where the user has set that of ordinary text."""
    share = own.get("font.size", STYLE["font.size"]) / STYLE["font.size"]
    return {name: share * STYLE[name] for name in SIZES}


class StyledFigure(Figure):
    """A matplotlib figure that draws itself in the house style, also into files and notebooks.

    It belongs to no window, and pyplot does not manage it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        FigureCanvasAgg(self)
        self.own = own_settings()
        self.alt = ""
        """What the figure shows in words, for those who cannot see it; files carry it too."""

    def draw(self, renderer: RendererBase) -> None:
        """Draw in the style of regard: matplotlib makes ticks and text only now."""
        with house_style(self.own):
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write a file as matplotlib does, with TrueType fonts: it embeds them once the drawing has ended."""
        with _ONE_AT_A_TIME, mpl.rc_context():
            for name in ("pdf.fonttype", "ps.fonttype"):
                if mpl.rcParams[name] == mpl.rcParamsDefault[name]:
                    mpl.rcParams[name] = STYLE[name]
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        """The figure in a notebook, whether or not pyplot was ever imported there."""
        from io import BytesIO

        file = BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def head_style(place: int) -> dict[str, Any]:
    """Colour and dashes of the head that is drawn as number ``place``.

    >>> head_style(0)["color"] == head_style(8)["color"], head_style(0) == head_style(8)
    (True, False)
    """
    dashes, colour = divmod(place, len(COLOURS))
    return {"color": COLOURS[colour], "linestyle": DASHES[dashes % len(DASHES)]}
