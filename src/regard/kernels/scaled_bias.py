"""A bias times a factor that differs by batch element, head or query."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.kernels.bias import Bias, Index, Sum, Tables, TensorBias
from regard.kernels.biases import DistanceBias
from regard.masks.extent import Extent


@dataclass(frozen=True, eq=False)
class ScaledBias(Bias):
    """A bias times ``factors``, which broadcast to ``(batch, head, query)``; evaluated tile by tile."""

    part: Bias
    factors: Tensor  # (batch or 1, head or 1, query or 1)

    @property
    def tables(self) -> Tables:
        return (*self.part.tables, self.factors)

    @property
    def can_forbid(self) -> bool:
        return self.part.can_forbid

    @property
    def heads(self) -> int:
        return max(self.part.heads, self.factors.shape[1])

    @property
    def _as_bias(self) -> TensorBias:
        """The factors as a tensor of four axes, which can be checked, selected and joined."""
        return TensorBias(self.factors[..., None])

    def check(self, batch: int, heads: int, extent: Extent) -> None:
        self.part.check(batch, heads, extent)
        self._as_bias.check(batch, heads, extent)

    def narrow(self, tables: Tables, batch: Index, heads: Index) -> Tables:
        factors = self._as_bias.narrow((tables[-1][..., None],), batch, heads)[0][..., 0]
        return (*self.part.narrow(tables[:-1], batch, heads), factors)

    def with_tables(self, tables: Tables) -> Bias:
        return ScaledBias(self.part.with_tables(tables[:-1]), tables[-1])

    def detach(self) -> Bias:
        return ScaledBias(self.part.detach(), self.factors.detach())

    def at(self, batch: int, i: Tensor, j: Tensor, extent: Extent) -> Tensor:
        factors = self._as_bias.at(batch, i, j, extent)
        return torch.where(factors == 0, 0.0, self.part.at(batch, i, j, extent) * factors)

    def crop(self, rows: slice, keys: int) -> Bias:
        factors = self.factors if self.factors.shape[2] == 1 else self.factors[:, :, rows]
        return ScaledBias(self.part.crop(rows, keys), factors)

    def concat(self, later: Bias, rows: int) -> Bias | None:
        part = self.part.concat(later.part, rows) if isinstance(later, ScaledBias) else None
        if part is None or not isinstance(later, ScaledBias):
            return None
        return ScaledBias(part, _concat_factors(self.factors, later.factors, rows))

    def tile(self, tables: Tables, q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        factors = _factors_of(tables[-1], q, extent)
        # A factor of 0 removes a bias, even one of −inf.
        return torch.where(factors == 0, 0.0, self.part.tile(tables[:-1], q, k, extent) * factors)

    def add_gradient(
        self, grads: Tables, grad_tile: Tensor, tables: Tables, q: Tensor, k: Tensor, extent: Extent
    ) -> None:
        # The factors are fixed; only the bias gets a gradient.
        scaled = grad_tile * _factors_of(tables[-1], q, extent)
        self.part.add_gradient(grads[:-1], scaled, tables[:-1], q, k, extent)


def _concat_factors(before: Tensor, after: Tensor, rows: int) -> Tensor:
    """The factors of the first rows, followed by those of later ones."""
    if before.shape[2] == after.shape[2] == 1 and torch.equal(before, after):
        return before
    batch, heads = (max(sizes) for sizes in zip(before.shape[:2], after.shape[:2]))
    return torch.cat([before.expand(batch, heads, rows), after.expand(batch, heads, -1)], 2)


def _factors_of(factors: Tensor, q: Tensor, extent: Extent) -> Tensor:
    """The factors ``(batch or 1, head or 1, query or 1, 1)`` of a tile."""
    return (factors if factors.shape[2] == 1 else factors[:, :, q - extent.offset])[..., None]


def scaled(bias: Bias, factors: Tensor) -> Bias:
    """The bias times factors ``(batch or 1, head or 1, query or 1)``.

    A bias of the distance keeps its kind if only the head matters, because its small table can be scaled.

    >>> from regard.kernels.biases import alibi
    >>> scaled(alibi(2), torch.tensor([[[0.0], [1.0]]])).dense(1, 3).tolist()
    [[[-0.0, -0.0, -0.0]], [[-0.0078125, -0.00390625, -0.0]]]
    """
    if isinstance(bias, Sum):
        return Sum(tuple(scaled(part, factors) for part in bias.parts))
    if isinstance(bias, DistanceBias) and factors.shape[0] == factors.shape[2] == 1:
        axes = [1, 1]
        axes[bias.head_axis] = factors.shape[1]
        by_head = factors[0, :, 0].to(bias.table.dtype).reshape(axes[: bias.table.ndim])
        return replace(bias, table=bias.table * by_head)
    if isinstance(bias, TensorBias) and factors.numel() == 1:
        return TensorBias(bias.values * factors[..., None].to(bias.values.dtype))
    return ScaledBias(bias, factors.to(bias.tables[0].dtype))
