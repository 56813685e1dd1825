"""What edits did to a model, in the terminal: strongest first, with bars, and what these heads look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from regard.ablation import Ablation
from regard.errors import DtypeError
from regard.heads import Head, Roles
from regard.languages import check_language
from regard.table import Record
from regard.views.column_headings import TEXTS, heading, named
from regard.views.page.display_tokens import text_of
from regard.views.terminal_weights import bar

LESS, MORE = "rgb(40,140,255)", "rgb(230,120,30)"
"""Colours of a bar: the metric falls, the metric rises."""

NUMBER, BAR, GAP = 8, 12, 2
"""Characters of a difference, of the longest bar, and between columns."""


def show_effects(
    console: Console,
    found: Ablation,
    *,
    roles: Roles | None = None,
    tokens: Mapping[str, Sequence[str]] | None = None,
    most: int = 12,
    lang: str = "en",
) -> None:
    """Print the edits with the greatest effect: where, the difference with its bar, and the role of the head.

    ``tokens`` are those that are keys, by kind of call, for sweeps by key; ``most`` rows are printed.
    """
    check_language(lang)
    if not isinstance(found, Ablation):
        raise DtypeError(
            "show_effects needs the result of regard.ablate.",
            got="{type}",
            do="Pass regard.ablate(model, inputs, metric).",
            type=type(found).__name__,
        )
    console.print(
        Text(TEXTS.say(f"effects.{found.by}", lang, metric=found.metric, before=found.before), "bold cyan")
    )
    rows = list(found.strongest(most))
    several = len(found.kinds) > 1
    grid = Grid(box=None, padding=(0, GAP, 0, 0), pad_edge=False)
    for name in _columns(found, several):
        right = name not in ("kind", "token")
        grid.add_column(Text(heading(name, lang), "dim"), justify="right" if right else "left", no_wrap=True)
    grid.add_column(Text(heading("difference", lang), "dim"), no_wrap=True)
    if roles is not None and found.by == "head":
        # The rest of the line is for the role: rich would shorten every column alike.
        rest = console.width - _room(rows, _columns(found, several), lang)
        does = Text(TEXTS.say("roles.does", lang), "dim")
        grid.add_column(does, no_wrap=True, overflow="ellipsis", max_width=max(8, rest))
    largest = max((abs(_number(row, "difference")) for row in rows), default=0.0) or 1.0
    for row in rows:
        cells = [_place(row, name, tokens, lang) for name in _columns(found, several)]
        grid.add_row(*cells, _difference(row, largest), *_roles(row, found, roles, lang))
    console.print(grid)
    if len(found.table) > most:
        console.print(Text(TEXTS.say("rows.more", lang, rest=len(found.table) - most), "dim"))
    if not found.complete:
        console.print(Text(TEXTS.say("effects.stopped", lang), "yellow"))


def _room(rows: Sequence[Record], columns: Sequence[str], lang: str) -> int:
    """Cells of the columns before the role, with the gaps after them."""
    texts = {
        name: [heading(name, lang), *(named(name, str(row.get(name)), lang) for row in rows)]
        for name in columns
    }
    return sum(max(map(cell_len, column)) + GAP for column in texts.values()) + NUMBER + 1 + BAR + GAP


def _columns(found: Ablation, several: bool) -> list[str]:
    places = {
        "head": ["layer", "head"],
        "layer": ["layer"],
        "key": ["key", "token"],
        "edge": ["query", "key"],
    }
    return ["kind"] * several + places[found.by]


def _place(row: Record, name: str, tokens: Mapping[str, Sequence[str]] | None, lang: str) -> Text:
    if name == "kind":
        return Text(named("kind", str(row["kind"]), lang))
    if name == "token":
        key, own = row["key"], (tokens or {}).get(str(row["kind"]), ())
        known = isinstance(key, int) and key < len(own)
        return Text(text_of([own[key]]).tokens[0] if known else "", "magenta")  # type: ignore[index]
    return Text(str(row[name]), "bold")


def _difference(row: Record, largest: float) -> Text:
    difference = _number(row, "difference")
    number = f"{difference:+.3f}".replace("-", "−")
    drawn = bar(abs(difference) / largest, BAR).ljust(BAR)
    return Text.assemble((number.rjust(NUMBER), "bold"), " ", (drawn, MORE if difference > 0 else LESS))


def _roles(row: Record, found: Ablation, roles: Roles | None, lang: str) -> list[Text]:
    return [] if roles is None or found.by != "head" else [role_text(roles, row, lang)]


def role_text(roles: Roles, row: Record, lang: str) -> Text:
    """The role of the head in a row with its kind, layer and head."""
    place = (row["kind"], row["layer"], row["head"])
    head: Head | None = next((one for one in roles if (one.kind, one.layer, one.head) == place), None)
    if head is None or head.best is not None or not head.scores:
        return Text("" if head is None else head.in_words(lang))
    # Without a clear role, the nearest one says more than nothing.
    nearest = max(head.scores, key=lambda role: head.scores[role].excess)
    return Text(replace(head, shown=nearest).in_words(lang), "dim")


def _number(row: Record, name: str) -> float:
    value = row[name]
    return float(value) if isinstance(value, int | float) else 0.0
