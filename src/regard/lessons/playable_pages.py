"""Writes the playables with the numbers that they begin with: those of ``explain``, and of the translator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard import atomic
from regard.views.play import PLAYABLES, CourseLinks, Playable, playable_html

SENTENCE = "I love AI"
"""The words with which the sentence begins."""


def write_playables(
    folder: str | Path,
    names: Sequence[str] = tuple(PLAYABLES),
    *,
    lang: str = "en",
    courses: Mapping[str, CourseLinks] | None = None,
) -> list[Path]:
    """Write these pages into a folder, with links to each other, and return their paths.

    On a site each also links to its lessons: ``courses`` has them by the name of the page's file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_playables(folder, ["query", "masks"])]
    ['play-one-query.html', 'play-masks.html']
    """
    chosen = [PLAYABLES[name] for name in names]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        write_playable(
            one,
            folder / one.file,
            lang=lang,
            beside=chosen if len(chosen) > 1 else (),
            course=(courses or {}).get(one.file),
        )
        for one in chosen
    ]


def write_playable(
    playable: Playable,
    path: Path,
    *,
    text: str | None = None,
    lang: str = "en",
    beside: Sequence[Playable] = (),
    course: CourseLinks | None = None,
) -> Path:
    """Write one page; ``text`` is the sentence or the mask that it begins with."""
    start = start_of(playable, text)
    atomic.write_text(path, playable_html(playable, start, lang=lang, beside=beside, course=course))
    return path


def start_of(playable: Playable, text: str | None = None) -> dict[str, Any]:
    """What a page begins with."""
    if playable.name == "sentence":
        return sentence_start(SENTENCE if text is None else text)
    if playable.name == "transformer":
        from regard.lessons.translator_numbers import TRANSLATED, translator_numbers

        return translator_numbers(TRANSLATED if text is None else text)
    return {} if text is None else {"text": text}


def sentence_start(text: str) -> dict[str, Any]:
    """The words, their vectors and the four matrices of ``explain(text)``.

    >>> start = sentence_start("I love AI")
    >>> start["words"], len(start["vectors"]), len(start["matrices"]["w_q"])
    (['I', 'love', 'AI'], 3, 4)
    """
    from regard.lessons.sentence_explanation import PROJECTIONS, attend_sentence

    found = attend_sentence(text)
    return {
        "text": text,
        "words": list(found.words),
        "vectors": {word: row.tolist() for word, row in zip(found.words, found.x)},
        "matrices": {
            name: matrix.tolist() for name, matrix in zip(PROJECTIONS, found.projections, strict=True)
        },
    }
