"""What a command is about: a text read by the embedded translator or by a model that the user names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    **watching: Any,
) -> Subject:
    """Read a text and record it, saying what takes time."""
    if model is None:
        return _by_the_translator(console, text, pair, generate, watching)
    from regard.recording import load_reader

    with busy(console, f"loading {model} …"):
        reader = load_reader(model)
    with busy(console, "reading …"):
        seen = reader.read(text, pair=pair, generate=generate, **watching)
    return Subject(text, model, seen)


def _by_the_translator(
    console: Console, text: str, pair: str | None, generate: int, watching: dict[str, Any]
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
    with busy(console, "translating …"):
        translator = embedded()
        seen = look(translator, sentence, translation=pair, **watching)
        aligned = None
        if "layers" not in watching and "heads" not in watching:
            aligned = alignment_of(seen, translator.vocabularies.english, embedded_alignment_head())
    return Subject(sentence, "the embedded translator", seen.recording, aligned)


@contextmanager
def busy(console: Console, says: str) -> Iterator[None]:
    """A sign of life while something takes time; nothing of it stays."""
    with console.status(says):
        yield
