"""Numbers in the terminal, drawn with rich."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from regard.attention.reference import Step, Trace

Numbers = NDArray[np.float64]

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


def matrix(values: Numbers, rows: Sequence[str], columns: Sequence[str], *, shaded: bool = False) -> Table:
    """A table of numbers with names on both sides; weights may be shaded."""
    table = Table(box=None, padding=(0, 1), show_header=bool(columns))
    table.add_column(style="bold")
    for column in columns or [""] * values.shape[1]:
        table.add_column(column, justify="right")
    for name, line in zip(rows, values):
        cells = [Text(_number(value), shade(value) if shaded else "") for value in line]
        table.add_row(name, *cells)
    return table


def _number(value: float) -> str:
    return "−∞" if value == -np.inf else f"{value:.3f}".replace("-", "−")


def show_trace(console: Console, trace: Trace, words: Sequence[str], context: Sequence[str] = ()) -> None:
    """Every step of a calculation: its name, formula, shape and numbers.

    ``context`` names the keys where they are other words than the queries.
    """
    keys = context or words
    for number, step in enumerate(trace, start=1):
        console.print(_heading(number, step))
        console.print(Padding(_body(step, words, keys), (0, 0, 1, 3)))


def _heading(number: int, step: Step) -> Text:
    shape = " × ".join(map(str, step.value.shape))
    return Text.assemble(
        (f"{number:2} ", "dim"),
        (step.name, "bold cyan"),
        "  ",
        (step.formula, "italic"),
        "  ",
        (f"({shape})", "dim"),
    )


def _body(step: Step, words: Sequence[str], keys: Sequence[str]) -> RenderableType:
    value = step.value
    pairs = value.ndim > 1 and step.name in ("dots", "scores", "capped", "biased", "masked", "weights")
    rows = keys if step.name in ("k", "v", "keys", "values", "context") else words
    if step.name == "lse":
        value = value[..., None]
    if value.ndim == 2:
        return matrix(value, rows, keys if pairs else (), shaded=step.name == "weights")
    tables: list[RenderableType] = []
    for head, one in enumerate(value.reshape(-1, *value.shape[-2:])):
        if value.shape[-3] > 1:
            tables.append(Text(f"head {head}", "magenta"))
        tables.append(matrix(one, rows, keys if pairs else (), shaded=step.name == "weights"))
    return Group(*tables)


def show_strongest(
    console: Console, weights: Numbers, words: Sequence[str], keys: Sequence[str], *, most: int = 3
) -> None:
    """For each query the keys it looks at most, with a bar each; ``weights`` is (query, key)."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    for word, row in zip(words, weights):
        strongest = [key for key in np.argsort(-row, kind="stable")[:most] if row[key] > 0]
        for place, key in enumerate(strongest):
            lead = (Text(word, "bold"), "→") if not place else ("", "")
            table.add_row(
                *lead, keys[key], f"{100 * row[key]:5.1f} %", Text(bar(row[key]), "rgb(40,140,255)")
            )
        if not strongest:
            table.add_row(Text(word, "bold"), "→", "sees nothing", "", "")
    console.print(table)
