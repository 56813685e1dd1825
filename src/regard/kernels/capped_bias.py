"""Softcapped scores times a factor that differs by batch element, head or query, as a bias.

A kernel has one softcap for a whole call. Where only some rows or heads have a temperature,
``cap(s) / t = cap(s) + (1/t − 1) · cap(s)``: the second term is a bias, computed tile by tile from Q and K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.errors import ShapeError
from regard.kernels.biases import Bias, Index, TensorBias
from regard.kernels.plain_kernel import ScoreOptions, scores_of
from regard.kernels.scaled_bias import concat_factors, factors_of
from regard.masks.extent import Extent


@dataclass(frozen=True, eq=False)
class CappedBias(Bias):
    """``f_i · c · tanh(scale · q_i · k_j / c)`` with a softcap c and factors f.

    >>> q, k = torch.zeros(1, 1, 2, 4), torch.ones(1, 1, 3, 4)
    >>> CappedBias(q + 1, k, torch.tensor([[[0.0, 1.0]]]), 1.0, 2.0).dense(2, 3)  # 2 · tanh(4 / 2)
    tensor([[[0.0000, 0.0000, 0.0000],
             [1.9281, 1.9281, 1.9281]]])
    """

    q: Tensor  # (batch, head, query, channel)
    k: Tensor  # (batch, head, key, channel)
    factors: Tensor  # (batch or 1, head or 1, query or 1)
    scale: float
    softcap: float

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return self.q, self.k, self.factors

    @property
    def heads(self) -> int:
        return self.q.shape[1]

    @property
    def _rules(self) -> ScoreOptions:
        return ScoreOptions(self.scale, self.softcap)

    def check(self, batch: int, heads: int, extent: Extent) -> None:
        for tensor, length in ((self.q, extent.queries), (self.k, extent.keys)):
            if tensor.ndim != 4 or tuple(tensor.shape[:3]) != (batch, heads, length):
                raise ShapeError(
                    "A bias of capped scores must have Q and K of its call (batch = {batch}, "
                    "heads = {heads}, {extent}).",
                    got="q {q}, k {k}",
                    do="Make it from the Q and K of the same call.",
                    batch=batch,
                    heads=heads,
                    extent=extent,
                    q=tuple(self.q.shape),
                    k=tuple(self.k.shape),
                )
        TensorBias(self.factors[..., None]).check(batch, heads, extent)

    def narrow(self, tables: tuple[Tensor, ...], batch: Index, heads: Index) -> tuple[Tensor, ...]:
        q, k, factors = tables
        both = TensorBias(q)
        (q,), (k,) = both.narrow((q,), batch, heads), both.narrow((k,), batch, heads)
        return q, k, both.narrow((factors[..., None],), batch, heads)[0][..., 0]

    def with_tables(self, tables: tuple[Tensor, ...]) -> Bias:
        q, k, factors = tables
        return replace(self, q=q, k=k, factors=factors)

    def detach(self) -> Bias:
        # Computed for one call, not parameters, so nothing changes them later.
        return self.with_tables(tuple(table.detach() for table in self.tables))

    def at(self, batch: int, i: Tensor, j: Tensor, extent: Extent) -> Tensor:
        q, k = (x[batch if len(x) > 1 else 0] for x in (self.q, self.k))  # (head, length, channel)
        wide = torch.promote_types(q.dtype, torch.float32)
        one = (q[:, i, None].to(wide), k[:, j, None].to(wide))
        capped = scores_of(*one, None, self._rules)[0][..., 0, 0]  # (head, pair)
        return capped * TensorBias(self.factors[..., None]).at(batch, i, j, extent)

    def crop(self, rows: slice, keys: int) -> Bias:
        factors = self.factors if self.factors.shape[2] == 1 else self.factors[:, :, rows]
        return replace(self, q=self.q[:, :, rows], k=self.k[:, :, :keys], factors=factors)

    def concat(self, later: Bias, rows: int) -> Bias | None:
        if not isinstance(later, CappedBias):
            return None
        same = self.k.shape == later.k.shape and torch.equal(self.k, later.k)  # the keys of another text
        new = later.k[:, :, : 0 if same else None][:, :, -later.q.shape[2] :]
        q, k = torch.cat([self.q, later.q], 2), torch.cat([self.k, new], 2)
        return replace(self, q=q, k=k, factors=concat_factors(self.factors, later.factors, rows))

    def tile(self, tables: tuple[Tensor, ...], q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        own_q, own_k, factors = tables
        scores, _ = scores_of(_some(own_q, q - extent.offset), _some(own_k, k), None, self._rules)
        return scores * factors_of(factors, q, extent)

    def add_gradient(
        self,
        grads: tuple[Tensor, ...],
        grad_tile: Tensor,
        tables: tuple[Tensor, ...],
        q: Tensor,
        k: Tensor,
        extent: Extent,
    ) -> None:
        # The factors are fixed; only Q and K get gradients.
        i = q - extent.offset
        some_q, some_k = _some(tables[0], i), _some(tables[1], k)
        _, slope = scores_of(some_q, some_k, None, self._rules)
        assert slope is not None
        inner = grad_tile * factors_of(tables[2], q, extent) * slope * self.scale
        # Each query and key occurs once in a tile, so indexed addition loses nothing.
        grads[0][:, :, i] += (inner @ some_k).to(grads[0].dtype)
        grads[1][:, :, k] += (inner.mT @ some_q).to(grads[1].dtype)


def _some(x: Tensor, positions: Tensor) -> Tensor:
    """Some positions of ``x (batch, head, length, channel)``, in at least float32."""
    found = x.index_select(2, positions)
    return found.to(torch.promote_types(found.dtype, torch.float32))
