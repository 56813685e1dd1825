"""The running score of a role over the rows of a call, and the pair of tokens that shows it best.

Every role names, for a query, the keys that belong to it. The score of a head is the weight on them,
averaged over the queries that can see such a key; chance is what even weights would give them. The
definitions are in ``docs/statistics.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.heads.role_results import Example, Score
from regard.heads.significance import tail
from regard.masks.extent import Integers, Numbers


class RoleTally:
    """The running score of one role, for every head of a call."""

    def __init__(self, heads: int) -> None:
        self.total, self.chance, self.bound = np.zeros(heads), np.zeros(heads), np.zeros(heads)
        self.count = np.zeros(heads, np.int64)
        self.shared = 1  # the most rows that share a key of the role, which are not independent
        self.p: Numbers | None = None  # if the rows alone do not determine it
        self.testable = True
        self.best = np.full(heads, -np.inf)
        self.shown: list[tuple[int, int, int, float] | None] = [None] * heads

    def add(self, mass: Tensor, chance: Tensor, counts: Tensor, bound: Tensor | None = None) -> None:
        """Rows ``(head, row)``: the weight that belongs to the role, by chance, and which rows count.

        ``bound`` is the most that a row could have, by default 1.
        """
        counts = counts.expand(mass.shape)
        self.total += torch.where(counts, mass.double(), 0.0).sum(-1).cpu().numpy()
        self.chance += torch.where(counts, chance.double(), 0.0).sum(-1).cpu().numpy()
        self.count += counts.sum(-1).cpu().numpy()
        highest = torch.ones_like(mass) if bound is None else bound.clamp(max=1)
        if mass.shape[-1]:
            here = torch.where(counts, highest.double(), 0.0).amax(-1).cpu().numpy()
            self.bound = np.maximum(self.bound, here)

    def offer(self, batch: int, query: Integers, key: Integers, weights: Tensor, above: Tensor) -> None:
        """Pairs ``(head, pair)`` that may serve as an example; the one furthest above chance is kept."""
        if not len(query):
            return
        keys = np.broadcast_to(key, above.shape)  # one for all heads, or each its own
        best, at = above.max(-1)
        for head, (value, pair) in enumerate(zip(best.tolist(), at.tolist())):
            where = batch, int(query[pair]), int(keys[head, pair])
            self.consider(head, value, where, weights[head, pair])

    def consider(self, head: int, above: float, where: tuple[int, int, int], weight: Tensor) -> None:
        """One pair of one head that may serve as its example."""
        if above > self.best[head]:
            self.best[head] = above
            self.shown[head] = (*where, float(weight))

    def scores(self, text: CallTokens) -> list[Score | None]:
        """The scores; None for a head whose rows never had a key of the role."""
        counts = np.maximum(self.count, 1)
        # Rounding can carry a sum of weights slightly beyond 1.
        values, chances = (np.clip(sums / counts, 0.0, 1.0) for sums in (self.total, self.chance))
        p = self.p
        if p is None and self.testable:
            p = tail(values, chances, self.count / self.shared, self.bound)
        return [
            Score(
                float(values[head]),
                float(chances[head]),
                None if shown is None else text.example(*shown),
                None if p is None else float(p[head]),
            )
            if self.count[head]
            else None
            for head, shown in enumerate(self.shown)
        ]


@dataclass(frozen=True, eq=False)
class CallTokens:
    """The tokens of a call, as strings and as numbers; None if they are not known."""

    queries: Sequence[Sequence[str]] | None  # of each sequence
    keys: Sequence[Sequence[str]] | None

    def example(self, batch: int, query: int, key: int, weight: float) -> Example:
        """A pair with its words."""
        here = None if self.queries is None else self.queries[batch][query]
        there = None if self.keys is None else self.keys[batch][key]
        return Example(batch, query, key, weight, here, there)

    def numbers(self, batch: int) -> tuple[Integers, Integers]:
        """The tokens of queries and keys as numbers, equal for equal words."""
        assert self.queries is not None
        assert self.keys is not None
        words = [*self.queries[batch], *self.keys[batch]]
        known: dict[str, int] = {}
        found = np.array([known.setdefault(word, len(known)) for word in words], np.int64)
        return found[: len(self.queries[batch])], found[len(self.queries[batch]) :]
