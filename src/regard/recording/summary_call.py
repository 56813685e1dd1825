"""A call of which only the statistics were kept: ``watch(model, statistics=True)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NoReturn

import torch
from torch import Tensor

from regard.checks import check_integer
from regard.errors import RecordingError
from regard.interception.call_types import Kind  # noqa: F401 - the inherited fields are documented here
from regard.kernels import Statistics
from regard.masks import Mask  # noqa: F401 - the inherited fields are documented here
from regard.masks.extent import Integers
from regard.masks.mask import Constant, MaskLike
from regard.recording.call import Call, widened_on_cpu
from regard.recording.kept_statistics import each_statistic, some_heads

if TYPE_CHECKING:
    from typing_extensions import Self

    from regard.recording.scored_call import ScoredCall


@dataclass(frozen=True, eq=False, repr=False)
class SummaryCall(Call):
    """One attention call as its statistics; Q and K were dropped.

    >>> import regard
    >>> model = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    >>> x = torch.randn(1, 5, 16)
    >>> with regard.watch(model, statistics=True) as seen:
    ...     _ = model(x, x, x)
    >>> seen[0].statistics().entropy.shape
    torch.Size([1, 2, 5])
    """

    kept: Statistics

    has_weights: ClassVar[bool] = False

    @classmethod
    def of(cls, call: Call, kept: Statistics) -> SummaryCall:
        """The summary of a call with these statistics."""
        return cls(call.name, call.kind, call.layer, kept, mask=call.mask, run=call.run, numbers=call.numbers)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape that the matrix would have: ``(batch, head, query, key)``."""
        batch, heads, queries = self.kept.lse.shape
        return batch, heads, queries, self.kept.received.shape[-1]

    @property
    def mask_known(self) -> bool:
        """Whether ``mask`` says which keys a query could see; the summary of dense weights has none."""
        return not isinstance(self.mask, Constant)

    def tensors(self) -> dict[str, Tensor]:
        """The statistics, by the names that they have in a file."""
        found = {f"kept.{name}": value for name, value in vars(self.kept).items()}
        return {name: value for name, value in found.items() if value is not None}

    # ---- what it shows -------------------------------------------------------------------------

    def statistics(self, top: int | None = None, *, values: Tensor | None = None) -> Statistics:
        """The statistics that were kept, with the first ``top`` of their greatest weights."""
        if values is not None:
            self._refuse()
        if top is None:
            return self.kept
        check_integer("top", top, least=0, example=5)
        have = 0 if self.kept.top_weights is None else self.kept.top_weights.shape[-1]
        if top > have:
            raise RecordingError(
                "{name} kept only its statistics, with the {have} greatest weights of each row.",
                got="top = {top}",
                do="Record with watch(model, statistics=True, top=…), or keep Q and K.",
                name=self.name,
                have=have,
                top=top,
            )
        tops = (self.kept.top_weights, self.kept.top_keys)
        weights, keys = (part[..., :top] if part is not None and top else None for part in tops)
        return replace(self.kept, top_weights=weights, top_keys=keys)

    def _refuse(self) -> NoReturn:
        raise RecordingError(
            "Weights need Q and K, but {name} kept only its statistics.",
            do="Record with watch(model) instead of watch(model, statistics=True).",
            name=self.name,
        )

    def _block(self, batch: int, index: int, i: Integers, j: Integers) -> NoReturn:
        del batch, index, i, j
        self._refuse()

    def mass(self, mask: MaskLike) -> NoReturn:
        """Raises RecordingError: statistics do not have the weights."""
        del mask
        self._refuse()

    def weighted(self, values: Tensor, mask: MaskLike) -> NoReturn:
        """Raises RecordingError: statistics do not have the weights."""
        del values, mask
        self._refuse()

    def without(self, mask: MaskLike) -> NoReturn:
        """Raises RecordingError: statistics do not have the weights."""
        del mask
        self._refuse()

    # ---- other calls -----------------------------------------------------------------------------

    def scored(self) -> ScoredCall:
        """Raises RecordingError: Q and K were dropped."""
        self._refuse()

    def summary(self, top: int) -> SummaryCall:
        """The call itself."""
        del top
        return self

    def select(self, batch: int | None = None, heads: Sequence[int] | None = None) -> Self:
        """One sequence, or some heads; None means all."""
        kept = self.kept
        if heads is not None:
            kept = some_heads(kept, torch.tensor(list(heads), device=kept.lse.device))
        if batch is not None:
            kept = each_statistic(kept, lambda tensor: tensor[batch : batch + 1])
        return replace(self, kept=kept, **self._selected(batch, heads))

    def on_cpu(self) -> Self:
        """The call on the CPU, detached and in at least float32."""
        return replace(self, kept=each_statistic(self.kept, _on_cpu))

    def hide_queries(self, visible: Tensor) -> Self:
        """The call itself: what a query contributed cannot be taken out of the statistics again."""
        del visible
        return self


def _on_cpu(tensor: Tensor) -> Tensor:
    return widened_on_cpu(tensor) if tensor.is_floating_point() else tensor.cpu()
