"""One attention call of a model: what its three types have in common.

* :class:`~regard.recording.scored_call.ScoredCall` holds Q, K and lse, which are the whole matrix;
* :class:`~regard.recording.summary_call.SummaryCall` holds statistics only (``watch(statistics=True)``);
* :class:`~regard.recording.dense_call.DenseCall` holds the weights of a model that hides its Q and K.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from regard.checks import is_index
from regard.errors import ArgumentError
from regard.interception.call_types import Kind
from regard.interception.placed_mask import placed
from regard.kernels import Statistics
from regard.masks import Mask, everything
from regard.masks.extent import Extent, Integers
from regard.masks.mask import MaskLike, as_mask
from regard.recording.selection import selected_mask

if TYPE_CHECKING:
    from typing_extensions import Self

    from regard.recording.scored_call import ScoredCall
    from regard.recording.summary_call import SummaryCall

Positions = slice | int | Sequence[int]
"""Some positions along an axis."""

Block = Callable[[int, int, Integers, Integers], Tensor]
"""Computes ``(query, key)`` numbers of one head from batch, index of the head, queries and keys."""


@dataclass(frozen=True, eq=False)
class Call(ABC):
    """One attention call of a model. ``seen[0]`` is one; which type it has depends on what was kept.

    >>> import regard
    >>> model = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    >>> x = torch.randn(1, 5, 16)
    >>> with regard.watch(model) as seen, regard.watch(model, statistics=True) as brief:
    ...     _ = model(x, x, x)
    >>> type(seen[0]).__name__, type(brief[0]).__name__
    ('ScoredCall', 'SummaryCall')
    """

    name: str
    kind: Kind
    layer: int
    mask: Mask = field(default_factory=everything, kw_only=True)
    run: int = field(default=0, kw_only=True)
    numbers: tuple[int, ...] | None = field(default=None, kw_only=True)

    dense: ClassVar[bool] = False
    """Whether this holds a dense matrix that the model returned, because it hides its Q and K."""

    has_weights: ClassVar[bool] = True
    """Whether weights can be computed; False if only statistics were kept."""

    def __repr__(self) -> str:
        return (
            f"<{self.kind} {self.name!r}, layer {self.layer}: {self.batch} × {self.heads} heads, "
            f"{self.queries} queries × {self.keys} keys{', dense' if self.dense else ''}>"
        )

    # ---- sizes ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int, int]:
        """The shape that the matrix would have: ``(batch, head, query, key)``."""

    @property
    def batch(self) -> int:
        """The number of sequences that were read together."""
        return self.shape[0]

    @property
    def heads(self) -> int:
        """The number of query heads that were recorded."""
        return self.shape[1]

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.shape[2]

    @property
    def keys(self) -> int:
        """The number of keys."""
        return self.shape[3]

    @property
    def extent(self) -> Extent:
        """Queries and keys; the last query is at the last key."""
        return Extent(*self.shape[2:])

    @property
    def head_numbers(self) -> tuple[int, ...]:
        """The model's numbers of the recorded heads: all of them, or those that ``heads=`` chose."""
        return tuple(range(self.heads)) if self.numbers is None else self.numbers

    @property
    def mask_known(self) -> bool:
        """Whether ``mask`` says which keys a query could see. Dense weights come without a mask."""
        return True

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """The large tensors of the call, by the names that they have in a file."""

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors().values())

    # ---- what it shows -------------------------------------------------------------------------

    def weights(
        self,
        head: int | None,
        rows: Positions = slice(None),
        columns: Positions = slice(None),
        batch: int = 0,
    ) -> Tensor:
        """The weights of one head, ``(rows, columns)``, exactly; nothing else is computed.

        ``head`` is the model's number of the head; None means every recorded head, and gives
        ``(head, rows, columns)``. ``rows`` and ``columns`` are slices, single positions or lists of
        them. The result has at least float32.
        """
        return self._part(self._block, head, rows, columns, batch)

    def _part(
        self,
        block: Block,
        head: int | None,
        rows: Positions,
        columns: Positions,
        batch: int,
    ) -> Tensor:
        """``block(batch, index, i, j)`` for one head, or stacked for every recorded one."""
        if head is None:
            return torch.stack([self._part(block, one, rows, columns, batch) for one in self.head_numbers])
        index = self._index_of(head)
        check_sequence(batch, self.batch)
        i, j = positions(rows, self.queries, "rows"), positions(columns, self.keys, "columns")
        return block(batch, index, i, j)

    @abstractmethod
    def _block(self, batch: int, index: int, i: Integers, j: Integers) -> Tensor:
        """The weights of these queries and keys, for the head at this index among the recorded ones."""

    def gradient(
        self,
        head: int | None,
        rows: Positions = slice(None),
        columns: Positions = slice(None),
        batch: int = 0,
    ) -> Tensor:
        """The gradient of the weights, ``∂L/∂w_ij = dO_i · v_j``, ``(rows, columns)``.

        For calls recorded with ``gradients=True``; arguments are those of :meth:`weights`.

        >>> from regard.recording import ScoredCall
        >>> q = k = torch.zeros(1, 1, 2, 4)  # every weight is 1/2
        >>> v = torch.tensor([[[[1.0, 0.0], [3.0, 0.0]]]])
        >>> lse, given = torch.full((1, 1, 2), 2.0).log(), torch.ones(1, 1, 2, 2)
        >>> call = ScoredCall("attention", "encoder", 0, q, k, lse, v, output_gradient=given)
        >>> call.gradient(head=0, rows=0)
        tensor([[1., 3.]])
        >>> call.score_gradient(head=0, rows=0)  # the output is 2, and so is the mean of the gradients
        tensor([[-0.5000,  0.5000]])
        """
        return self._part(self.scored().gradient_block, head, rows, columns, batch)

    def score_gradient(
        self,
        head: int | None,
        rows: Positions = slice(None),
        columns: Positions = slice(None),
        batch: int = 0,
    ) -> Tensor:
        """The gradient of the scores, ``∂L/∂s_ij = w_ij (dO_i · v_j − dO_i · O_i)``, ``(rows, columns)``.

        Scores are those that go into softmax: after a softcap, with the bias.
        """
        return self._part(self.scored().score_gradient_block, head, rows, columns, batch)

    def weights_times_gradient(
        self,
        head: int | None,
        rows: Positions = slice(None),
        columns: Positions = slice(None),
        batch: int = 0,
    ) -> Tensor:
        """``w_ij · ∂L/∂w_ij``: to first order, what the loss owes to a weight, ``(rows, columns)``."""
        return self._part(self.scored().product_block, head, rows, columns, batch)

    def contribution(
        self,
        head: int | None,
        rows: Positions = slice(None),
        columns: Positions = slice(None),
        batch: int = 0,
        *,
        direction: Tensor,
    ) -> Tensor:
        """``w_ij · (v_j W_O) · u``: what key j gave to direction u of the output, ``(rows, columns)``.

        For calls recorded with ``projections=True``. ``direction (width,)`` is u, the difference of two rows
        of the unembedding, for example.
        """
        return self._part(self.scored().contribution_block(direction), head, rows, columns, batch)

    def projected(self, head: int | None, rows: Positions = slice(None), batch: int = 0) -> Tensor:
        """``O_i W_O``: what one head adds to the output of the layer, ``(rows, width)``.

        For calls recorded with ``projections=True``; None means every head, ``(head, rows, width)``.
        """
        return self._part(self.scored().projected_block, head, rows, slice(None), batch)

    def layer_output(self, rows: Positions = slice(None), batch: int = 0) -> Tensor:
        """``x_i + Σ_h O_i W_O + b``: what the attention of the layer leaves behind, ``(rows, width)``.

        For calls recorded with ``projections=True``, where x was found; see ``docs/recording.md``.
        """
        return self.scored().layer_output(rows, batch)

    @abstractmethod
    def statistics(self, top: int | None = None, *, values: Tensor | None = None) -> Statistics:
        """Entropy, received attention and the other statistics of every query and key, in one pass.

        They are defined in ``docs/statistics.md``. ``top`` asks for the k greatest weights of each row;
        by default there are as many as ``watch(model, statistics=True, top=…)`` kept, otherwise none.
        With ``values (batch, key head or 1, key, channel)`` the output is ``Σ_j w_ij x_j``.
        """

    def region(self, mask: MaskLike) -> Mask:
        """A user's mask as a mask of this call.

        In cross-attention, queries and keys are in two texts, and each counts from the start of its text:
        ``span(2, 3).T`` is row 2, and ``window(1, 1)`` sees the keys i − 1 … i + 1 from row i. Everywhere
        else the last query is at the last key. Edits of a running model follow the same rule.
        """
        found = as_mask(mask, self.extent)
        return placed(found, 0, 0) if self.kind == "cross" and self.queries != self.keys else found

    @abstractmethod
    def mass(self, mask: MaskLike) -> Tensor:
        """The weight on the keys of a region, ``Σ_{j∈M} w_ij``, ``(batch, head, query)``.

        ``mask`` is any mask that fits the call; see :meth:`region`. Memory and time are those of its pairs.
        """

    @abstractmethod
    def weighted(self, values: Tensor, mask: MaskLike) -> Tensor:
        """``Σ_{j∈M} w_ij x_j``, ``(batch, head, query, channel)``, for the keys of a region.

        ``values`` has the shape ``(batch, key head or 1, key, channel)``.
        """

    @abstractmethod
    def without(self, mask: MaskLike) -> Tensor:
        """The output as if the keys of a region were not there, ``(batch, head, query, channel)``.

        With the output O and the weight m on the region, ``(O − Σ_{j∈M} w_ij v_j) / (1 − m)``: what is left
        is softmax over the other keys. A query that sees no other key gets 0.
        """

    # ---- other calls -----------------------------------------------------------------------------

    @abstractmethod
    def scored(self) -> ScoredCall:
        """The call itself if it has Q and K; raises RecordingError otherwise."""

    @abstractmethod
    def summary(self, top: int) -> SummaryCall:
        """The call with its statistics in place of what they are computed from."""

    @abstractmethod
    def select(self, batch: int | None = None, heads: Sequence[int] | None = None) -> Self:
        """One sequence, or some heads by their index among the recorded ones; None means all."""

    @abstractmethod
    def on_cpu(self) -> Self:
        """The call on the CPU, detached and in at least float32, as weights are computed."""

    @abstractmethod
    def hide_queries(self, visible: Tensor) -> Self:
        """The call in which only the queries that are True in ``visible (batch, query)`` see anything."""

    def _selected(self, batch: int | None, heads: Sequence[int] | None) -> dict[str, Any]:
        """The mask and the numbers of a selection, for ``dataclasses.replace``."""
        numbers = self.numbers if heads is None else tuple(self.head_numbers[index] for index in heads)
        return {"mask": selected_mask(self.mask, batch, heads, self.extent), "numbers": numbers}

    # ---- checks --------------------------------------------------------------------------------

    def _index_of(self, head: int) -> int:
        if head not in self.head_numbers:
            known = self.head_numbers
            is_range = known == tuple(range(len(known)))
            raise ArgumentError(
                "head must be one of the recorded heads of {name} ({heads}).",
                got="head = {head!r}",
                do="Choose one of them, or record it with heads=.",
                name=self.name,
                heads=f"0 … {len(known) - 1}" if is_range else f"{list(known)}",
                head=head,
            )
        return self.head_numbers.index(head)


