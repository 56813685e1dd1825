"""How far the weights that a page shows are from the exact ones, measured by decoding as the browser will."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.kernels.plain_kernel import weights_of
from regard.views.page.head_groups import HeadSlice

BOUND = 2e-3
"""No weight on a page may be further from the exact one."""

EXHAUSTIVE = 1 << 23
"""Weights of a call that are compared; a call with more is compared in sampled rows."""

CHUNK_WEIGHTS = 1 << 20


def rows_to_compare(q: Tensor, keys: int) -> Tensor:
    """All queries, or a sample: half of them evenly spaced, half those with the largest rounding errors.

    The error of a score grows with the length of its query, so the longest queries of all heads
    are the ones to look at.
    """
    heads, queries, _ = q.shape
    room = max(2, EXHAUSTIVE // max(1, heads * keys))
    if room >= queries:
        return torch.arange(queries)
    even = torch.linspace(0, queries - 1, room // 2).long()
    longest = torch.linalg.vector_norm(q, dim=-1).amax(0).topk(room - room // 2).indices
    picked: Tensor = torch.cat([even, longest]).unique()
    return picked


def greatest_error(exact: HeadSlice, shown: HeadSlice, lse: Tensor, rows: Tensor) -> float:
    """``max |shown − exact|`` over some rows; ``lse (head, query)`` is what the page carries.

    The exact weights are a softmax in float64; the shown ones are ``exp(s − lse)`` of the rounded
    q, k and bias, as the browser computes it: in float64, kept as float32.
    """
    worst = 0.0
    heads, keys = exact.q.shape[0], exact.extent.keys
    for some in rows.split(max(1, CHUNK_WEIGHTS // max(1, heads * keys))):
        wanted = exact_weights(exact, some)
        found = weights_of(shown.scores(some, torch.float64), lse[:, some, None].double())
        if wanted.numel():
            worst = max(worst, float((found.float() - wanted).abs().max()))
    return worst


def exact_weights(piece: HeadSlice, rows: Tensor) -> Tensor:
    """The weights ``(head, row, key)`` of some queries in float64, by definition."""
    return softmax_of(piece.scores(rows, torch.float64), piece.sinks)


def softmax_of(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Softmax of scores ``(head, row, key)`` beside sinks ``(head,)``; rows that see nothing are 0."""
    if sinks is not None:
        sink = sinks.to(scores.dtype)[:, None, None].expand(-1, scores.shape[1], 1)
        return torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1]
    # A row of only −inf is 0 / 0 for torch; it sees nothing.
    return torch.softmax(scores, -1).nan_to_num_(0.0)
