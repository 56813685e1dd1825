"""The positional role: how much of the weight of a head its distance explains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.heads.key_sets import looks_back
from regard.heads.pair_weights import weights_near
from regard.heads.role_inputs import RoleInputs
from regard.heads.role_tally import RoleTally
from regard.heads.significance import tail
from regard.masks.extent import Integers, Numbers


def by_distance(inputs: RoleInputs) -> RoleTally:
    """How much of the weight within reach the mean weight of each distance explains.

    The profile ``a_δ`` is the mean of ``w_{i, p_i + δ}``. A row is explained as far as it overlaps
    with the profile, ``Σ_δ min(w, a)``; chance is its overlap with even weights.
    """
    tally = RoleTally(inputs.call.heads)
    ahead = 0 if looks_back(inputs.mask) else inputs.reach
    offsets = np.arange(-inputs.reach, ahead + 1)
    parts = [(batch, *_band(inputs, batch, offsets)) for batch in inputs.batches]
    total = sum(torch.where(allowed, weights, 0.0).sum(1) for _, _, weights, allowed in parts)
    count = sum(allowed.sum(1) for _, _, _, allowed in parts)
    assert isinstance(total, Tensor)
    assert isinstance(count, Tensor)
    profile = (total / count.clamp(min=1))[:, None]  # (head, 1, offset)
    mass = profile.sum(-1, keepdim=True).clamp(max=1)
    tally.p = _any_distance(inputs, parts, total, count)
    for batch, rows, weights, allowed in parts:
        # At the edges some distances do not exist; the others share all the mass.
        here = torch.where(allowed, profile, 0.0)
        whole = here.sum(-1, keepdim=True)
        guess = here * (mass / torch.where(whole > 0, whole, 1.0))
        even = inputs.even(batch, rows)[..., None]
        sees = inputs.visible(batch, rows) > 0
        explained = torch.minimum(weights, guess).sum(-1)
        tally.add(explained, torch.where(allowed, torch.minimum(weights, even), 0.0).sum(-1), sees)
        query = np.repeat(rows, len(offsets))
        key = (inputs.positions(rows)[:, None] + offsets).ravel()
        explained_there = torch.minimum(weights, guess).flatten(1)
        above = inputs.telling(batch, query, key, explained_there, allowed.flatten(1))
        tally.offer(batch, query, key, weights.flatten(1), above)
    return tally


def _any_distance(
    inputs: RoleInputs, parts: Sequence[tuple[int, Integers, Tensor, Tensor]], total: Tensor, count: Tensor
) -> Numbers:
    """The p-value of the clearest distance, times the number of distances tried."""
    evenly = sum(
        torch.where(allowed, inputs.even(batch, rows)[..., None], 0.0).sum(1)
        for batch, rows, _, allowed in parts
    )
    assert isinstance(evenly, Tensor)
    bound = torch.stack([weights.flatten(1).amax(1) for _, _, weights, _ in parts]).amax(0)[:, None]
    rows = count.clamp(min=1)
    found = tail(*(x.double().cpu().numpy() for x in (total / rows, evenly / rows, count, bound)))
    tried = (count > 0).any(0).sum().clamp(min=1)
    least: Numbers = np.minimum(found.min(1) * int(tried), 1.0)
    return least


def _band(inputs: RoleInputs, batch: int, offsets: Integers) -> tuple[Integers, Tensor, Tensor]:
    """Rows, and their weights and permissions at each offset, ``(head, row, offset)``."""
    rows = inputs.rows(batch)
    key = inputs.positions(rows)[:, None] + offsets
    inside = ((key >= 0) & (key < inputs.call.keys)).ravel()
    query, near = np.repeat(rows, len(offsets)), key.clip(0, inputs.call.keys - 1).ravel()
    allowed = inputs.allowed(batch, query, near)
    allowed = (allowed & torch.from_numpy(inside).to(allowed.device)).unflatten(1, key.shape)
    weights = weights_near(inputs.call, batch, int(offsets[0]), int(offsets[-1]))
    weights = weights[:, torch.from_numpy(rows).to(weights.device)]
    return rows, torch.where(allowed, weights, 0.0), allowed
