"""``regard mask``: which keys each query may see, drawn, and what it costs."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard import atomic
from regard.app.languages import lang_option
from regard.app.shared_options import figure_option

if TYPE_CHECKING:
    from regard.kernels import Plan
    from regard.masks import Mask

TALLEST = 48
"""The most lines of a drawing, about what fits on a screen."""


@click.command()
@click.argument("mask_text", metavar="MASK")
@click.option(
    "-n", "--length", type=click.IntRange(1), default=16, show_default=True, help="Number of queries."
)
@click.option("--queries", type=click.IntRange(1), hidden=True)  # the old name of --length
@click.option("--keys", type=click.IntRange(1), help="Number of keys; by default as many as queries.")
@figure_option
@lang_option
def mask(
    mask_text: str, length: int, queries: int | None, keys: int | None, path: Path | None, lang: str
) -> None:
    """Draw MASK: which keys each query may see, how many pairs that makes, and how regard computes it.

    \b
    regard mask "causal & window(4, 0)"
    regard mask "local_global(64)" -n 8192
    regard mask "causal" -n 4 --keys 12 --figure mask.png
    """
    from regard.kernels import plan
    from regard.lessons.facts import text
    from regard.masks import parse
    from regard.masks.mask import extent_of
    from regard.views.terminal_mask import mask_grid
    from regard.views.terminal_weights import SafeConsole

    atomic.check_writable(path)
    console = SafeConsole()
    extent = extent_of(queries or length, keys)
    parsed = parse(mask_text)
    found = plan(parsed, *extent)
    for member, one in _members(parsed, lang):
        grid = mask_grid(one, extent, columns=min(console.width, 2 * TALLEST + 12), rows=TALLEST)
        console.print(f"[bold]{one!r}[/]{member}", highlight=False)
        for line in grid.lines():
            console.print(line, no_wrap=True, crop=True)
        said = (
            text("mask.cell", lang)
            if grid.whole
            else text("mask.block", lang, tall=grid.tall, wide=grid.wide)
        )
        console.print(f"[dim]{said}[/]", highlight=False)
    console.print()
    for said in summary(found, lang):
        console.print(said, highlight=False, markup=False)
    if path is not None:
        from regard.views.figures import mask as draw_mask
        from regard.views.figures import save

        lead = parsed.lead
        figure = draw_mask(parsed, *extent, index=(0,) * len(lead) if lead else None, lang=lang)
        console.print(text("saved", lang, path=save(figure, path)), highlight=False, markup=False)


def _members(mask: Mask, lang: str) -> list[tuple[str, Mask]]:
    """The first element of the leading axes, as an example of all; if there are others, how many."""
    if not mask.lead:
        return [("", mask)]
    from regard.lessons.facts import text

    count = prod(mask.lead)
    said = "  " + text("mask.first", lang, count=count) if count > 1 else ""
    return [(said, mask.select((0,) * len(mask.lead)))]


def summary(found: Plan, lang: str) -> list[str]:
    """Allowed pairs and density, the path, and what it saves compared with dense attention."""
    from regard.lessons.facts import text

    lines = [
        text("mask.allowed", lang, pairs=found.pairs, all=found.total, share=100 * found.pairs / found.total),
        text("mask.path", lang, path=found.path),
        text("mask.computed", lang, computed=found.computed, calls=found.calls),
    ]
    if not found.computed:
        return [*lines, text("mask.empty", lang)]
    if found.computed == found.total:
        return [*lines, text("mask.saved.nothing", lang)]
    saved = 100 * (1 - found.computed / found.total)
    return [*lines, text("mask.saved", lang, saved=saved, times=found.total / found.computed)]
