"""Batches of sentences of similar length, reshuffled in every epoch, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.translator.sentence_pairs import Pair
from regard.translator.vocabulary import END, PADDING, START, UNKNOWN, Vocabularies


@dataclass(frozen=True)
class EncodedPair:
    """A pair as ids: the source with its end, the target without start and end."""

    source: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Tokens of the target with start or end, and of the source."""
        return len(self.target) + 1, len(self.source)


@dataclass(frozen=True, eq=False)
class SentenceBatch:
    """Padded ids: ``target`` begins with the start token, ``following`` has the token after each one."""

    source: Tensor  # (batch, key)
    target: Tensor  # (batch, length)
    following: Tensor  # (batch, length)

    def twice(self) -> SentenceBatch:
        """The same sentences again behind themselves: each copy is given its own dropout."""
        return SentenceBatch(*(torch.cat([one, one]) for one in (self.source, self.target, self.following)))


def encode_pairs(pairs: Sequence[Pair], vocabularies: Vocabularies, *, longest: int) -> list[EncodedPair]:
    """The pairs as ids, without those that do not fit the model's positions, or have an unknown character.

    An unknown character is left out of a translation, and that is not to be learned.
    """
    sources = vocabularies.english.encode_all([pair.english for pair in pairs])
    examples = [
        EncodedPair((*source, END), tuple(vocabularies.chinese.encode(pair.chinese)))
        for source, pair in zip(sources, pairs, strict=True)
    ]
    return [example for example in examples if max(example.size) <= longest and UNKNOWN not in example.target]


def epoch_batches(sizes: Sequence[tuple[int, int]], tokens: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Which examples go together: about ``tokens`` padded tokens each, in a random order.

    >>> epoch_batches([(3, 3), (9, 9), (3, 3), (9, 9)], 18, seed=0, epoch=0)
    [[0, 2], [3], [1]]
    """
    chance = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    order = torch.randperm(len(sizes), generator=chance).tolist()
    order.sort(key=lambda index: sizes[index])  # stable: equal lengths keep their random order
    batches: list[list[int]] = []
    targets = sources = 0
    for index in order:
        target, source = sizes[index]
        targets, sources = max(targets, target), max(sources, source)
        if batches and (len(batches[-1]) + 1) * (targets + sources) <= tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
            targets, sources = target, source
    shuffled = torch.randperm(len(batches), generator=chance).tolist()
    return [batches[index] for index in shuffled]


def pad(examples: Sequence[EncodedPair]) -> SentenceBatch:
    """Examples as one batch.

    >>> pad([EncodedPair((7, 2), (5, 6)), EncodedPair((2,), (5,))]).target
    tensor([[1, 5, 6],
            [1, 5, 0]])
    """
    return SentenceBatch(
        source=pad_ids([example.source for example in examples]),
        target=pad_ids([(START, *example.target) for example in examples]),
        following=pad_ids([(*example.target, END) for example in examples]),
    )


def pad_ids(texts: Sequence[Sequence[int]]) -> Tensor:
    """Texts of different lengths as one tensor ``(batch, longest)``."""
    longest = max(len(text) for text in texts)
    return torch.tensor([[*text, *[PADDING] * (longest - len(text))] for text in texts])
