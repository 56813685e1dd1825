"""Answers in the terminal: each word shaded by its share, with the number below it, and the heads behind.

Blue speaks for the answer, orange against it; the numbers say the same without colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from regard.heads import Roles
from regard.heads.answer_shares import AnswerShares
from regard.languages import check_language
from regard.table import Record
from regard.views.column_headings import TEXTS, heading, named
from regard.views.page.display_tokens import text_of
from regard.views.terminal_effects import role_text
from regard.views.terminal_weights import bar

FOR, AGAINST = (40, 140, 255), (230, 120, 30)
"""Colours of shares above and below 0; the colour-blind can tell them apart."""

DARK = (38, 38, 46)

WHOLE = 240
"""Words of a text that is shown as a whole; of a longer one, the surroundings of the strongest words."""

AROUND = 8
"""Words before and after a strong one in a long text."""

STRONGEST = 10
"""Strong words of a long text."""

WIDEST = 14
"""Words that fit side by side in a terminal."""

NUMBER, BAR, GAP = 6, 12, 2
"""Characters of a share, of the longest bar, and between columns."""


@dataclass(frozen=True)
class ShadedWord:
    """A word, its share, and whether a space goes before it."""

    text: str
    share: float
    space: bool


def words_of(tokens: Sequence[str], shares: Sequence[float]) -> list[ShadedWord]:
    """The words that tokens make up, each with the sum of the shares of its pieces.

    >>> words_of(["[CLS]", "un", "##seen", "cat"], [0.1, 0.2, 0.3, 0.4])[1]
    ShadedWord(text='unseen', share=0.5, space=True)
    """
    text = text_of(tokens)
    found: list[ShadedWord] = []
    for place, (token, word) in enumerate(zip(text.tokens, text.words, strict=True)):
        share = float(shares[place])
        if word >= 0 and place and text.words[place - 1] == word:
            before = found.pop()
            found.append(ShadedWord(before.text + token, before.share + share, before.space))
        else:
            found.append(ShadedWord(token, share, text.spaces[place]))
    return found


def show_answers(
    console: Console,
    found: AnswerShares,
    answers: Sequence[str],
    *,
    tokens: Sequence[str],
    source_tokens: Sequence[str] | None = None,
    against: str | None = None,
    roles: Roles | None = None,
    most: int = 8,
    lang: str = "en",
) -> None:
    """Print what each answer rests on: words with their shares in per cent, then the strongest heads.

    Args:
        console: where to print.
        found: the shares.
        answers: what each answer is called.
        tokens, source_tokens: the text, and the one that a decoder looks at.
        against: what the answer was compared with.
        roles: what the heads look at.
        most: how many heads are printed.
        lang: "en" or "zh".
    """
    check_language(lang)
    if len(found.answers) == 1:
        _one(console, found, answers[0], tokens, source_tokens, against, lang)
    else:
        assert source_tokens is not None
        _several(console, found, answers, source_tokens, lang)
    console.print()
    _heads(console, found, roles, most, lang)


# ---- one answer ----------------------------------------------------------------------------------


def _one(
    console: Console,
    found: AnswerShares,
    name: str,
    tokens: Sequence[str],
    source_tokens: Sequence[str] | None,
    against: str | None,
    lang: str,
) -> None:
    answer = found.answers[0]
    said = TEXTS.say("answer.probability", lang, probability=answer.probability)
    if against is not None:
        logit = f"{answer.logit:+.2f}".replace("-", "−")
        said = TEXTS.say("answer.against", lang, other=against, logit=logit)
    console.print(Text.assemble((name, "bold"), "   ", said))
    console.print(Text(TEXTS.say(f"answer.{found.method}", lang), "dim"))
    sides = [words_of(tokens, answer.own.tolist())]
    if answer.source is not None and source_tokens is not None:
        sides.insert(0, words_of(source_tokens, answer.source.tolist()))
    largest = max((abs(word.share) for words in sides for word in words), default=0.0) or 1.0
    signed = any(word.share < 0 for words in sides for word in words)
    for words in sides:
        console.print()
        for line in _lines(words, largest, signed, console.width, lang):
            console.print(line, no_wrap=True, overflow="ignore", crop=True)


def _lines(words: Sequence[ShadedWord], largest: float, signed: bool, width: int, lang: str) -> list[Text]:
    """Words above, their shares below, as many side by side as fit."""
    found: list[Text] = []
    upper, lower = Text(), Text()
    for word in _kept(words, lang):
        number = "" if word.share == 0 else per_cent(word.share, signed)
        room = max(cell_len(word.text), cell_len(number))
        gap = 1 if upper.cell_len else 0
        if upper.cell_len and upper.cell_len + gap + room > width:
            found += [upper, lower]
            upper, lower, gap = Text(), Text(), 0
        style = tint(word.share / largest) if number else "dim"
        upper.append(" " * gap)
        upper.append(word.text + " " * (room - cell_len(word.text)), style)
        lower.append(" " * gap)
        lower.append(number + " " * (room - cell_len(number)), "dim" if number == "·" else "")
    return [*found, upper, lower]


def _kept(words: Sequence[ShadedWord], lang: str) -> list[ShadedWord]:
    """All words, or those around the strongest ones and how many are left out between them."""
    if len(words) <= WHOLE:
        return list(words)
    sizes = np.abs([word.share for word in words])
    kept = np.zeros(len(words), dtype=bool)
    for place in np.argsort(-sizes, kind="stable")[:STRONGEST]:
        if sizes[place] > 0:
            kept[max(0, place - AROUND) : place + AROUND + 1] = True
    found: list[ShadedWord] = []
    left = 0
    for word, keeps in zip(words, kept, strict=True):
        if keeps:
            found += [ShadedWord(TEXTS.say("answer.left", lang, count=left), 0.0, True)] * (left > 0)
            found.append(word)
            left = 0
        else:
            left += 1
    return found + [ShadedWord(TEXTS.say("answer.left", lang, count=left), 0.0, True)] * (left > 0)


def per_cent(share: float, signed: bool) -> str:
    """A share in whole per cent; a dot below one half.

    >>> per_cent(0.124, True), per_cent(-0.03, True), per_cent(0.004, False)
    ('+12', '−3', '·')
    """
    rounded = round(100 * share)
    if not rounded:
        return "·"
    return f"{rounded:+d}".replace("-", "−") if signed else str(rounded)


def tint(part: float) -> str:
    """A style for a share from −1 to 1: the stronger, the brighter the background."""
    colour = np.array(FOR if part >= 0 else AGAINST)
    red, green, blue = (int(x) for x in np.array(DARK) + (colour - DARK) * min(abs(part), 1.0))
    return f"bright_white on rgb({red},{green},{blue})"


# ---- several answers -----------------------------------------------------------------------------


def _several(
    console: Console, found: AnswerShares, answers: Sequence[str], source: Sequence[str], lang: str
) -> None:
    """A row for every token that was written, a column for every word of the source."""
    console.print(Text(TEXTS.say(f"answer.{found.method}", lang), "dim"))
    console.print(Text(TEXTS.say("answer.rest", lang), "dim"))
    console.print()
    rows = [words_of(source, answer.source.tolist()) for answer in found.answers if answer.source is not None]
    largest = max((abs(word.share) for words in rows for word in words), default=0.0) or 1.0
    signed = any(word.share < 0 for words in rows for word in words)
    if not rows or len(rows[0]) <= WIDEST:
        console.print(_matrix(rows, answers, largest, signed))
    else:
        console.print(_list(rows, answers, largest, signed))


def _matrix(
    rows: Sequence[Sequence[ShadedWord]], answers: Sequence[str], largest: float, signed: bool
) -> Grid:
    grid = Grid(box=None, padding=(0, 1, 0, 0))
    grid.add_column()
    for word in rows[0] if rows else ():
        grid.add_column(Text(word.text), justify="right", header_style="bold", no_wrap=True)
    for name, words in zip(answers, rows, strict=True):
        cells = [Text(per_cent(word.share, signed).rjust(3), tint(word.share / largest)) for word in words]
        grid.add_row(Text(name, "bold"), *cells)
    return grid


def _list(rows: Sequence[Sequence[ShadedWord]], answers: Sequence[str], largest: float, signed: bool) -> Grid:
    grid = Grid(box=None, padding=(0, 1), show_header=False)
    for name, words in zip(answers, rows, strict=True):
        best = max(words, key=lambda word: abs(word.share))
        grid.add_row(
            Text(name, "bold"),
            "←",
            Text(best.text),
            Text(per_cent(best.share, signed), justify="right"),
            Text(bar(abs(best.share) / largest, BAR), _colour(best.share)),
        )
    return grid


# ---- heads ---------------------------------------------------------------------------------------


def _heads(console: Console, found: AnswerShares, roles: Roles | None, most: int, lang: str) -> None:
    """The heads with the greatest shares."""
    table = found.heads
    rows = sorted(table, key=lambda row: -abs(_share(row)))[:most]
    console.print(Text(TEXTS.say("answer.heads", lang), "bold cyan"))
    several = len(set(table.column("kind"))) > 1
    columns = ["kind"] * several + ["layer", "head"]
    places = [[heading(name, lang), *(named(name, str(row[name]), lang) for row in rows)] for name in columns]
    grid = Grid(box=None, padding=(0, GAP, 0, 0), pad_edge=False)
    for name, column in zip(columns, places, strict=True):
        grid.add_column(Text(column[0], "dim"), justify="left" if name == "kind" else "right", no_wrap=True)
    grid.add_column(Text(TEXTS.say("answer.share", lang), "dim"), no_wrap=True)
    if roles is not None:
        # The rest of the line is for the role: rich would shorten every column alike.
        used = sum(max(map(cell_len, column)) + GAP for column in places) + NUMBER + 1 + BAR + GAP
        does = Text(TEXTS.say("roles.does", lang), "dim")
        grid.add_column(does, no_wrap=True, overflow="ellipsis", max_width=max(8, console.width - used))
    largest = max((abs(_share(row)) for row in rows), default=0.0) or 1.0
    for at, row in enumerate(rows, 1):
        share = _share(row)
        number = f"{100 * share:+.1f}".replace("-", "−").rjust(NUMBER)
        drawn = bar(abs(share) / largest, BAR).ljust(BAR)
        grid.add_row(
            *(Text(column[at]) for column in places),
            Text.assemble((number, "bold"), " ", (drawn, _colour(share))),
            *([] if roles is None else [role_text(roles, row, lang)]),
        )
    console.print(grid)
    if len(table) > most:
        console.print(Text(TEXTS.say("rows.more", lang, rest=len(table) - most), "dim"))


def _share(row: Record) -> float:
    value = row["share"]
    return float(value) if isinstance(value, int | float) else 0.0


def _colour(share: float) -> str:
    return "rgb({},{},{})".format(*(FOR if share >= 0 else AGAINST))
