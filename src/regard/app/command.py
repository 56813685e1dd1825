"""The ``regard`` command. Rooms are imported inside the commands, so that ``--help`` is instant."""

from __future__ import annotations

import click

from regard.app.bench import bench
from regard.app.cost import cost
from regard.app.demo import demo
from regard.app.heads import heads
from regard.app.look import look
from regard.app.mask import mask
from regard.app.serve import serve
from regard.app.survey import survey
from regard.app.train import train
from regard.app.translate import translate
from regard.errors import RegardError
from regard.version import __version__

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Clean(click.Group):
    """Turns regard's own errors into one clean message; everything else is a bug and shows itself."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except RegardError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Clean, context_settings=CONTEXT)
@click.version_option(__version__, message="regard %(version)s")
def main() -> None:
    """Compute, see and measure attention, exactly, at any length."""


@main.command()
@click.argument("text")
@click.option("--heads", default=1, show_default=True, help="Number of heads.")
@click.option("--width", default=4, show_default=True, help="Channels of the word vectors.")
@click.option(
    "--mask", "mask_text", metavar="MASK", help='Who may look at whom, e.g. "causal" or "window(1, 1)".'
)
@click.option("--seed", default=42, show_default=True, help="Chooses the vectors.")
def explain(text: str, heads: int, width: int, mask_text: str | None, seed: int) -> None:
    """Show attention over the words of TEXT, step by step, with every number.

    \b
    regard explain "I love AI"
    regard explain "I love AI" --mask causal --heads 2
    """
    from rich.console import Console

    from regard.lessons.sentence import attend_sentence
    from regard.masks import parse
    from regard.views.terminal import show_strongest, show_trace

    lesson = attend_sentence(
        text, width=width, heads=heads, mask=parse(mask_text) if mask_text else None, seed=seed
    )
    console = Console()
    console.print(
        f"[bold]{' '.join(lesson.words)}[/]   {len(lesson.words)} words, {width} channels, heads: {heads}",
        highlight=False,
    )
    console.print()
    show_trace(console, lesson.trace, lesson.words)
    console.print(
        "[bold cyan]who looks at whom[/], averaged over the heads"
        if heads > 1
        else "[bold cyan]who looks at whom[/]"
    )
    show_strongest(console, lesson.trace["weights"].mean(axis=0), lesson.words, lesson.words)


for command in (look, heads, mask, cost, bench, demo, translate, train, survey, serve):
    main.add_command(command)
