"""Weights at chosen pairs of query and key: ``exp(s_ij − lse_i)`` there and nowhere else.

Memory is that of the pairs. Channels are gathered for some pairs at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from regard.kernels.plain_kernel import MAX_SCORES, weights_of
from regard.kernels.precision import full_precision
from regard.masks.extent import Bools, Integers, Pairs
from regard.recording import Call, DenseCall, ScoredCall


def weights_at(call: Call, batch: int, query: Integers, key: Integers) -> Tensor:
    """The weight of each pair in every head, ``(head, pair)``, in at least float32.

    >>> q = k = torch.eye(2)[None, None]
    >>> lse = torch.logsumexp(torch.eye(2), -1)[None, None]
    >>> weights_at(ScoredCall("attention", "encoder", 0, q, k, lse), 0, np.array([0, 1]), np.array([0, 0]))
    tensor([[0.7311, 0.2689]])
    """
    if isinstance(call, DenseCall):
        i, j = (torch.from_numpy(x).to(call.matrix.device) for x in (query, key))
        found = call.matrix[batch][:, i, j]
        return found.to(torch.promote_types(found.dtype, torch.float32))
    call = call.scored()
    step = max(1, MAX_SCORES // (call.heads * call.q.shape[-1]))
    parts = [
        _stretch(call, batch, query[start : start + step], key[start : start + step])
        for start in range(0, len(query), step)
    ]
    wide = torch.promote_types(call.q.dtype, torch.float32)
    return torch.cat(parts, 1) if parts else call.q.new_zeros((call.heads, 0), dtype=wide)


BLOCK = 64
"""Rows whose weights near the diagonal are computed together."""


def weights_near(call: Call, batch: int, first: int, last: int) -> Tensor:
    """The weights of every query at the keys ``first … last`` positions away, ``(head, query, offset)``.

    Without such a key the number is meaningless; the mask is not evaluated.
    Blocks along the diagonal are products of matrices, far faster than pairs.

    >>> q = k = torch.eye(3)[None, None]
    >>> call = ScoredCall("attention", "encoder", 0, q, k, torch.zeros(1, 1, 3))
    >>> weights_near(call, 0, -1, 0)[0, 1:]  # the key before, and the query's own
    tensor([[1.0000, 2.7183],
            [1.0000, 2.7183]])
    """
    offset, width = call.extent.offset, last - first + 1
    position = np.arange(call.queries) + offset
    keys = position[:, None] + np.arange(first, last + 1)
    if not isinstance(call, ScoredCall):
        # Dense weights are read directly; statistics alone raise here.
        query = np.repeat(np.arange(call.queries), width)
        found = weights_at(call, batch, query, keys.clip(0, call.keys - 1).ravel())
        return found.view(len(found), call.queries, width)
    wide = torch.promote_types(call.q.dtype, torch.float32)
    q, k, lse = (x[batch].to(wide) for x in (call.q, call.k, call.lse))
    grouped = q.unflatten(0, (k.shape[0], -1))  # (key head, group, query, channel)
    bands = []
    with full_precision(q):
        for start in range(0, call.queries, BLOCK):
            rows = grouped[:, :, start : start + BLOCK]
            count = rows.shape[2]
            around = np.arange(start + offset + first, start + offset + count + last).clip(0, call.keys - 1)
            near = k[:, torch.from_numpy(around).to(k.device)]  # (key head, count + width − 1, channel)
            scores = (rows.flatten(1, 2) @ near.mT).unflatten(1, (-1, count)).flatten(0, 1)
            # Row r begins one key later than the row above it: the band lies along the diagonal.
            scores = scores.contiguous()
            heads, steps = scores.stride(0), scores.stride(1)
            bands.append(scores.as_strided((len(scores), count, width), (heads, steps + 1, 1)))
    scores = torch.cat(bands, 1) * call.scale
    if call.softcap is not None:
        scores = call.softcap * torch.tanh(scores / call.softcap)
    if call.bias is not None:
        i = torch.arange(call.queries, device=q.device).repeat_interleave(width)
        j = torch.from_numpy(keys.clip(0, call.keys - 1).ravel()).to(q.device)
        scores = scores + call.bias.at(batch, i, j, call.extent).to(wide).unflatten(1, keys.shape)
    return weights_of(scores, lse[..., None])


def _stretch(call: ScoredCall, batch: int, query: Integers, key: Integers) -> Tensor:
    wide = torch.promote_types(call.q.dtype, torch.float32)
    i, j = (torch.from_numpy(x).to(call.q.device) for x in (query, key))
    q, k = call.q[batch][:, i].to(wide), call.k[batch][:, j].to(wide)
    # Query heads of one group are adjacent and share a key head.
    grouped = q.unflatten(0, (k.shape[0], -1))  # (key head, group, pair, channel)
    scores = (grouped * k[:, None]).sum(-1).flatten(0, 1) * call.scale  # (head, pair)
    if call.softcap is not None:
        scores = call.softcap * torch.tanh(scores / call.softcap)
    if call.bias is not None:
        scores = scores + call.bias.at(batch, i, j, call.extent).to(wide)
    lse = call.lse[batch][:, i].to(wide)
    weights = weights_of(scores, lse)
    allowed = torch.from_numpy(allowed_at(call, batch, query, key)).to(weights.device)
    return torch.where(allowed, weights, 0.0)


def allowed_at(call: Call, batch: int, query: Integers, key: Integers) -> Bools:
    """Whether the mask lets each pair attend, ``(head or 1, pair)``."""
    pairs = Pairs(call.extent, query + call.extent.offset, key)
    lead = call.mask.lead
    heads = range(call.heads if lead and lead[-1] > 1 else 1)
    asked = (call.mask.select((batch, head)).allows(pairs) for head in heads)
    return np.stack([np.broadcast_to(np.asarray(found, np.bool_), key.shape) for found in asked])


def same_token(
    queries: Integers, keys: Integers, wanted: Integers, most: int
) -> Iterator[tuple[Integers, Integers]]:
    """All pairs (i, j) with ``queries[i] == keys[j]`` for these rows i, some rows at a time.

    A part holds at most ``most`` pairs, or those of one row. Keys are grouped by sorting, so
    that time and memory are those of the pairs, not of n×n.

    >>> [(i.tolist(), j.tolist()) for i, j in same_token(*map(np.array, ([7, 8], [8, 7, 7], [0, 1])), 9)]
    [([0, 0, 1], [1, 2, 0])]
    """
    order = np.argsort(keys, kind="stable")
    grouped = keys[order]
    starts = np.searchsorted(grouped, queries[wanted], "left")
    counts = np.searchsorted(grouped, queries[wanted], "right") - starts
    first = 0
    while first < len(wanted):
        reached = np.cumsum(counts[first:])
        last = first + max(1, int(np.searchsorted(reached, most, "right")))
        count = counts[first:last]
        inside = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        yield np.repeat(wanted[first:last], count), order[np.repeat(starts[first:last], count) + inside]
        first = last
