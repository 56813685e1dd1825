"""The statistics and roles of every query of one attention call over a batch of texts.

For short texts the weights of all heads are computed directly, as one batched product, which costs least;
of long ones a few rows at a time. Nothing n×n is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from regard.heads.survey.tokenized_batch import FEATURES, PAIRS, TokenizedBatch
from regard.kernels.plain_kernel import ScoreOptions, finite_lse, scores_of
from regard.kernels.precision import full_precision
from regard.kernels.row_weights import weigh_rows
from regard.kernels.statistics_pass import LOG2_E
from regard.kernels.tile_pass import flatten_lead
from regard.recording import Call, DenseCall

MAX_WEIGHTS = 1 << 22
"""Weights in memory at a time: 16 MB in float32."""

MEASURES = ("entropy", "relative_entropy", "peak", "distance", *PAIRS, "broad")
"""One number per query each; see ``docs/survey.md``."""


class MeasuredRows(NamedTuple):
    """Some queries of a call; axes are (measure,) batch, head, query, and 1 where heads are alike."""

    rows: slice
    values: Tensor  # (measure, batch, head, query)
    where: Tensor  # bool: the queries that have something to measure
    chance: Tensor  # what even weights would give; 0 for what is not a role
    weights: Tensor  # (batch, head, query, key), 0 for queries that are padding
    pairs: Tensor  # how many texts allow a pair, (head or 1, query, key)


def measured(call: Call, texts: TokenizedBatch) -> Iterator[MeasuredRows]:
    """The measures of a call, a few rows at a time."""
    batch, heads, queries, keys = call.shape
    step = max(1, MAX_WEIGHTS // max(1, batch * heads * keys))
    for start in range(0, queries, step):
        yield _rows(call, texts, slice(start, min(start + step, queries)))


def _rows(call: Call, texts: TokenizedBatch, rows: slice) -> MeasuredRows:
    allowed = _allowed(call, texts, rows)
    weights, entropy, peak = _weights(call, rows, allowed)
    counts = allowed & texts.real[:, None, rows, None]
    visible = allowed.sum(-1)
    sees = counts.any(-1)  # (batch, head or 1, query)
    several = sees & (visible > 1)
    features = texts.features(rows)
    on = dict(zip(FEATURES, _contract(weights, features).unbind(-1)))
    there = dict(zip(FEATURES, _contract(allowed.float(), features).unbind(-1)))
    size = visible.clamp(min=2).to(entropy.dtype)
    values = {
        "entropy": entropy,
        "relative_entropy": entropy / torch.log(size),
        "peak": peak,
        "distance": on["gap"] / torch.where(on["mass"] > 0, on["mass"], 1.0),
        "broad": torch.expm1(entropy) / (size - 1),
        **{name: on[name] for name in PAIRS},
    }
    nowhere = torch.zeros_like(visible, dtype=entropy.dtype)
    chances = {name: there[name] / visible.clamp(min=1) for name in PAIRS}
    where = {
        "relative_entropy": several,
        "broad": several,
        **{name: sees & (there[name] > 0) for name in PAIRS},
    }
    shape = entropy.shape
    return MeasuredRows(
        rows,
        torch.stack([values[name] for name in MEASURES]),
        torch.stack([where.get(name, sees).expand(shape) for name in MEASURES]),
        torch.stack([chances.get(name, nowhere).expand(shape) for name in MEASURES]),
        weights.mul_(texts.real[:, None, rows, None]),
        counts.sum(0),
    )


def _allowed(call: Call, texts: TokenizedBatch, rows: slice) -> Tensor:
    """Which query may see which key, ``(batch, head or 1, query, key)``.

    Dense weights come without a mask: padding is hidden, and a decoder looks back.
    """
    keys = texts.real[:, None, None, :]
    positions = torch.arange(call.keys, device=keys.device)
    if isinstance(call, DenseCall):
        back = positions <= positions[rows, None] if call.kind == "decoder" else positions >= 0
        return keys & back.expand(len(positions[rows]), call.keys)
    extent = call.extent
    asked = call.mask.evaluate(extent, extent.query_positions()[rows], extent.key_positions())
    found = flatten_lead(torch.from_numpy(asked.copy()), (call.batch,)).to(keys.device)
    return found.expand(call.batch, -1, len(positions[rows]), call.keys)


def _weights(call: Call, rows: slice, allowed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, their entropy, and the greatest of each row."""
    if isinstance(call, DenseCall):
        weights = call.matrix[:, :, rows].float() * allowed
        return _with_sums(weights, torch.log(weights.clamp(min=torch.finfo(weights.dtype).tiny)))
    call = call.scored()
    q, k = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (call.q[:, :, rows], call.k))
    grouped = q.unflatten(1, (k.shape[1], -1))  # query heads that share a key head are adjacent
    with full_precision(q):
        scores, _ = scores_of(grouped, k[:, :, None], None, ScoreOptions(call.scale, call.softcap))
    scores = scores.flatten(1, 2)  # (batch, head, query, key)
    if call.bias is not None:
        extent, device = call.extent, q.device
        q_positions = torch.from_numpy(extent.query_positions()[rows]).to(device)
        k_positions = torch.from_numpy(extent.key_positions()).to(device)
        scores = scores + call.bias.tile(call.bias.tables, q_positions, k_positions, extent)
    in_bits = scores.mul_(LOG2_E)
    seen = None if bool(allowed.all()) else allowed.cpu().numpy()
    sums = weigh_rows(in_bits, call.lse[:, :, rows], seen, can_forbid=call.bias is not None)
    if sums is not None:
        return in_bits, sums.entropy.clamp_(min=0), sums.peak
    lse = call.lse[:, :, rows, None].to(scores.dtype)
    logarithms = in_bits.div_(LOG2_E).sub_(finite_lse(lse))
    logarithms = logarithms.masked_fill_(~allowed, -1e4).clamp_(min=-1e4)  # e^−10000 is 0
    return _with_sums(torch.exp2(logarithms * LOG2_E), logarithms)


def _with_sums(weights: Tensor, logarithms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Logarithms must be finite also where a weight is 0, so that their product is 0."""
    return weights, (weights * logarithms).sum(-1).clamp_(max=0).neg_(), weights.amax(-1)


def _contract(weights: Tensor, features: Tensor) -> Tensor:
    """``Σ_key weights · features``: ``(batch, head, query, key)`` → ``(batch, head, query, feature)``."""
    batch, heads, queries, keys = weights.shape
    rows = weights.transpose(1, 2).reshape(batch * queries, heads, keys)
    found = torch.bmm(rows, features.reshape(batch * queries, keys, -1).to(rows.dtype))
    return found.view(batch, queries, heads, -1).transpose(1, 2)
