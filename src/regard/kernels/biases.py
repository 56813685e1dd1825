"""Biases: numbers added to the scores, evaluated tile by tile.

``alibi``, ``relative`` and ``t5`` depend only on the distance from query to key, so a tile needs
one number per distance and head. Gradients flow to their tables.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from regard.errors import ArgumentError, DtypeError, Phrase, ShapeError
from regard.masks.extent import Extent


class Bias(ABC):
    """Numbers added to the scores.

    ``tables`` are the tensors that may need a gradient. They are passed to ``tile`` explicitly,
    because they must be inputs of the autograd function that runs a plan.
    """

    @property
    @abstractmethod
    def tables(self) -> tuple[Tensor, ...]:
        """The tensors from which the values are computed."""

    @property
    @abstractmethod
    def heads(self) -> int:
        """The number of heads; 1 fits any number of query heads."""

    @abstractmethod
    def tile(self, tables: tuple[Tensor, ...], q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        """The values ``(batch or 1, head or 1, query, key)`` at these absolute positions."""

    @abstractmethod
    def add_gradient(
        self,
        grads: tuple[Tensor, ...],
        grad_tile: Tensor,
        tables: tuple[Tensor, ...],
        q: Tensor,
        k: Tensor,
        extent: Extent,
    ) -> None:
        """Add the gradient of one tile's values to ``grads``, the gradients of the tables."""

    @abstractmethod
    def narrow(self, tables: tuple[Tensor, ...], batch: slice, heads: slice) -> tuple[Tensor, ...]:
        """The tables, or their gradients, of some batch elements and heads, as views."""

    def check(self, batch: int, heads: int, extent: Extent) -> None:
        """Raise unless the bias fits these sizes."""
        del batch, extent
        if self.heads not in (1, heads):
            raise ShapeError(
                "A bias has one entry per query head, or one for all (heads = {heads}).",
                got="{self_heads} heads",
                do="Build it with the number of query heads.",
                heads=heads,
                self_heads=self.heads,
            )

    def dense(self, queries: int, keys: int) -> Tensor:
        """All values ``(head, queries, keys)``: n×n, for inspection and tests."""
        extent = Extent(queries, keys)
        device = self.tables[0].device
        q = torch.arange(extent.offset, keys, device=device)
        return self.tile(self.tables, q, torch.arange(keys, device=device), extent)[0]

    def __add__(self, other: object) -> Bias:
        return Sum((self, other)) if isinstance(other, Bias) else NotImplemented


