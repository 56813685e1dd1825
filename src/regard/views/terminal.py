"""Weights in the terminal: shades and bars."""

from __future__ import annotations

import numpy as np

_COLD, _HOT = np.array([38, 38, 46]), np.array([40, 140, 255])
_BLOCKS = " ▏▎▍▌▋▊▉█"


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
