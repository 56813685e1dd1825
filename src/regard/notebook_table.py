"""HTML for notebooks: rows with named columns, escaped, without style sheets or scripts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from regard.languages import Texts, preferred_language

MOST_ROWS = 40
"""Rows that a notebook shows; the caption says how many it leaves out."""

TEXTS = Texts("views")

_CELL = "padding: 2px 10px; text-align: {side}; white-space: nowrap;"


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table for a notebook: the first :data:`MOST_ROWS` rows, numbers on the right with three digits.

    The fractions of a column have the same number of places, unless they differ too much in size.

    >>> found = html_table(["head", "role"], [(0, "<b>"), (1, None)], "2 heads")
    >>> "<div>2 heads</div>" in found, "&lt;b&gt;" in found, found.count("<tr>")
    (True, True, 3)
    """
    given = [tuple(row) for row in rows]
    shown = given[:MOST_ROWS]
    sides = [
        "right" if any(isinstance(row[at], (int, float)) for row in shown) else "left"
        for at in range(len(columns))
    ]
    forms = [_form([row[at] for row in shown]) for at in range(len(columns))]
    written = ([_written(cell, form) for cell, form in zip(row, forms)] for row in shown)
    lines = [_row("th", columns, sides), *(_row("td", cells, sides) for cells in written)]
    if len(given) > len(shown):
        counts = {"shown": len(shown), "left": len(given) - len(shown)}
        caption = " · ".join(filter(None, [caption, TEXTS.say("table.cut", preferred_language(), **counts)]))
    caption = escape(caption)
    return (
        '<div style="overflow-x: auto;">\n'
        + (f"<div>{caption}</div>\n" if caption else "")
        + "<table>\n"
        + "\n".join(lines)
        + "\n</table>\n</div>"
    )


def html_text(text: str) -> str:
    """Printed text, in a fixed-width font."""
    return f'<pre style="line-height: 1.35; overflow-x: auto;">{escape(text)}</pre>'


def _row(tag: str, cells: Iterable[str], sides: Sequence[str]) -> str:
    styled = (
        f'<{tag} style="{_CELL.format(side=side)}">{escape(cell)}</{tag}>' for cell, side in zip(cells, sides)
    )
    return f"<tr>{''.join(styled)}</tr>"


def _form(cells: Iterable[object]) -> str:
    """How the fractions of a column are written: three digits of the smallest, if the others fit in."""
    sizes = [abs(cell) for cell in cells if isinstance(cell, float) and cell]
    if not sizes or not (min(sizes) >= 0.01 and max(sizes) < 1000):
        return ".3g"
    return f".{max(0, 2 - math.floor(math.log10(min(sizes))))}f"


def _written(cell: object, form: str) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return str(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:{form}}"
