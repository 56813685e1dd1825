"""The report as text: summary, map of roles, curves, table of heads, examples. It loads nothing."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.heads.role_results import ROLES, Head, in_words
from regard.heads.survey.survey_results import Survey
from regard.table import Value
from regard.version import __version__
from regard.views.column_headings import heading, named
from regard.views.html import fill, html_document, policy, theme_of_system
from regard.views.page.display_tokens import text_of
from regard.views.report.distance_svg import Point, chart
from regard.views.report.report_texts import TEXTS, ReportTexts
from regard.views.script_bundle import script

ASSETS = Path(__file__).parent / "assets"

LEVELS = 10
"""Steps of a colour, from none to full."""

MOST = 900
"""Examples shown; in larger models each head shows fewer."""

COLUMNS = (
    "entropy_mean", "entropy_variance", "relative_entropy_mean", "peak_mean",
    "distance_mean", "distance_p50", "distance_p95",
    "previous_mean", "next_mean", "self_mean", "first_mean", "separator_mean", "same_mean", "duplicate_mean",
    "induction_mean", "induction_on_repeats", "positional", "broad_mean",
)  # fmt: skip
"""The columns of the table of heads that the report shows; all are in heads.parquet."""

TokenDecoder = Callable[[Sequence[int]], list[str]]


def document(
    survey: Survey,
    examples: Sequence[dict[str, Any]],
    links: Mapping[int, str],
    tokens: TokenDecoder,
    lang: str = "en",
) -> str:
    """The whole report."""
    say = ReportTexts(lang)
    program = script("report/assets/report.js")
    style = theme_of_system() + (ASSETS / "report.css").read_text(encoding="utf-8")
    named_after = {"model": Path(survey.identity["model"]).name, "corpus": survey.identity["corpus"]}
    body = fill(
        say.fill((ASSETS / "report.html").read_text(encoding="utf-8")),
        {
            "<!-- title -->": say("title", **named_after),
            "<!-- summary -->": "".join(_summary(survey, say)),
            "<!-- roles -->": "".join(_roles(survey, say)),
            "<!-- curves -->": "".join(_curves(survey, say)),
            "<!-- heads -->": "".join(_table(survey, say)),
            "<!-- examples -->": "".join(_examples(survey, examples, links, tokens, say)),
        },
    )
    return html_document(
        TEXTS.say("window", lang, title=TEXTS.say("title", lang, **named_after)),
        f"{body}<script>{program}</script>",
        lang=lang,
        head=[policy(program), f"<style>\n{style}</style>"],
    )


# ---- summary ---------------------------------------------------------------------------------


def _summary(survey: Survey, say: ReportTexts) -> Iterator[str]:
    counts, identity = survey.counts, survey.identity
    figures = {
        "documents": counts["documents"],
        "tokens": counts["tokens"],
        "heads": len(survey.places),
        "failed": counts["failed"],
    }
    yield '<dl class="figures">'
    for name, number in figures.items():
        yield f"<div><dt>{say(f'figure.{name}')}</dt><dd>{number:,}</dd></div>"
    yield "</dl>"
    for sentence in _sentences(counts, identity, say):
        yield f"<p>{sentence}</p>"
    yield f'<p class="facts">{" · ".join(_facts(survey, say))}</p>'


def _sentences(counts: Mapping[str, int], identity: Mapping[str, Any], say: ReportTexts) -> Iterator[str]:
    """What happened to documents that were truncated, divided or not read."""
    longest = identity["longest"]
    if counts["truncated"]:
        yield say.count("summary.truncated", counts["truncated"], longest=longest)
    if counts["divided"]:
        yield say.count("summary.divided", counts["divided"], longest=longest, parts=counts["parts"])
    if counts["failed"]:
        yield say.count("summary.failed", counts["failed"])
    if identity["limit"] is not None:
        yield say("summary.limit", limit=identity["limit"])


def _facts(survey: Survey, say: ReportTexts) -> Iterator[str]:
    """What was surveyed, and how."""
    identity = survey.identity
    yield say("fact.model", model=str(identity["model"]))
    yield say(f"fact.corpus.{identity['unit']}", corpus=str(identity["corpus"]))
    chosen = identity["layers"]
    yield say("fact.layers.all") if chosen is None else say("fact.layers", layers=", ".join(map(str, chosen)))
    yield say("fact.longest", longest=identity["longest"])
    yield say("fact.time", seconds=survey.seconds)
    yield say("fact.version", version=__version__)


# ---- roles -----------------------------------------------------------------------------------


def _roles(survey: Survey, say: ReportTexts) -> Iterator[str]:
    """A map of layers × heads, one for each kind of attention, and what the colours mean."""
    kinds = list(dict.fromkeys(head.kind for head in survey.heads))
    for kind in kinds:
        heads = [head for head in survey.heads if head.kind == kind]
        if len(kinds) > 1:
            yield f"<h3>{say(f'kind.{kind}')}</h3>"
        yield '<div class="scroll"><table class="map"><thead><tr><th></th>'
        numbers = sorted({head.head for head in heads})
        yield "".join(f"<th>{number}</th>" for number in numbers)
        yield "</tr></thead><tbody>"
        for layer in sorted({head.layer for head in heads}):
            yield f"<tr><th>{layer}</th>"
            at = {head.head: head for head in heads if head.layer == layer}
            yield "".join(_cell(at[number], say) if number in at else "<td></td>" for number in numbers)
            yield "</tr>"
        yield "</tbody></table></div>"
    counted = {role: sum(head.best == role for head in survey.heads) for role in ROLES}
    yield '<ul class="legend">'
    for role, count in counted.items():
        if count:
            said = say("legend", count=count, role=in_words(role, say.lang))
            yield f'<li><i class="role {role} l9"></i>{said}</li>'
    none = sum(head.best is None for head in survey.heads)
    if none:
        yield f'<li><i class="role"></i>{say("legend.none", count=none)}</li>'
    yield "</ul>"


def _cell(head: Head, say: ReportTexts) -> str:
    said = say("head.role", layer=head.layer, head=head.head, role=head.in_words(say.lang))
    if head.best is None:
        return f'<td><a class="role" href="#{_anchor(head)}" title="{said}"></a></td>'
    level = min(LEVELS - 1, int(head.scores[head.best].excess * LEVELS))
    return f'<td><a class="role {head.best} l{level}" href="#{_anchor(head)}" title="{said}"></a></td>'


def _anchor(head: Head) -> str:
    return f"{head.kind}-{head.layer}-{head.head}"


# ---- curves ----------------------------------------------------------------------------------


def _curves(survey: Survey, say: ReportTexts) -> Iterator[str]:
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
        name = say(f"layer.{kind}" if several else "layer", layer=layer)
        drawn = [(say("curve", layer=name, head=head), points) for head, points in heads.items()]
        picture = chart(drawn, label=say("curves.of", layer=name))
        yield f"<figure>{picture}<figcaption>{name}</figcaption></figure>"


def _number(value: Value) -> float:
    assert isinstance(value, (int, float))
    return float(value)


# ---- the table -------------------------------------------------------------------------------


def _table(survey: Survey, say: ReportTexts) -> Iterator[str]:
    yield '<div class="scroll tall"><table class="heads"><thead><tr>'
    for name in ("layer", "head", "role", *COLUMNS):
        key = f"column.{name}"
        own = say(key) if key in TEXTS.table(say.lang) else heading(name.removesuffix("_mean"), say.lang)
        yield f"<th><button>{own}</button></th>"
    yield "</tr></thead><tbody>"
    for head, row in zip(survey.heads, survey.table):
        best = head.best
        mark = "–" if best is None else f'<i class="role {best} l9"></i>{named("best", best, say.lang)}'
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
    survey: Survey,
    examples: Sequence[dict[str, Any]],
    links: Mapping[int, str],
    tokens: TokenDecoder,
    say: ReportTexts,
) -> Iterator[str]:
    """What every head does, with the texts that show it best."""
    fewer = max(1, MOST // max(1, len(survey.heads)))
    of_head: dict[tuple[str, int, int], list[tuple[int, dict[str, Any]]]] = {}
    for index, one in enumerate(examples):
        if one["rank"] < fewer:
            of_head.setdefault((one["name"], one["layer"], one["head"]), []).append((index, one))
    for head in survey.heads:
        place = say("head", layer=head.layer, head=head.head)
        yield f'<section class="head" id="{_anchor(head)}"><h3>{place}'
        yield f" <small>{html.escape(head.in_words(say.lang))}</small></h3>"
        for index, one in of_head.get((head.name, head.layer, head.head), []):
            yield from _example(one, links.get(index), tokens, say)
        yield "</section>"


def _example(one: dict[str, Any], link: str | None, tokens: TokenDecoder, say: ReportTexts) -> Iterator[str]:
    shown = text_of(tokens(one["ids"])).tokens
    query, key = text_of(tokens(one["pair"])).tokens
    yield f'<div class="example"><p class="text">{"… " if one["first_shown"] else ""}'
    for index, (token, weight) in enumerate(zip(shown, one["weights"])):
        # The square root makes small weights visible too.
        level = min(LEVELS - 1, int(LEVELS * max(0.0, weight) ** 0.5))
        mark = " from" if index + one["first_shown"] == one["query"] else ""
        yield f'<span class="w{level}{mark}" title="{weight:.3f}">{html.escape(token)}</span> '
    place = "example.part" if one["part"] else "example.document"
    facts = [
        say("example.pair", query=query, key=key, weight=one["weight"]),
        say("example.score", score=one["score"]),
        say(place, document=one["document"] + 1, part=one["part"] + 1),
    ]
    if link is not None:
        facts.append(f'<a href="{html.escape(link)}">{say("example.open")}</a>')
    yield f"</p><p>{' · '.join(facts)}</p></div>"