@dataclass(frozen=True, eq=False)
class DistanceBias(Bias):
    """A bias that depends only on the distance ``key − query``, from one table."""

    table: Tensor
    head_axis: ClassVar[int] = 0

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return (self.table,)

    @property
    def heads(self) -> int:
        return self.table.shape[self.head_axis]

    def narrow(self, tables: tuple[Tensor, ...], batch: slice, heads: slice) -> tuple[Tensor, ...]:
        del batch
        return (_some(tables[0], self.head_axis, heads),)

    @abstractmethod
    def line(self, tables: tuple[Tensor, ...], distances: Tensor) -> Tensor:
        """The values ``(head, distance)``."""

    def tile(self, tables: tuple[Tensor, ...], q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        del extent
        distances, index = _distances(q, k)
        return self.line(tables, distances)[:, index].unsqueeze(0)

    def add_gradient(
        self,
        grads: tuple[Tensor, ...],
        grad_tile: Tensor,
        tables: tuple[Tensor, ...],
        q: Tensor,
        k: Tensor,
        extent: Extent,
    ) -> None:
        del extent
        distances, index = _distances(q, k)
        with torch.enable_grad():
            leaves = tuple(table.detach().requires_grad_() for table in tables)
            line = self.line(leaves, distances)
        by_head = grad_tile.sum(0)  # (head, query, key)
        on_line = by_head.new_zeros(by_head.shape[0], len(distances)).index_add_(
            1, index.flatten(), by_head.flatten(1)
        )
        for total, grad in zip(
            grads, torch.autograd.grad(line, leaves, on_line.sum_to_size(line.shape).to(line.dtype))
        ):
            total += grad


def _distances(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """All distances in the tile in ascending order, and the index of each pair's distance among them."""
    gaps = k[None, :] - q[:, None]
    least, greatest = (int(gaps.min()), int(gaps.max())) if gaps.numel() else (0, -1)
    return torch.arange(least, greatest + 1, device=q.device), gaps - least


@dataclass(frozen=True, eq=False)
class Alibi(DistanceBias):
    """A slope per head times the distance; the table has shape ``(head,)``."""

    def line(self, tables: tuple[Tensor, ...], distances: Tensor) -> Tensor:
        return -tables[0][:, None] * distances.abs()


def alibi(heads: int, *, device: torch.device | str | None = None) -> Bias:
    """Attention with linear biases: ``−slope · |i − j|``, slopes 2^(−8/h), 2^(−16/h), …

    If the number of heads is not a power of two, the slopes of the next lower power come first,
    followed by every second slope of the next higher one (Press et al., 2021).

    >>> alibi(2).dense(1, 3).tolist()
    [[[-0.125, -0.0625, -0.0]], [[-0.0078125, -0.00390625, -0.0]]]
    """
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
        raise ArgumentError(
            "alibi(heads): heads is a whole number, 1 or more.",
            got="{heads!r}",
            do="Count the query heads.",
            heads=heads,
        )
    lower = 2 ** int(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / lower) for i in range(lower)]
    slopes += [2 ** (-4 * (2 * i + 1) / lower) for i in range(heads - lower)]
    return Alibi(torch.tensor(slopes, device=device))


@dataclass(frozen=True, eq=False)
class Relative(DistanceBias):
    """A table ``(head, 2 · clip + 1)`` over clipped distances."""

    def line(self, tables: tuple[Tensor, ...], distances: Tensor) -> Tensor:
        clip = self.table.shape[1] // 2
        return tables[0][:, distances.clamp(-clip, clip) + clip]


def relative(table: Tensor) -> Bias:
    """One learned scalar per head and distance ``j − i``, clipped: ``table[head, clip + distance]``.

    ``table`` has shape ``(heads, 2 · clip + 1)``; its middle column is distance 0.

    >>> relative(torch.tensor([[-1.0, 0.0, 5.0]])).dense(3, 3).tolist()
    [[[0.0, 5.0, 5.0], [-1.0, 0.0, 5.0], [-1.0, -1.0, 0.0]]]
    """
    _check_table(table, Phrase("relative(table) has shape (heads, 2 · clip + 1)"))
    if table.shape[1] % 2 == 0:
        raise ShapeError(
            "relative(table) has an odd number of columns, distance 0 in the middle.",
            got="{shape} columns",
            do="Make it (heads, 2 · clip + 1).",
            shape=table.shape[1],
        )
    return Relative(table)


@dataclass(frozen=True, eq=False)
class T5(DistanceBias):
    """A table ``(bucket, head)`` over buckets of distances, as in T5."""

    bidirectional: bool
    max_distance: int
    head_axis = 1

    def line(self, tables: tuple[Tensor, ...], distances: Tensor) -> Tensor:
        return tables[0][self.bucket(distances)].T

    def bucket(self, distances: Tensor) -> Tensor:
        """Short distances have a bucket each; longer ones share buckets of logarithmic width."""
        buckets = self.table.shape[0]
        ahead = torch.zeros_like(distances)
        if self.bidirectional:
            buckets //= 2
            ahead = (distances > 0) * buckets
            gaps = distances.abs()
        else:
            gaps = (-distances).clamp(min=0)
        exact = buckets // 2
        # The same order of operations as the original, in float32, so that bucket boundaries agree exactly.
        growth = torch.log(gaps.clamp(min=1).float() / exact) / math.log(self.max_distance / exact)
        far = (exact + (growth * (buckets - exact)).long()).clamp(max=buckets - 1)
        return ahead + torch.where(gaps < exact, gaps, far)


def t5(table: Tensor, bidirectional: bool = True, *, max_distance: int = 128) -> Bias:
    """T5's relative position bias: ``table[bucket(j − i), head]``, shape ``(buckets, heads)``.

    Encoders look in both directions (``bidirectional=True``), decoders only backwards.

    >>> t5(torch.arange(8.0)[:, None]).dense(1, 4).tolist()
    [[[2.0, 2.0, 1.0, 0.0]]]
    """
    _check_table(table, Phrase("t5(table) has shape (buckets, heads)"))
    least = 4 if bidirectional else 2
    if table.shape[0] < least or max_distance <= table.shape[0] // least:
        raise ArgumentError(
            "t5 needs at least {least} buckets and max_distance beyond the buckets of single distances.",
            got="{shape} buckets, max_distance = {max_distance}",
            do="T5 itself has 32 buckets and max_distance 128.",
            least=least,
            shape=table.shape[0],
            max_distance=max_distance,
        )
    return T5(table, bidirectional, max_distance)


@dataclass(frozen=True, eq=False)
class TensorBias(Bias):
    """A tensor that broadcasts to ``(batch, head, query, key)``."""

    values: Tensor  # four axes

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return (self.values,)

    @property
    def heads(self) -> int:
        return self.values.shape[1]

    def narrow(self, tables: tuple[Tensor, ...], batch: slice, heads: slice) -> tuple[Tensor, ...]:
        return (_some(_some(tables[0], 0, batch), 1, heads),)

    def check(self, batch: int, heads: int, extent: Extent) -> None:
        shape = (batch, heads, *extent)
        if any(own not in (1, size) for own, size in zip(self.values.shape, shape)):
            raise ShapeError(
                "A bias broadcasts to (batch = {batch}, heads = {heads}, {extent}).",
                got="shape {shape}",
                do="Its last three axes are head, query and key; give 1 where it does not matter.",
                batch=batch,
                heads=heads,
                extent=extent,
                shape=tuple(self.values.shape),
            )

    def tile(self, tables: tuple[Tensor, ...], q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        values = tables[0]
        rows = values if values.shape[2] == 1 else values[:, :, q - extent.offset]
        return rows if values.shape[3] == 1 else rows[..., k]

    def add_gradient(
        self,
        grads: tuple[Tensor, ...],
        grad_tile: Tensor,
        tables: tuple[Tensor, ...],
        q: Tensor,
        k: Tensor,
        extent: Extent,
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
    """The sum of several biases."""

    parts: tuple[Bias, ...]

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return tuple(table for part in self.parts for table in part.tables)

    @property
    def heads(self) -> int:
        return max(part.heads for part in self.parts)

    def narrow(self, tables: tuple[Tensor, ...], batch: slice, heads: slice) -> tuple[Tensor, ...]:
        return tuple(table for part, own in self._shares(tables) for table in part.narrow(own, batch, heads))

    def check(self, batch: int, heads: int, extent: Extent) -> None:
        for part in self.parts:
            part.check(batch, heads, extent)

    def _shares(self, tables: tuple[Tensor, ...]) -> list[tuple[Bias, tuple[Tensor, ...]]]:
        shares, start = [], 0
        for part in self.parts:
            count = len(part.tables)
            shares.append((part, tables[start : start + count]))
            start += count
        return shares

    def tile(self, tables: tuple[Tensor, ...], q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        tiles = [part.tile(own, q, k, extent) for part, own in self._shares(tables)]
        return sum(tiles[1:], start=tiles[0])

    def add_gradient(
        self,
        grads: tuple[Tensor, ...],
        grad_tile: Tensor,
        tables: tuple[Tensor, ...],
        q: Tensor,
        k: Tensor,
        extent: Extent,
    ) -> None:
        for (part, own), (_, own_grads) in zip(self._shares(tables), self._shares(grads)):
            part.add_gradient(own_grads, grad_tile, own, q, k, extent)


def _some(table: Tensor, axis: int, chosen: slice) -> Tensor:
    """A view of some entries of an axis; an axis of size 1 is returned whole."""
    if table.shape[axis] == 1 or chosen == slice(None):
        return table
    return table.narrow(axis, chosen.start, chosen.stop - chosen.start)


def _check_table(table: object, needed: Phrase) -> None:
    if not isinstance(table, Tensor) or not table.is_floating_point():
        kind = str(table.dtype) if isinstance(table, Tensor) else type(table).__name__
        raise DtypeError(
            "{needed} and holds floating-point numbers.",
            got="{kind}",
            do="Pass a float tensor.",
            needed=needed,
            kind=kind,
        )
    if table.ndim != 2 or not all(table.shape):
        raise ShapeError(
            "{needed}, and neither is 0.",
            got="shape {shape}",
            do="Give it two axes.",
            needed=needed,
            shape=tuple(table.shape),
        )
