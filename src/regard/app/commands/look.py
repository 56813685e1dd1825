"""``regard look``: what every head of a model attends to in a text, as a page, a figure and a table."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard import atomic
from regard.app.desktop import has_desktop
from regard.app.languages import TEXTS, lang_option
from regard.app.number_list import NUMBERS
from regard.app.shared_options import check_page_file, force_option, model_option, pair_option
from regard.app.text_argument import HELP, read_argument
from regard.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from regard.ablation import Ablation
    from regard.app.model_input import RecordedText
    from regard.recording import Recording

PAGE = "look.html"
HEADS = 12
"""The number of heads listed in the terminal."""

LINES = 3
"""Lines of the terminal that the beginning of a text takes."""


@click.command(epilog=HELP)
@click.argument("text")
@model_option
@pair_option
@click.option(
    "--generate", type=click.IntRange(0), default=0, metavar="N", help="Let the model generate N tokens."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=PAGE,
    show_default=True,
    callback=check_page_file,
    help="The page to write; replaced if it exists.",
)
@click.option("--no-page", is_flag=True, help="Do not write a page.")
@click.option("--open", "opened", is_flag=True, help="Open the page in the browser.")
@click.option("--open-on-desktop", "on_desktop", is_flag=True, help="Open the page if there is a desktop.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    help="Also write a figure of --layer and --head as .png, .svg or .pdf.",
)
@click.option(
    "--gif",
    type=click.Path(path_type=Path),
    help="Also write an animation, .gif: the text being written, shaded by what each token attends to.",
)
@click.option(
    "--kind",
    type=click.Choice(["encoder", "decoder", "cross"]),
    help="The part of the model that --layer refers to.",
)
@click.option("--layer", type=click.IntRange(0), help="The layer shown first.")
@click.option("--head", type=click.IntRange(0), help="The head shown first.")
@click.option("--layers", type=NUMBERS, help="Record only these layers, for example 0,3-5.")
@click.option("--save", type=click.Path(path_type=Path), help="Also save the recording as .safetensors.")
@click.option(
    "--effects", is_flag=True, help="Measure how the answer changes without each head, for the page."
)
@click.option("--against", metavar="TEXT", help="Compare with how the model reads another text.")
@click.option("--with", "with_model", metavar="NAME-OR-PATH", help="Compare with how another model reads.")
@click.option(
    "--against-layers", type=NUMBERS, help="Compare --layers with these layers, in order, for example 2."
)
@lang_option
@force_option
@click.option("--yes", is_flag=True, hidden=True)  # the old name of --force
def look(
    text: str,
    model: str | None,
    pair: str | None,
    generate: int,
    out: Path,
    no_page: bool,
    opened: bool,
    on_desktop: bool,
    figure: Path | None,
    gif: Path | None,
    kind: str | None,
    layer: int | None,
    head: int | None,
    layers: list[int] | None,
    save: Path | None,
    effects: bool,
    against: str | None,
    with_model: str | None,
    against_layers: list[int] | None,
    lang: str,
    force: bool,
    yes: bool,
) -> None:
    """See what every head attends to in TEXT: the clearest heads in the terminal, all heads on a page.

    TEXT can be the path of a picture, if --model is an encoder of pictures, or of audio, if it is a Whisper
    model.

    \b
    regard look "The cat sat on the mat."
    regard look "The animal was tired." --model ./bert-base-uncased --open
    regard look "Once upon a time" --model ./gpt2 --generate 40 --figure head.png --layer 5 --head 1
    regard look photo.png --model ./vit-base --layer 11 --head 3 --figure head.png
    regard look talk.wav --model ./whisper-tiny.en --open
    regard look "it was too tired" --against "it was too wide" --model ./bert-base-uncased
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from regard.app.compared_input import Comparison, recorded_layers, second_side
    from regard.app.model_input import record
    from regard.app.speech_input import hear, is_audio_file, write_speech_page
    from regard.views.terminal_weights import SafeConsole

    if effects and (no_page or generate):
        raise click.UsageError("--effects needs a page, and a text that is not generated.")
    if against_layers is not None and layers is None:
        raise click.UsageError("--against-layers needs --layers, the layers to compare with them.")
    atomic.check_writable(figure, gif, save, None if no_page else out)
    console = SafeConsole()
    if is_audio_file(text):
        refused: dict[str, object] = {"--pair": pair, "--generate": generate, "--figure": figure}
        refused |= {"--gif": gif, "--kind": kind, "--layers": layers, "--save": save, "--effects": effects}
        refused |= {"--against": against, "--with": with_model}
        heard = hear(console, Path(text), model, refused, lang)
        if not no_page:
            title = Path(text).name
            write_speech_page(
                console, heard, out, title=title, layer=layer, head=head, force=force or yes, lang=lang
            )
            _open(out, opened, on_desktop)
        return
    text = read_argument(text)
    pair = None if pair is None else read_argument(pair)
    comparison = Comparison(None if against is None else read_argument(against), with_model, against_layers)
    reading: dict[str, Any] = {"generate": generate, "values": True, "next_tokens": True}
    recorded = recorded_layers(layers, comparison)
    some: dict[str, Any] = {} if recorded is None else {"layers": recorded}
    subject = record(console, text, model=model, pair=pair, lang=lang, **reading, **some)
    _say(console, subject, lang)
    if save is not None:
        subject.recording.save(save)
        name_file(console, save, TEXTS.say("look.recording", lang))
    if figure is not None:
        _draw(console, subject, figure, kind=kind, layer=layer, head=head, lang=lang)
    start: dict[str, Any] = {"kind": kind, "layer": layer, "head": head}
    if subject.alignment is not None and layers is None and set(start.values()) == {None}:
        start = _alignment_start()
    if gif is not None:
        _animate(console, subject, gif, lang=lang, **start)
    if comparison.wanted:
        asked: dict[str, Any] = {"text": text, "model": model, "pair": pair, "layers": layers}
        other, more = second_side(console, subject, comparison, lang=lang, **asked, **reading)
        start |= {"other": other, **more}
        _say_changes(console, subject, other, more, lang)
    if not no_page:
        if effects:
            start["effects"] = _effects(console, subject, model, pair, lang)
        _write_page(console, subject, out, force=force or yes, lang=lang, **start)
        _open(out, opened, on_desktop)


