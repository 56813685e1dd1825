"""``regard look``: what every head of a model looks at in a text, as a page, a figure, and in words."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard import atomic
from regard.app.languages import TEXTS, lang_option
from regard.app.number_list import NUMBERS
from regard.app.text_argument import HELP, read_argument
from regard.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console

    from regard.ablation import Ablation
    from regard.app.model_input import Subject

PAGE = "look.html"
HEADS = 12
"""How many heads are worth a line."""


@click.command(epilog=HELP)
@click.argument("text")
@click.option(
    "--model", metavar="NAME-OR-PATH", help="A model of transformers; the embedded translator without it."
)
@click.option(
    "--pair",
    metavar="TEXT",
    help="A second sentence; for an encoder-decoder the translation to look at.",
)
@click.option(
    "--generate", type=click.IntRange(0), default=0, metavar="N", help="Let the model go on for N tokens."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=PAGE,
    show_default=True,
    help="The page; replaced if it exists.",
)
@click.option("--no-page", is_flag=True, help="Write no page.")
@click.option("--open", "opened", is_flag=True, help="Open the page in the browser.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    help="Also a figure of --layer and --head as .png, .svg or .pdf.",
)
@click.option("--kind", type=click.Choice(["encoder", "decoder", "cross"]), help="Whose --layer is meant.")
@click.option("--layer", type=click.IntRange(0), help="Layer to begin with.")
@click.option("--head", type=click.IntRange(0), help="Head to begin with.")
@click.option("--layers", type=NUMBERS, help="Record these layers alone: 0,3-5.")
@click.option("--save", type=click.Path(path_type=Path), help="Also the recording, as .safetensors.")
@click.option(
    "--effects", is_flag=True, help="Measure what the answer loses without each head, for the page."
)
@lang_option
@click.option("--yes", is_flag=True, help="Write a page above 200 MB too.")
def look(
    text: str,
    model: str | None,
    pair: str | None,
    generate: int,
    out: Path,
    no_page: bool,
    opened: bool,
    figure: Path | None,
    kind: str | None,
    layer: int | None,
    head: int | None,
    layers: list[int] | None,
    save: Path | None,
    effects: bool,
    lang: str,
    yes: bool,
) -> None:
    """See what every head looks at in TEXT: the most telling heads here, all of them on a page.

    \b
    regard look "The cat sat on the mat."
    regard look "The animal was tired." --model ./bert-base-uncased --open
    regard look "Once upon a time" --model ./gpt2 --generate 40 --figure head.png --layer 5 --head 1
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from regard.app.model_input import record
    from regard.views.terminal_weights import SafeConsole

    if effects and (no_page or generate):
        raise click.UsageError("--effects is for a page, of a text that is not generated.")
    atomic.check_writable(figure, save, None if no_page else out)
    console = SafeConsole()
    options = {"layers": layers} if layers is not None else {}
    subject = record(
        console,
        read_argument(text),
        model=model,
        pair=None if pair is None else read_argument(pair),
        generate=generate,
        values=True,
        lang=lang,
        **options,
    )
    _say(console, subject, lang)
    if save is not None:
        subject.recording.save(save)
        _name(console, save, TEXTS.say("look.recording", lang))
    if figure is not None:
        _draw(console, subject, figure, kind=kind, layer=layer, head=head, lang=lang)
    if not no_page:
        measured = _effects(console, subject, model, pair, lang) if effects else None
        start = {"kind": kind, "layer": layer, "head": head, "effects": measured}
        _write_page(console, subject, out, yes=yes, lang=lang, **start)
        if opened:
            webbrowser.open(out.resolve().as_uri())


def _effects(console: Console, subject: Subject, model: str | None, pair: str | None, lang: str) -> Ablation:
    """What the loss of the text, or the output of an encoder, loses without each head."""
    from regard import metrics
    from regard.ablation import ablate
    from regard.app.model_input import measured_text, progress

    other = None if pair is None else read_argument(pair)
    again = measured_text(console, subject.text, model=model, pair=other, lang=lang)
    with progress(TEXTS.say("ablate.sweeping", lang)) as tell:
        metric = metrics.loss if again.has_logits else metrics.cosine
        return ablate(again.model, again.inputs, metric, progress=tell)


def _name(console: Console, path: Path, what: str) -> None:
    """A file that was written, and what it is."""
    from rich.text import Text

    console.print(Text.assemble((str(path), "bold"), "  ", what))


def _draw(
    console: Console,
    subject: Subject,
    path: Path,
    *,
    kind: str | None,
    layer: int | None,
    head: int | None,
    lang: str,
) -> None:
    """One head as a figure; the first one of the first layer unless told."""
    from regard.views.figures import heatmap, save

    save(heatmap(subject.recording, kind=kind, layer=layer or 0, head=head or 0, lang=lang), path)
    _name(console, path, TEXTS.say("look.figure", lang))


def _write_page(
    console: Console, subject: Subject, path: Path, *, yes: bool, lang: str, **start: Any
) -> None:
    """The page, once its size is said and, above the limit, wanted."""
    from regard.app.model_input import busy
    from regard.views.page import estimate_page, page
    from regard.views.page.write_page import LARGEST

    size = estimate_page(subject.recording)
    console.print(TEXTS.say("look.page", lang, size=size.in_words(lang)), highlight=False)
    if size.nbytes > LARGEST and not yes:
        raise ArgumentError(
            "A page has at most {LARGEST:.0f} MB, because browsers get slow beyond.",
            got="{in_words}",
            do="Choose fewer layers with --layers 0-3, say, or insist with --yes.",
            LARGEST=LARGEST / 1000000.0,
            in_words=size.in_words(lang),
        )
    title = subject.text if len(subject.text) <= 80 else f"{subject.text[:79]}…"
    with busy(console, TEXTS.say("look.writing", lang)):
        written = page(subject.recording, path, title=title, yes=yes, lang=lang, **start)
    megabytes = written.stat().st_size / 1e6
    _name(console, written, TEXTS.say("look.written", lang, megabytes=megabytes))


def _say(console: Console, subject: Subject, lang: str) -> None:
    """The translation, the alignment, the most telling heads."""
    from rich.text import Text

    from regard.app.model_input import progress
    from regard.heads import roles
    from regard.views.terminal_alignment import show_alignment
    from regard.views.terminal_tables import show_table

    if subject.alignment is not None:
        show_alignment(console, subject.alignment, lang=lang)
    else:
        console.print(Text(subject.model, "bold"))
        tokens = subject.recording.tokens
        console.print(" ".join(tokens[0]) if tokens else subject.text, markup=False, emoji=False)
    console.print()
    telling, numbers = (TEXTS.say(key, lang) for key in ("look.telling", "look.numbers"))
    console.print(Text.assemble((telling, "bold cyan"), "   ", numbers))
    with progress(TEXTS.say("reading.roles", lang)) as tell:
        found = roles(subject.recording, progress=tell)
    show_table(console, found, most=HEADS, lang=lang)
    console.print()
