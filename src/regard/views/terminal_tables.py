"""What heads do, in the terminal: tables with bars, and a sentence about the clearest heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import expm1

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from regard.checks import check_integer
from regard.errors import ArgumentError, DtypeError
from regard.heads import Head, Roles, Score, Table
from regard.heads.role_results import CLEAR, ROLES, SHORT, in_words
from regard.languages import check_language
from regard.table import Record, Value
from regard.views.column_headings import TEXTS, column_of, heading, named
from regard.views.page.display_tokens import text_of
from regard.views.terminal_weights import bar, shade

BAR = "rgb(40,140,255)"
SHORTEST_BAR, LONGEST_BAR = 4, 10
"""Characters of a bar. Where there is less room, the cell is shaded instead."""

NUMBER = 4
"""Characters of a share: 0.97."""

EXAMPLE = 16
"""The least width of an example of a role."""

SHARES = (
    "relative_entropy", "self_weight", "previous_weight", "first_weight", "peak", "received_peak",
    "divergence", *ROLES,
)  # fmt: skip
"""Columns between 0 and 1, which are drawn as bars."""

LEFT_OUT = (
    "call", "name", "queries", "visible", "p", "example_batch", "example_query", "example_key",
    "example_weight",
)  # fmt: skip
"""Columns that a file needs and a reader does not."""

ONLY_IF_SEVERAL = ("kind", "run")
"""Columns that are omitted where all rows have the same value."""

OF_ONE_ROLE = 3
"""How many heads of one role ``show_telling`` lists: a fourth would show nothing new."""

LEANS = 0.3
"""The least excess over chance of a role that a head may have, although it is not clear."""

# ---- tables ----------------------------------------------------------------------------------


def show_table(
    console: Console,
    table: Table | Roles,
    most: int = 20,
    sort: str | None = None,
    *,
    descending: bool = True,
    lang: str = "en",
) -> None:
    """Print a table of heads: shares as bars where there is room, as shades where there is little.

    ``sort`` names a column of the table; ``most`` rows are printed and the others counted. For roles,
    each head is shown with its best one in words, clearest first, and the tokens that show it;
    sorted by a role, with that one. ``lang`` is the language of the words, "en" or "zh".
    """
    check_language(lang)
    if isinstance(table, Roles):
        _show_roles(console, table, most, sort, descending=descending, lang=lang)
        return
    if not isinstance(table, Table):
        raise DtypeError(
            "show_table needs a Table or Roles of regard.heads.",
            got="{type}",
            do="Pass regard.heads.table(seen) or regard.heads.roles(seen).",
            type=type(table).__name__,
        )
    sort = None if sort is None else column_of(table.columns, sort)
    rows = table if sort is None else table.sort(sort, descending=descending)
    _print(console, rows[:most], _columns(rows), sort, lang)
    _print_rest(console, len(rows) - most, lang)


def _columns(table: Table) -> list[str]:
    """The columns to show: those with values, and those of position whose values differ."""
    values = {name: set(table.column(name)) for name in table.columns}
    return [
        name
        for name in table.columns
        if name not in LEFT_OUT
        and values[name] != {None}
        and not (name in ONLY_IF_SEVERAL and len(values[name]) < 2)
    ]


def _print(console: Console, table: Table, columns: list[str], sort: str | None, lang: str) -> None:
    columns, gap, length = _planned(console.width, table, columns, lang)
    grid = _grid(gap)
    for name in columns:
        right = not any(isinstance(value, str) for value in table.column(name)) and not (
            length and name in SHARES
        )
        style = "bold cyan" if name == sort else "dim"
        grid.add_column(Text(heading(name, lang), style), justify="right" if right else "left", no_wrap=True)
    for row in table:
        grid.add_row(*(_cell(name, row[name], length, lang) for name in columns))
    console.print(grid)


def _planned(width: int, table: Table, columns: list[str], lang: str) -> tuple[list[str], int, int]:
    """The columns that fit, the room between them, and the length of bars; columns go from the right."""
    while True:
        widths = [
            _widest(heading(name, lang), *(_plain(name, row[name], lang) for row in table))
            for name in columns
        ]
        for gap in (2, 1):
            free = width - sum(widths) - gap * (len(columns) - 1)
            if free >= 0 or len(columns) == 1:
                return columns, gap, _bar_length(free, widths, columns)
        columns = columns[:-1]


def _bar_length(free: int, widths: list[int], columns: list[str]) -> int:
    """The longest bar with which the columns of shares still fit."""
    shares = [width for width, name in zip(widths, columns) if name in SHARES]
    for length in range(LONGEST_BAR, SHORTEST_BAR - 1, -1):
        if shares and sum(max(0, NUMBER + 1 + length - width) for width in shares) <= free:
            return length
    return 0


def _grid(gap: int) -> Grid:
    return Grid(box=None, padding=(0, gap, 0, 0), pad_edge=False)


def _widest(*texts: str) -> int:
    """Cells of the terminal that the widest text takes; a Chinese character takes two."""
    return max(map(cell_len, texts))


def _cell(name: str, value: Value, length: int, lang: str) -> Text:
    if value is None:
        return Text("–", "dim")
    if name not in SHARES or isinstance(value, str):
        return Text(_plain(name, value, lang), "bold" if name in ("layer", "head") else "")
    if not length:
        return Text(f"{value:.2f}", shade(value))
    return _share(value, length)


def _share(value: float, length: int) -> Text:
    """A number and its bar, if there is room for one."""
    tone = "bold" if value >= 0.5 else "" if value >= 0.1 else "dim"
    number = Text(f"{value:.2f}", tone)
    return number.append(" ").append(bar(value, length).ljust(length), BAR) if length else number


def _plain(name: str, value: Value, lang: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return named(name, value, lang)
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _print_rest(console: Console, rest: int, lang: str) -> None:
    if rest > 0:
        console.print(Text(TEXTS.say("rows.more", lang, rest=rest), "dim"))


# ---- roles -----------------------------------------------------------------------------------


def _show_roles(
    console: Console, roles: Roles, most: int, sort: str | None, *, descending: bool, lang: str
) -> None:
    sort = None if sort is None else column_of(roles.table.columns, sort)
    role = sort if sort in roles.names else None
    heads = _ordered(roles, sort, descending=descending)
    clear = [head for head in heads if head.best is not None or role is not None]
    if clear:
        several = len({head.kind for head in heads}) > 1
        console.print(_role_grid(clear[:most], role, several=several, width=console.width, lang=lang))
    _print_rest(console, len(clear) - most, lang)
    if roles.short:
        console.print(Text(short_text(roles, lang), "yellow"))
    by_chance = sum(
        head.best is None and any(s.excess >= CLEAR for s in head.scores.values()) for head in heads
    )
    if by_chance:
        key = "roles.chance.one" if by_chance == 1 else "roles.chance.several"
        console.print(Text(TEXTS.say(key, lang, count=by_chance), "dim"))
    if len(clear) < len(heads):
        _print_unclear(console, len(heads) - len(clear), lang)


def _print_unclear(console: Console, count: int, lang: str) -> None:
    key = "roles.unclear.one" if count == 1 else "roles.unclear.several"
    console.print(Text(TEXTS.say(key, lang, count=count), "dim"))


def show_telling(console: Console, roles: Roles, most: int = 12, *, lang: str = "en") -> None:
    """Print the most informative heads of a text, at most three of one role.

    First those with a clear role, then those that may have one, because short texts cannot show more,
    and last those that attend everywhere.
    """
    check_language(lang)
    heads = telling_heads(roles)[:most]
    if heads:
        several = len({head.kind for head in roles}) > 1
        console.print(_role_grid(heads, None, several=several, width=console.width, lang=lang))
    if roles.short:
        console.print(Text(short_text(roles, lang), "yellow"))
    if heads:
        _print_rest(console, len(roles) - len(heads), lang)
    else:
        _print_unclear(console, len(roles), lang)


def telling_heads(roles: Roles) -> list[Head]:
    """The heads of ``show_telling`` in order; one whose role is not clear shows it as ``head.shown``.

    >>> heads = [Head(0, "", "encoder", 0, i, 0, {"first": Score(0.9)}) for i in range(5)]
    >>> heads += [Head(0, "", "encoder", 0, 5, 0, {"next": Score(0.6)})]
    >>> [(head.head, head.best) for head in telling_heads(Roles(tuple(heads)))]
    [(0, 'first'), (5, 'next'), (1, 'first'), (2, 'first')]
    """
    clear = _in_turn(list(roles))
    particular = [head for head in clear if head.best != "broad"]
    broad = [head for head in clear if head.best == "broad"]
    counts: Counter[str] = Counter()
    kept = []
    for head in (*particular, *_leaning(roles, clear), *broad):
        role = head.shown or head.best or ""
        counts[role] += 1
        if counts[role] <= OF_ONE_ROLE:
            kept.append(head)
    listed = {(head.call, head.head) for head in kept if head.shown}
    return [head for head in kept if head.shown or (head.call, head.head) not in listed]


def _leaning(roles: Roles, clear: Sequence[Head]) -> list[Head]:
    """Heads without a clear role, or with none but breadth, that score high in a particular one."""
    particular = {(head.call, head.head) for head in clear if head.best != "broad"}
    found: list[tuple[float, Head]] = []
    for head in roles:
        scores = {
            role: score.excess
            for role, score in head.scores.items()
            if role != "broad" and score.excess >= LEANS and score.example is not None
        }
        if scores and (head.call, head.head) not in particular:
            role = max(scores, key=lambda name: scores[name])
            found.append((scores[role], replace(head, shown=role)))
    return [head for _, head in sorted(found, key=lambda pair: -pair[0])]


def short_text(roles: Roles, lang: str = "en") -> str:
    """A note that the text is too short for reliable roles."""
    key = "roles.short.one" if roles.tokens == 1 else "roles.short"
    return TEXTS.say(key, lang, tokens=roles.tokens, least=SHORT)


def _ordered(roles: Roles, sort: str | None, *, descending: bool) -> list[Head]:
    """The heads in the order of a column of their table; by default the clearest first."""
    if sort is None:
        clear = roles.clearest(len(roles))
        return [*clear, *(head for head in roles if head.best is None)]
    table = roles.table
    order = Table(("at", sort), list(enumerate(table.column(sort)))).sort(sort, descending=descending)
    return [roles[at] for at in order.column("at") if isinstance(at, int)]


def _role_grid(heads: Sequence[Head], role: str | None, *, several: bool, width: int, lang: str) -> Grid:
    length = 12 if width >= 100 else 6
    # A narrow terminal has room for a bar or for the example, which says more.
    while length and width - _room_before_the_example(heads, length, several=several, lang=lang) < EXAMPLE:
        length -= 1
    scored = TEXTS.say("roles.score", lang) if role is None else named("best", role, lang)
    grid = _grid(2)
    if several:
        grid.add_column(Text(heading("kind", lang), "dim"), no_wrap=True)
    grid.add_column(Text(heading("layer", lang), "dim"), justify="right", no_wrap=True)
    grid.add_column(Text(heading("head", lang), "dim"), justify="right", no_wrap=True)
    grid.add_column(Text(TEXTS.say("roles.does", lang), "dim"), no_wrap=True)
    grid.add_column(Text(scored, "dim" if role is None else "bold cyan"), no_wrap=True)
    # The rest of the line is for the example; rich would shorten all columns equally.
    rest = width - _room_before_the_example(heads, length, several=several, lang=lang)
    grid.add_column(
        Text(TEXTS.say("roles.example", lang), "dim"),
        no_wrap=True,
        overflow="ellipsis",
        max_width=max(8, rest),
    )
    for head in heads:
        grid.add_row(*_role_cells(head, role, length, several=several, lang=lang))
    return grid


def _room_before_the_example(heads: Sequence[Head], length: int, *, several: bool, lang: str) -> int:
    """Cells of all columns but the last, with the gaps after them."""
    taken = [
        _widest(heading("layer", lang), *(str(head.layer) for head in heads)),
        _widest(heading("head", lang), *(str(head.head) for head in heads)),
        _widest(TEXTS.say("roles.does", lang), *(_does(head, lang).plain for head in heads)),
        NUMBER + bool(length) + length,
    ]
    if several:
        taken.append(_widest(*(named("kind", kind, lang) for kind in ("encoder", "decoder", "cross"))))
    return sum(taken) + 2 * len(taken)


def _role_cells(head: Head, role: str | None, length: int, *, several: bool, lang: str) -> list[Text]:
    """Where a head is, what it does, how clearly, and an example."""
    kind = [Text(named("kind", head.kind, lang))] if several else []
    place = [Text(str(head.layer), "bold"), Text(str(head.head), "bold")]
    return [*kind, *place, _does(head, lang), *_shown(head, role, length)]


def _does(head: Head, lang: str) -> Text:
    """What a head does, in words."""
    if head.shown is not None:
        return Text(TEXTS.say("roles.perhaps", lang, role=in_words(head.shown, lang)), "dim")
    if head.best is None:
        return Text(TEXTS.say("roles.unclear", lang), "dim")
    return Text(in_words(head.best, lang))


def _shown(head: Head, role: str | None, length: int) -> list[Text]:
    """The score of a role, by default the best one, and the tokens that show it."""
    score = head.scores.get(role or head.shown or head.best or "")
    if score is None:
        return [Text("–", "dim"), Text("")]
    pair = score.example
    if pair is None or pair.key_token is None:
        return [_share(score.value, length), Text("")]
    here = str(pair.query) if pair.query_token is None else _readable(pair.query_token)
    words = Text.assemble((here, "green"), (" → ", "dim"), (_readable(pair.key_token), "magenta"))
    return [_share(score.value, length), words]


def _readable(token: str) -> str:
    """A token without the marks of its tokenizer."""
    return text_of([token]).tokens[0]


# ---- in words --------------------------------------------------------------------------------


def most_telling(found: Table | Roles, count: int = 5, *, lang: str = "en") -> list[str]:
    """The few heads with the clearest roles, one line each; every role comes once before any comes twice.

    A table of ``heads.table`` shows fewer roles than ``heads.roles``: previous, self, first and broad.

    >>> roles = Roles((Head(2, "", "encoder", 2, 5, 0, {"previous": Score(0.93)}),))
    >>> most_telling(roles), most_telling(roles, lang="zh")
    (['layer 2 head 5 attends to the previous token (0.93)'], ['第 2 层第 5 头关注前一个词元（0.93）'])
    """
    check_language(lang)
    check_integer("count", count, least=0, example=5)
    if isinstance(found, Roles):
        heads = list(found)
    elif isinstance(found, Table):
        heads = [_judged(row) for row in _with_averages(found)]
    else:
        raise DtypeError(
            "most_telling needs a Table or Roles of regard.heads.",
            got="{type}",
            do="Pass regard.heads.table(seen) or regard.heads.roles(seen).",
            type=type(found).__name__,
        )
    several = len({head.kind for head in heads}) > 1
    return [_told(head, several=several, lang=lang) for head in _in_turn(heads)[:count]]


def _in_turn(heads: Sequence[Head]) -> list[Head]:
    """The heads with a clear role: the clearest of every role, then the second of every role, and so on."""
    roles = dict.fromkeys((*ROLES, *(role for head in heads for role in head.scores)))
    by_role: dict[str, list[tuple[float, Head]]] = {role: [] for role in roles}
    for head in heads:
        if head.best is not None:
            # Rounded, so that values that look equal keep their order.
            by_role[head.best].append((-round(head.scores[head.best].excess, 3), head))
    ranked = [
        (rank, less, head)
        for group in by_role.values()
        for rank, (less, head) in enumerate(sorted(group, key=lambda pair: pair[0]))
    ]
    return [head for _, _, head in sorted(ranked, key=lambda place: place[:2])]


def _told(head: Head, *, several: bool, lang: str) -> str:
    key = "telling.kind" if several else "telling"
    values = {"layer": head.layer, "head": head.head, "does": head.in_words(lang)}
    if several:
        values["kind"] = named("kind", head.kind, lang)
    return TEXTS.say(key, lang, **values)


def _with_averages(table: Table) -> Table:
    wanted = ("layer", "head", "kind", "entropy", "visible", "previous_weight", "self_weight", "first_weight")
    if not set(wanted) <= set(table.columns):
        raise ArgumentError(
            "most_telling needs the table of regard.heads.table, with its columns.",
            got="columns {columns}",
            do="Pass regard.heads.table(seen) or regard.heads.roles(seen).",
            columns=", ".join(table.columns),
        )
    return table


def _judged(row: Record) -> Head:
    """A head judged by its averages alone."""
    numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
    scores: dict[str, Score] = {}
    if row["visible"] is not None and numbers["visible"] > 1:
        even = 1 / numbers["visible"]
        for role in ("previous", "self", "first"):
            scores[role] = Score(min(1.0, numbers[f"{role}_weight"]), even)
        scores["broad"] = Score(min(1.0, expm1(numbers["entropy"]) / (numbers["visible"] - 1)))
    place = (int(numbers.get(name, 0)) for name in ("call", "layer", "head", "run"))
    call, layer, head, run = place
    return Head(call, str(row.get("name", "")), str(row["kind"]), layer, head, run, scores)  # type: ignore[arg-type]
