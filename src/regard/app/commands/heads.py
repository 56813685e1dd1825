"""``regard heads``: the table of heads, in the terminal or as CSV or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from regard.app.languages import TEXTS, lang_option
from regard.app.number_list import NUMBERS
from regard.app.output_errors import show
from regard.app.shared_options import model_option
from regard.app.text_argument import HELP, read_argument


@click.command(epilog=HELP)
@click.argument("text", required=False)
@click.option("--recording", type=click.Path(path_type=Path), help="A saved recording instead of TEXT.")
@model_option
@click.option("--pair", metavar="TEXT", help="A second sentence, or the decoder's text.")
@click.option(
    "--generate", type=click.IntRange(0), default=0, metavar="N", help="Let the model generate N tokens."
)
@click.option("--layers", type=NUMBERS, help="Only these layers, for example 0,3-5.")
@click.option("--roles", is_flag=True, help="Show the roles of each head and their scores.")
@click.option("--sort", metavar="COLUMN", help="Sort by this column, largest first.")
@click.option("--ascending", is_flag=True, help="Sort smallest first.")
@click.option("--most", "--top", "most", type=click.IntRange(1), help="Show at most this many rows.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@lang_option
def heads(
    text: str | None,
    recording: Path | None,
    model: str | None,
    pair: str | None,
    generate: int,
    layers: list[int] | None,
    roles: bool,
    sort: str | None,
    ascending: bool,
    most: int | None,
    as_csv: bool,
    as_json: bool,
    lang: str,
) -> None:
    """Print what each head does with TEXT, one row per head.

    \b
    regard heads "The cat sat on the mat." --sort entropy --ascending --most 10
    regard heads "The cat sat on the mat." --roles
    regard heads @text.txt --model ./bert-base-uncased --csv > heads.csv
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from rich.text import Text

    from regard import heads as measured
    from regard.app.model_input import progress, record
    from regard.recording import load
    from regard.views.column_headings import column_of
    from regard.views.terminal_tables import short_text, show_table
    from regard.views.terminal_weights import SafeConsole

    if (text is None) == (recording is None):
        raise click.UsageError("Pass either a TEXT or --recording.")
    if as_csv and as_json:
        raise click.UsageError("Choose --csv or --json.")
    console = SafeConsole()
    quiet = SafeConsole(stderr=True)  # standard output gets only the table
    if recording is not None:
        if layers is not None:
            raise click.UsageError(
                "--layers chooses what to record; it cannot change an existing --recording."
            )
        seen = load(recording)
    else:
        assert text is not None
        options: dict[str, Any] = {} if layers is None else {"layers": layers}
        other = None if pair is None else read_argument(pair)
        seen = record(
            quiet, read_argument(text), model=model, pair=other, generate=generate, lang=lang, **options
        ).recording
    if roles:
        with progress(TEXTS.say("reading.roles", lang)) as report:
            played = measured.roles(seen, progress=report)
        if not (as_csv or as_json):
            show_table(console, played, most or 10**9, sort, descending=not ascending, lang=lang)
            return
        if played.short:
            quiet.print(short_text(played, lang), style="yellow")
    found = played.table if roles else measured.table(seen)
    if sort is not None:
        found = found.sort(column_of(found.columns, sort), descending=not ascending)
    most = len(found) if most is None else most
    if as_csv or as_json:
        show(found[:most].to_csv() if as_csv else found[:most].to_json())
    else:
        show_table(console, found, most, sort, descending=not ascending, lang=lang)
        console.print(Text(TEXTS.say("heads.legend", lang), "dim"))
