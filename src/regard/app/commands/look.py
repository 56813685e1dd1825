"""``regard look``: what every head of a model attends to in a text, as a page, a figure and a table."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard import atomic
from regard.app.desktop import has_desktop
from regard.app.languages import TEXTS, lang_option
from regard.app.number_list import NUMBERS
from regard.app.shared_options import (
    check_figure_file,
    check_page_file,
    force_option,
    model_option,
    pair_option,
)
from regard.app.text_argument import HELP, read_argument
from regard.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from regard.ablation import Ablation
    from regard.app.compared_input import Comparison
    from regard.app.model_input import RecordedText
    from regard.recording import Recording

PAGE = "look.html"
HEADS = 12
"""The number of heads listed in the terminal."""

LINES = 3
"""Lines of the terminal that the beginning of a text takes."""


@click.command(epilog=HELP)
@click.argument("text")
@click.argument("question", required=False)
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
    callback=check_figure_file,
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
@click.option(
    "--edit",
    metavar="EDIT",
    help="Compare with a run in which attention is edited, for example 'remove(layers=3, heads=1)'.",
)
@lang_option
@force_option
@click.option("--yes", is_flag=True, hidden=True)  # the old name of --force
def look(**options: Any) -> None:
    """See what every head attends to in TEXT: the clearest heads in the terminal, all heads on a page.

    TEXT can be the path of a picture, if --model is an image encoder, or of audio, if it is a Whisper
    model. A vision-language model reads the picture with QUESTION; by default it is asked to describe
    it.

    \b
    regard look "The cat sat on the mat."
    regard look "The animal was tired." --model ./bert-base-uncased --open
    regard look "Once upon a time" --model ./gpt2 --generate 40 --figure head.png --layer 5 --head 1
    regard look photo.png --model ./vit-base --layer 11 --head 3 --figure head.png
    regard look photo.png "What is this?" --model ./llava-1.5-7b-hf --open
    regard look talk.wav --model ./whisper-tiny.en --open
    regard look "it was too tired" --against "it was too wide" --model ./bert-base-uncased
    regard look "it was too tired" --edit "block(span(4, 5), layers=range(0, 3))" --model ./bert-base-uncased
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from regard.app.speech_input import is_audio_file
    from regard.views.terminal_weights import SafeConsole

    asked = LookOptions(**options)
    asked.check()
    console = SafeConsole()
    if is_audio_file(asked.text):
        _look_at_audio(console, asked)
    else:
        _look_at_text(console, asked)


@dataclass(frozen=True)
class LookOptions:
    """What the user asked for, by the names of the options."""

    text: str
    question: str | None
    model: str | None
    pair: str | None
    generate: int
    out: Path
    no_page: bool
    opened: bool
    on_desktop: bool
    figure: Path | None
    gif: Path | None
    kind: str | None
    layer: int | None
    head: int | None
    layers: list[int] | None
    save: Path | None
    effects: bool
    against: str | None
    with_model: str | None
    against_layers: list[int] | None
    edit: str | None
    lang: str
    force: bool
    yes: bool

    def check(self) -> None:
        """Raise for options that contradict each other, and for files that cannot be written."""
        if self.effects and (self.no_page or self.generate):
            raise click.UsageError("--effects needs a page, and a text that is not generated.")
        if self.question is not None:
            self._check_question()
        if self.against_layers is not None and self.layers is None:
            raise click.UsageError("--against-layers needs --layers, the layers to compare with them.")
        atomic.check_writable(self.figure, self.gif, self.save, None if self.no_page else self.out)

    def _check_question(self) -> None:
        from regard.app.model_input import is_picture_file

        if not is_picture_file(self.text):
            raise click.UsageError("QUESTION needs a picture. Put quotes around a text of several words.")
        if self.pair is not None:
            raise click.UsageError("A picture is read with QUESTION or --pair, not with both.")

    @property
    def second_text(self) -> str | None:
        """The text that is read with TEXT."""
        return self.pair if self.question is None else self.question

    @property
    def large_page(self) -> bool:
        """Whether a page may be larger than browsers like."""
        return self.force or self.yes

    def for_texts(self) -> dict[str, object]:
        """The options that audio has no use for, by name."""
        return {
            "--pair": self.pair,
            "--generate": self.generate,
            "--figure": self.figure,
            "--gif": self.gif,
            "--kind": self.kind,
            "--layers": self.layers,
            "--save": self.save,
            "--effects": self.effects,
            "--against": self.against,
            "--with": self.with_model,
            "--edit": self.edit,
        }

    def comparison(self) -> Comparison:
        """What to compare with."""
        from regard import edits
        from regard.app.compared_input import Comparison

        against = None if self.against is None else read_argument(self.against)
        edit = None if self.edit is None else edits.parse(self.edit)
        return Comparison(against, self.with_model, self.against_layers, edit)

    def start(self, subject: RecordedText) -> dict[str, Any]:
        """The head that is shown first."""
        chosen = {"kind": self.kind, "layer": self.layer, "head": self.head}
        if subject.alignment is not None and self.layers is None and set(chosen.values()) == {None}:
            return _alignment_start()
        return chosen

    def open_page(self) -> None:
        """Open the page in the browser, if that was asked for."""
        if self.opened or (self.on_desktop and has_desktop()):
            webbrowser.open(self.out.resolve().as_uri())


