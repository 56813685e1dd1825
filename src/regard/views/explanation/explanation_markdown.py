"""An explanation as Markdown: a heading and a table for each step."""

from __future__ import annotations

import re
from collections.abc import Iterator

from regard.views.explanation.explanation_payload import Explanation, Grid, number, shape_of
from regard.views.terminal_weights import bar

COLUMNS = 12
"""Columns shown; an ellipsis stands for more."""


def markdown_of(explanation: Explanation) -> str:
    """The whole text."""
    return "\n".join(_lines(explanation)) + "\n"


def escaped(text: str) -> str:
    r"""Text with the special characters of Markdown escaped.

    >>> print(escaped("a|b *c* <d>"))
    a\|b \*c\* \<d\>
    """
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", text.replace("\n", "⏎"))


def _lines(explanation: Explanation) -> Iterator[str]:
    yield f"# {escaped(explanation.title)}"
    yield ""
    for line in explanation.about:
        yield f"- {escaped(line)}"
    for place, step in enumerate(explanation.steps, start=1):
        yield ""
        yield f"## {place}. {escaped(step.title)}"
        yield ""
        yield f"{escaped(step.says)} `{step.formula}` {shape_of(step)}".strip()
        for grid in step.grids:
            yield ""
            if grid.title:
                yield f"**{escaped(grid.title)}**"
                yield ""
            yield from _table(grid)
    yield ""
    yield f"## {escaped(explanation.looks_title)}"
    yield ""
    for look in explanation.looks:
        said = ", ".join(f"{escaped(word)} {100 * weight:.1f} %" for word, weight in look.strongest)
        strongest = look.strongest[0][1] if look.strongest else 0.0
        yield f"- **{escaped(look.word)}** → {said or escaped(look.nothing)} {bar(strongest, 10)}".rstrip()


def _table(grid: Grid) -> Iterator[str]:
    more = len(grid.columns) > COLUMNS
    bars = grid.weights and len(grid.columns) == 1
    names = [escaped(name) for name in grid.columns[:COLUMNS]] + ["…"] * more + [""] * bars
    yield f"| | {' | '.join(names)} |"
    yield "|---|" + "---:|" * (len(names) - bars) + "---|" * bars
    for name, values in zip(grid.rows, grid.values):
        cells = [number(value) for value in values[:COLUMNS]] + ["…"] * more
        cells += [bar(values[0] or 0.0)] * bars
        yield f"| **{escaped(name)}** | {' | '.join(cells)} |"
