"""An alignment in the terminal: English words as columns, Chinese characters as rows."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from regard.translator.alignment import TranslationAlignment
from regard.views.column_headings import TEXTS
from regard.views.terminal_weights import bar, shade

WIDEST = 14
"""Words that fit side by side in a terminal."""


def show_alignment(console: Console, alignment: TranslationAlignment, *, lang: str = "en") -> None:
    """The translation, and for each of its characters the weight on every English word, in per cent."""
    by = alignment.by
    explained = TEXTS.say("alignment.by", lang, layer=by.layer, head=by.head)
    # The user's text is a Text, because rich would read brackets in a str as markup.
    console.print(Text.assemble((alignment.translation, "bold"), "   ", alignment.text))
    console.print(Text(explained, "dim"))
    console.print(_matrix(alignment) if len(alignment.words) <= WIDEST else _list(alignment))


def _matrix(alignment: TranslationAlignment) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column()
    for word in alignment.words:
        table.add_column(Text(word), justify="right", header_style="bold", no_wrap=True)
    for character, row in zip(alignment.translation, alignment.weights.tolist(), strict=True):
        cells = [Text(f"{100 * weight:.0f}".rjust(3), shade(weight)) for weight in row]
        table.add_row(Text(character, "bold"), *cells)
    return table


def _list(alignment: TranslationAlignment) -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False)
    for place, character in enumerate(alignment.translation):
        weight = float(alignment.weights[place].max())
        table.add_row(
            Text(character, "bold"),
            "←",
            Text(alignment.strongest(place)),
            f"{100 * weight:.0f} %",
            Text(bar(weight), "rgb(40,140,255)"),
        )
    return table
