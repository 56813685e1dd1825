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


@dataclass(eq=False)
class Totals:
    """Partial sums of the statistics, ``(batch, head, query or key)``, to which each pass adds."""

    output: Tensor | None
    lse: Tensor
    entropy: Tensor
    visible: Tensor
    received: Tensor
    self_weight: Tensor
    previous_weight: Tensor
    first_weight: Tensor
    far: Tensor  # Σ weight · distance
    mass: Tensor  # Σ weight: 1, or less if a sink took some
    peak: Tensor
    peak_key: Tensor
    top_weights: Tensor
    top_keys: Tensor

    @classmethod
    def blank(cls, inputs: Inputs, *, with_output: bool, top: int) -> Totals:
        """The totals before any pair has been computed."""
        batch, heads, queries, _ = inputs.q.shape
        wide = torch.promote_types(inputs.q.dtype, torch.float32)

        def numbers(*sizes: int, value: float = 0.0, dtype: torch.dtype = wide) -> Tensor:
            return torch.full((batch, heads, *sizes), value, dtype=dtype, device=inputs.q.device)

        # Every query sees the sink, even if it sees no key.
        lse = numbers(queries, value=-torch.inf)
        if inputs.sinks is not None:
            lse = lse.copy_(inputs.sinks.detach().to(wide)[:, None])
        return cls(
            output=inputs.q.new_zeros((batch, heads, queries, inputs.v.shape[-1])) if with_output else None,
            lse=lse,
            entropy=numbers(queries),
            visible=numbers(queries, dtype=torch.int64),
            received=numbers(inputs.k.shape[2]),
            self_weight=numbers(queries),
            previous_weight=numbers(queries),
            first_weight=numbers(queries),
            far=numbers(queries),
            mass=numbers(queries),
            peak=numbers(queries),
            peak_key=numbers(queries, value=-1, dtype=torch.int64),
            top_weights=numbers(queries, top),
            top_keys=numbers(queries, top, value=-1, dtype=torch.int64),
        )

    def finish(self, inputs: Inputs) -> Statistics:
        """The statistics, with the leading axes of the user's tensors."""
        top = self.top_weights.shape[-1]
        return Statistics(
            output=None if self.output is None else inputs.restore(self.output),
            lse=inputs.restore(self.lse),
            # Rounding can leave it slightly below 0 if one key takes all the weight.
            entropy=inputs.restore(self.entropy.clamp_(min=0)),
            visible=inputs.restore(self.visible),
            received=inputs.restore(self.received),
            self_weight=inputs.restore(self.self_weight),
            previous_weight=inputs.restore(self.previous_weight),
            first_weight=inputs.restore(self.first_weight),
            distance=inputs.restore(self.far / torch.where(self.mass > 0, self.mass, 1.0)),
            peak=inputs.restore(self.peak),
            peak_key=inputs.restore(self.peak_key),
            top_weights=inputs.restore(self.top_weights) if top else None,
            top_keys=inputs.restore(self.top_keys) if top else None,
        )
