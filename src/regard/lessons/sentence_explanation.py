"""Attention on a short sentence with small vectors: every number can be followed by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from regard.errors import ArgumentError
from regard.kernels.reference import Numbers, ReferenceStep, Trace, multi_head
from regard.masks import Mask

MOST_WORDS = 64
"""The most words whose table fits on a screen."""

_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+(?:['’][^\W_]+)*|[^\w\s]")


PROJECTIONS = ("w_q", "w_k", "w_v", "w_o")
"""The four matrices that a model learns, by the names that they have in a trace."""


@dataclass(frozen=True)
class SentenceLesson:
    """The words of a sentence and every step of multi-head attention over them, matrices included."""

    words: tuple[str, ...]
    heads: int
    mask: Mask | None
    trace: Trace

    @property
    def x(self) -> Numbers:
        """The vectors of the words, ``(word, channel)``."""
        return self.trace["x"]

    @property
    def projections(self) -> tuple[Numbers, ...]:
        """W_q, W_k, W_v and W_o, each ``(channel in, channel out)``."""
        return tuple(self.trace[name] for name in PROJECTIONS)


def words_of(text: str) -> tuple[str, ...]:
    """The words and signs of a text; each Chinese character is a word unless the text has spaces.

    >>> words_of("I love AI.")
    ('I', 'love', 'AI', '.')
    >>> words_of("我 喜欢 AI")
    ('我', '喜欢', 'AI')
    """
    spaced = text.split()
    if len(spaced) > 1 and any("\u3400" <= sign <= "\u9fff" for sign in text):
        return tuple(spaced)
    return tuple(_WORD.findall(text))


def attend_sentence(
    text: str, *, width: int = 4, heads: int = 1, mask: Mask | None = None, seed: int = 42
) -> SentenceLesson:
    """Multi-head attention over the words of ``text`` with small random vectors, as a trace.

    The same word always gets the same vector, whatever its context; ``seed`` chooses the
    vectors and the four projections.

    >>> lesson = attend_sentence("I love AI")
    >>> lesson.trace["weights"].shape  # (head, query, key)
    (1, 3, 3)
    >>> w_q, w_k, w_v, w_o = lesson.projections
    >>> bool((lesson.x @ w_q == lesson.trace["queries"]).all())
    True
    """
    words = words_of(text)
    if not words:
        raise ArgumentError(
            "The text must have at least one word.", got="{text!r}", do='Try "I love AI".', text=text
        )
    if len(words) > MOST_WORDS:
        raise ArgumentError(
            "The text can have at most {MOST_WORDS} words, so that every number can be shown.",
            got="{words_count} words",
            do="Shorten it.",
            MOST_WORDS=MOST_WORDS,
            words_count=len(words),
        )
    if width < 1 or heads < 1 or width % heads:
        raise ArgumentError(
            "width and heads must be at least 1, and heads must divide width.",
            got="width = {width}, heads = {heads}",
            do="Try --width 4 --heads 2.",
            width=width,
            heads=heads,
        )
    rng = np.random.default_rng(seed)
    vectors = {word: rng.normal(size=width) for word in sorted(set(words))}
    w_q, w_k, w_v, w_o = (rng.normal(size=(width, width)) / np.sqrt(width) for _ in range(4))
    x = np.stack([vectors[word] for word in words])
    found = multi_head(x, w_q, w_k, w_v, w_o, heads=heads, mask=mask)
    return SentenceLesson(words, heads, mask, _with_projections(found, (w_q, w_k, w_v, w_o)))


def _with_projections(trace: Trace, matrices: tuple[Numbers, ...]) -> Trace:
    """The trace with each matrix before the step that multiplies by it."""
    before = {
        step: ReferenceStep(name, f"W_{name[-1]}", matrix)
        for step, name, matrix in zip(("queries", "keys", "values", "output"), PROJECTIONS, matrices)
    }
    steps: list[ReferenceStep] = []
    for step in trace:
        steps += [before[step.name], step] if step.name in before else [step]
    return Trace(steps)
