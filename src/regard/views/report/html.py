"""The report as text: summary, map of roles, curves, table of heads, examples. It asks no network."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.heads.findings import ROLES, Head, in_words
from regard.heads.survey.results import Survey
from regard.heads.tables import Value
from regard.version import __version__
from regard.views.page.html import ASSETS as PAGE_ASSETS
from regard.views.page.html import policy, replaced
from regard.views.page.tokens import text_of
from regard.views.report.curves import Point, chart

ASSETS = Path(__file__).parent / "assets"

LEVELS = 10
"""Steps of a colour, from nothing to full."""

MOST = 900
"""Examples shown; beyond, each head shows fewer."""

COLUMNS = {
    "entropy_mean": "entropy",
    "entropy_variance": "its variance",
    "relative_entropy_mean": "relative",
    "peak_mean": "peak",
    "distance_mean": "distance",
    "distance_p50": "median",
    "distance_p95": "95 %",
    "previous_mean": "previous",
    "next_mean": "next",
    "self_mean": "self",
    "first_mean": "first",
    "separator_mean": "separator",
    "same_mean": "same",
    "duplicate_mean": "duplicate",
    "induction_mean": "induction",
    "induction_on_repeats": "on repeats",
    "positional": "positional",
    "broad_mean": "broad",
}
"""The columns of the table of heads that the report shows; all are in heads.parquet."""

Tokens = Callable[[Sequence[int]], list[str]]


def document(
    survey: Survey, examples: Sequence[dict[str, Any]], links: Mapping[int, str], tokens: Tokens
) -> str:
    """The whole report."""
    script = (ASSETS / "report.js").read_text(encoding="utf-8")
    style = theme() + (ASSETS / "report.css").read_text(encoding="utf-8")
    title = f"{Path(survey.identity['model']).name} over {survey.identity['corpus']}"
    return replaced(
        (ASSETS / "report.html").read_text(encoding="utf-8"),
        {
            '<meta charset="utf-8">': f'<meta charset="utf-8">\n{policy(script)}',
            "<title>regard</title>": f"<title>{html.escape(title)} · regard survey</title>",
            '<link rel="stylesheet" href="report.css">': f"<style>\n{style}</style>",
            "<!-- title -->": html.escape(title),
            "<!-- summary -->": "".join(_summary(survey)),
            "<!-- roles -->": "".join(_roles(survey)),
            "<!-- curves -->": "".join(_curves(survey)),
            "<!-- heads -->": "".join(_table(survey)),
            "<!-- examples -->": "".join(_examples(survey, examples, links, tokens)),
            '<script src="report.js"></script>': f"<script>{script}</script>",
        },
    )


def theme() -> str:
    """The colours of the page, so that both look alike; here the dark ones come by the reader's system."""
    style = (PAGE_ASSETS / "style.css").read_text(encoding="utf-8")
    light = re.search(r"^:root \{.*?^\}\n", style, re.MULTILINE | re.DOTALL)
    dark = re.search(r'^:root\[data-theme="dark"\] (\{.*?^\}\n)', style, re.MULTILINE | re.DOTALL)
    assert light is not None, "the page's style has no colours"
    assert dark is not None, "the page's style has no dark colours"
    return f"{light[0]}@media (prefers-color-scheme: dark) {{ :root {dark[1]} }}\n"


# ---- summary ---------------------------------------------------------------------------------


def _summary(survey: Survey) -> Iterator[str]:
    counts, identity = survey.counts, survey.identity
    figures = {
        "documents": counts["documents"],
        "tokens": counts["tokens"],
        "heads": len(survey.places),
        "failed": counts["failed"],
    }
    yield '<dl class="figures">'
    for name, number in figures.items():
        yield f"<div><dt>{name}</dt><dd>{number:,}</dd></div>"
    yield "</dl>"
    for sentence in _sentences(counts, identity):
        yield f"<p>{html.escape(sentence)}</p>"
    facts = {
        "model": identity["model"],
        "corpus": f"{identity['corpus']} by {identity['unit']}",
        "layers": "all" if identity["layers"] is None else ", ".join(map(str, identity["layers"])),
        "longest text": f"{identity['longest']:,} tokens",
        "time": f"{survey.seconds:,.0f} s",
        "regard": __version__,
    }
    yield '<p class="facts">'
    yield " · ".join(f"{name} <b>{html.escape(str(value))}</b>" for name, value in facts.items())
    yield "</p>"


def _sentences(counts: Mapping[str, int], identity: Mapping[str, Any]) -> Iterator[str]:
    """What happened to documents that were not simply read."""
    if counts["truncated"]:
        yield (
            f"{_many(counts['truncated'], 'document')} longer than {identity['longest']:,} tokens, cut short "
            "there: what follows is not in these numbers."
        )
    if counts["divided"]:
        yield (
            f"{_many(counts['divided'], 'document')} longer than {identity['longest']:,} tokens, read in "
            f"parts: {counts['parts']:,} texts in all, and nothing is seen from one part to the next."
        )
    if counts["failed"]:
        yield f"{_many(counts['failed'], 'text')} could not be read. failed.jsonl says which, and why."
    if identity["limit"] is not None:
        yield f"Only the first {identity['limit']:,} documents of the corpus were read."


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# ---- roles -----------------------------------------------------------------------------------


