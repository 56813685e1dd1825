"""``regard demo``: runs a demonstration and shows its numbers."""

from __future__ import annotations

from pathlib import Path

import click

from regard import atomic
from regard.app.languages import lang_option
from regard.app.shared_options import figure_option


@click.command()
@click.argument("name", required=False)
@figure_option
@lang_option
def demo(name: str | None, path: Path | None, lang: str) -> None:
    """Run the demonstration NAME and show its numbers; without NAME, list them all.

    \b
    regard demo
    regard demo scaling --figure scaling.png
    regard demo words --lang zh
    """
    from rich.table import Table

    from regard.errors import ArgumentError
    from regard.lessons import demonstration, demonstrations
    from regard.lessons.facts import text
    from regard.views.terminal_weights import SafeConsole

    console = SafeConsole()
    if name is None:
        if path is not None:
            raise ArgumentError(
                "--figure needs the name of one demonstration.",
                got="--figure without a name",
                do="Try regard demo scaling --figure scaling.png.",
            )
        console.print(text("demo.list", lang), highlight=False)
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for one in demonstrations():
            table.add_row(f"[bold cyan]{one.name}[/]", one.claim(lang))
        console.print(table)
        return
    atomic.check_writable(path)
    chosen = demonstration(name)
    console.print(f"[bold]{chosen.title(lang)}[/]", highlight=False)
    console.print(f"[dim]{chosen.claim(lang)}[/]", highlight=False)
    found = chosen.show()
    for fact in found.facts():
        console.print(f"  {fact.say(lang)}", highlight=False, markup=False)
    if path is not None:
        from regard.views.figures import save

        saved = save(chosen.draw(found, lang), path)
        console.print(text("saved", lang, path=saved), highlight=False, markup=False)
