"""Biases: numbers added to the scores, evaluated tile by tile.

``alibi``, ``relative`` and ``t5`` depend only on the distance from query to key, so a tile needs
one number per distance and head. Gradients flow to their tables.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from regard.checks import check_integer
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.kernels.bias import Bias, Index, Sum, Tables, TensorBias, some_of
from regard.masks.extent import Extent

__all__ = [
    "T5",
    "Alibi",
    "Bias",
    "DistanceBias",
    "Relative",
    "Sum",
    "TensorBias",
    "alibi",
    "relative",
    "t5",
]


@dataclass(frozen=True, eq=False)
class DistanceBias(Bias):
    """A bias that depends only on the distance ``key − query``, from one table.

    >>> isinstance(alibi(4), DistanceBias)
    True
    """

    table: Tensor
    head_axis: ClassVar[int] = 0

    @property
    def tables(self) -> Tables:
        return (self.table,)

    @property
    def heads(self) -> int:
        return self.table.shape[self.head_axis]

    def narrow(self, tables: Tables, batch: Index, heads: Index) -> Tables:
        del batch
        return (some_of(tables[0], self.head_axis, heads),)

    def with_tables(self, tables: Tables) -> Bias:
        return replace(self, table=tables[0])

    def at(self, batch: int, i: Tensor, j: Tensor, extent: Extent) -> Tensor:
        del batch
        return self.line(self.tables, j - i - extent.offset)

    def concat(self, later: Bias, rows: int) -> Bias | None:
        del rows
        return later if isinstance(later, DistanceBias) else None

    @abstractmethod
    def line(self, tables: Tables, distances: Tensor) -> Tensor:
        """The values ``(head, distance)``."""

    def tile(self, tables: Tables, q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        del extent
        distances, index = _distances(q, k)
        return self.line(tables, distances)[:, index].unsqueeze(0)

    def add_gradient(
        self, grads: Tables, grad_tile: Tensor, tables: Tables, q: Tensor, k: Tensor, extent: Extent
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
    """A slope per head times the distance; the table has shape ``(head,)``.

    >>> alibi(2).dense(1, 3)[0]  # head 0, the query at the last key
    tensor([[-0.1250, -0.0625, -0.0000]])
    """

    def line(self, tables: Tables, distances: Tensor) -> Tensor:
        return -tables[0][:, None] * distances.abs()


def alibi(heads: int, *, device: torch.device | str | None = None) -> Bias:
    """Attention with linear biases: ``−slope · |i − j|``, slopes 2^(−8/h), 2^(−16/h), …

    If the number of heads is not a power of two, the slopes of the next lower power come first,
    followed by every second slope of the next higher one (Press et al., 2021).

    >>> alibi(2).dense(1, 3).tolist()
    [[[-0.125, -0.0625, -0.0]], [[-0.0078125, -0.00390625, -0.0]]]
    """
    heads = check_integer("heads", heads)
    lower = 2 ** int(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / lower) for i in range(lower)]
    slopes += [2 ** (-4 * (2 * i + 1) / lower) for i in range(heads - lower)]
    return Alibi(torch.tensor(slopes, device=device))


@dataclass(frozen=True, eq=False)
class Relative(DistanceBias):
    """A table ``(head, 2 · clip + 1)`` over clipped distances.

    >>> relative(torch.tensor([[-1.0, 0.0, 1.0]])).dense(1, 3)[0]  # distances below −1 count as −1
    tensor([[-1., -1.,  0.]])
    """

    def line(self, tables: Tables, distances: Tensor) -> Tensor:
        clip = self.table.shape[1] // 2
        return tables[0][:, distances.clamp(-clip, clip) + clip]


def relative(table: Tensor) -> Bias:
    """One learned scalar per head and distance ``j − i``, clipped: ``table[head, clip + distance]``.

    ``table`` has shape ``(heads, 2 · clip + 1)``; its middle column is distance 0.

    >>> relative(torch.tensor([[-1.0, 0.0, 5.0]])).dense(3, 3).tolist()
    [[[0.0, 5.0, 5.0], [-1.0, 0.0, 5.0], [-1.0, -1.0, 0.0]]]
    """
    _check_table(table, "relative", "(heads, 2 · clip + 1)")
    if table.shape[1] % 2 == 0:
        raise ShapeError(
            "The table of relative(table) must have an odd number of columns, with distance 0 in the middle.",
            got="{columns} columns",
            do="Give it the shape (heads, 2 · clip + 1).",
            columns=table.shape[1],
        )
    return Relative(table)


@dataclass(frozen=True, eq=False)
class T5(DistanceBias):
    """A table ``(bucket, head)`` over buckets of distances, as in T5.

    >>> t5(torch.zeros(32, 2)).dense(4, 4).shape
    torch.Size([2, 4, 4])
    """

    bidirectional: bool
    max_distance: int
    head_axis = 1

    def line(self, tables: Tables, distances: Tensor) -> Tensor:
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
    _check_table(table, "t5", "(buckets, heads)")
    least = 4 if bidirectional else 2
    if table.shape[0] < least or max_distance <= table.shape[0] // least:
        raise ArgumentError(
            "t5 needs at least {least} buckets, and a max_distance beyond the exact distances.",
            got="{buckets} buckets, max_distance = {max_distance}",
            do="T5 itself has 32 buckets and max_distance 128.",
            least=least,
            buckets=table.shape[0],
            max_distance=max_distance,
        )
    return T5(table, bidirectional, max_distance)


def _check_table(table: object, name: str, shape: str) -> None:
    if not isinstance(table, Tensor) or not table.is_floating_point():
        kind = str(table.dtype) if isinstance(table, Tensor) else type(table).__name__
        raise DtypeError(
            "{name}(table) needs floating-point numbers of shape {shape}.",
            got="{kind}",
            do="Pass a float tensor.",
            name=name,
            shape=shape,
            kind=kind,
        )
    if table.ndim != 2 or not all(table.shape):
        raise ShapeError(
            "{name}(table) must have shape {shape}, with no empty axis.",
            got="shape {given}",
            do="Pass a tensor with two axes.",
            name=name,
            shape=shape,
            given=tuple(table.shape),
        )
