"""``regard bench``: times the variants of attention on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard import atomic
from regard.app.languages import lang_option
from regard.app.output_errors import show
from regard.app.shared_options import figure_option, lengths_option

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from regard.lessons.timing import Timing, Timings, Variant

LENGTHS = (1024, 2048, 4096)
"""The first is the exercise: batch 8 × 1024 tokens × 64 channels, 100 rounds."""


@click.command()
@lengths_option(LENGTHS)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Rounds at the first length; fewer at longer ones.",
)
@click.option("--batch", type=click.IntRange(1), default=8, show_default=True, help="Number of sequences.")
@click.option("--heads", type=click.IntRange(1), default=1, show_default=True, help="Number of heads.")
@click.option("--channels", type=click.IntRange(1), default=64, show_default=True, help="Channels of a head.")
@click.option("--threads", type=click.IntRange(1), help="Threads for torch; by default its own choice.")
@click.option("--variant", "variants", multiple=True, help="Measure this variant; can be repeated.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of the table.")
@figure_option
@lang_option
def bench(
    lengths: tuple[int, ...],
    more: tuple[int, ...],
    rounds: int,
    batch: int,
    heads: int,
    channels: int,
    threads: int | None,
    variants: tuple[str, ...],
    as_csv: bool,
    path: Path | None,
    lang: str,
) -> None:
    """Time standard, causal, window, sparse and linear attention on this machine, beside torch's own.

    \b
    regard bench
    regard bench --length 1024 4096 16384 --rounds 10 --figure bench.png
    regard bench --variant standard --variant linear --csv
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from regard.lessons.facts import text
    from regard.lessons.timing import VARIANTS, plan_bench
    from regard.views.terminal_weights import SafeConsole

    atomic.check_writable(path)
    works = plan_bench(
        (*lengths, *more) or LENGTHS,
        batch=batch,
        heads=heads,
        channels=channels,
        rounds=rounds,
        threads=threads,
        variants=variants or VARIANTS,
    )
    console = SafeConsole(stderr=as_csv)
    found = _run(console, works, lang)
    if as_csv:
        show(_csv(found))
    else:
        setting = text(
            "bench.setting",
            lang,
            batch=batch,
            heads=heads,
            channels=channels,
            threads=works[0].threads,
            rounds=rounds,
        )
        console.print(setting, highlight=False, markup=False)
        console.print(_table(found, lang))
        for line in crossovers(found, lang):
            console.print(line, highlight=False)
        for note in ("bench.variants", "bench.note"):
            console.print(f"[dim]{text(note, lang)}[/]", highlight=False)
    if path is not None:
        console.print(text("saved", lang, path=_draw(found, path, lang)), highlight=False, markup=False)


def _run(console: Console, works: tuple[Variant, ...], lang: str) -> Timings:
    from rich.progress import Progress

    from regard.lessons.facts import text
    from regard.lessons.timing import run_bench

    # In a file there is only the table, without traces of a progress bar.
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(text("bench.progress", lang), total=len(works))

        def report(work: Variant) -> None:
            said = f"{text('bench.progress', lang)} {work.variant} {work.length:,}"
            progress.update(task, description=said, completed=works.index(work))

        return run_bench(works, report=report)


def _table(found: Timings, lang: str) -> Table:
    from rich.table import Table

    from regard.lessons.facts import text

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(text("bench.length", lang), justify="right")
    table.add_column(text("bench.variant", lang), style="bold")
    for name in ("time", "ratio", "memory"):
        table.add_column(text(f"bench.{name}", lang), justify="right")
    for place, length in enumerate(found.lengths):
        for variant in found.variants:
            row = found.row(length, variant)
            if row is not None:
                table.add_row(f"{length:,}", variant, *_cells(row, found.row(length, "standard"), lang))
        if place < len(found.lengths) - 1:
            table.add_section()
    return table


def _cells(row: Timing, standard: Timing | None, lang: str) -> tuple[str, str, str]:
    from regard.lessons.facts import text
    from regard.views.figures.units import binary

    if row.seconds is None:
        free = binary(row.available or 0)
        return "—", "—", text("bench.refused", lang, needed=binary(row.needed), available=free)
    ratio = "—" if standard is None or not standard.seconds else f"{row.seconds / standard.seconds:.2f}"
    return f"{1000 * row.seconds:.2f}", ratio, "—" if row.bytes is None else binary(row.bytes)


def crossovers(found: Timings, lang: str) -> list[str]:
    """The lengths from which the cheaper variants beat the standard one."""
    from regard.lessons.facts import text

    lines = []
    for first in ("window", "sparse", "linear"):
        if {first, "standard"} <= set(found.variants):
            length = found.crossover(first, "standard")
            key = "bench.never" if length is None else "bench.crossover"
            lines.append(text(key, lang, first=first, other="standard", length=length))
    return lines


def _csv(found: Timings) -> str:
    from regard.table import Table as Rows

    records = found.records()
    return Rows(tuple(records[0]), [tuple(record.values()) for record in records]).to_csv()


def _draw(found: Timings, path: Path, lang: str) -> Path:
    from regard.lessons.timing_figure import draw_bench
    from regard.views.figures import save

    return save(draw_bench(found, lang), path)
