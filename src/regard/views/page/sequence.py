"""One sequence of a call: a page shows one text."""

from __future__ import annotations

from regard.kernels.bias import Bias
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
    own = bias.select(batch=slice(batch, batch + 1), heads=heads)
    return own.with_tables(tuple(table.detach().cpu() for table in own.tables))
