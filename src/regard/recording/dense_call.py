"""A call as the dense weights that a model returned, because it hides its Q and K."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NoReturn

import torch
from torch import Tensor

from regard.errors import RecordingError
from regard.interception.call_types import Kind  # noqa: F401 - the inherited fields are documented here
from regard.kernels import Statistics
from regard.masks import Mask  # noqa: F401 - the inherited fields are documented here
from regard.masks.extent import Integers
from regard.masks.mask import Constant, MaskLike
from regard.recording.call import Call, part_of, widened, widened_on_cpu
from regard.recording.kept_statistics import statistics_of_weights
from regard.recording.summary_call import SummaryCall

if TYPE_CHECKING:
    from typing_extensions import Self

    from regard.recording.scored_call import ScoredCall


@dataclass(frozen=True, eq=False, repr=False)
class DenseCall(Call):
    """One attention call as its matrix of weights.

    >>> call = DenseCall("attention", "encoder", 0, torch.eye(3)[None, None])
    >>> call
    <encoder 'attention', layer 0: 1 × 1 heads, 3 queries × 3 keys, dense>
    >>> call.weights(head=0, rows=1)
    tensor([[0., 1., 0.]])
    """

    matrix: Tensor  # (batch, head, query, key)

    dense: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of the matrix: ``(batch, head, query, key)``."""
        batch, heads, queries, keys = self.matrix.shape
        return batch, heads, queries, keys

    @property
    def mask_known(self) -> bool:
        """Whether ``mask`` says which keys a query could see; a model's own weights come without one."""
        return not isinstance(self.mask, Constant)

    def tensors(self) -> dict[str, Tensor]:
        """The matrix, by the name that it has in a file."""
        return {"own_weights": self.matrix}

    # ---- what it shows -------------------------------------------------------------------------

    def _block(self, batch: int, index: int, i: Integers, j: Integers) -> Tensor:
        dense = self.matrix[batch, index]
        return widened(dense[torch.from_numpy(i)][:, torch.from_numpy(j)])

    def statistics(self, top: int | None = None, *, values: Tensor | None = None) -> Statistics:
        """Entropy, received attention and the other statistics of every query and key."""
        found = statistics_of_weights(self.matrix, 0 if top is None else top)
        return found if values is None else replace(found, output=widened(self.matrix) @ values.to(found.lse))

    @torch.no_grad()
    def mass(self, mask: MaskLike) -> Tensor:
        """The weight on the keys of a region, ``Σ_{j∈M} w_ij``, ``(batch, head, query)``.

        >>> from regard import masks
        >>> DenseCall("attention", "encoder", 0, torch.full((1, 1, 2, 4), 0.25)).mass(masks.prefix(3))
        tensor([[[0.7500, 0.7500]]])
        """
        return self._inside(mask).sum(-1)

    @torch.no_grad()
    def weighted(self, values: Tensor, mask: MaskLike) -> Tensor:
        """``Σ_{j∈M} w_ij x_j``, ``(batch, head, query, channel)``, for the keys of a region."""
        inside = self._inside(mask)
        return inside @ values.to(inside)

    def _inside(self, mask: MaskLike) -> Tensor:
        """The weights, 0 outside a region."""
        region = self.region(mask).dense(*self.extent, device=self.matrix.device)
        return widened(self.matrix) * region

    def without(self, mask: MaskLike) -> NoReturn:
        """Raises RecordingError: a model that hides its Q and K hides its V too."""
        del mask
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RecordingError(
            "This needs Q, K and V, but {name} has only the weights.",
            do="Record a model whose Q and K can be seen; docs/recording.md lists them.",
            name=self.name,
        )

    # ---- other calls -----------------------------------------------------------------------------

    def scored(self) -> ScoredCall:
        """Raises RecordingError: the model hides its Q and K."""
        self._refuse()

    def summary(self, top: int) -> SummaryCall:
        """The call with its statistics in place of the matrix."""
        return SummaryCall.of(self, self.statistics(top))

    def select(self, batch: int | None = None, heads: Sequence[int] | None = None) -> Self:
        """One sequence, or some heads; None means all."""
        return replace(self, matrix=part_of(self.matrix, batch, heads), **self._selected(batch, heads))

    def on_cpu(self) -> Self:
        """The call on the CPU, detached and in at least float32."""
        return replace(self, matrix=widened_on_cpu(self.matrix))

    def hide_queries(self, visible: Tensor) -> Self:
        """The call in which only the queries that are True in ``visible (batch, query)`` see anything."""
        return replace(self, matrix=self.matrix * visible[:, None, :, None].to(self.matrix))
