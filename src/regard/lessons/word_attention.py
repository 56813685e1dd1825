"""Attention over a sentence with a table of word vectors: ``softmax(x xᵀ / √d) x``, x from the table.

The table is JSON: ``{"我": [0.9, 0.1, …], "喜欢": […], …}``. One ships with regard,
for 我 喜欢 学习 AI 技术 and 编程 很 有趣.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from regard.errors import DataError, TextError, reason
from regard.kernels.reference import Numbers, Trace, attention
from regard.lessons.facts import Fact, text
from regard.lessons.sentence_explanation import words_of
from regard.masks import Mask
from regard.views.figures import heatmap

EXAMPLE = Path(__file__).parent / "word_vectors.json"
"""The table that ships with regard."""

SENTENCE = "我 喜欢 学习 AI 技术"

Vectors = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class WordAttention:
    """The words of a sentence and every step of attention over them."""

    words: tuple[str, ...]
    trace: Trace

    @property
    def weights(self) -> Numbers:
        """``(query, key)``."""
        return self.trace["weights"]

    def strongest(self, most: int = 3) -> list[list[tuple[str, float]]]:
        """For each word the words that it attends to most, with their weights, strongest first."""
        return [
            [
                (self.words[key], float(row[key]))
                for key in np.argsort(-row, kind="stable")[:most]
                if row[key] > 0
            ]
            for row in self.weights
        ]

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        return tuple(
            Fact(
                "words.strongest" if found else "words.nothing",
                {"word": word, "found": ", ".join(f"{key} {100 * weight:.1f} %" for key, weight in found)},
            )
            for word, found in zip(self.words, self.strongest())
        )


def read_vectors(path: Path = EXAMPLE) -> Vectors:
    """The table in a JSON file, checked.

    >>> sorted(map(len, read_vectors().values()))
    [4, 4, 4, 4, 4, 4, 4, 4]
    """
    try:
        table = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(
            "A table of word vectors must be a readable file.",
            got="{path}: {reason}",
            do="Correct the path.",
            path=path,
            reason=reason(error),
        ) from error
    except ValueError as error:
        raise DataError(
            'A table of word vectors must be JSON in UTF-8: {{"word": [numbers], …}}.',
            got="{path}: {error}",
            do="Correct the file.",
            path=path,
            error=error,
        ) from error
    return check_vectors(table, str(path))


def check_vectors(table: object, where: str) -> Vectors:
    """``table`` as word vectors: at least one word, all with the same number of finite values."""
    if not isinstance(table, dict) or not table:
        raise DataError(
            "A table of word vectors must be an object with at least one word.",
            got="{type} in {where}",
            do='Write {{"I": [1.0, 0.5], …}}.',
            type=type(table).__name__,
            where=where,
        )
    length: int | None = None
    for word, vector in table.items():
        numbers = isinstance(vector, list) and all(
            isinstance(x, (int, float)) and not isinstance(x, bool) and isfinite(x) for x in vector
        )
        if not numbers or not vector or (length is not None and len(vector) != length):
            raise DataError(
                "Every word needs a vector of finite numbers."
                if length is None
                else "Every word needs {length} finite numbers, like the first.",
                got="{entry} in {where}",
                do="Correct it.",
                length=length,
                entry=f"{word!r}: {vector!r}"[:80],
                where=where,
            )
        length = len(vector)
    return {str(word): tuple(map(float, vector)) for word, vector in table.items()}


def attend_words(
    sentence: str = SENTENCE, vectors: Vectors | None = None, *, mask: Mask | None = None
) -> WordAttention:
    """Attention over the words of a sentence, queries, keys and values taken from the table.

    >>> found = attend_words()
    >>> [word for word, weight in found.strongest()[3]]  # AI
    ['AI', '技术', '学习']
    """
    known = read_vectors() if vectors is None else vectors
    parts = sentence.split()
    # Split at spaces if the table has these words; otherwise as everywhere in the lessons.
    found = tuple(parts) if all(part in known for part in parts) else words_of(sentence)
    if not found:
        raise TextError(
            "A text must have at least one word.",
            got="{sentence!r}",
            do='Try "{SENTENCE}".',
            sentence=sentence,
            SENTENCE=SENTENCE,
        )
    unknown = [word for word in dict.fromkeys(found) if word not in known]
    if unknown:
        near = {word: get_close_matches(word, known, n=1) for word in unknown}
        hints = ", ".join(f"{word} → {match[0]}" for word, match in near.items() if match)
        shown = ", ".join(list(known)[:12]) + ("…" if len(known) > 12 else "")
        raise TextError(
            "Every word must be in the table ({shown}).",
            got="unknown: {unknown}",
            do="Did you mean {hints}?"
            if hints
            else "Add them to the table, or separate the words with spaces.",
            shown=shown,
            unknown=", ".join(unknown),
            hints=hints,
        )
    x = np.array([known[word] for word in found])
    return WordAttention(found, attention(x, x, x, mask=mask))


def draw_words(found: WordAttention, lang: str = "en") -> Figure:
    """A heat map with the numbers, words on both axes."""
    return heatmap(
        found.weights,
        queries=found.words,
        keys=found.words,
        title=text("demo.words.claim", lang),
        lang=lang,
    )