def _look_at_audio(console: Console, asked: LookOptions) -> None:
    from regard.app.speech_input import hear, write_speech_page

    path, lang = Path(asked.text), asked.lang
    heard = hear(console, path, asked.model, asked.for_texts(), lang)
    if not asked.no_page:
        start: dict[str, Any] = {"layer": asked.layer, "head": asked.head}
        write_speech_page(
            console, heard, asked.out, title=path.name, force=asked.large_page, lang=lang, **start
        )
        asked.open_page()


def _look_at_text(console: Console, asked: LookOptions) -> None:
    from regard.app.compared_input import recorded_layers, second_side
    from regard.app.model_input import record

    text, lang, comparison = read_argument(asked.text), asked.lang, asked.comparison()
    pair = None if asked.second_text is None else read_argument(asked.second_text)
    reading: dict[str, Any] = {"generate": asked.generate, "values": True, "next_tokens": True}
    layers = recorded_layers(asked.layers, comparison)
    some: dict[str, Any] = {} if layers is None else {"layers": layers}
    subject = record(console, text, model=asked.model, pair=pair, lang=lang, **reading, **some)
    _say(console, subject, lang)
    if asked.save is not None:
        subject.recording.save(asked.save)
        name_file(console, asked.save, TEXTS.say("look.recording", lang))
    if asked.figure is not None:
        _draw(console, subject, asked)
    start = asked.start(subject)
    if asked.gif is not None:
        _animate(console, subject, asked.gif, lang=lang, **start)
    if comparison.wanted:
        both: dict[str, Any] = {"text": text, "model": asked.model, "pair": pair, "layers": asked.layers}
        other, more = second_side(console, subject, comparison, lang=lang, **both, **reading)
        start |= {"other": other, **more}
        if comparison.edit is not None:
            _say_edited(console, subject, other, more["names"][1])
        _say_changes(console, subject, other, more, lang)
    if not asked.no_page:
        if asked.effects:
            start["effects"] = _effects(console, subject, asked.model, pair, lang)
        _write_page(console, subject, asked.out, force=asked.large_page, lang=lang, **start)
        asked.open_page()


def _effects(
    console: Console, subject: RecordedText, model: str | None, pair: str | None, lang: str
) -> Ablation:
    """How the loss of the text, or the output of an encoder, changes without each head."""
    from regard import metrics
    from regard.ablation import ablate
    from regard.app.model_input import measured_text, progress

    if subject.recording.picture is not None:
        raise ArgumentError("--effects needs a text.", got="a picture", do="Omit --effects, or pass a text.")
    again = measured_text(console, subject.text, model=model, pair=pair, lang=lang)
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


def _draw(console: Console, subject: RecordedText, asked: LookOptions) -> None:
    """One head as a figure; by default the first head of the first layer."""
    from regard.views.figures import heatmap, picture, save

    assert asked.figure is not None
    draw = heatmap if subject.recording.picture is None else picture
    head: dict[str, Any] = {"kind": asked.kind, "layer": asked.layer or 0, "head": asked.head or 0}
    save(draw(subject.recording, lang=asked.lang, **head), asked.figure)
    name_file(console, asked.figure, TEXTS.say("look.figure", asked.lang))


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
        console.print(_beginning(subject.recording, subject.text, console.width))
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


def _say_edited(console: Console, subject: RecordedText, other: Recording, name: str) -> None:
    """Print what the model wrote under the edit, if it wrote something else."""
    from rich.text import Text

    if other.tokens != subject.recording.tokens:
        console.print(Text(name, "bold"))
        console.print(_beginning(other, "", console.width))
        console.print()


def _beginning(recording: Recording, text: str, width: int) -> Text:
    """The tokens, as many as fit on three lines: a book would flood the terminal."""
    from rich.text import Text

    from regard.views.page.display_tokens import text_of

    tokens = recording.tokens
    shown = Text(" ".join(text_of(tokens[0][: LINES * width]).tokens) if tokens else text)
    shown.truncate(LINES * width - 1, overflow="ellipsis")
    return shown
