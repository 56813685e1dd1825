"""The heads that differ most between two recordings, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from regard.errors import RecordingError
from regard.heads import changes
from regard.languages import check_language
from regard.recording import Recording
from regard.table import Record
from regard.views.column_headings import TEXTS, heading, named
from regard.views.page.display_tokens import text_of

GAP = 2


def show_changes(
    console: Console,
    recording: Recording,
    other: Recording,
    *,
    layers: Sequence[int] | None = None,
    other_layers: Sequence[int] | None = None,
    most: int = 12,
    lang: str = "en",
) -> None:
    """Print the heads that changed most, each with the pair of tokens whose weight changed most.

    Recordings of different tokens cannot be compared head by head, which is said instead. Heads that did not
    change are not listed.
    """
    check_language(lang)
    try:
        found = changes(recording, other, layers=layers, other_layers=other_layers)
    except RecordingError:
        console.print(Text(TEXTS.say("changes.apart", lang), "yellow"))
        return
    rows = [row for row in found if row["divergence"]]
    if not rows:
        console.print(Text(TEXTS.say("changes.none", lang), "yellow"))
        return
    console.print(Text.assemble((TEXTS.say("changes.title", lang), "bold cyan")))
    columns = ["kind"] if len({call.kind for call in recording.calls}) > 1 else []
    columns += ["layer", "head"]
    columns += ["other_layer"] if any(row["layer"] != row["other_layer"] for row in rows) else []
    grid = Grid(box=None, padding=(0, GAP, 0, 0), pad_edge=False)
    headings = [heading(name, lang) for name in (*columns, "change")]
    for text in (*headings, TEXTS.say("changes.difference", lang)):
        grid.add_column(Text(text, "dim"), justify="right", no_wrap=True)
    grid.add_column(Text(TEXTS.say("changes.pair", lang), "dim"), no_wrap=True, overflow="ellipsis")
    for row in rows[:most]:
        cells = [named(name, str(row[name]), lang) for name in columns]
        grid.add_row(
            *cells, f"{row['divergence']:.3f}", f"{row['difference']:+.3f}", _pair(recording, other, row)
        )
    console.print(grid)
    if len(rows) > most:
        console.print(Text(TEXTS.say("rows.more", lang, rest=len(rows) - most), "dim"))


def _pair(recording: Recording, other: Recording, row: Record) -> Text:
    """The tokens of a query and a key; one that was replaced in the other recording is named twice."""
    both = zip(_names(recording, row, "layer"), _names(other, row, "other_layer"))
    query, key = (
        " / ".join(dict.fromkeys(filter(None, names))) or str(place)
        for names, place in zip(both, (row["query"], row["key"]))
    )
    return Text.assemble(query, (" → ", "dim"), key)


def _names(recording: Recording, row: Record, layer: str) -> list[str | None]:
    """The query and the key of a row of changes, as one recording calls them; None if it has no tokens."""
    kinds = [call.kind for call in recording.calls]
    kind = row["kind"] if row["kind"] in kinds else kinds[0]  # an encoder beside a decoder
    call = recording.layer(int(row[layer] or 0), kind=kind, run=0)
    places = zip((recording.row_tokens(call), recording.key_tokens(call)), (row["query"], row["key"]))
    return [None if tokens is None else text_of(tokens).tokens[int(place or 0)] for tokens, place in places]
