"""``Statistics``, which users get, and ``Totals``, which collects them part by part."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.kernels.inputs import Inputs


@dataclass(frozen=True, eq=False)
class Statistics:
    """One number per query or per key of every head; the leading axes are those of the tensors.

    A query that sees no key has weights, entropy and distance 0, lse −inf and keys −1.

    >>> import torch, regard
    >>> q = k = torch.zeros(2, 3, 4)  # (head, length, channel)
    >>> regard.attention_statistics(q, k).peak[0]  # every key gets a third
    tensor([0.3333, 0.3333, 0.3333])
    """

    output: Tensor | None  # (..., head, query, value channel), if values were passed
    lse: Tensor  # (..., head, query)
    entropy: Tensor  # (..., head, query), in nats
    visible: Tensor  # (..., head, query), the number of keys that the query may see
    received: Tensor  # (..., head, key), the weights summed over all queries
    self_weight: Tensor  # (..., head, query), on the key at the query's own position
    previous_weight: Tensor  # (..., head, query), on the key before that
    first_weight: Tensor  # (..., head, query), on key 0
    distance: Tensor  # (..., head, query), mean of |position − key| under the weights
    peak: Tensor  # (..., head, query), the greatest weight
    peak_key: Tensor  # (..., head, query), its key; the first one if several are equal
    top_weights: Tensor | None  # (..., head, query, top), greatest first
    top_keys: Tensor | None  # (..., head, query, top)

    def in_precision_of(self, q: Tensor) -> Statistics:
        """The output in the dtype of the queries, the rest in at least float32."""
        wide = torch.promote_types(q.dtype, torch.float32)
        if self.lse.dtype == wide:
            return self

        def narrower(name: str, x: Tensor | None) -> Tensor | None:
            if x is None or not x.is_floating_point():
                return x
            return x.to(q.dtype if name == "output" else wide)

        return Statistics(**{name: narrower(name, x) for name, x in vars(self).items()})  # type: ignore[arg-type]


SUMS = ("entropy", "mass", "far", "self_weight", "previous_weight", "first_weight")
"""Totals that are sums over the keys of a query: ``mass`` is Σ weight, 1 or less if a sink took some,
and ``far`` is Σ weight · distance."""


@dataclass(eq=False)
class Totals:
    """Partial sums of the statistics, ``(batch, head, query or key)``, to which each pass adds."""

    output: Tensor | None
    lse: Tensor
    visible: Tensor
    received: Tensor
    sums: Tensor  # (6, batch, head, query): those of SUMS, side by side, so that one operation adds to all
    peak: Tensor
    peak_key: Tensor
    top_weights: Tensor
    top_keys: Tensor

    def of_queries(self, name: str) -> Tensor:
        """One of the totals of queries, ``(batch, head, query)``."""
        found: Tensor = self.sums[SUMS.index(name)] if name in SUMS else getattr(self, name)
        return found

    @classmethod
    def blank(cls, inputs: Inputs, *, with_output: bool, top: int, all_written: bool = False) -> Totals:
        """The totals before any pair has been computed.

        ``all_written`` says that every row of the output will be written, so that it needs no zeros.
        """
        batch, heads, queries, _ = inputs.q.shape
        wide = torch.promote_types(inputs.q.dtype, torch.float32)

        def numbers(*sizes: int, value: float = 0.0, dtype: torch.dtype = wide) -> Tensor:
            return torch.full((batch, heads, *sizes), value, dtype=dtype, device=inputs.q.device)

        # Every query sees the sink, even if it sees no key.
        lse = numbers(queries, value=-torch.inf)
        if inputs.sinks is not None:
            lse = lse.copy_(inputs.sinks.detach().to(wide)[:, None])
        shape = (batch, heads, queries, inputs.v.shape[-1] if with_output else 0)
        output = inputs.q.new_empty(shape) if all_written else inputs.q.new_zeros(shape)
        return cls(
            output=output if with_output else None,
            lse=lse,
            visible=numbers(queries, dtype=torch.int64),
            received=numbers(inputs.k.shape[2]),
            sums=torch.zeros((len(SUMS), batch, heads, queries), dtype=wide, device=inputs.q.device),
            peak=numbers(queries),
            peak_key=numbers(queries, value=-1, dtype=torch.int64),
            top_weights=numbers(queries, top),
            top_keys=numbers(queries, top, value=-1, dtype=torch.int64),
        )

    def finish(self, inputs: Inputs) -> Statistics:
        """The statistics, with the leading axes of the user's tensors."""
        top = self.top_weights.shape[-1]
        # What users get shares no memory: a file format may refuse that.
        entropy, mass, far, own, previous, first = (x.clone() for x in self.sums)
        return Statistics(
            output=None if self.output is None else inputs.restore(self.output),
            lse=inputs.restore(self.lse),
            # Rounding can leave it slightly below 0 if one key takes all the weight.
            entropy=inputs.restore(entropy.clamp_(min=0)),
            visible=inputs.restore(self.visible),
            received=inputs.restore(self.received),
            self_weight=inputs.restore(own),
            previous_weight=inputs.restore(previous),
            first_weight=inputs.restore(first),
            distance=inputs.restore(far / torch.where(mass > 0, mass, 1.0)),
            peak=inputs.restore(self.peak),
            peak_key=inputs.restore(self.peak_key),
            top_weights=inputs.restore(self.top_weights) if top else None,
            top_keys=inputs.restore(self.top_keys) if top else None,
        )
