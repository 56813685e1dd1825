"""An explanation in the terminal; columns that do not fit are omitted, with a note."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from regard.views.explanation.explanation_payload import (
    Explanation,
    Grid,
    Step,
    StrongestKeys,
    number,
    shape_of,
)
from regard.views.terminal_weights import bar, shade

INDENT = 3
WIDEST = 16
"""Words longer than this are cut in the head of a column."""
BLUE = "rgb(40,140,255)"


def show_explanation(console: Console, explanation: Explanation) -> None:
    """Every step with its numbers, then what each word attends to."""
    console.print(Text(explanation.title, "bold"))
    for line in explanation.about:
        console.print(Text(line, "dim"))
    console.print()
    for place, step in enumerate(explanation.steps, start=1):
        console.print(_heading(place, step))
        parts: list[RenderableType] = [Text(step.says, "dim")] if step.says else []
        for grid in step.grids:
            if grid.title:
                parts.append(Text(grid.title, "magenta"))
            parts.append(_grid(grid, console.width - INDENT))
        console.print(Padding(Group(*parts), (0, 0, 1, INDENT)))
    console.print(Text(explanation.looks_title, "bold cyan"))
    console.print(_looks(explanation.looks, console.width))


def _heading(place: int, step: Step) -> Text:
    return Text.assemble(
        (f"{place:2} ", "dim"),
        (step.title, "bold cyan"),
        "  ",
        (step.formula, "italic"),
        "  ",
        (shape_of(step), "dim"),
    )


def _grid(grid: Grid, width: int) -> Table:
    shown = _fitting(grid, width)
    table = Table(box=None, padding=(0, 1), show_header=any(grid.columns))
    table.add_column(style="bold", no_wrap=True)
    for column in grid.columns[:shown]:
        table.add_column(Text(_cut(column)), justify="right", no_wrap=True)
    bars = grid.weights and len(grid.columns) == 1
    if bars or shown < len(grid.columns):
        table.add_column("" if bars else "…", no_wrap=True)
    for name, values in zip(grid.rows, grid.values):
        cells = [
            Text(number(value), shade(value) if grid.weights and not bars and value is not None else "")
            for value in values[:shown]
        ]
        if bars:
            cells.append(Text(bar(values[0] or 0.0, min(30, width // 3)), BLUE))
        elif shown < len(grid.columns):
            cells.append(Text("…", "dim"))
        table.add_row(Text(_cut(name, 2 * WIDEST)), *cells)
    return table


def _fitting(grid: Grid, width: int) -> int:
    """How many columns fit beside the names of the rows; at least one."""
    left = width - max((cell_len(_cut(name, 2 * WIDEST)) for name in grid.rows), default=0) - 2
    needed = [
        2 + max(cell_len(_cut(name)), *(cell_len(number(row[place])) for row in grid.values))
        for place, name in enumerate(grid.columns)
    ]
    if sum(needed) <= left:
        return len(needed)
    left -= 3  # for the sign that there is more
    shown = 0
    while shown < len(needed) and sum(needed[: shown + 1]) <= left:
        shown += 1
    return max(1, shown)


def _cut(name: str, widest: int = WIDEST) -> str:
    if cell_len(name) <= widest:
        return name
    short = name
    while cell_len(short) > widest - 1:
        short = short[:-1]
    return short + "…"


def _looks(looks: tuple[StrongestKeys, ...], width: int) -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False)
    for look in looks:
        for place, (word, weight) in enumerate(look.strongest):
            lead = (Text(_cut(look.word), "bold"), "→") if not place else (Text(), "")
            drawn = Text(bar(weight, min(30, width // 3)), BLUE)
            table.add_row(*lead, Text(_cut(word)), f"{100 * weight:5.1f} %", drawn)
        if not look.strongest:
            table.add_row(Text(look.word, "bold"), "→", Text(look.nothing), "", Text())
    return table
