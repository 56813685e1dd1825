"""``regard doctor``: checks that regard works on this machine, and says what to do if it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from regard.app.languages import TEXTS, lang_option
from regard.app.output_errors import show

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from regard.diagnosis import Diagnosis

STYLES = {"ok": "bold green", "note": "bold yellow", "broken": "bold red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@lang_option
@click.pass_context
def doctor(context: click.Context, as_json: bool, lang: str) -> None:
    """Check that regard works here: versions, CPU, kernels, half precision, extras, caches, speed.

    Prints one line for each, and what to do if something is missing. The exit status is 1 if anything is
    broken. Please add the output to bug reports.

    \b
    regard doctor
    regard doctor --json > doctor.json
    """
    from regard.diagnosis import doctor as examined
    from regard.views.terminal_weights import SafeConsole

    console = SafeConsole(stderr=as_json)
    with console.status(TEXTS.say("doctor.examining", lang)):
        found = examined(lang=lang)
    if as_json:
        show(found.to_json())
    else:
        console.print(_lines(found))
        _sum_up(console, found, lang)
    if found.broken:
        context.exit(1)


def _lines(diagnosis: Diagnosis) -> Table:
    """One line per check: a mark, the name, what was found; below it, what to do."""
    from rich.table import Table
    from rich.text import Text

    from regard.diagnosis.finding import MARKS

    table = Table.grid(padding=(0, 2, 0, 0))
    for column in ("mark", "name"):
        table.add_column(column, no_wrap=True)
    table.add_column("found", overflow="fold")
    for check in diagnosis:
        found = Text(check.found, "" if check.status == "ok" else STYLES[check.status])
        if check.do:
            found.append(f"\n→ {check.do}", "default not bold")
        table.add_row(Text(MARKS[check.status], STYLES[check.status]), Text(check.title, "bold"), found)
    return table


def _sum_up(console: Console, diagnosis: Diagnosis, lang: str) -> None:
    from rich.text import Text

    broken = sum(check.status == "broken" for check in diagnosis)
    key, style = ("doctor.broken", STYLES["broken"]) if broken else ("doctor.works", STYLES["ok"])
    console.print()
    console.print(Text(TEXTS.say(key, lang, count=broken), style))