def _open(page: Path, opened: bool, on_desktop: bool) -> None:
    """Open a page in the browser, if that was asked for."""
    if opened or (on_desktop and has_desktop()):
        webbrowser.open(page.resolve().as_uri())


def _effects(
    console: Console, subject: RecordedText, model: str | None, pair: str | None, lang: str
) -> Ablation:
    """How the loss of the text, or the output of an encoder, changes without each head."""
    from regard import metrics
    from regard.ablation import ablate
    from regard.app.model_input import measured_text, progress

    other = None if pair is None else read_argument(pair)
    again = measured_text(console, subject.text, model=model, pair=other, lang=lang)
    with progress(TEXTS.say("ablate.sweeping", lang)) as report:
        metric = metrics.loss if again.has_logits else metrics.cosine
        return ablate(again.model, again.inputs, metric, progress=report)


def _alignment_start() -> dict[str, Any]:
    """A page of the built-in translator begins with the head that is known to align best."""
    from regard.translator import embedded_alignment_head

    best = embedded_alignment_head()
    return {"kind": "cross", "layer": best.layer, "head": best.head}


def name_file(console: Console, path: Path, what: str) -> None:
    """Print a file that was written, and what it is."""
    from rich.text import Text

    console.print(Text.assemble((str(path), "bold"), "  ", what))


