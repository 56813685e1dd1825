"""The input of a command: a text, read by the built-in translator or by a model that the user names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.app.counted_modules import modules_counted
from regard.app.languages import TEXTS
from regard.app.unknown_words import warn_of_unknown
from regard.errors import ArgumentError, reason

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from torch import nn

    from regard.edits import Edit
    from regard.recording import Recording
    from regard.recording.reader import Reader
    from regard.translator import TranslationAlignment


BUILT_IN = "translator"
"""The name of the built-in translator, where a model can be named."""


@dataclass(frozen=True, eq=False)
class RecordedText:
    """A text, the name of the model that read it, the recording and the alignment."""

    text: str
    model: str
    recording: Recording
    alignment: TranslationAlignment | None = None


@dataclass(frozen=True, eq=False)
class MeasuredText:
    """A text with the model that reads it, so that it can be read again with another attention."""

    model: nn.Module
    inputs: Any
    recording: Recording
    tokenizer: Any = None
    unread: Mapping[str, Sequence[str]] = field(default_factory=dict)  # in the inputs, not in the recording

    @property
    def has_logits(self) -> bool:
        """Whether the model says what comes next."""
        return self.tokenizer is None or bool(self.model.can_generate())  # type: ignore[operator]

    @property
    def key_tokens(self) -> dict[str, list[str]]:
        """The tokens that are keys, by kind: a decoder attends to what it wrote, cross to the source."""
        calls = {call.kind: call for call in self.recording.calls}
        found = {kind: self.recording.key_tokens(call) for kind, call in calls.items()}
        return {kind: [*tokens, *self.unread.get(kind, ())] for kind, tokens in found.items() if tokens}


def measured_text(
    console: Console, text: str, *, model: str | None = None, pair: str | None = None, lang: str = "en"
) -> MeasuredText:
    """Read a text and record it, and keep the model and its inputs."""
    if model in (None, BUILT_IN):
        return _measured_translation(console, text, pair, lang)
    from regard.recording import load_reader

    with busy(console, TEXTS.say("reading.loading", lang, model=model)):
        reader = load_reader(model)
    with busy(console, TEXTS.say("reading.reading", lang)):
        inputs = reader.inputs(text, pair=pair)
        seen = reader.read(text, pair=pair)
    return MeasuredText(reader.model, inputs, seen, reader.tokenizer)


def _measured_translation(console: Console, text: str, pair: str | None, lang: str) -> MeasuredText:
    """The built-in translator with a sentence and its own translation, or a given one."""
    import torch

    from regard.translator import embedded, look
    from regard.translator.vocabulary import END, SPECIALS, START

    sentence = " ".join(text.split())
    with busy(console, TEXTS.say("reading.translating", lang)):
        translator = embedded()
        seen = look(translator, sentence, translation=pair)
    console.print(seen.translation, style="bold", markup=False, highlight=False)
    target = [START, *translator.encode_translation(sentence, seen.translation), END]
    inputs = (torch.tensor([translator.encode(sentence)]), torch.tensor([target]))
    # The last character is followed by the end, which is never read when it is written.
    return MeasuredText(translator.model, inputs, seen.recording, unread={"decoder": [SPECIALS[END]]})


def record(
    console: Console,
    text: str,
    *,
    model: str | None = None,
    pair: str | None = None,
    generate: int = 0,
    next_tokens: bool = False,
    edit: Edit | None = None,
    lang: str = "en",
    **watching: Any,
) -> RecordedText:
    """Read a text, or the picture in a file, and record it, showing what takes time.

    With a picture, ``pair`` is what a vision-language model is asked about it.
    """
    if is_picture_file(text):
        watching["next_tokens"] = next_tokens
        return _of_picture(console, Path(text), model, pair, generate, edit, lang, watching)
    if model in (None, BUILT_IN):
        return _by_the_translator(console, text, pair, generate, edit, lang, watching)
    with busy(console, TEXTS.say("reading.loading", lang, model=model)):
        reader = _loaded_reader(model)
    says = TEXTS.say("reading.reading", lang)
    with (
        busy(console, says) as sign,
        progress(says, sign) as report,
        modules_counted(reader.model, report),
        _edited(reader.model, edit),
    ):
        seen = reader.read(text, pair=pair, generate=generate, next_tokens=next_tokens, **watching)
    return RecordedText(text, model, seen)


@lru_cache(maxsize=1)
def _loaded_reader(model: str) -> Reader:
    """The model with its tokenizer; the last one is kept, because two texts may be compared."""
    from regard.recording import load_reader

    return load_reader(model)


PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
"""The endings of files that are read as pictures."""


def is_picture_file(text: str) -> bool:
    """Whether a text is the path of a picture: one line with the ending of a picture, and the file exists."""
    return len(text) < 4096 and text.lower().endswith(PICTURES) and "\n" not in text and Path(text).is_file()


def _of_picture(
    console: Console,
    path: Path,
    model: str | None,
    pair: str | None,
    generate: int,
    edit: Edit | None,
    lang: str,
    watching: dict[str, Any],
) -> RecordedText:
    if model in (None, BUILT_IN) or generate:
        raise ArgumentError(
            "A picture must be read by an image model, which generates nothing.",
            got="{path}",
            do="Name a model with --model FOLDER, and omit --generate.",
            path=path,
        )
    from PIL import Image, UnidentifiedImageError

    from regard.recording import VisionLanguageReader, load_picture_reader

    try:
        with Image.open(path) as opened:
            image = opened.convert("RGB")
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ArgumentError(
            "A file with the extension of a picture must hold a picture.",
            got="{path}: {reason}",
            do="Save it again as PNG.",
            path=path,
            reason=reason(error),
        ) from error
    with busy(console, TEXTS.say("reading.loading", lang, model=model)):
        reader = load_picture_reader(model)
    next_tokens = watching.pop("next_tokens")
    # Layers are counted in the part that is recorded.
    part = reader.language_model if isinstance(reader, VisionLanguageReader) else reader.model
    with busy(console, TEXTS.say("reading.reading", lang)), _edited(part, edit):
        if isinstance(reader, VisionLanguageReader):
            seen = reader.read(image, pair, next_tokens=next_tokens, **watching)
        elif pair is None:
            seen = reader.read(image, **watching)
        else:
            raise ArgumentError(
                "An image encoder must be given a picture alone.",
                got="{path} and a text",
                do="Omit the text, or choose a vision-language model.",
                path=path,
            )
    return RecordedText(path.name, model, seen)


def _by_the_translator(
    console: Console,
    text: str,
    pair: str | None,
    generate: int,
    edit: Edit | None,
    lang: str,
    watching: dict[str, Any],
) -> RecordedText:
    if generate:
        raise ArgumentError(
            "The built-in translator always writes its whole translation.",
            got="--generate {generate}",
            do="Omit it, or choose a decoder with --model.",
            generate=generate,
        )
    from regard.translator import embedded, embedded_alignment_head, look
    from regard.translator.alignment import alignment_of

    sentence = " ".join(text.split())
    with busy(console, TEXTS.say("reading.translating", lang)):
        translator = embedded()
        warn_of_unknown(translator, [sentence], lang)
        with _edited(translator.model, edit):
            seen = look(translator, sentence, translation=pair, **watching)
        aligned = None
        if "layers" not in watching and "heads" not in watching:
            aligned = alignment_of(seen, translator.vocabularies, embedded_alignment_head())
    return RecordedText(sentence, TEXTS.say("reading.translator", lang), seen.recording, aligned)


def _edited(model: nn.Module, edit: Edit | None) -> AbstractContextManager[object]:
    """The model with its attention edited, or unchanged."""
    from regard.edits.model_edit import edit as edited

    return nullcontext() if edit is None else edited(model, edit)


@contextmanager
def busy(console: Console, says: str) -> Iterator[Status]:
    """A spinner while something takes time; it leaves no trace."""
    from rich.text import Text

    with console.status(Text(says)) as sign:  # in a str, rich would read brackets as markup
        yield sign


PROGRESS_DELAY = 2.0
"""Seconds after which progress is shown."""


@contextmanager
def progress(says: str, sign: Status | None = None) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error for work of more than two seconds, only in a terminal.

    Yields a function to call with the amount done and the total. ``sign`` stops when the bar starts.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    begun, task = time.monotonic(), None
    bar = Progress(console=Console(stderr=True), transient=True)

    def report(done: int, total: int) -> None:
        nonlocal task
        if not bar.console.is_terminal or time.monotonic() - begun < PROGRESS_DELAY:
            return
        if task is None:
            if sign is not None:
                sign.stop()
            bar.start()
            task = bar.add_task(escape(says), total=total)
        bar.update(task, completed=done)

    try:
        yield report
    finally:
        if task is not None:
            bar.stop()
