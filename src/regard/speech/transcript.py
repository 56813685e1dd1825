"""What was said, and when: words with their times, and the windows that they were read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from regard.speech.audio_input import Samples
from regard.speech.speech_model import Heads
from regard.speech.watched_window import WatchedWindow
from regard.table import Table


class SpokenWord(NamedTuple):
    """A word with its punctuation, its first and last second, and the mean probability of its tokens.

    >>> word = SpokenWord("Hello,", 0.0, 0.42, 0.98)
    >>> word.end - word.start
    0.42
    """

    word: str
    start: float
    end: float
    probability: float


class PlacedWindow(NamedTuple):
    """A window of a longer recording: the second it begins at, and the frames in which its tokens begin."""

    start: float
    window: WatchedWindow
    tokens: tuple[str, ...]
    frames: tuple[int, ...]  # one per token, then the end
    words: tuple[tuple[int, ...], ...]  # the tokens of each word


@dataclass(frozen=True, eq=False)
class Transcript:
    """The words of one recording, in order.

    ``heads`` are those that times were read from; ``found`` says whether they were found rather than named.
    """

    words: tuple[SpokenWord, ...]
    heads: Heads
    found: bool
    samples: Samples
    rate: int
    windows: tuple[PlacedWindow, ...]

    def __repr__(self) -> str:
        return f"<Transcript: {len(self.words)} words in {self.seconds:.1f} s>"

    @property
    def text(self) -> str:
        """All words as one text, with spaces where the language has them."""
        return " ".join(word.word for word in self.words)

    @property
    def seconds(self) -> float:
        """The length of the recording in seconds."""
        return len(self.samples) / self.rate

    def table(self) -> Table:
        """One row per word."""
        return Table(SpokenWord._fields, list(self.words))

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as comma-separated text; also written to ``path``, if given."""
        return self.table().to_csv(path)

    def to_json(self, path: str | Path | None = None) -> str:
        """The table as JSON; also written to ``path``, if given."""
        return self.table().to_json(path)
