"""A transcript in the terminal: sentences with their times, and under each when every word begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from regard.speech import SpokenWord, Transcript
from regard.views.column_headings import TEXTS

ENDS = (".", "?", "!", "。", "？", "！", "…")

TIMES = 10
"""Columns of a sentence's times, about."""

LONGEST = 24
"""Words of a line without any full stop."""


def show_transcript(console: Console, transcript: Transcript, model: str, *, lang: str = "en") -> None:
    """The sentences with their times, the words with theirs, and the heads that these were read from."""
    console.print(Text(model, "bold"))
    key = "speech.heads.found" if transcript.found else "speech.heads.named"
    heads = " ".join(f"{layer}·{head}" for layer, head in transcript.heads)
    count = len(transcript.words)
    said = TEXTS.say("speech.said", lang, seconds=transcript.seconds, count=count)
    console.print(Text(f"{said} {TEXTS.say(key, lang)} {heads}", "dim"))
    console.print()
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for sentence in sentences(transcript.words):
        times = f"{sentence[0].start:.2f}–{sentence[-1].end:.2f}"
        table.add_row(Text(times, "cyan"), Text(" ".join(word.word for word in sentence), "bold"))
        starts = [f"{word.word} {word.start:.2f}" for word in sentence]
        table.add_row("", Text(filled(starts, console.width - 2 * TIMES), "dim"))
    console.print(table)
    console.print()


def filled(parts: Sequence[str], width: int) -> str:
    """Parts side by side, as many on each line as fit; none is broken.

    >>> filled(["The 0.00", "cat 0.36"], 12)
    'The 0.00\\ncat 0.36'
    """
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1]) + cell_len(part) + 2 <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append(part)
    return "\n".join(lines)


def sentences(words: Sequence[SpokenWord]) -> Iterator[list[SpokenWord]]:
    """The words up to each full stop.

    >>> words = [SpokenWord(word, 0.0, 1.0, 1.0) for word in "Yes. I do".split()]
    >>> [[word.word for word in sentence] for sentence in sentences(words)]
    [['Yes.'], ['I', 'do']]
    """
    sentence: list[SpokenWord] = []
    for word in words:
        sentence.append(word)
        if word.word.endswith(ENDS) or len(sentence) >= LONGEST:
            yield sentence
            sentence = []
    if sentence:
        yield sentence
