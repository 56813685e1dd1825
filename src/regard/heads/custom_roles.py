"""User-defined roles: pairs of positions, or a mask, that a head may put its weight on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from regard.errors import ArgumentError
from regard.heads.role_inputs import RoleInputs
from regard.heads.role_results import ROLES
from regard.heads.role_tally import RoleTally
from regard.heads.visible_pairs import add_pairs
from regard.kernels import attention_statistics
from regard.kernels.plain_kernel import weights_of
from regard.masks import Mask
from regard.masks.extent import Integers
from regard.masks.mask import as_mask
from regard.recording import DenseCall

OwnRole = Integers | Mask
"""Pairs ``(query, key)`` in the order of their queries, or a mask."""


def own_roles(given: Mapping[str, object]) -> dict[str, OwnRole]:
    """The roles as pairs or masks; raises on what is neither."""
    return {_name(name): _role(name, role) for name, role in given.items()}


def _name(name: object) -> str:
    if not isinstance(name, str) or not name or name in ROLES:
        raise ArgumentError(
            "A custom role needs a name that is not taken.",
            got="{name!r}",
            do="Choose a name other than {ROLES}.",
            name=name,
            ROLES=", ".join(ROLES),
        )
    return name


def _role(name: str, given: object) -> OwnRole:
    if isinstance(given, Mask):
        return given
    try:
        pairs = np.asarray(given)
    except ValueError:
        pairs = np.empty(0)
    if pairs.dtype == np.bool_ and pairs.ndim >= 2:
        return as_mask(torch.from_numpy(np.ascontiguousarray(pairs)))
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu" or not len(pairs):
        raise ArgumentError(
            "A custom role must be a list of pairs of positions (query, key), or a mask.",
            got="{name!r}: {given!r:.60}",
            do="Pass, for example, [(3, 17), (17, 3)] or masks.window(4, 0).",
            name=name,
            given=given,
        )
    return np.unique(pairs.astype(np.int64), axis=0)  # each pair once, in the order of the queries


def on_own(inputs: RoleInputs, name: str, role: OwnRole) -> RoleTally:
    """The weight on the keys of a user-defined role, over the queries that can see one."""
    return _under_mask(inputs, role) if isinstance(role, Mask) else _at_pairs(inputs, name, role)


def _at_pairs(inputs: RoleInputs, name: str, pairs: Integers) -> RoleTally:
    query, key = pairs[:, 0], pairs[:, 1]
    if pairs.min() < 0 or query.max() >= inputs.call.queries or key.max() >= inputs.call.keys:
        raise ArgumentError(
            "Pairs must be positions in the {kind} {name} (queries = {queries}, keys = {keys}).",
            got="{name_2!r} with queries up to {max} and keys up to {max_2}",
            do="Count from 0, and choose the layers with layers=.",
            kind=inputs.call.kind,
            name=inputs.call.name,
            queries=inputs.call.queries,
            keys=inputs.call.keys,
            name_2=name,
            max=query.max(),
            max_2=key.max(),
        )
    tally = RoleTally(inputs.call.heads)
    for batch in inputs.batches:
        real = inputs.real[batch].numpy()[query]
        add_pairs(inputs, tally, batch, query[real], key[real])
    tally.shared = int(np.bincount(key).max())
    return tally


def _under_mask(inputs: RoleInputs, mask: Mask) -> RoleTally:
    """``exp(lse under both masks − lse)``: the mass of a region without any pair of it."""
    call, tally = inputs.call, RoleTally(inputs.call.heads)
    both = inputs.mask & call.region(mask)
    if isinstance(call, DenseCall):
        inside = call.matrix * both.dense(*call.extent, device=call.matrix.device)
        mass, peak, peak_key = inside.sum(-1), *inside.max(-1)
    else:
        scored = call.scored()
        found = attention_statistics(
            scored.q, scored.k, mask=both, bias=scored.bias, scale=scored.scale, softcap=scored.softcap
        )
        mass = weights_of(found.lse, inputs.found.lse)
        peak, peak_key = found.peak * mass, found.peak_key
    there, turned = (_visible(inputs, each, sizes) for each, sizes in _both_ways(inputs, both))
    tally.shared = max(1, int(turned.max()))
    for batch in inputs.batches:
        rows = inputs.rows(batch)
        at = torch.from_numpy(rows)
        count = there[batch][:, at].expand(call.heads, -1).to(mass.device)
        even = inputs.even(batch, rows)
        tally.add(mass[batch][:, at], count * even, count > 0, count * inputs.peak(batch, rows))
        above = torch.where(count > 0, peak[batch][:, at] - even, -torch.inf)
        tally.offer(batch, rows, peak_key[batch][:, at].cpu().numpy(), peak[batch][:, at], above)
    return tally


def _both_ways(inputs: RoleInputs, mask: Mask) -> list[tuple[Mask, tuple[int, int]]]:
    """The mask and its transpose: how many keys a query sees, and how many queries see a key."""
    queries, keys = inputs.call.extent
    return (
        [(mask, (queries, keys)), (mask.T, (keys, queries))]
        if queries == keys
        else [(mask, (queries, keys))] * 2
    )


def _visible(inputs: RoleInputs, mask: Mask, sizes: tuple[int, int]) -> torch.Tensor:
    heads = inputs.call.heads if mask.lead and mask.lead[-1] > 1 else 1
    q, k = (torch.zeros(inputs.call.batch, heads, size, 1) for size in sizes)
    return attention_statistics(q, k, mask=mask, scale=1.0).visible
