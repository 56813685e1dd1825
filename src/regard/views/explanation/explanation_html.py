"""An explanation as one HTML file that loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from regard.views.explanation.explanation_payload import Explanation, Grid, number, shape_of
from regard.views.html import escaped, html_document, policy, theme_of_system

STYLE = Path(__file__).parent / "assets" / "explanation.css"


def document(explanation: Explanation) -> str:
    """The whole page."""
    style = theme_of_system() + STYLE.read_text(encoding="utf-8")
    return html_document(
        f"{explanation.title} · regard",
        "\n".join(_body(explanation)),
        lang=explanation.lang,
        head=[policy(), f"<style>\n{style}</style>"],
    )


def _formula(formula: str) -> str:
    """``W_q`` with q as a subscript."""
    return re.sub(r"_(\w)", r"<sub>\1</sub>", escape(formula))


def _body(explanation: Explanation) -> Iterator[str]:
    yield f"<header><h1><b>regard</b> <span>{escaped(explanation.title)}</span></h1>"
    yield "".join(f"<p>{escaped(line)}</p>" for line in explanation.about)
    yield "</header>\n<main>"
    for place, step in enumerate(explanation.steps, start=1):
        yield f"<section><h2><i>{place}</i> {escaped(step.title)} <code>{_formula(step.formula)}</code>"
        yield f"<small>{shape_of(step)}</small></h2>"
        if step.says:
            yield f"<p>{escaped(step.says)}</p>"
        yield '<div class="grids">'
        for grid in step.grids:
            yield from _grid(grid)
        yield "</div></section>"
    yield f"<section><h2>{escaped(explanation.looks_title)}</h2>"
    yield '<table class="looks"><tbody>'
    yield from _looks(explanation)
    yield "</tbody></table></section>\n</main>"


def _grid(grid: Grid) -> Iterator[str]:
    bars = grid.weights and len(grid.columns) == 1
    yield "<figure>"
    if grid.title:
        yield f"<figcaption>{escaped(grid.title)}</figcaption>"
    yield '<div class="scroll"><table>'
    if any(grid.columns):
        names = "".join(f"<th>{escaped(name)}</th>" for name in grid.columns)
        yield f"<thead><tr><th></th>{names}</tr></thead>"
    yield "<tbody>"
    for name, values in zip(grid.rows, grid.values):
        cells = "".join(_cell(value, grid.weights and not bars) for value in values)
        yield f"<tr><th>{escaped(name)}</th>{cells}{_bar(values[0] or 0.0) if bars else ''}</tr>"
    yield "</tbody></table></div></figure>"


def _cell(value: float | None, shaded: bool) -> str:
    if not shaded or value is None:
        return f"<td>{number(value)}</td>"
    return f'<td class="weight" style="--weight: {100 * value:.1f}%">{number(value)}</td>'


def _bar(weight: float) -> str:
    return f'<td class="bar"><i style="width: {100 * min(max(weight, 0.0), 1.0):.1f}%"></i></td>'


def _looks(explanation: Explanation) -> Iterator[str]:
    for look in explanation.looks:
        for place, (word, weight) in enumerate(look.strongest):
            lead = "" if place else escaped(look.word)
            first = "" if place else ' class="first"'
            cells = f"<td>{escaped(word)}</td><td>{100 * weight:.1f} %</td>{_bar(weight)}"
            yield f"<tr{first}><th>{lead}</th>{cells}</tr>"
        if not look.strongest:
            nothing = f'<td colspan="3">{escaped(look.nothing)}</td>'
            yield f'<tr class="first"><th>{escaped(look.word)}</th>{nothing}</tr>'
