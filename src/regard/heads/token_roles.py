"""Roles of equal tokens: same, duplicate, induction; pair by pair if rare, by sets of keys if frequent."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from regard.heads.key_set_roles import add_rows, offer_rows
from regard.heads.key_sets import BEFORE, before_queries, by_chance, looks_back
from regard.heads.pair_weights import same_token
from regard.heads.role_inputs import RoleInputs
from regard.heads.role_tally import RoleTally
from regard.heads.visible_pairs import add_visible, visible_pairs
from regard.kernels.plain_kernel import MAX_SCORES
from regard.masks.extent import Integers


def on_equal_tokens(inputs: RoleInputs, wanted: Collection[str]) -> dict[str, RoleTally]:
    """Same, duplicate and induction: all begin at the keys whose token equals the query's.

    Frequent tokens have channels; the others are computed pair by pair.
    """
    tallies = {
        role: RoleTally(inputs.call.heads) for role in ("same", "duplicate", "induction") if role in wanted
    }
    most = max(1, MAX_SCORES // inputs.call.heads)
    numbers = [inputs.text.numbers(batch) for batch in range(inputs.call.batch)]
    places = inputs.channels.of_rows([queries for queries, _ in numbers])
    for batch in inputs.batches:
        queries, keys = numbers[batch]
        rows = inputs.rows(batch)
        rare = rows[places[batch].numpy()[rows] < 0]
        for query, key in same_token(queries, keys, rare, most):
            if {"same", "duplicate"} & set(tallies):
                equal = visible_pairs(inputs, batch, query, key)
                if "same" in tallies:
                    add_visible(inputs, tallies["same"], equal)
                if "duplicate" in tallies:
                    add_visible(
                        inputs, tallies["duplicate"], equal.where(equal.key < inputs.positions(equal.query))
                    )
            if "induction" in tallies:
                # The token after an earlier occurrence; it must be before the query itself.
                follows = key + 1 < inputs.positions(query)
                add_visible(
                    inputs,
                    tallies["induction"],
                    visible_pairs(inputs, batch, query[follows], key[follows] + 1),
                )
        # Rows of the same token look for the same keys.
        most_alike = int(np.bincount(queries[rows]).max()) if len(rows) else 1
        for tally in tallies.values():
            tally.shared = max(tally.shared, most_alike)
    if inputs.channels.count:
        on_frequent(inputs, tallies, numbers, places)
    return tallies


def on_frequent(
    inputs: RoleInputs,
    tallies: dict[str, RoleTally],
    numbers: Sequence[tuple[Integers, Integers]],
    places: Tensor,
) -> None:
    """The rows of frequent tokens: the weight on each set of keys came with the statistics."""
    channels, first = inputs.channels, inputs.channels.first_word
    assert inputs.found.output is not None
    assert inputs.chance.output is not None
    there = inputs.chance.output * inputs.chance.visible[..., None]  # visible keys of each set
    earlier, earlier_there = inputs.found.output, there
    if looks_back(inputs.mask):
        # No later key is visible, so a query only has to leave itself out of its set.
        own = channels.values[:, None, inputs.call.extent.offset :].to(earlier)
        sees_itself = inputs.chance.self_weight * inputs.chance.visible
        earlier = earlier - own * inputs.found.self_weight[..., None].to(earlier)
        earlier_there = there - own.to(there) * sees_itself[..., None]
    elif {"duplicate", "induction"} & set(tallies):
        earlier = before_queries(inputs.call, channels)
        evenly = by_chance(inputs.mask & BEFORE, inputs.call, channels)
        assert evenly.output is not None
        earlier_there = evenly.output * evenly.visible[..., None]
    of_role = {
        "same": (inputs.found.output, there, first),
        "duplicate": (earlier, earlier_there, first),
        "induction": (earlier, earlier_there, first + channels.count),
    }
    for role, tally in tallies.items():
        mass, counts, channel = of_role[role]
        for batch in inputs.batches:
            rows = inputs.rows(batch)
            rows = rows[places[batch].numpy()[rows] >= 0]
            if not len(rows):
                continue
            at = torch.from_numpy(rows)
            place = (places[batch][at] + channel)[None, :, None]
            found, count = (
                x[batch].cpu()[:, at].gather(-1, place.expand(len(x[batch]), -1, -1))[..., 0].clamp(min=0)
                for x in (mass, counts)
            )
            count = count.round().expand(found.shape)
            add_rows(inputs, tally, batch, rows, found, count)
            queries, keys = numbers[batch]
            shift = int(role == "induction")

            def keys_of(row: int) -> Integers:
                near = np.flatnonzero(keys == queries[row]) + shift  # noqa: B023 - asked at once
                limit = inputs.call.keys if role == "same" else inputs.positions(np.array([row]))[0]  # noqa: B023
                return near[near < limit]

            offer_rows(inputs, tally, batch, rows, found - count * inputs.even(batch, rows).cpu(), keys_of)