def _roles(survey: Survey) -> Iterator[str]:
    """A map of layers × heads, one for each kind of attention, and what the colours mean."""
    kinds = list(dict.fromkeys(head.kind for head in survey.heads))
    for kind in kinds:
        heads = [head for head in survey.heads if head.kind == kind]
        if len(kinds) > 1:
            yield f"<h3>{kind}</h3>"
        yield '<div class="scroll"><table class="map"><thead><tr><th></th>'
        numbers = sorted({head.head for head in heads})
        yield "".join(f"<th>{number}</th>" for number in numbers)
        yield "</tr></thead><tbody>"
        for layer in sorted({head.layer for head in heads}):
            yield f"<tr><th>{layer}</th>"
            at = {head.head: head for head in heads if head.layer == layer}
            yield "".join(_cell(at[number]) if number in at else "<td></td>" for number in numbers)
            yield "</tr>"
        yield "</tbody></table></div>"
    counted = {role: sum(head.best == role for head in survey.heads) for role in ROLES}
    yield '<ul class="legend">'
    for role, count in counted.items():
        if count:
            yield f'<li><i class="role {role} l9"></i>{count} × {html.escape(in_words(role))}</li>'
    none = sum(head.best is None for head in survey.heads)
    if none:
        yield f'<li><i class="role"></i>{none} without a clear role</li>'
    yield "</ul>"


def _cell(head: Head) -> str:
    said = html.escape(f"{head}", quote=True)
    if head.best is None:
        return f'<td><a class="role" href="#{_anchor(head)}" title="{said}"></a></td>'
    level = min(LEVELS - 1, int(head.scores[head.best].excess * LEVELS))
    return f'<td><a class="role {head.best} l{level}" href="#{_anchor(head)}" title="{said}"></a></td>'


def _anchor(head: Head) -> str:
    return f"{head.kind}-{head.layer}-{head.head}"


# ---- curves ----------------------------------------------------------------------------------


def _curves(survey: Survey) -> Iterator[str]:
    """A picture for every layer, a line for every head."""
    lines: dict[tuple[str, int], dict[int, list[Point]]] = {}
    for row in survey.distances.cells:
        place = dict(zip(survey.distances.columns, row))
        middle = (_number(place["first"]) + _number(place["last"])) / 2
        if abs(middle) < 1e12:  # the outermost bins have no end
            line = lines.setdefault((str(place["kind"]), int(_number(place["layer"]))), {})
            point = (middle, _number(place["mean_weight"]))
            line.setdefault(int(_number(place["head"])), []).append(point)
    several = len({kind for kind, _ in lines}) > 1
    for (kind, layer), heads in lines.items():
        name = f"{kind} layer {layer}" if several else f"layer {layer}"
        drawn = [(f"{name}, head {head}", points) for head, points in heads.items()]
        picture = chart(drawn, label=f"weight by distance, {name}")
        yield f"<figure>{picture}<figcaption>{name}</figcaption></figure>"


def _number(value: Value) -> float:
    assert isinstance(value, (int, float))
    return float(value)


# ---- the table -------------------------------------------------------------------------------


def _table(survey: Survey) -> Iterator[str]:
    names = ("layer", "head", "role", *COLUMNS.values())
    yield '<div class="scroll tall"><table class="heads"><thead><tr>'
    yield "".join(f"<th><button>{html.escape(name)}</button></th>" for name in names)
    yield "</tr></thead><tbody>"
    for head, row in zip(survey.heads, survey.table):
        best = "" if head.best is None else head.best
        mark = f'<i class="role {best} l9"></i>{best}' if best else "–"
        yield f'<tr><td>{head.layer}</td><td><a href="#{_anchor(head)}">{head.head}</a></td><td>{mark}</td>'
        yield "".join(_figure(row[column]) for column in COLUMNS)
        yield "</tr>"
    yield "</tbody></table></div>"


def _figure(value: Value) -> str:
    if value is None:
        return "<td>–</td>"
    assert isinstance(value, (int, float))
    shown = f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f'<td data-value="{value!r}">{shown}</td>'


# ---- examples --------------------------------------------------------------------------------


def _examples(
    survey: Survey, examples: Sequence[dict[str, Any]], links: Mapping[int, str], tokens: Tokens
) -> Iterator[str]:
    """What every head does, with the texts that excite it most."""
    fewer = max(1, MOST // max(1, len(survey.heads)))
    of_head: dict[tuple[str, int, int], list[tuple[int, dict[str, Any]]]] = {}
    for index, one in enumerate(examples):
        if one["rank"] < fewer:
            of_head.setdefault((one["name"], one["layer"], one["head"]), []).append((index, one))
    for head in survey.heads:
        yield f'<section class="head" id="{_anchor(head)}"><h3>layer {head.layer} head {head.head}'
        yield f" <small>{html.escape(head.in_words())}</small></h3>"
        for index, one in of_head.get((head.name, head.layer, head.head), []):
            yield from _example(one, links.get(index), tokens)
        yield "</section>"


def _example(one: dict[str, Any], link: str | None, tokens: Tokens) -> Iterator[str]:
    shown = text_of(tokens(one["ids"])).tokens
    query, key = text_of(tokens(one["pair"])).tokens
    yield f'<div class="example"><p class="text">{"… " if one["first_shown"] else ""}'
    for index, (token, weight) in enumerate(zip(shown, one["weights"])):
        # Small weights are seen too: the eye tells shares by their root.
        level = min(LEVELS - 1, int(LEVELS * max(0.0, weight) ** 0.5))
        mark = " from" if index + one["first_shown"] == one["query"] else ""
        yield f'<span class="w{level}{mark}" title="{weight:.3f}">{html.escape(token)}</span> '
    yield "</p><p>"
    yield f"<b>{html.escape(query)}</b> looks at <b>{html.escape(key)}</b> with {one['weight']:.2f}"
    yield f" · score {one['score']:.3f} · document {one['document'] + 1:,}"
    yield f", part {one['part'] + 1}" if one["part"] else ""
    yield f' · <a href="{html.escape(link, quote=True)}">open this text</a>' if link is not None else ""
    yield "</p></div>"
