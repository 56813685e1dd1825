"""``regard look talk.wav``: what a Whisper model hears in a file, with times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from regard.app.languages import TEXTS
from regard.app.model_input import busy
from regard.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console

    from regard.speech import Transcript

AUDIO = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au", ".m4a", ".aac", ".wma")
"""The endings of files that are read as audio."""


def is_audio_file(text: str) -> bool:
    """Whether a text is the path of audio: its ending is that of audio, and it is one word or a file."""
    if len(text) >= 4096 or not text.lower().endswith(AUDIO) or "\n" in text:
        return False
    return len(text.split()) == 1 or Path(text).is_file()


def hear(
    console: Console, path: Path, model: str | None, refused: Mapping[str, object], lang: str
) -> Transcript:
    """Let the model write what is said in a file, print it with times, and return it.

    ``refused`` are options that audio has no use for, by name; none may have been given.
    """
    given = [name for name, value in refused.items() if value]
    if model is None or given:
        raise ArgumentError(
            "Audio must be read by a Whisper model, and shown on a page.",
            got="{given}",
            do="Name a model with --model FOLDER, and omit options that are for texts.",
            given=" ".join([str(path), *given]),
        )
    from regard.speech import load_audio, load_speech_model, transcribe
    from regard.speech.audio_input import RATE
    from regard.views.terminal_speech import show_transcript

    samples = load_audio(path)
    with busy(console, TEXTS.say("reading.loading", lang, model=model)):
        whisper, processor = load_speech_model(model)
    with busy(console, TEXTS.say("reading.hearing", lang)):
        found = transcribe(whisper, processor, samples, rate=RATE, every_layer=True)
    assert not isinstance(found, list)
    show_transcript(console, found, model, lang=lang)
    return found


def write_speech_page(
    console: Console,
    found: Transcript,
    path: Path,
    *,
    title: str,
    layer: int | None,
    head: int | None,
    force: bool,
    lang: str,
) -> None:
    """Print the size of the page, then write it."""
    from rich.text import Text

    from regard.views.page.page_speech import estimate_speech_page, speech_page

    size = estimate_speech_page(found).in_words(lang)
    console.print(TEXTS.say("look.page", lang, size=size), highlight=False)
    with busy(console, TEXTS.say("look.writing", lang)):
        written = speech_page(found, path, title=title, layer=layer, head=head, force=force, lang=lang)
    what = TEXTS.say("look.written", lang, megabytes=written.stat().st_size / 1e6)
    console.print(Text.assemble((str(written), "bold"), "  ", what))
