"""Which candidate of a beam search becomes the translation: the one that agrees most with the others.

The most probable text is often one that leaves a word out or says it twice. Two things find a better one:

- A candidate also counts by how well it explains the English words; see ``translation_table.py``.
- Candidates share their right parts and differ in their wrong ones. The one chosen has the highest expected
  agreement with all of them, each weighted by its probability (minimum Bayes risk, Kumar and Byrne, 2004).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from regard.nn.beam_search import BeamCandidate
from regard.translator.translation_table import TranslationTable
from regard.translator.vocabulary import END

EXPLAINED = 0.4
"""The weight of log p(english | chinese) beside log p(chinese | english)."""

TEMPERATURE = 1.0
"""The log-probabilities of candidates are divided by it: above 1, more of them have a say."""

ORDER = 2
"""Agreement is measured on characters and on neighbouring characters, up to this many."""

RECALL = 1.5
"""How much more recall counts than precision: what the others say matters more than what they do not."""


def choose_candidate(
    source: Sequence[int], candidates: Sequence[BeamCandidate], table: TranslationTable | None
) -> int:
    """The place of the candidate to keep; of equal ones, the most probable.

    >>> texts = [(5, 6), (5, 6, 7), (5, 6, 7, 8), (9,)]
    >>> candidates = [BeamCandidate((*text, END), -1.0, ended=True) for text in texts]
    >>> choose_candidate((4, END), candidates, None)
    1
    """
    places = [place for place, each in enumerate(candidates) if each.ended] or list(range(len(candidates)))
    texts = [[token for token in candidates[place].tokens if token != END] for place in places]
    scores = [candidates[place].log_probability for place in places]
    if table is not None:
        reverse = table.log_probabilities(source, texts)
        scores = [score + EXPLAINED * own for score, own in zip(scores, reverse, strict=True)]
    shares = _shares(scores)
    parts = [_parts(text) for text in texts]
    worth = [
        sum(share * agreement(own, other) for share, other in zip(shares, parts, strict=True))
        for own in parts
    ]
    best = max(range(len(places)), key=lambda index: (worth[index], scores[index]))
    return places[best]


def _shares(scores: Sequence[float]) -> list[float]:
    most = max(scores)
    weights = [math.exp((score - most) / TEMPERATURE) for score in scores]
    return [weight / sum(weights) for weight in weights]


def _parts(tokens: Sequence[int]) -> list[Counter[tuple[int, ...]]]:
    """How often each run of 1, 2, … ORDER tokens occurs."""
    return [
        Counter(tuple(tokens[first : first + length]) for first in range(len(tokens) - length + 1))
        for length in range(1, ORDER + 1)
    ]


def agreement(own: Sequence[Counter[tuple[int, ...]]], other: Sequence[Counter[tuple[int, ...]]]) -> float:
    """The F score of the parts of one text against those of another, as in chrF; 0 to 1.

    >>> agreement(_parts([5, 6, 7]), _parts([5, 6, 7]))
    1.0
    """
    found = []
    for mine, theirs in zip(own, other, strict=True):
        if not mine or not theirs:
            continue
        shared = (mine & theirs).total()
        precision, recall = shared / mine.total(), shared / theirs.total()
        bottom = RECALL**2 * precision + recall
        found.append((1 + RECALL**2) * precision * recall / bottom if bottom else 0.0)
    return sum(found) / len(found) if found else 0.0
