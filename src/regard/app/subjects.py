"""What a command is about: a text read by the embedded translator or by a model that the user names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.app.languages.wording import TEXTS
from regard.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console

    from regard.recording import Recording
    from regard.translator import Alignment


@dataclass(frozen=True, eq=False)
class Subject:
    """A text that was read: the recording, a name for the model, what came out."""

    text: str
    model: str
    recording: Recording
    alignment: Alignment | None = None


def record(
    console: Console,
    text: str,
    *,
    model: str | None = None,
    pair: str | None = None,
    generate: int = 0,
    lang: str = "en",
    **watching: Any,
) -> Subject:
    """Read a text and record it, saying what takes time."""
    if model is None:
        return _by_the_translator(console, text, pair, generate, lang, watching)
    from regard.recording import load_reader

    with busy(console, TEXTS.say("reading.loading", lang, model=model)):
        reader = load_reader(model)
    with busy(console, TEXTS.say("reading.reading", lang)):
        seen = reader.read(text, pair=pair, generate=generate, **watching)
    return Subject(text, model, seen)


def _by_the_translator(
    console: Console, text: str, pair: str | None, generate: int, lang: str, watching: dict[str, Any]
) -> Subject:
    if generate:
        raise ArgumentError(
            "The embedded translator writes its whole translation.",
            got=f"--generate {generate}",
            do="Leave it out, or name a decoder with --model.",
        )
    from regard.translator import embedded, embedded_alignment_head, look
    from regard.translator.aligning import alignment_of

    sentence = " ".join(text.split())
    with busy(console, TEXTS.say("reading.translating", lang)):
        translator = embedded()
        seen = look(translator, sentence, translation=pair, **watching)
        aligned = None
        if "layers" not in watching and "heads" not in watching:
            aligned = alignment_of(seen, translator.vocabularies.english, embedded_alignment_head())
    return Subject(sentence, TEXTS.say("reading.translator", lang), seen.recording, aligned)


@contextmanager
def busy(console: Console, says: str) -> Iterator[None]:
    """A sign of life while something takes time; nothing of it stays."""
    from rich.text import Text

    with console.status(Text(says)):  # as a str, brackets in a name would be marks of rich
        yield
