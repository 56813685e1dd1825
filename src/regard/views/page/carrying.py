"""One call as the page carries it: rounded, with its error measured and held to the bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.attention import Statistics, attention_statistics, attention_with_lse
from regard.recording import Call
from regard.recording.summaries import statistics_of_weights
from regard.views.page.carried_biases import CarriedBias, carried
from regard.views.page.exactness import BOUND, greatest_error, rows_to_compare
from regard.views.page.packing import Shelf
from regard.views.page.pieces import Piece, narrowed, pieces_of
from regard.views.page.quantising import Quantised, quantise
from regard.views.page.thumbnails import thumbnail, thumbnail_of_weights

STATISTICS = ("entropy", "distance", "self_weight", "previous_weight", "first_weight", "peak")
"""Per head: the mean over the queries that see something."""


@dataclass(frozen=True, eq=False)
class Shown:
    """Q, K, lse and bias as the browser will have them, and how far its weights are off."""

    q: Quantised
    k: Quantised
    lse: NDArray[np.float32]  # (head, query), of the rounded scores
    bias: CarriedBias | None
    error: float
    compared: int  # rows whose weights were compared


def described_scores(call: Call, batch: int, shelf: Shelf, *, value_bits: int) -> dict[str, Any]:
    """A call of Q and K; its arrays on the shelf."""
    pieces = list(pieces_of(call, batch))
    shown = rounded(call, batch, pieces)
    found = [attention_statistics(piece.q[None], piece.k[None], **piece.options()) for piece in pieces]
    values = None if call.v is None else quantise(call.v[batch].detach().float().cpu().numpy(), value_bits)
    return {
        "channels": pieces[0].q.shape[-1],
        "q": shelf.put_rows(shown.q),
        "k": shelf.put_rows(shown.k),
        "v": None if values is None else shelf.put_rows(values),
        "lse": shelf.put(shown.lse),
        "bias": None if shown.bias is None else shown.bias.described(shelf),
        "scale": call.scale,
        "softcap": call.softcap,
        "sinks": None if call.sinks is None else call.sinks.double().tolist(),
        "statistics": shelf.put(np.concatenate([means(one) for one in found], 1)),
        "thumbnails": described_picture(
            np.concatenate([thumbnail(piece, one.lse[0]) for piece, one in zip(pieces, found)]), shelf
        ),
        "error": shown.error,
        "compared": shown.compared,
    }


def described_weights(call: Call, batch: int, shelf: Shelf) -> dict[str, Any]:
    """A call of dense weights; its arrays on the shelf."""
    assert call.own_weights is not None
    weights = call.own_weights[batch].detach().cpu()
    shown = quantise(weights.double().numpy(), 16)
    error = np.abs(shown.decoded() - weights.double().numpy()).max(initial=0.0)
    return {
        "weights": shelf.put_rows(shown),
        "statistics": shelf.put(means(statistics_of_weights(weights[None], 0))),
        "thumbnails": described_picture(thumbnail_of_weights(weights), shelf),
        "error": float(error),
        "compared": call.queries,
    }


def rounded(call: Call, batch: int, pieces: Sequence[Piece]) -> Shown:
    """The call with as few bits as keep every weight within the bound."""
    assert call.q is not None
    assert call.k is not None
    q, k = (x[batch].detach().double().cpu().numpy() for x in (call.q, call.k))
    rows = rows_to_compare(torch.from_numpy(q), call.keys)
    # A sample may have missed the worst weight.
    bound = BOUND if len(rows) == call.queries else BOUND / 2
    bias = None if call.bias is None else narrowed(call.bias, batch, slice(0, call.heads))
    for bits in (16, 24, 32):
        own_q, own_k = quantise(q, bits), quantise(k, bits)
        own_bias = None if bias is None else carried(bias, call.extent, bits)
        shown = _as_pieces(pieces, own_q, own_k, own_bias)
        lse = torch.cat([_lse(piece) for piece in shown])
        error = max(
            greatest_error(exact, piece, lse[exact.heads], rows) for exact, piece in zip(pieces, shown)
        )
        if error <= bound:
            break
    return Shown(own_q, own_k, lse.numpy(), own_bias, error, len(rows))


def _as_pieces(pieces: Sequence[Piece], q: Quantised, k: Quantised, bias: CarriedBias | None) -> list[Piece]:
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


def _lse(piece: Piece) -> Tensor:
    """The lse of every row in float32, ``(head, query)``."""
    q, k = piece.q[None], piece.k[None]
    return attention_with_lse(q, k, k, **piece.options())[1][0].float()


def means(found: Statistics) -> NDArray[np.float32]:
    """``(statistic, head)``, each the mean over the queries that see something; NaN without any."""
    sees = (found.visible > 0)[0]  # (head, query)
    count = sees.sum(-1)
    rows = [torch.where(sees, getattr(found, name)[0], 0.0).sum(-1) / count for name in STATISTICS]
    return torch.stack(rows).float().numpy()


def described_picture(pictures: NDArray[np.uint8], shelf: Shelf) -> dict[str, Any]:
    """Small pictures ``(head, row, column)``."""
    return {"values": shelf.put(pictures), "rows": pictures.shape[1], "columns": pictures.shape[2]}