def check_sequence(batch: object, count: int) -> None:
    """Raise unless this is the number of one of the sequences that were read together."""
    if not is_index(batch, count):
        raise ArgumentError(
            "batch must be one of the recorded sequences (0 … {last}).",
            got="batch = {batch!r}",
            do="Count from 0.",
            last=count - 1,
            batch=batch,
        )


def widened(tensor: Tensor) -> Tensor:
    """The tensor in at least float32."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def widened_on_cpu(tensor: Tensor) -> Tensor:
    """The tensor on the CPU, detached, in at least float32; no copy if it already is."""
    return widened(tensor.detach().cpu())


def part_of(tensor: Tensor, batch: int | None, heads: Sequence[int] | None) -> Tensor:
    """One sequence, or some heads, of ``(batch, head, …)``; a view where all heads or one are chosen."""
    if batch is not None:
        tensor = tensor[batch : batch + 1]
    if heads is None:
        return tensor
    return tensor[:, heads[0] : heads[0] + 1] if len(heads) == 1 else tensor[:, list(heads)]


def positions(part: Positions, length: int, name: str) -> Integers:
    """The requested positions, each from 0 to length − 1."""
    if isinstance(part, slice):
        return np.arange(length)[part]
    try:
        chosen = np.atleast_1d(np.asarray(part))
        found: Integers = np.arange(length)[chosen if chosen.size else chosen.astype(np.int64)]
    except IndexError:
        raise ArgumentError(
            "{name} must be a slice or positions below {length}.",
            got="{part!r}",
            do="Count from 0.",
            name=name,
            length=length,
            part=part,
        ) from None
    return found
