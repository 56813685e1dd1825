"""What a monitor measures in one step of a training run: a few numbers of every head, and no matrix.

InterceptedCall → HeadMeasurement → MeasuredCall: Q, K, and the gradient of the output → rows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.heads.monitor_file import HeadRow
from regard.interception.call_types import CallPlace, InterceptedCall
from regard.kernels import Statistics, attention_statistics
from regard.kernels.inputs import Inputs
from regard.masks import Mask, documents


@dataclass(eq=False)
class MeasuredCall:
    """One call: what its weights are computed from, and the gradient of its output."""

    place: CallPlace
    q: Tensor
    k: Tensor
    mask: Mask
    options: dict[str, Any]  # bias, scale, softcap and sinks
    gradient: Tensor | None = None  # Σ over channels of dO², (batch, head, query)

    @torch.no_grad()
    def rows(self, step: int) -> Iterator[HeadRow]:
        """One row for each head."""
        found = self._statistics()
        sees = found.lse > -torch.inf
        score = found.lse + found.peak.log()  # the greatest weight of a row is exp(s − lse)
        count = sees.sum((0, 2)).clamp(min=1)
        entropy, first = ((x * sees).sum((0, 2)) / count for x in (found.entropy, found.first_weight))
        greatest = score.masked_fill(~sees & ~score.isnan(), -torch.inf).amax((0, 2))
        norm = None if self.gradient is None else self.gradient.sum((0, 2)).sqrt()
        information = _information(found)
        for head in range(found.lse.shape[1]):
            yield {
                "step": step,
                "kind": self.place.kind,
                "layer": self.place.layer,
                "head": head,
                "entropy": float(entropy[head]),
                "score": float(greatest[head]),
                "first": float(first[head]),
                "gradient": None if norm is None else float(norm[head]),
                "information": None if information is None else float(information[head]),
            }

    def _statistics(self) -> Statistics:
        """Those of the queries on which the loss depends; the others see nothing."""
        mask, depends = self.mask, None if self.gradient is None else (self.gradient != 0).any(1)
        # Where no query has a gradient, as with W_O = 0 in all heads, all that see a key count.
        if depends is not None and depends.any() and not depends.all():
            mask = mask & documents(depends.long().cpu(), torch.ones(self.k.shape[2], dtype=torch.long))
        return attention_statistics(self.q, self.k, mask=mask, **self.options)


def _information(found: Statistics) -> Tensor | None:
    """How much the query decides which key is seen, a share for each head; None for texts of one pair.

    ``Σ_j f(mean_i w_ij) − mean_i Σ_j f(w_ij)`` with ``f(w) = −w log w``: the mutual information of query and
    key if queries are equally likely. It is at most the logarithm of the number of queries, and of keys.
    """
    sees = found.lse > -torch.inf
    count = sees.sum(2)  # (batch, head)
    most = torch.minimum(count, found.visible.amax(2)).to(found.entropy.dtype)
    counted = most > 1
    if not counted.any():
        return None
    count = count.clamp(min=1)
    together = torch.special.entr(found.received / count[..., None]).sum(2)
    alone = (found.entropy * sees).sum(2) / count
    share = torch.where(counted, (together - alone) / most.clamp(min=2).log(), 0.0)
    return share.sum(0) / counted.sum(0).clamp(min=1)


@dataclass(eq=False)
class HeadMeasurement:
    """Measures the calls of one step; to interception, an editor that changes nothing.

    So the output is computed as it would be without it, dropout included, and the statistics in a pass of
    their own.
    """

    calls: dict[tuple[str, int], MeasuredCall] = field(default_factory=dict)
    passes: int = 0  # with gradients
    ended: bool = False

    def begin(self) -> None:
        """A forward pass begins."""
        self.passes += torch.is_grad_enabled()

    def edit_inputs(self, place: CallPlace, call: InterceptedCall) -> InterceptedCall:
        """The call itself."""
        del place
        return call

    def edit_output(self, place: CallPlace, call: InterceptedCall, output: Tensor) -> Tensor:
        """The output itself; its gradient is waited for."""
        known = place.name, place.occurrence
        # A second pass in the same step, or one that checkpointing repeats, is not measured again.
        if not output.requires_grad or known in self.calls:
            return output
        self.calls[known] = measured = _measured(place, call.inputs)

        def receive(gradient: Tensor) -> None:
            if not self.ended and measured.gradient is None:
                measured.gradient = gradient.detach().float().square().sum(-1)

        output.register_hook(receive)
        return output

    def rows(self, step: int) -> Iterator[HeadRow]:
        """One row for each head, in the order of the calls."""
        for call in self.calls.values():
            yield from call.rows(step)


def _measured(place: CallPlace, inputs: Inputs) -> MeasuredCall:
    """A call without its graph; a parameter is copied before the optimizer changes it."""
    options = {
        "bias": None if inputs.bias is None else inputs.bias.detach(),
        "scale": inputs.scale,
        "softcap": inputs.softcap,
        "sinks": None if inputs.sinks is None else inputs.sinks.detach().clone(),
    }
    return MeasuredCall(place, inputs.q.detach(), inputs.k.detach(), inputs.mask, options)
