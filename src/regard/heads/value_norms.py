"""Value-weighted attention: what a key adds to the output, not only how much it is looked at.

Kobayashi et al. (2020). Head h adds ``w_ij · v_j W_O`` to the output at i, where W_O is the head's part of
the output projection. Its size is ``w_ij · ‖v_j W_O‖``: a key with a large weight and a small value does
next to nothing. One norm per key and head is all that is needed beside the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.errors import DtypeError, RecordingError, ShapeError
from regard.recording import Call, ScoredCall
from regard.recording.call import Positions
from regard.recording.output_projection import output_weight, split_heads


@dataclass(frozen=True, eq=False)
class ValueWeighted:
    """A call with the norm of what each key has to give to each head.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> with torch.no_grad(), regard.watch(model, projections=True) as seen:
    ...     _ = model(torch.tensor([[5, 6, 7]]))
    >>> regard.heads.value_weighted(seen[0]).norms.shape  # (batch, head, key)
    torch.Size([1, 2, 3])
    """

    call: Call
    norms: Tensor  # (batch, head, key): ‖v_j W_O‖

    def weights(
        self, head: int, rows: Positions = slice(None), columns: Positions = slice(None), batch: int = 0
    ) -> Tensor:
        """``w_ij · ‖v_j W_O‖`` of one head, ``(rows, columns)``; arguments are those of ``Call.weights``."""
        found = self.call.weights(head, rows, columns, batch)
        norms = self.norms[batch, self.call.head_numbers.index(head)]
        chosen = torch.arange(self.call.keys)[columns].reshape(-1).to(norms.device)
        return found * norms[chosen].to(found.dtype)

    def received(self) -> Tensor:
        """``Σ_i w_ij · ‖v_j W_O‖``: how much each key gives to all queries, ``(batch, head, key)``."""
        received = self.call.statistics().received
        return received * self.norms.to(received.dtype)


@torch.no_grad()
def value_weighted(call: Call, projection: nn.Module | Tensor | None = None) -> ValueWeighted:
    """The sizes of what keys add to the output of a head, for a call recorded with ``projections=True``.

    Of a call recorded with ``values=True``, ``projection`` is the model that was watched, in which the output
    projection beside the call is found; or that projection itself, as a linear module or as a weight
    ``(width, heads · channel)``.

    >>> import torch, regard
    >>> model = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    >>> x = torch.randn(1, 5, 16)
    >>> with regard.watch(model, values=True) as seen:
    ...     _ = model(x, x, x)
    >>> value_weighted(seen[0], model).weights(head=1, rows=slice(0, 2)).shape
    torch.Size([2, 5])
    """
    if not isinstance(call, Call):
        raise DtypeError(
            "value_weighted(call, projection) needs one call of a recording.",
            got="{type}",
            do="Pass, for example, seen[0].",
            type=type(call).__name__,
        )
    if not isinstance(call, ScoredCall) or call.v is None:
        raise RecordingError(
            "Value-weighted attention needs V, but {name} was recorded without it.",
            do="Record with watch(model, values=True).",
            name=call.name,
        )
    heads = call.projections if projection is None else _given(call, call.v, projection)
    # ‖v W‖² = v (W Wᵀ) vᵀ: a small square per head instead of a vector of the model's width per key.
    gram = heads.double() @ heads.double().mT  # (head, channel, channel)
    v = call.v.double().repeat_interleave(call.heads // call.v.shape[1], 1)  # (batch, head, key, c)
    return ValueWeighted(call, ((v @ gram.to(v.device)) * v).sum(-1).clamp(min=0).sqrt())


def _given(call: ScoredCall, v: Tensor, projection: nn.Module | Tensor) -> Tensor:
    """Each head's part of the projection that was passed, ``(head, channel, width)``."""
    weight = output_weight(projection, call)  # (width, heads · channel)
    channels = v.shape[-1]
    heads = split_heads(weight, call.head_numbers, channels)
    if heads is None:
        raise ShapeError(
            "The output projection must take the channels of all heads "
            "(heads ≥ {head_numbers}, channels = {channels}).",
            got="{shape} inputs",
            do="Pass the model, its output projection, or a weight (width, heads · channel).",
            head_numbers=max(call.head_numbers) + 1,
            channels=channels,
            shape=weight.shape[1],
        )
    return heads
