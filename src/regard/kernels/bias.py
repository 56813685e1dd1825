"""What a bias is: numbers added to the scores, evaluated tile by tile. A tensor is one, and so is a sum.

Bias, the positions of some queries and keys → tile() → Tensor (batch or 1, head, query, key)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ShapeError
from regard.masks.extent import Extent

WHOLE = slice(None)

Index = slice | Tensor
"""Some entries of an axis: a slice with both ends (or ``WHOLE``), or a tensor of indices."""

Tables: TypeAlias = tuple[Tensor, ...]
"""The tensors of a bias, or their gradients."""


class Bias(ABC):
    """Numbers added to the scores.

    ``tables`` are the tensors that may need a gradient. They are passed to ``tile`` explicitly,
    because they must be inputs of the autograd function that runs a plan.
    """

    @property
    @abstractmethod
    def tables(self) -> Tables:
        """The tensors from which the values are computed."""

    @property
    @abstractmethod
    def heads(self) -> int:
        """The number of heads; 1 fits any number of query heads."""

    @abstractmethod
    def tile(self, tables: Tables, q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        """The values ``(batch or 1, head or 1, query, key)`` at these absolute positions."""

    @abstractmethod
    def add_gradient(
        self, grads: Tables, grad_tile: Tensor, tables: Tables, q: Tensor, k: Tensor, extent: Extent
    ) -> None:
        """Add the gradient of one tile's values to ``grads``, the gradients of the tables."""

    @abstractmethod
    def narrow(self, tables: Tables, batch: Index, heads: Index) -> Tables:
        """The tables, or their gradients, of some batch elements and heads; slices give views."""

    @abstractmethod
    def with_tables(self, tables: Tables) -> Bias:
        """The same bias with other tables."""

    @abstractmethod
    def at(self, batch: int, i: Tensor, j: Tensor, extent: Extent) -> Tensor:
        """The values ``(head or 1, pair)`` for pairs of query ``i`` and key ``j``, counted from 0."""

    @property
    def can_forbid(self) -> bool:
        """Whether a value may be −inf."""
        return False

    def terms(self) -> Iterator[Bias]:
        """The biases that are summed: itself, or the terms of a sum."""
        yield self

    def select(self, *, batch: Index = WHOLE, heads: Index = WHOLE) -> Bias:
        """The bias of some batch elements and heads.

        >>> from regard.kernels.biases import alibi
        >>> alibi(8).select(heads=slice(2, 4)).heads
        2
        """
        return self.with_tables(self.narrow(self.tables, batch, heads))

    def crop(self, rows: slice, keys: int) -> Bias:
        """The bias of some queries and the first ``keys`` keys; a bias of the distance has them all."""
        del rows, keys
        return self

    def concat(self, later: Bias, rows: int) -> Bias | None:
        """The bias of these ``rows`` queries and of later ones, which also see later keys.

        None if the two are of different kinds.
        """
        del later, rows
        return None

    def detach(self) -> Bias:
        """The bias without gradients, with its own tables, so that training does not change it."""
        return self.with_tables(tuple(table.detach().clone() for table in self.tables))

    def check(self, batch: int, heads: int, extent: Extent) -> None:
        """Raise unless the bias fits these sizes."""
        del batch, extent
        if self.heads not in (1, heads):
            raise ShapeError(
                "A bias must have one entry per query head, or one for all (heads = {heads}).",
                got="{own} heads",
                do="Build it with the number of query heads.",
                heads=heads,
                own=self.heads,
            )

    def dense(self, queries: int, keys: int) -> Tensor:
        """All values ``(head, queries, keys)``: n×n, for inspection and tests."""
        extent = Extent(queries, keys)
        device = self.tables[0].device
        q = torch.arange(extent.offset, keys, device=device)
        return self.tile(self.tables, q, torch.arange(keys, device=device), extent)[0]

    def __add__(self, other: object) -> Bias:
        return Sum((self, other)) if isinstance(other, Bias) else NotImplemented


BiasLike: TypeAlias = Bias | Tensor
"""What is accepted as a bias: a bias, or a tensor that broadcasts to ``(..., head, query, key)``."""


