"""A bias times a factor that differs by batch element, head or query."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.kernels.biases import Bias, DistanceBias, Sum, TensorBias
from regard.masks.extent import Extent


@dataclass(frozen=True, eq=False)
class ScaledBias(Bias):
    """A bias times ``factors``, which broadcast to ``(batch, head, query)``; evaluated tile by tile."""

    part: Bias
    factors: Tensor  # (batch or 1, head or 1, query or 1)

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return (*self.part.tables, self.factors)

    @property
    def heads(self) -> int:
        return max(self.part.heads, self.factors.shape[1])

    def check(self, batch: int, heads: int, extent: Extent) -> None:
        self.part.check(batch, heads, extent)
        TensorBias(self.factors[..., None]).check(batch, heads, extent)

    def narrow(self, tables: tuple[Tensor, ...], batch: slice, heads: slice) -> tuple[Tensor, ...]:
        factors = TensorBias(tables[-1][..., None])
        narrowed = factors.narrow(factors.tables, batch, heads)[0][..., 0]
        return (*self.part.narrow(tables[:-1], batch, heads), narrowed)

    def tile(self, tables: tuple[Tensor, ...], q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        factors = _factors(tables[-1], q, extent)
        # A factor of 0 takes a bias away, even one of −inf.
        return torch.where(factors == 0, 0.0, self.part.tile(tables[:-1], q, k, extent) * factors)

    def add_gradient(
        self,
        grads: tuple[Tensor, ...],
        grad_tile: Tensor,
        tables: tuple[Tensor, ...],
        q: Tensor,
        k: Tensor,
        extent: Extent,
    ) -> None:
        # The factors are given numbers; only the bias learns.
        scaled = grad_tile * _factors(tables[-1], q, extent)
        self.part.add_gradient(grads[:-1], scaled, tables[:-1], q, k, extent)


def _factors(factors: Tensor, q: Tensor, extent: Extent) -> Tensor:
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
