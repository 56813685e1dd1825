"""One call as the page carries it: rounded, with its error measured and within the bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.kernels import attention_with_lse
from regard.recording import Call, DenseCall, ScoredCall
from regard.threads import each, spread
from regard.views.page.array_packing import ArrayStore
from regard.views.page.head_groups import HeadSlice, pieces_of
from regard.views.page.page_bias import CarriedBias, carried
from regard.views.page.page_layer import CarriedLayers, carried_layer, carried_layers
from regard.views.page.page_quantities import carried_quantities
from regard.views.page.quantisation import Quantised, quantise
from regard.views.page.rounding_error import BOUND, greatest_error, rows_to_compare
from regard.views.page.sequence import narrowed
from regard.views.page.thumbnails import thumbnail, thumbnail_of_weights


@dataclass(frozen=True, eq=False)
class RoundedCall:
    """Q, K, lse and bias as the browser will have them, and how far its weights are off."""

    q: Quantised
    k: Quantised
    lse: NDArray[np.floating[Any]]  # (head, query), of the rounded scores
    bias: CarriedBias | None
    error: float
    compared: int  # rows whose weights were compared


Carried = Callable[[ArrayStore], dict[str, Any]]
"""A call ready for the page: adds its arrays to the payload and returns its description."""


def carried_calls(
    calls: Sequence[Call],
    *,
    value_bits: int,
    what: Sequence[str] = ("weight",),
    direction: Tensor | None = None,
) -> list[Carried]:
    """Every call of one sequence, rounded and measured, several of them at a time.

    ``what`` are the quantities that the page shows, ``direction`` that of contributions.
    """

    def carry(call: Call) -> Carried:
        if isinstance(call, DenseCall):
            return carried_weights(call)
        return carried_scores(
            call.scored(), value_bits=value_bits, what=what, direction=direction, layers=layers
        )

    layers = carried_layers(calls)

    # Each weight is computed three times: exactly, as the page shows it, and for the thumbnail; so is each
    # gradient, whose pictures need the weights once more.
    times = 3 if len(what) == 1 else 8
    size = sum(times * call.q[0].numel() * call.keys for call in calls if isinstance(call, ScoredCall))
    return spread(lambda: each(carry, calls), size)


def carried_scores(
    call: ScoredCall,
    *,
    value_bits: int,
    what: Sequence[str] = ("weight",),
    direction: Tensor | None = None,
    layers: CarriedLayers,
) -> Carried:
    """A call of Q and K of one sequence."""
    pieces = list(pieces_of(call))
    shown = rounded(call, pieces)
    others = carried_quantities(
        call,
        pieces,
        _as_pieces(pieces, shown.q, shown.k, shown.bias),
        torch.from_numpy(shown.lse),
        what,
        direction,
    )
    if others is not None and others.v is not None:
        values: Quantised | None = others.v  # gradients are computed with it, so it is as exact as Q and K
    else:
        values = None if call.v is None else quantise(call.v[0].numpy(), value_bits, short_scales=True)
    pictures = [thumbnail(piece, _lse(piece, piece.q.dtype)) for piece in pieces]
    layer = carried_layer(call, layers)
    return lambda arrays: {
        "channels": pieces[0].q.shape[-1],
        "q": arrays.put_rows(shown.q),
        "k": arrays.put_rows(shown.k),
        "v": None if values is None else arrays.put_rows(values),
        "lse": arrays.put(shown.lse),
        "bias": None if shown.bias is None else shown.bias.described(arrays),
        "scale": call.scale,
        "softcap": call.softcap,
        "sinks": None if call.sinks is None else call.sinks.tolist(),
        "thumbnails": described_pictures(pictures, arrays),
        "error": shown.error,
        "compared": shown.compared,
        **({} if others is None else others.described(arrays)),
        **layer(arrays),
    }


def carried_weights(call: DenseCall) -> Carried:
    """A call of dense weights of one sequence."""
    weights = call.matrix[0]
    exact = weights.double().numpy()
    shown = quantise(exact, 16)
    picture = thumbnail_of_weights(weights)
    error = float(np.abs(shown.decoded() - exact).max(initial=0.0))
    return lambda arrays: {
        "weights": arrays.put_rows(shown),
        "thumbnails": described_pictures([picture], arrays),
        "error": error,
        "compared": call.queries,
    }


def rounded(call: ScoredCall, pieces: Sequence[HeadSlice]) -> RoundedCall:
    """The call with as few bits as keep every weight within the bound."""
    q, k = call.q[0], call.k[0]
    rows = rows_to_compare(q, call.keys)
    # A sample may have missed the worst weight.
    bound = BOUND if len(rows) == call.queries else BOUND / 2
    for bits in (16, 24, 32):
        own_q, own_k = (quantise(x.double().numpy(), bits, short_scales=True) for x in (q, k))
        own_bias = None if call.bias is None else carried(call.bias, call.extent, bits)
        shown = _as_pieces(pieces, own_q, own_k, own_bias)
        # Scores in the thousands leave a float32 few digits after the point.
        lse = torch.cat([_lse(piece, torch.float32 if bits == 16 else torch.float64) for piece in shown])
        error = max(
            greatest_error(exact, piece, lse[exact.heads], rows) for exact, piece in zip(pieces, shown)
        )
        if error <= bound:
            break
    return RoundedCall(own_q, own_k, lse.numpy(), own_bias, error, len(rows))


def _as_pieces(
    pieces: Sequence[HeadSlice], q: Quantised, k: Quantised, bias: CarriedBias | None
) -> list[HeadSlice]:
    own_q, own_k = torch.from_numpy(q.decoded()), torch.from_numpy(k.decoded())
    own_bias = None if bias is None else bias.as_bias()
    return [
        replace(
            piece,
            q=own_q[piece.heads],
            k=own_k[piece.key_heads],
            bias=None if own_bias is None else narrowed(own_bias, 0, piece.heads),
        )
        for piece in pieces
    ]


def _lse(piece: HeadSlice, dtype: torch.dtype) -> Tensor:
    """The lse of every row, ``(head, query)``."""
    q, k = piece.q[None].to(dtype), piece.k[None].to(dtype)
    return attention_with_lse(q, k, k, **piece.options())[1][0]


def described_pictures(pictures: Sequence[NDArray[np.uint8]], arrays: ArrayStore) -> dict[str, Any]:
    """Small pictures ``(head, row, column)``."""
    heads = np.concatenate(pictures)
    return {"values": arrays.put(heads), "rows": heads.shape[1], "columns": heads.shape[2]}
