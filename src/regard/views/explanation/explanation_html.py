"""An explanation as one HTML file that loads nothing, in the colours of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from regard.texts import LANGUAGE_TAGS
from regard.views.explanation.explanation_payload import Explanation, Grid, number, shape_of
from regard.views.page.page_html import visible_text
from regard.views.report.report_html import theme

STYLE = Path(__file__).parent / "assets" / "explanation.css"

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def document(explanation: Explanation) -> str:
    """The whole page."""
    return "\n".join(_document(explanation)) + "\n"


def _text(text: str) -> str:
    """A text of the user's: nothing in it is markup, and nothing in it turns the writing around."""
    return escape(visible_text(text))


def _formula(formula: str) -> str:
    """W_q with its q below the line."""
    return re.sub(r"_(\w)", r"<sub>\1</sub>", escape(formula))


def _document(explanation: Explanation) -> Iterator[str]:
    title = _text(explanation.title)
    yield "<!doctype html>"
    yield f'<html lang="{LANGUAGE_TAGS[explanation.lang]}">'
    yield '<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title} · regard</title>"
    yield f"<style>\n{theme()}{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>"
    yield f"<header><h1><b>regard</b> <span>{title}</span></h1>"
    yield "".join(f"<p>{_text(line)}</p>" for line in explanation.about)
    yield "</header>\n<main>"
    for place, step in enumerate(explanation.steps, start=1):
        yield f"<section><h2><i>{place}</i> {_text(step.title)} <code>{_formula(step.formula)}</code>"
        yield f"<small>{shape_of(step)}</small></h2>"
        if step.says:
            yield f"<p>{_text(step.says)}</p>"
        yield '<div class="grids">'
        for grid in step.grids:
            yield from _grid(grid)
        yield "</div></section>"
    yield f"<section><h2>{_text(explanation.looks_title)}</h2>"
    yield '<table class="looks"><tbody>'
    yield from _looks(explanation)
    yield "</tbody></table></section>\n</main>\n</body>\n</html>"


def _grid(grid: Grid) -> Iterator[str]:
    bars = grid.weights and len(grid.columns) == 1
    yield "<figure>"
    if grid.title:
        yield f"<figcaption>{_text(grid.title)}</figcaption>"
    yield '<div class="scroll"><table>'
    if any(grid.columns):
        names = "".join(f"<th>{_text(name)}</th>" for name in grid.columns)
        yield f"<thead><tr><th></th>{names}</tr></thead>"
    yield "<tbody>"
    for name, values in zip(grid.rows, grid.values):
        cells = "".join(_cell(value, grid.weights and not bars) for value in values)
        yield f"<tr><th>{_text(name)}</th>{cells}{_bar(values[0] or 0.0) if bars else ''}</tr>"
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
            lead = "" if place else _text(look.word)
            first = "" if place else ' class="first"'
            cells = f"<td>{_text(word)}</td><td>{100 * weight:.1f} %</td>{_bar(weight)}"
            yield f"<tr{first}><th>{lead}</th>{cells}</tr>"
        if not look.strongest:
            nothing = f'<td colspan="3">{_text(look.nothing)}</td>'
            yield f'<tr class="first"><th>{_text(look.word)}</th>{nothing}</tr>'
