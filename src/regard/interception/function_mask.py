"""A mask function of transformers that regard does not know by name, evaluated tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import MaskError
from regard.masks import Mask
from regard.masks.extent import Array, Extent, Pairs, TiledAxis
from regard.masks.mask import SOME, Verdicts

MaskFunction = Callable[..., Any]
"""A function of (batch, head, query, key) index that says whether the query sees the key."""


@dataclass(frozen=True, repr=False)
class FunctionMask(Mask):
    """A function of (batch, head, query, key) index, evaluated at the pairs of a tile when needed."""

    function: MaskFunction
    batch: int
    query_shift: int  # from positions here to those the function knows
    key_shift: int
    one_by_one: bool
    chosen: int | None = None  # one element of the batch

    def __repr__(self) -> str:
        return f"function({getattr(self.function, '__qualname__', self.function)})"

    @property
    def lead(self) -> tuple[int, ...]:
        return () if self.chosen is not None else (self.batch, 1)

    def select(self, index: tuple[int, ...]) -> Mask:
        return (
            self if self.chosen is not None else replace(self, chosen=int(index[-2]) if self.batch > 1 else 0)
        )

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        # Nothing is known without evaluating every pair, and "some" is always safe.
        del extent
        return np.full((len(rows), len(columns)), SOME, np.uint8)

    def allows(self, pairs: Pairs) -> Array:
        q, k = np.asarray(pairs.q), np.asarray(pairs.k)
        if q.ndim == k.ndim == 1 and self.chosen is not None:
            return self._pair_by_pair(q, k)
        if q.shape[-1] != 1 or k.ndim < 2 or k.shape[-2] != 1:
            raise MaskError(
                "A mask function must be called with rows and columns.",
                got="{shape} and {k_shape}",
                shape=q.shape,
                k_shape=k.shape,
            )
        batch = np.array([self.chosen]) if self.chosen is not None else np.arange(self.batch)
        index = [
            torch.from_numpy(np.ascontiguousarray(x).astype(np.int64))
            for x in (batch, np.zeros(1), q.ravel() + self.query_shift, k.ravel() + self.key_shift)
        ]
        found = _asked(self.function, index, self.one_by_one).numpy()
        return found[0, 0] if self.chosen is not None else found

    def _pair_by_pair(self, q: Array, k: Array) -> Array:
        """The function at single pairs of one element of the batch: each pair is a row with one key."""
        function = self.function
        index = [
            torch.from_numpy(np.broadcast_to(np.asarray(x), q.shape).astype(np.int64))
            for x in (self.chosen, 0, q + self.query_shift, k + self.key_shift)
        ]
        if self.one_by_one:
            return _vmapped(torch.vmap(function), index).cpu().numpy()
        return torch.as_tensor(function(*index)).expand(q.shape).cpu().numpy()


def _asked(function: MaskFunction, index: list[Tensor], one_by_one: bool) -> Tensor:
    """The function at every combination of the four indices."""
    shape = tuple(len(axis) for axis in index)
    if one_by_one:
        for axis in (3, 2, 1, 0):
            function = torch.vmap(function, in_dims=tuple(0 if i == axis else None for i in range(4)))
        found = _vmapped(function, index)
    else:
        found = function(
            *(x.reshape([-1 if i == axis else 1 for i in range(4)]) for axis, x in enumerate(index))
        )
    return torch.as_tensor(found).expand(shape).cpu()


def _vmapped(function: MaskFunction, index: list[Tensor]) -> Tensor:
    """The result of a function under vmap, which otherwise cannot look up a table at an index."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    with TransformGetItemToIndex():
        return torch.as_tensor(function(*index))
