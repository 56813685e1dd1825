"""One sequence of a call: a page shows one text."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from regard.kernels.biases import Bias
from regard.masks import Mask, dense
from regard.recording import Call


def one_sequence(call: Call, batch: int) -> Call:
    """The call as if this sequence had been alone in its batch, in at least float32.

    >>> q = torch.randn(3, 2, 5, 4)
    >>> call = Call("attention", "encoder", 0, q, q, torch.zeros(3, 2, 5))
    >>> one_sequence(call, 1).shape
    (1, 2, 5, 5)
    """

    def only(tensor: Tensor | None) -> Tensor | None:
        if tensor is None:
            return None
        own = tensor[batch : batch + 1].detach().cpu()
        return own.to(torch.promote_types(own.dtype, torch.float32))

    return replace(
        call,
        q=only(call.q),
        k=only(call.k),
        v=only(call.v),
        lse=only(call.lse),
        own_weights=only(call.own_weights),
        mask=_mask(call, batch),
        bias=None if call.bias is None else narrowed(call.bias, batch, slice(0, call.heads)),
        sinks=None if call.sinks is None else call.sinks.detach().float().cpu(),
    )


def _mask(call: Call, batch: int) -> Mask:
    """The mask of one sequence; it has a ``lead`` only if its heads differ."""
    if not call.mask.lead or call.mask.lead[-1] == 1:
        return call.mask.select((batch, 0))
    by_head = [call.mask.select((batch, head)).dense(*call.extent) for head in range(call.heads)]
    return dense(torch.stack(by_head)[None])


def narrowed(bias: Bias, batch: int, heads: slice) -> Bias:
    """The bias of one sequence and some heads."""
    own = bias.select(batch=slice(batch, batch + 1), heads=heads)
    return own.with_tables(tuple(table.detach().cpu() for table in own.tables))
