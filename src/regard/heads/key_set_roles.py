"""The weight on sets of keys, computed with the statistics: separators, and rows of any set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from regard.heads.role_inputs import RoleInputs
from regard.heads.role_tally import RoleTally
from regard.heads.significance import of_columns
from regard.masks.extent import Integers

EXAMPLE_ROWS = 2
"""Rows that are searched for an example if a role is measured without its pairs."""


def on_separators(inputs: RoleInputs) -> RoleTally:
    """The weight on separators after the first key, of queries that are not separators."""
    tally = RoleTally(inputs.call.heads)
    marks, separators, received = inputs.channels.marks, inputs.channels.separators, []
    assert marks is not None
    assert separators is not None
    for batch in inputs.batches:
        keys = np.flatnonzero(marks[batch])
        rows = inputs.rows(batch)
        if inputs.call.kind != "cross":
            rows = rows[~separators[batch][inputs.positions(rows)]]
        if not len(keys) or not len(rows):
            continue
        assert inputs.found.output is not None
        assert inputs.chance.output is not None
        at = torch.from_numpy(rows)
        mass = inputs.found.output[batch].cpu()[:, at, 0]
        count = (inputs.chance.output[batch][:, at, 0] * inputs.chance.visible[batch][:, at]).round()
        add_rows(inputs, tally, batch, rows, mass, count.expand(mass.shape))
        above = mass - count * inputs.even(batch, rows).cpu()
        offer_rows(inputs, tally, batch, rows, above, partial(_always, keys))
        others = inputs.keys(batch)
        received.append(inputs.columns(batch, others[others != inputs.first(batch)], keys))
    if received:
        tally.p = of_columns(received)
    return tally


def _always(keys: Integers, row: int) -> Integers:
    """The same keys for every row."""
    del row
    return keys


def add_rows(
    inputs: RoleInputs, tally: RoleTally, batch: int, rows: Integers, mass: Tensor, count: Tensor
) -> None:
    """Rows with their weight on a set of keys and the number of those it can see, ``(head, row)``."""
    bound = count * inputs.peak(batch, rows).cpu()
    tally.add(mass, count * inputs.even(batch, rows).cpu(), count > 0, bound)


def offer_rows(
    inputs: RoleInputs,
    tally: RoleTally,
    batch: int,
    rows: Integers,
    above: Tensor,
    keys_of: Callable[[int], Integers],
) -> None:
    """Offer examples from the rows furthest above chance, which likely have the best pair."""
    first, even = inputs.first(batch), inputs.even(batch, rows)
    for head, number in enumerate(inputs.call.head_numbers):
        for at in above[head].topk(min(EXAMPLE_ROWS, len(rows))).indices.tolist():
            row = int(rows[at])
            keys = keys_of(row)
            if not len(keys):
                continue
            weights = inputs.call.weights(number, [row], keys.tolist(), batch)[0]
            # As in telling(): a pair with a key other than the first says more.
            telling = weights - torch.from_numpy(keys == first).to(weights)
            best = int(telling.argmax())
            if float(weights[best]) > 0:  # masked pairs have weight 0
                where = batch, row, int(keys[best])
                tally.consider(head, float(telling[best]) - float(even[head, at]), where, weights[best])
