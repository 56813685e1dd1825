"""One attention call as a model made it, and what the user wants to keep of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from regard.kernels import Statistics
from regard.kernels.biases import Bias
from regard.masks import Mask, causal, everything
from regard.recording.call import Kind


class View(Protocol):
    """Who may look at whom in a text, asked about any stretch of it."""

    def over(self, first: int, stop: int) -> Mask:
        """The mask whose key 0 stands at ``first`` and whose last query and key at ``stop − 1``."""

    def after(self, before: View, length: int) -> View | None:
        """A view that says what ``before`` says of the first ``length`` positions and this of the rest."""


@dataclass(frozen=True)
class FixedView:
    """A mask as it was given for one call."""

    mask: Mask
    queries: int

    def over(self, first: int, stop: int) -> Mask:
        """The mask itself."""
        del first, stop
        return self.mask

    def after(self, before: View, length: int) -> View | None:
        """One query that sees everything is one more row of a causal mask."""
        del length
        last_row = self.mask == everything() and self.queries == 1
        is_causal = isinstance(before, FixedView) and before.mask == causal()
        return before if is_causal and (last_row or self.mask == causal()) else None


@dataclass(frozen=True, eq=False)
class Step:
    """One attention call, as a model made it."""

    q: Tensor  # (batch, head, query, channel)
    k: Tensor
    v: Tensor
    lse: Tensor | None
    statistics: Statistics | None
    view: View
    bias: Bias | None
    scale: float
    softcap: float | None
    sinks: Tensor | None
    past: int  # where in its text the first query stands
    first_key: int = 0  # where in its text the first key stands

    @property
    def stop(self) -> int:
        """Where in its text the queries end."""
        return self.past + self.q.shape[2]


@dataclass(frozen=True)
class Wanted:
    """What the user wants of each call."""

    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    statistics: bool = False
    top: int = 0
    values: bool = False
    dtype: torch.dtype | None = None


class Slot(NamedTuple):
    """The place of a call in a pass of the model."""

    name: str
    kind: Kind
    layer: int
    occurrence: int
    wanted: bool
