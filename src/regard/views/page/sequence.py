"""One sequence of a call: a page shows one text."""

from __future__ import annotations

from dataclasses import replace

from regard.kernels.biases import Bias, DistanceBias, Sum, TensorBias
from regard.recording import Call


def one_sequence(call: Call, batch: int) -> Call:
    """The call as if this sequence had been alone in its batch, in at least float32.

    >>> import torch
    >>> from regard.recording import ScoredCall
    >>> q = torch.randn(3, 2, 5, 4)
    >>> call = ScoredCall("attention", "encoder", 0, q, q, torch.zeros(3, 2, 5))
    >>> one_sequence(call, 1).shape
    (1, 2, 5, 5)
    """
    return call.select(batch).on_cpu()


def narrowed(bias: Bias, batch: int, heads: slice) -> Bias:
    """The bias of one sequence and some heads."""
    if isinstance(bias, Sum):
        return Sum(tuple(narrowed(part, batch, heads) for part in bias.parts))
    (table,) = bias.narrow(bias.tables, slice(batch, batch + 1), heads)
    table = table.detach().cpu()
    if isinstance(bias, DistanceBias):
        return replace(bias, table=table)
    assert isinstance(bias, TensorBias)
    return replace(bias, values=table)
