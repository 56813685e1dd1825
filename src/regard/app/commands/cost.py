"""``regard cost``: operations and bytes of every step, as a table, CSV or a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard import atomic
from regard.app.languages import lang_option
from regard.app.output_errors import show
from regard.app.shared_options import figure_option, lengths_option

if TYPE_CHECKING:
    from rich.table import Table

    from regard.kernels import Cost

LENGTHS = (512, 2048, 8192)


@click.command()
@lengths_option(LENGTHS)
@click.option("--keys", type=click.IntRange(1), help="Number of keys, if they are another text.")
@click.option("--width", default=512, show_default=True, help="Channels of a token.")
@click.option("--heads", default=8, show_default=True, help="Query heads.")
@click.option("--kv-heads", "key_heads", type=int, help="Key and value heads; by default as many as --heads.")
@click.option("--layers", default=1, show_default=True, help="Number of layers; multiplies everything.")
@click.option("--batch", default=1, show_default=True, help="Number of sequences; multiplies everything.")
@click.option("--dtype", default="float32", show_default=True, help="float64, float32, float16 or bfloat16.")
@click.option(
    "--mask", "mask_text", metavar="MASK", help='For example "causal" or "causal & window(127, 0)".'
)
@click.option(
    "--projections/--no-projections", default=True, show_default=True, help="Include W_q, W_k, W_v and W_o."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print exact numbers as CSV.")
@figure_option
@lang_option
def cost(
    lengths: tuple[int, ...],
    more: tuple[int, ...],
    keys: int | None,
    width: int,
    heads: int,
    key_heads: int | None,
    layers: int,
    batch: int,
    dtype: str,
    mask_text: str | None,
    projections: bool,
    as_csv: bool,
    path: Path | None,
    lang: str,
) -> None:
    """Show what attention costs at each length: operations and bytes of every step.

    \b
    regard cost --length 512 2048 8192 --width 512 --heads 8
    regard cost --length 8192 --mask "causal & window(127, 0)" --csv
    regard cost --length 1024 4096 16384 --figure cost.png
    """
    from regard.kernels import cost as count
    from regard.lessons.facts import text
    from regard.views.terminal_weights import SafeConsole

    atomic.check_writable(path)
    found = count(
        (*lengths, *more) or LENGTHS,
        keys,
        width=width,
        heads=heads,
        key_heads=key_heads,
        layers=layers,
        batch=batch,
        dtype=dtype,
        mask=mask_text,
        projections=projections,
    )
    console = SafeConsole(stderr=as_csv)
    if as_csv:
        show(found.to_csv())
    else:
        console.print(found.setting_in_words(lang), highlight=False, markup=False)
        for length in found.lengths:
            for what in ("operations", "bytes"):
                console.print(_table(found, length, what, lang))
        console.print(f"[dim]{text('cost.note', lang)}[/]", highlight=False)
    if path is not None:
        console.print(text("saved", lang, path=_draw(found, path, lang)), highlight=False, markup=False)


def _table(found: Cost, length: int, what: str, lang: str) -> Table:
    """One row for each step and one column for each variant; ``what`` is "operations" or "bytes"."""
    from rich.table import Table
    from rich.text import Text

    from regard.kernels.cost_model import step_in_words
    from regard.lessons.facts import text
    from regard.views.figures.units import binary, si

    unit = si if what == "operations" else binary
    ways = [found[length, name] for name in found.names]
    title = text(f"cost.title.{what}", lang, length=length)
    table = Table(box=None, padding=(0, 1, 0, 0), title=title, title_justify="left")
    table.add_column(text("cost.step", lang), style="bold", no_wrap=True)
    table.add_column(text("cost.formula", lang), style="italic", no_wrap=True)
    for way in ways:
        table.add_column(way.name, justify="right", no_wrap=True)
    for name, formula in dict.fromkeys((step.name, step.formula) for way in ways for step in way.steps):
        cells = [
            "".join(
                unit(getattr(step, what)) for step in way.steps if step.name == name and getattr(step, what)
            )
            for way in ways
        ]
        if any(cells):
            table.add_row(step_in_words(name, lang), Text(formula), *cells)
    table.add_row(text("cost.total", lang), "", *(unit(getattr(way, what)) for way in ways), style="bold")
    if what == "operations":
        table.add_row(text("cost.pairs", lang), "", *(si(way.pairs) if way.pairs else "" for way in ways))
    return table


def _draw(found: Cost, path: Path, lang: str) -> Path:
    from regard.views.figures import cost as draw_cost
    from regard.views.figures import save

    lengths = sorted(found.lengths)
    return save(
        draw_cost(
            lengths,
            operations={name: [found[n, name].operations for n in lengths] for name in found.names},
            bytes={name: [found[n, name].bytes for n in lengths] for name in found.names},
            title=found.mask,
            lang=lang,
        ),
        path,
    )
