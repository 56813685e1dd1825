"""Softcapped scores as a bias.

A kernel has one softcap for a whole call. Where only some rows or heads have a temperature,
``cap(s) / t = cap(s) + (1/t − 1) · cap(s)``: the second term is a bias, these scores times factors
(``scaled_bias.py``), computed tile by tile from Q and K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.errors import ShapeError
from regard.kernels.bias import Bias, Index, Tables, TensorBias
from regard.kernels.plain_kernel import ScoreOptions, scores_of
from regard.masks.extent import Extent


@dataclass(frozen=True, eq=False)
class CappedBias(Bias):
    """``c · tanh(scale · q_i · k_j / c)`` with a softcap c.

    >>> q, k = torch.ones(1, 1, 1, 4), torch.ones(1, 1, 3, 4)
    >>> CappedBias(q, k, 1.0, 2.0).dense(1, 3)  # 2 · tanh(4 / 2)
    tensor([[[1.9281, 1.9281, 1.9281]]])
    """

    q: Tensor  # (batch, head, query, channel)
    k: Tensor  # (batch, head, key, channel)
    scale: float
    softcap: float

    @property
    def tables(self) -> Tables:
        return self.q, self.k

    @property
    def heads(self) -> int:
        return self.q.shape[1]

    @property
    def _options(self) -> ScoreOptions:
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

    def narrow(self, tables: Tables, batch: Index, heads: Index) -> Tables:
        return tuple(TensorBias(x).narrow((x,), batch, heads)[0] for x in tables)

    def with_tables(self, tables: Tables) -> Bias:
        q, k = tables
        return replace(self, q=q, k=k)

    def detach(self) -> Bias:
        # Computed for one call, not parameters, so nothing changes them later.
        return self.with_tables(tuple(table.detach() for table in self.tables))

    def at(self, batch: int, i: Tensor, j: Tensor, extent: Extent) -> Tensor:
        del extent
        q, k = (x[batch if len(x) > 1 else 0] for x in (self.q, self.k))  # (head, length, channel)
        wide = torch.promote_types(q.dtype, torch.float32)
        one = (q[:, i, None].to(wide), k[:, j, None].to(wide))
        return scores_of(*one, None, self._options)[0][..., 0, 0]  # (head, pair)

    def crop(self, rows: slice, keys: int) -> Bias:
        return replace(self, q=self.q[:, :, rows], k=self.k[:, :, :keys])

    def concat(self, later: Bias, rows: int) -> Bias | None:
        del rows
        if not isinstance(later, CappedBias):
            return None
        same = self.k.shape == later.k.shape and torch.equal(self.k, later.k)  # the keys of another text
        new = later.k[:, :, : 0 if same else None][:, :, -later.q.shape[2] :]
        return replace(self, q=torch.cat([self.q, later.q], 2), k=torch.cat([self.k, new], 2))

    def tile(self, tables: Tables, q: Tensor, k: Tensor, extent: Extent) -> Tensor:
        own_q, own_k = tables
        return scores_of(_some(own_q, q - extent.offset), _some(own_k, k), None, self._options)[0]

    def add_gradient(
        self, grads: Tables, grad_tile: Tensor, tables: Tables, q: Tensor, k: Tensor, extent: Extent
    ) -> None:
        i = q - extent.offset
        some_q, some_k = _some(tables[0], i), _some(tables[1], k)
        _, slope = scores_of(some_q, some_k, None, self._options)
        assert slope is not None
        inner = grad_tile * slope * self.scale
        # Each query and key occurs once in a tile, so indexed addition loses nothing.
        grads[0][:, :, i] += (inner @ some_k).to(grads[0].dtype)
        grads[1][:, :, k] += (inner.mT @ some_q).to(grads[1].dtype)


def _some(x: Tensor, positions: Tensor) -> Tensor:
    """Some positions of ``x (batch, head, length, channel)``, in at least float32."""
    found = x.index_select(2, positions)
    return found.to(torch.promote_types(found.dtype, torch.float32))
