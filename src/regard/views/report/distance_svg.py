"""Curves of weight by distance as SVG: far distances closer together, weight by powers of ten."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

WIDTH, HEIGHT = 320, 150
LEFT, RIGHT, TOP, BOTTOM = 34, 6, 6, 20
LEAST = 1e-4
"""Smaller weights are drawn at the bottom."""

Point = tuple[float, float]
"""A distance, and the mean weight there."""


def chart(lines: Sequence[tuple[str, Sequence[Point]]], *, label: str) -> str:
    """One picture with a named line for every head."""
    furthest = max((abs(x) for _, points in lines for x, _ in points), default=1.0)
    body = "".join(_grid(furthest))
    for name, points in lines:
        drawn = " ".join(f"{_x(x, furthest):.1f},{_y(y):.1f}" for x, y in points)
        body += f'<polyline class="curve" points="{drawn}"><title>{html.escape(name)}</title></polyline>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(label, quote=True)}">'
        f"{body}</svg>"
    )


def _grid(furthest: float) -> list[str]:
    """Lines at powers of ten and at round distances."""
    found = []
    for power in range(0, -5, -1):
        y = _y(10.0**power)
        found.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        if power % 2 == 0:
            sign = "1" if not power else f"10<tspan dy='-4' font-size='7'>{power}</tspan>"
            found.append(f'<text class="tick end" x="{LEFT - 4}" y="{y + 3:.1f}">{sign}</text>')
    for distance in (-1000, -100, -10, -1, 0, 1, 10, 100, 1000):
        if abs(distance) <= furthest:
            x = _x(distance, furthest)
            found.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
            found.append(f'<text class="tick mid" x="{x:.1f}" y="{HEIGHT - 6}">{_signed(distance)}</text>')
    return found


def _x(distance: float, furthest: float) -> float:
    """Near distances apart, far ones by their logarithm; 0 in the middle."""
    reach = math.asinh(max(1.0, furthest))
    return LEFT + (WIDTH - LEFT - RIGHT) * (0.5 + 0.5 * math.asinh(distance) / reach)


def _y(weight: float) -> float:
    share = 1 - math.log10(max(LEAST, min(1.0, weight))) / math.log10(LEAST)
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)


def _signed(number: int) -> str:
    return f"−{-number}" if number < 0 else f"+{number}" if number else "0"
