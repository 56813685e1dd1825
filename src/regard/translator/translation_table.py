"""How probable an English sentence is, given a Chinese one: a table of word translations.

The table is IBM model 1 (Brown et al., 1993), learned from the training pairs by expectation maximisation:
every English piece e comes from one Chinese character c, or from none, all equally likely, so

    p(english | chinese) = Π_e Σ_c p(e | c) / (characters + 1)

It knows nothing of order, but it notices an English word that a translation leaves out, which beam search
does not: a text without it is shorter, and often more probable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ModelFileError
from regard.translator.files import read_tensors, write_tensors
from regard.translator.sentence_batches import EncodedPair
from regard.translator.vocabulary import PADDING, SPECIALS

FILE = "translation_table.safetensors"
FORMAT, OLDER = "regard translation table 2", "regard translation table 1"
ROUNDS = 5
"""Rounds of expectation maximisation."""

LEAST = 0.005
"""Smaller probabilities are not stored."""

LEVELS = 255
"""A probability from LEAST to 1 is stored as one of this many steps of its logarithm, each of 2 %."""

FLOOR = 1e-5
"""The probability of a piece that no character of a translation explains."""

NONE = PADDING
"""Stands for no character."""


@dataclass(frozen=True, eq=False)
class TranslationTable:
    """p(piece | character) for the pairs that occur together, piece by piece.

    >>> pairs = [EncodedPair((7, 2), (5,)), EncodedPair((8, 2), (6,)), EncodedPair((7, 8, 2), (6, 5))]
    >>> table = TranslationTable.learn(pairs, pieces=9)
    >>> both, one = table.log_probabilities((7, 8, 2), [(5, 6), (5,)])
    >>> both > one
    True
    """

    starts: Tensor  # (pieces + 1,): the rows of piece e are starts[e] to starts[e + 1] − 1
    characters: Tensor  # (rows,)
    chances: Tensor  # (rows,), float32

    @classmethod
    def learn(cls, pairs: Sequence[EncodedPair], *, pieces: int) -> TranslationTable:
        """Learn the table from sentence pairs, with ids of pieces below ``pieces``."""
        links = _Links.of(pairs)
        chances = np.ones(len(links.pieces))
        for _ in range(ROUNDS):
            chances = links.improved(chances)
        kept = chances >= LEAST
        counts = np.bincount(links.pieces[kept], minlength=pieces)
        return cls(
            torch.from_numpy(np.concatenate([[0], np.cumsum(counts)])),
            torch.from_numpy(links.characters[kept]),
            torch.from_numpy(chances[kept]).float(),
        )

    def log_probabilities(self, source: Sequence[int], candidates: Sequence[Sequence[int]]) -> list[float]:
        """log p(source | candidate) for each candidate, both as ids."""
        rows = self._rows(source)
        found = []
        for candidate in candidates:
            characters = _explaining(candidate)
            places = torch.tensor([c for c in characters if c < rows.shape[1]])
            chances = rows[:, places].sum(1) / len(characters)
            found.append(float(chances.clamp(min=FLOOR).log().sum()))
        return found

    def _rows(self, source: Sequence[int]) -> Tensor:
        """p(piece | character) for the pieces of a source, ``(piece, character)``."""
        own = [piece for piece in source if piece >= len(SPECIALS)]
        rows = torch.zeros(len(own), int(self.characters.max()) + 1)
        for row, piece in enumerate(own):
            first, stop = self.starts[piece : piece + 2].tolist()
            rows[row, self.characters[first:stop]] = self.chances[first:stop]
        return rows

    def write(self, folder: Path) -> None:
        """Write the table into the folder of a model."""
        tensors = {
            "counts": _small(self.starts.diff()),
            "characters": _small(self.characters),
            "steps": (self.chances.log() / math.log(LEAST) * LEVELS).round().clamp(0, LEVELS).to(torch.uint8),
        }
        write_tensors(folder / FILE, tensors, {"format": FORMAT})

    @classmethod
    def read(cls, folder: Path) -> TranslationTable | None:
        """The table in the folder of a model; models of earlier versions have none."""
        if not (folder / FILE).exists():
            return None
        stored, facts = read_tensors(folder / FILE, do="Copy or export it again.")
        if facts.get("format") == OLDER:
            return cls(stored["starts"].long(), stored["characters"].long(), stored["chances"].float())
        if facts.get("format") != FORMAT:
            raise ModelFileError(
                "A translation table must have the format {FORMAT!r}.",
                got="{format!r} in {path}",
                do="Export the model again.",
                FORMAT=FORMAT,
                format=facts.get("format"),
                path=folder / FILE,
            )
        starts = F.pad(stored["counts"].long().cumsum(0), (1, 0))
        chances = (stored["steps"].float() / LEVELS * math.log(LEAST)).exp()
        return cls(starts, stored["characters"].long(), chances)


def _small(numbers: Tensor) -> Tensor:
    """Integers in two bytes each, if they fit."""
    return numbers.to(torch.int32 if numbers.max() > 32767 else torch.int16)


@dataclass(frozen=True, eq=False)
class _Links:
    """Every piece with every character of its sentence, and each such pair of ids once."""

    places: np.ndarray  # (link,): the number of the pair of ids
    occurrences: np.ndarray  # (link,): the number of the piece among all pieces of all sentences
    pieces: np.ndarray  # (pair,), sorted
    characters: np.ndarray  # (pair,)

    @classmethod
    def of(cls, pairs: Sequence[EncodedPair]) -> _Links:
        pieces, characters, occurrences, before = [], [], [], 0
        for pair in pairs:
            own = np.array([piece for piece in pair.source if piece >= len(SPECIALS)], np.int64)
            from_ = np.array(_explaining(pair.target), np.int64)
            pieces.append(np.repeat(own, len(from_)))
            characters.append(np.tile(from_, len(own)))
            occurrences.append(np.repeat(np.arange(before, before + len(own)), len(from_)))
            before += len(own)
        width = 1 + max(int(each.max()) for each in characters if len(each))
        keys, places = np.unique(
            np.concatenate(pieces) * width + np.concatenate(characters), return_inverse=True
        )
        return cls(places, np.concatenate(occurrences), keys // width, keys % width)

    def improved(self, chances: np.ndarray) -> np.ndarray:
        """One round: share every piece among the characters of its sentence, then count."""
        shares = chances[self.places]
        shares /= np.bincount(self.occurrences, shares)[self.occurrences]
        counts = np.bincount(self.places, shares, minlength=len(chances))
        totals = np.bincount(self.characters, counts)
        return np.asarray(counts / totals[self.characters])


def _explaining(target: Sequence[int]) -> list[int]:
    """The characters of a translation, and none."""
    return [*(token for token in target if token >= len(SPECIALS)), NONE]