@dataclass(frozen=True, eq=False)
class TensorBias(Bias):
    """A tensor that broadcasts to ``(batch, head, query, key)``.

    >>> TensorBias(torch.ones(1, 1, 2, 2)).dense(2, 2).shape  # (head or 1, query, key)
    torch.Size([1, 2, 2])
    """

    values: Tensor  # four axes

    @property
    def can_forbid(self) -> bool:
        return True

    @property
    def tables(self) -> Tables:
        return (self.values,)

    @property
    def heads(self) -> int:
        return self.values.shape[1]

    def narrow(self, tables: Tables, batch: Index, heads: Index) -> Tables:
        return (some_of(some_of(tables[0], 0, batch), 1, heads),)

    def with_tables(self, tables: Tables) -> Bias:
        return TensorBias(tables[0])

    def at(self, batch: int, i: Tensor, j: Tensor, extent: Extent) -> Tensor:
        del extent
        values = self.values[batch if self.values.shape[0] > 1 else 0]  # (head, query or 1, key or 1)
        return values[:, i if values.shape[1] > 1 else 0 * i, j if values.shape[2] > 1 else 0 * j]

    def crop(self, rows: slice, keys: int) -> Bias:
        values = self.values if self.values.shape[2] == 1 else self.values[:, :, rows]
        return TensorBias(values if values.shape[3] == 1 else values[..., :keys])

    def concat(self, later: Bias, rows: int) -> Bias | None:
        if not isinstance(later, TensorBias):
            return None
        old, new = self.values, later.values
        if old.shape[2] == 1 and old.shape == new.shape and torch.equal(old, new):
            return self  # every query has the same
        # Earlier queries never saw the later keys, so their bias can be any number.
        wide = F.pad(old.expand(-1, -1, rows, -1), (0, new.shape[3] - old.shape[3]))
        return TensorBias(torch.cat([wide, new.expand(wide.shape[0], wide.shape[1], -1, -1)], 2))

    def detach(self) -> Bias:
        # Computed for one call, not a parameter, so nothing changes it later.
        return TensorBias(self.values.detach())

    def check(self, batch: int, heads: int, extent: Extent) -> None:
        shape = (batch, heads, *extent)
        if any(own not in (1, size) for own, size in zip(self.values.shape, shape)):
            raise ShapeError(
                "A bias must broadcast to (batch = {batch}, heads = {heads}, {extent}).",
                got="shape {shape}",
                do="Its last three axes are head, query and key; use size 1 where it does not vary.",
                batch=batch,
                heads=heads,
                extent=extent,
                shape=tuple(self.values.shape),
            )

    def tile(self, tables: Tables, q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        values = tables[0]
        rows = values if values.shape[2] == 1 else values[:, :, q - extent.offset]
        return rows if values.shape[3] == 1 else rows[..., k]

    def add_gradient(
        self, grads: Tables, grad_tile: Tensor, tables: Tables, q: Tensor, k: Tensor, extent: Extent
    ) -> None:
        del tables
        total = grads[0]
        reduced = grad_tile.sum_to_size(
            *(1 if own == 1 else size for size, own in zip(grad_tile.shape, total.shape))
        )
        # Each pair occurs once per tile, so indexed addition loses nothing.
        i = (
            (q - extent.offset)[:, None]
            if total.shape[2] != 1
            else torch.zeros(1, 1, dtype=torch.long, device=q.device)
        )
        j = k if total.shape[3] != 1 else torch.zeros(1, dtype=torch.long, device=q.device)
        total[:, :, i, j] += reduced


@dataclass(frozen=True, eq=False)
class Sum(Bias):
    """The sum of several biases.

    >>> from regard.kernels.biases import alibi
    >>> len((alibi(2) + alibi(2)).parts)
    2
    """

    parts: tuple[Bias, ...]

    @property
    def tables(self) -> Tables:
        return tuple(table for part in self.parts for table in part.tables)

    @property
    def heads(self) -> int:
        return max(part.heads for part in self.parts)

    def terms(self) -> Iterator[Bias]:
        for part in self.parts:
            yield from part.terms()

    def narrow(self, tables: Tables, batch: Index, heads: Index) -> Tables:
        return tuple(table for part, own in self._shares(tables) for table in part.narrow(own, batch, heads))

    def with_tables(self, tables: Tables) -> Bias:
        return Sum(tuple(part.with_tables(own) for part, own in self._shares(tables)))

    def at(self, batch: int, i: Tensor, j: Tensor, extent: Extent) -> Tensor:
        values = [part.at(batch, i, j, extent) for part in self.parts]
        return sum(values[1:], start=values[0])

    def crop(self, rows: slice, keys: int) -> Bias:
        return Sum(tuple(part.crop(rows, keys) for part in self.parts))

    def detach(self) -> Bias:
        return Sum(tuple(part.detach() for part in self.parts))

    def check(self, batch: int, heads: int, extent: Extent) -> None:
        for part in self.parts:
            part.check(batch, heads, extent)

    def _shares(self, tables: Tables) -> list[tuple[Bias, Tables]]:
        shares, start = [], 0
        for part in self.parts:
            count = len(part.tables)
            shares.append((part, tables[start : start + count]))
            start += count
        return shares

    def tile(self, tables: Tables, q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        tiles = [part.tile(own, q, k, extent) for part, own in self._shares(tables)]
        return sum(tiles[1:], start=tiles[0])

    def add_gradient(
        self, grads: Tables, grad_tile: Tensor, tables: Tables, q: Tensor, k: Tensor, extent: Extent
    ) -> None:
        for (part, own), (_, own_grads) in zip(self._shares(tables), self._shares(grads)):
            part.add_gradient(own_grads, grad_tile, own, q, k, extent)


def some_of(table: Tensor, axis: int, chosen: Index) -> Tensor:
    """Some entries of an axis, for a slice as a view; an axis of size 1 is returned whole."""
    if table.shape[axis] == 1 or (isinstance(chosen, slice) and chosen == WHOLE):
        return table
    if isinstance(chosen, slice):
        return table.narrow(axis, chosen.start, chosen.stop - chosen.start)
    return table.index_select(axis, chosen.to(table.device))
