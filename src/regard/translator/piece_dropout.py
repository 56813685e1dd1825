"""BPE dropout: in training, words are sometimes spelled by smaller pieces than usual.

So the pieces of a rare word are learned from other words too (Provilkov et al., 2020). The tokenizers library
draws such spellings as well, but not by a seed; so a few spellings of each word are drawn here, once, and
one of them is taken each time that the word occurs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise

from regard.translator.sentence_batches import EncodedPair
from regard.translator.vocabulary import END, UNKNOWN, EnglishTokens

SPELLINGS = 8
"""How many spellings of a word are drawn."""


class PieceDropout:
    """Respells encoded sentences.

    >>> english = EnglishTokens.learn(["the cat sat"] * 9, 60)
    >>> example = EncodedPair((*english.encode("the cat"), END), ())
    >>> often = PieceDropout(english, 0.5, seed=0).respell([example] * 40, epoch=0, longest=20)
    >>> len({one.source for one in often}) > 2
    True
    >>> {english.tokenizer.decode(one.source[:-1]) for one in often}
    {'the cat'}
    """

    def __init__(self, english: EnglishTokens, share: float, *, seed: int) -> None:
        model = json.loads(english.to_json())["model"]
        self.share, self.seed = share, seed
        self.ids: dict[str, int] = model["vocab"]
        self.pieces = {number: piece for piece, number in self.ids.items()}
        spelled = model.get("merges", ())  # pieces of a BERT have none
        merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in spelled]
        self.ranks = {(first, second): rank for rank, (first, second) in enumerate(merges)}
        self.known: dict[tuple[int, ...], list[tuple[int, ...]]] = {}

    def respell(self, examples: Sequence[EncodedPair], *, epoch: int, longest: int) -> list[EncodedPair]:
        """The examples with their English words spelled anew; one that would become too long stays."""
        if not self.share:
            return list(examples)
        chance = random.Random(f"{self.seed} spelling {epoch}")  # noqa: S311 (nothing is secret)
        found = []
        for example in examples:
            source = [
                number
                for word in self._words(example.source[:-1])
                for number in self._spellings(word)[int(chance.random() * SPELLINGS)]
            ]
            fits = len(source) < longest
            found.append(EncodedPair((*source, END), example.target) if fits else example)
        return found

    def _words(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        words: list[list[int]] = []
        for number in ids:
            if words and not self.pieces[number].startswith("▁") and self.pieces[number][0].isalpha():
                words[-1].append(number)
            else:
                words.append([number])
        return [tuple(word) for word in words]

    def _spellings(self, word: tuple[int, ...]) -> list[tuple[int, ...]]:
        if word not in self.known:
            text = "".join(self.pieces[number] for number in word)
            chance = random.Random(f"{self.seed} {text}")  # noqa: S311 (nothing is secret)
            plain = UNKNOWN in word or any(character not in self.ids for character in text)
            self.known[word] = [word if plain else self._draw(text, chance) for _ in range(SPELLINGS)]
        return self.known[word]

    def _draw(self, text: str, chance: random.Random) -> tuple[int, ...]:
        """Merge pairs of pieces in the order of their ranks, each time without those that were dropped."""
        pieces = list(text)
        while True:
            ranked = [
                (self.ranks[pair], place)
                for place, pair in enumerate(pairwise(pieces))
                if pair in self.ranks and chance.random() >= self.share
            ]
            if not ranked:
                return tuple(self.ids[piece] for piece in pieces)
            place = min(ranked)[1]
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
