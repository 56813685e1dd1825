"""The timings as a figure: time and memory over the length."""

from __future__ import annotations

from matplotlib.figure import Figure

from regard.lessons.facts import text
from regard.lessons.panels import Curves, draw
from regard.lessons.timing import Timings


def draw_bench(found: Timings, lang: str = "en") -> Figure:
    """Milliseconds and megabytes, both axes logarithmic; what was not measured is left out."""
    gap = float("nan")
    times: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    for variant in found.variants:
        rows = [found.row(length, variant) for length in found.lengths]
        times[variant] = [gap if row is None or row.seconds is None else 1000 * row.seconds for row in rows]
        # A process that did not grow cannot be drawn on a logarithmic axis.
        memory[variant] = [gap if row is None or not row.bytes else row.bytes / 2**20 for row in rows]
    side = text("axis.tokens", lang)
    return draw(
        Curves(text("bench.time", lang), found.lengths, times, side=side, logarithmic=True),
        Curves(f"{text('bench.memory', lang)}, MiB", found.lengths, memory, side=side, logarithmic=True),
    )
