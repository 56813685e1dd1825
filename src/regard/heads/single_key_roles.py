"""Roles with one key per query: the previous, the next, the query's own, the first."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.heads.pair_weights import weights_at
from regard.heads.role_inputs import RoleInputs
from regard.heads.role_tally import RoleTally
from regard.heads.significance import ReceivedWeights, of_columns
from regard.masks.extent import Integers


def at_offset(inputs: RoleInputs, offset: int) -> RoleTally:
    """The weight on the key ``offset`` positions after the query's own."""
    tally = RoleTally(inputs.call.heads)
    for batch in inputs.batches:
        rows = inputs.rows(batch)
        keys = inputs.positions(rows) + offset
        inside = (keys >= 0) & (keys < inputs.call.keys)
        _single(inputs, tally, batch, rows[inside], keys[inside])
    return tally


def on_first(inputs: RoleInputs) -> RoleTally:
    """The weight on the first key of the text, of all queries but the one at that position."""
    tally = RoleTally(inputs.call.heads)
    received: list[ReceivedWeights] = []
    for batch in inputs.batches:
        rows, first = inputs.rows(batch), inputs.first(batch)
        if inputs.call.kind != "cross":
            rows = rows[inputs.positions(rows) > first]
        _single(inputs, tally, batch, rows, np.full(len(rows), first))
        received.append(inputs.columns(batch, inputs.keys(batch), np.array([first])))
    tally.p = of_columns(received)
    return tally


def _single(inputs: RoleInputs, tally: RoleTally, batch: int, rows: Integers, keys: Integers) -> None:
    if not len(rows):
        return
    allowed = inputs.allowed(batch, rows, keys)
    weights = _known_weights(inputs, batch, rows, keys)
    tally.add(weights, inputs.even(batch, rows), allowed, inputs.peak(batch, rows))
    tally.offer(batch, rows, keys, weights, inputs.telling(batch, rows, keys, weights, allowed))


def _known_weights(inputs: RoleInputs, batch: int, rows: Integers, keys: Integers) -> Tensor:
    """Weights of one key per row; those that every pass of statistics has taken need no Q and K."""
    at = torch.from_numpy(rows).to(inputs.found.lse.device)
    gap = set((keys - inputs.positions(rows)).tolist())
    if gap == {0}:
        return inputs.found.self_weight[batch][:, at]
    if gap == {-1}:
        return inputs.found.previous_weight[batch][:, at]
    if set(keys.tolist()) == {0}:
        return inputs.found.first_weight[batch][:, at]
    return weights_at(inputs.call, batch, rows, keys)
