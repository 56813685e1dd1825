"""Everything that defines one row of an attention matrix: one query of one head, and all its keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.checks import is_index
from regard.errors import ArgumentError, RecordingError
from regard.masks.extent import Numbers
from regard.recording.call import Call
from regard.recording.scored_call import ScoredCall


@dataclass(frozen=True, eq=False)
class AttentionRow:
    """One query of one head, as recorded, in float64; ``weights`` are those of the recording."""

    q: Numbers  # (channel,)
    k: Numbers  # (key, channel)
    v: Numbers  # (key, value channel)
    weights: Numbers  # (key,)
    allowed: NDArray[np.bool_]  # (key,)
    bias: Numbers | None  # (key,)
    scale: float
    softcap: float | None
    sink: float | None


def row_of(call: Call, head: int, query: int, batch: int = 0) -> AttentionRow:
    """The row of one query; ``head`` is its number in the model.

    >>> q = k = v = torch.eye(2)[None, None]  # (batch, head, length, channel)
    >>> lse = torch.logsumexp(torch.eye(2), -1)[None, None]
    >>> row_of(ScoredCall("attention", "encoder", 0, q, k, lse, v, scale=1.0), 0, 1).q
    array([0., 1.])
    """
    if not isinstance(call, ScoredCall) or call.v is None:
        raise RecordingError(
            "A row needs Q, K and V of {name}.",
            got="its weights alone" if call.dense else "a recording without them",
            do="Record with watch(model, values=True); a model that hides its Q and K cannot be explained.",
            name=call.name,
        )
    if not is_index(query, call.queries):
        raise ArgumentError(
            "A query must be a position (0 … {last}).",
            got="{query!r}",
            do="Count from 0.",
            last=call.queries - 1,
            query=query,
        )
    weights = call.weights(head, rows=query, batch=batch)[0]
    index = call.head_numbers.index(head)
    key_head = call.key_head(index)
    i, j = np.array([query]), np.arange(call.keys)
    allowed = call.mask.select((batch, index)).evaluate(call.extent, i + call.extent.offset, j)
    bias = call.bias_at(batch, index, i, j)
    return AttentionRow(
        q=_numbers(call.q[batch, index, query]),
        k=_numbers(call.k[batch, key_head]),
        v=_numbers(call.v[batch, key_head]),
        weights=_numbers(weights),
        allowed=np.broadcast_to(allowed, (1, call.keys))[0],
        bias=None if bias is None else np.broadcast_to(_numbers(bias), (1, call.keys))[0],
        scale=call.scale,
        softcap=call.softcap,
        sink=None if call.sinks is None else float(call.sinks[index]),
    )


def _numbers(tensor: Tensor) -> Numbers:
    return tensor.detach().to("cpu", torch.float64).numpy()