def _draw(
    console: Console,
    subject: RecordedText,
    path: Path,
    *,
    kind: str | None,
    layer: int | None,
    head: int | None,
    lang: str,
) -> None:
    """One head as a figure; by default the first head of the first layer."""
    from regard.views.figures import heatmap, picture, save

    draw = heatmap if subject.recording.picture is None else picture
    save(draw(subject.recording, kind=kind, layer=layer or 0, head=head or 0, lang=lang), path)
    name_file(console, path, TEXTS.say("look.figure", lang))


def _animate(console: Console, subject: RecordedText, path: Path, *, lang: str, **start: Any) -> None:
    """The text being written, step by step."""
    from regard.app.model_input import busy
    from regard.views.figures import animate

    with busy(console, TEXTS.say("look.animating", lang)):
        animate(subject.recording, path, lang=lang, **start)
    name_file(console, path, TEXTS.say("look.animation", lang))


def _write_page(
    console: Console, subject: RecordedText, path: Path, *, force: bool, lang: str, **start: Any
) -> None:
    """Print the size of the page, then write it, above the limit only with ``force``."""
    from regard.app.model_input import busy
    from regard.views.page import estimate_page, page
    from regard.views.page.write_page import LARGEST

    size = estimate_page(subject.recording, layers=start.get("layers"))
    if start.get("other") is not None:
        size += estimate_page(start["other"], layers=start.get("other_layers"))
    console.print(TEXTS.say("look.page", lang, size=size.in_words(lang)), highlight=False)
    if size.nbytes > LARGEST and not force:
        raise ArgumentError(
            "A page can have at most {largest:.0f} MB; browsers become slow beyond that.",
            got="{in_words}",
            do="Choose fewer layers, for example with --layers 0-3, or write it anyway with --force.",
            largest=LARGEST / 1e6,
            in_words=size.in_words(lang),
        )
    title = subject.text if len(subject.text) <= 80 else f"{subject.text[:79]}…"
    with busy(console, TEXTS.say("look.writing", lang)):
        written = page(subject.recording, path=path, title=title, force=force, lang=lang, **start)
    megabytes = written.stat().st_size / 1e6
    name_file(console, written, TEXTS.say("look.written", lang, megabytes=megabytes))


def _say(console: Console, subject: RecordedText, lang: str) -> None:
    """Print the translation, the alignment and the clearest heads."""
    from rich.text import Text

    from regard.app.model_input import progress
    from regard.heads import roles
    from regard.views.terminal_alignment import show_alignment
    from regard.views.terminal_tables import show_telling

    if subject.alignment is not None:
        show_alignment(console, subject.alignment, lang=lang)
    else:
        console.print(Text(subject.model, "bold"))
        console.print(_beginning(subject, console.width))
        count = max(call.keys for call in subject.recording.calls)
        console.print(Text(TEXTS.say("look.tokens", lang, count=count), "dim"))
    console.print()
    telling, numbers = (TEXTS.say(key, lang) for key in ("look.telling", "look.numbers"))
    console.print(Text.assemble((telling, "bold cyan"), "   ", numbers))
    with progress(TEXTS.say("reading.roles", lang)) as report:
        found = roles(subject.recording, progress=report)
    show_telling(console, found, most=HEADS, lang=lang)
    console.print()


def _say_changes(
    console: Console, subject: RecordedText, other: Recording, sides: dict[str, Any], lang: str
) -> None:
    """Print the heads that changed most."""
    from regard.views.terminal_changes import show_changes

    layers = {name: sides[name] for name in ("layers", "other_layers")}
    show_changes(console, subject.recording, other, **layers, most=HEADS, lang=lang)
    console.print()


def _beginning(subject: RecordedText, width: int) -> Text:
    """The tokens, as many as fit on three lines: a book would flood the terminal."""
    from rich.text import Text

    tokens = subject.recording.tokens
    text = Text(" ".join(tokens[0]) if tokens else subject.text)
    text.truncate(LINES * width - 1, overflow="ellipsis")
    return text
