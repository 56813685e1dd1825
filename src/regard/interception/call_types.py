"""One attention call before and after it is computed, and the protocols of those who edit or write calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

from regard.kernels import Statistics
from regard.kernels.bias import Bias
from regard.kernels.inputs import Inputs
from regard.masks import Mask, causal, everything

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")


class MaskView(Protocol):
    """Which query may see which key in a text, for any span of it."""

    def over(self, first: int, stop: int) -> Mask:
        """The mask whose key 0 is at ``first`` and whose last query and key are at ``stop − 1``."""

    def after(self, before: MaskView, length: int) -> MaskView | None:
        """A view that agrees with ``before`` on the first ``length`` positions and with this on the rest."""


@dataclass(frozen=True)
class FixedMaskView:
    """A mask as it was given for one call."""

    mask: Mask
    queries: int

    def over(self, first: int, stop: int) -> Mask:
        """The mask itself."""
        del first, stop
        return self.mask

    def after(self, before: MaskView, length: int) -> MaskView | None:
        """One query that sees everything is one more row of a causal mask."""
        del length
        last_row = self.mask == everything() and self.queries == 1
        is_causal = isinstance(before, FixedMaskView) and before.mask == causal()
        return before if is_causal and (last_row or self.mask == causal()) else None


@dataclass(frozen=True, eq=False)
class InterceptedCall:
    """One attention call of a model before it is computed."""

    inputs: Inputs
    module: nn.Module | None  # None: the module that is running
    kind: Kind
    view: MaskView | None  # the mask over any span of the text; None if the model gave one for this call
    past: int  # position of the first query in its text
    first_key: int = 0  # position of the first key in its text

    @property
    def mask_view(self) -> MaskView:
        """The mask over any span of the text, as far as known."""
        return self.view or FixedMaskView(self.inputs.mask, self.inputs.extent.queries)


@dataclass(frozen=True, eq=False)
class AttentionStep:
    """One attention call, as it was computed."""

    q: Tensor  # (batch, head, query, channel)
    k: Tensor
    v: Tensor
    lse: Tensor | None
    statistics: Statistics | None
    view: MaskView
    bias: Bias | None
    scale: float
    softcap: float | None
    sinks: Tensor | None
    past: int  # position of the first query in its text
    first_key: int = 0  # position of the first key in its text
    output: Tensor | None = None  # in the graph of the model, for writers that wait for its gradient
    dropout: float = 0.0

    @property
    def stop(self) -> int:
        """The position in its text where the queries end."""
        return self.past + self.q.shape[2]


class CallPlace(NamedTuple):
    """The place of a call in a forward pass of the model."""

    name: str
    kind: Kind
    layer: int
    occurrence: int  # how many calls of the module came before it in the pass


class CallListener(Protocol):
    """Follows the attention calls of a model, in the order in which they are made."""

    def begin(self) -> None:
        """A forward pass begins."""


@runtime_checkable
class CallEditor(CallListener, Protocol):
    """Changes calls: their inputs before they are computed, and their outputs afterwards."""

    def edit_inputs(self, place: CallPlace, call: InterceptedCall) -> InterceptedCall:
        """The call to compute in place of this one."""

    def edit_output(self, place: CallPlace, call: InterceptedCall, output: Tensor) -> Tensor:
        """The output ``(batch, head, query, channel)`` that the model gets in place of this one."""


@runtime_checkable
class CallWriter(CallListener, Protocol):
    """Writes calls down as they were computed."""

    @property
    def statistics(self) -> bool:
        """Whether it keeps the statistics of a call in place of Q and K."""

    @property
    def top(self) -> int:
        """How many of the greatest weights of each row belong to its statistics."""

    @property
    def gradients(self) -> bool:
        """Whether it waits for the gradients of outputs."""

    def records(self, place: CallPlace) -> bool:
        """Whether it keeps the calls of this layer; it is notified of the others too."""

    def add(self, place: CallPlace, step: AttentionStep) -> None:
        """Write a call down."""

    def add_weights(self, place: CallPlace, weights: Tensor, past: int) -> None:
        """Write down the dense weights ``(batch, head, query, key)`` of a model that hides its Q and K."""

    def begin_search(self) -> None:
        """A beam search begins: rows of the batch may continue one another until it ends."""

    def end_search(self, rows: Tensor | None = None, prompt: int = 0) -> None:
        """A beam search ends; ``rows (text, step)`` led to its texts, or None if it failed."""
