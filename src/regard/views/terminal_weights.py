"""The terminal: a console that prints only safe text, and weights as shades and bars."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from regard.printing import safe

_COLD, _HOT = np.array([38, 38, 46]), np.array([40, 140, 255])
_BLOCKS = " ▏▎▍▌▋▊▉█"


class SafeConsole(Console):
    """rich's console, made safe: no printed text can control the terminal.

    Every piece of text passes through ``render``, cells of tables and lines of progress too, and the marks of
    rich itself (colours, moves of the cursor) are not text there.

    >>> SafeConsole(color_system=None).print("a\\x1b[31mb 猫")
    a\\x1b[31mb 猫
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces of something to print, made safe."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=safe(segment.text))


def shade(weight: float) -> str:
    """A style whose background grows brighter with a weight between 0 and 1."""
    red, green, blue = (int(value) for value in _COLD + (_HOT - _COLD) * min(max(weight, 0.0), 1.0))
    return f"bright_white on rgb({red},{green},{blue})"


def bar(weight: float, width: int = 20) -> str:
    """A bar for a weight between 0 and 1, exact to an eighth of a character.

    >>> bar(0.5, 4)
    '██'
    """
    eighths = round(min(max(weight, 0.0), 1.0) * width * 8)
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()
