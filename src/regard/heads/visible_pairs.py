"""Pairs of query and key that a head may see, added to the score of a role."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.heads.key_sets import looks_back
from regard.heads.pair_weights import weights_at
from regard.heads.role_inputs import RoleInputs
from regard.heads.role_tally import RoleTally
from regard.masks.extent import Bools, Integers


@dataclass(frozen=True, eq=False)
class VisiblePairs:
    """Pairs that some head may see, with their weights; those of one row are adjacent."""

    batch: int
    query: Integers
    key: Integers
    weights: Tensor  # (head, pair)
    allowed: Tensor

    def where(self, chosen: Bools) -> VisiblePairs:
        """Some of the pairs."""
        at = torch.from_numpy(np.flatnonzero(chosen)).to(self.weights.device)
        return VisiblePairs(
            self.batch, self.query[chosen], self.key[chosen], self.weights[:, at], self.allowed[:, at]
        )


def visible_pairs(inputs: RoleInputs, batch: int, query: Integers, key: Integers) -> VisiblePairs:
    """Those of the pairs that some head may see."""
    if looks_back(inputs.mask):
        back = key <= inputs.positions(query)
        query, key = query[back], key[back]
    allowed = inputs.allowed(batch, query, key)
    seen = allowed.any(0)
    query, key = query[seen.cpu().numpy()], key[seen.cpu().numpy()]
    return VisiblePairs(batch, query, key, weights_at(inputs.call, batch, query, key), allowed[:, seen])


def add_pairs(inputs: RoleInputs, tally: RoleTally, batch: int, query: Integers, key: Integers) -> None:
    """Add pairs, in the order of their queries."""
    add_visible(inputs, tally, visible_pairs(inputs, batch, query, key))


def add_visible(inputs: RoleInputs, tally: RoleTally, pairs: VisiblePairs) -> None:
    """Add rows with several keys each."""
    query, weights, allowed = pairs.query, pairs.weights, pairs.allowed
    if not len(query):
        return
    begins = np.append(True, query[1:] != query[:-1])
    rows = query[begins]
    index = torch.from_numpy(np.cumsum(begins) - 1).to(weights.device)
    mass = weights.new_zeros(len(weights), len(rows)).index_add_(1, index, weights)
    counts = mass.new_zeros(mass.shape).index_add_(1, index, allowed.to(mass.dtype))
    batch = pairs.batch
    tally.add(mass, counts * inputs.even(batch, rows), counts > 0, counts * inputs.peak(batch, rows))
    tally.offer(batch, query, pairs.key, weights, inputs.telling(batch, query, pairs.key, weights, allowed))
