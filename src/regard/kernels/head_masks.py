"""Attention of an intercepted call, whose mask may differ by head: heads with the same mask go together.

A mask that holds for some elements of the batch and some heads only is joined with a table
``(batch, head, 1, 1)``, as in ``causal() & ~(span(5, 9) & table)``. With the table known, each cell has
its own mask, and those without the edit keep the model's, which one fused call computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from regard.kernels.functional import attention, attention_with_lse
from regard.kernels.inputs import Inputs
from regard.kernels.planner import plan_extent
from regard.kernels.single_row import single_query
from regard.masks import Mask, dense
from regard.masks.extent import Bools
from regard.masks.mask import Constant
from regard.masks.pair_patterns import Dense

MAX_DENSE_ENTRIES = 1 << 20
"""Up to this many entries of the whole mask, one call with a dense mask costs less than several calls."""


def output_and_lse(inputs: Inputs, *, with_lse: bool) -> tuple[Tensor, Tensor | None]:
    """The output ``(batch, head, query, channel)`` and, on request, the lse ``(batch, head, query)``."""
    groups = list(cell_groups(inputs))
    if not groups:
        return _together(inputs, with_lse=with_lse)
    shape = inputs.q.shape[:-1]
    output = inputs.q.new_zeros(*shape, inputs.v.shape[-1])
    lse = inputs.q.new_zeros(shape, dtype=torch.promote_types(inputs.q.dtype, torch.float32))
    for group in groups:
        own, own_lse = _together(group.inputs(inputs), with_lse=with_lse)
        here = group.index(inputs.q.device)
        output[here] = own
        if own_lse is not None:
            lse[here] = own_lse
    return output, lse if with_lse else None


def _together(inputs: Inputs, *, with_lse: bool) -> tuple[Tensor, Tensor | None]:
    """One call for all heads."""
    single = single_query(inputs) if with_lse else None
    if single is not None:
        return single
    inputs = _with_keys_of_each_head(inputs)
    tensors = (inputs.q, inputs.k, inputs.v)
    options = {
        "mask": inputs.mask,
        "bias": inputs.bias,
        "scale": inputs.scale,
        "softcap": inputs.softcap,
        "sinks": inputs.sinks,
        "dropout": inputs.dropout,
    }
    if with_lse:
        return attention_with_lse(*tensors, **options)  # type: ignore[arg-type]
    return attention(*tensors, **options), None  # type: ignore[arg-type]


def _with_keys_of_each_head(inputs: Inputs) -> Inputs:
    """Shared key heads repeated, where the mask is computed in tiles: each tile would repeat its own."""
    group = inputs.heads // max(1, inputs.k.shape[1])
    if group == 1 or plan_extent(inputs.mask, inputs.extent).path in ("full", "causal", "masked", "empty"):
        return inputs
    return replace(inputs, k=inputs.k.repeat_interleave(group, 1), v=inputs.v.repeat_interleave(group, 1))


@dataclass(frozen=True, eq=False)
class CellGroup:
    """Elements of the batch and heads that have one mask."""

    batch: tuple[int, ...] | None  # None: all of them
    heads: tuple[int, ...]
    mask: Mask

    def index(self, device: torch.device) -> tuple[slice | Tensor, Tensor]:
        """The index of these cells in ``(batch, head, …)``."""
        batch, heads = self._batches(device), torch.tensor(self.heads, device=device)
        return (batch[:, None] if isinstance(batch, Tensor) else batch, heads)

    def _batches(self, device: torch.device) -> slice | Tensor:
        return slice(None) if self.batch is None else torch.tensor(self.batch, device=device)

    def inputs(self, whole: Inputs) -> Inputs:
        """The inputs of these cells."""
        batch = self._batches(whole.q.device)
        q, k, v = whole.q[batch], whole.k[batch], whole.v[batch]
        heads = torch.tensor(self.heads, device=q.device)
        key_heads = self._key_heads(whole.heads // whole.k.shape[1])
        own = torch.tensor(key_heads, device=q.device)
        return replace(
            whole,
            q=q.index_select(1, heads),
            k=k.index_select(1, own),
            v=v.index_select(1, own),
            lead=(len(q),),
            mask=self.mask,
            bias=None if whole.bias is None else whole.bias.select(batch=batch, heads=heads),
            sinks=None if whole.sinks is None else whole.sinks.index_select(0, heads),
        )

    def _key_heads(self, group: int) -> list[int]:
        """The key heads: each once if all query heads that share them are here, else one per query head."""
        shared = sorted({head // group for head in self.heads})
        if len(self.heads) == group * len(shared) and list(self.heads) == sorted(self.heads):
            return shared
        return [head // group for head in self.heads]


def cell_groups(inputs: Inputs) -> Iterator[CellGroup]:
    """The cells ``(batch, head)`` by their mask; nothing if one call computes all of them."""
    lead, heads = inputs.lead, inputs.heads
    tables = {part: _table(part, heads) for part in inputs.mask.patterns() if is_cell_table(part)}
    entries = prod(inputs.mask.lead) * prod(inputs.extent)
    if not tables or entries <= MAX_DENSE_ENTRIES or len(lead) != 1:
        return
    if all(len(table) == 1 for table in tables.values()):
        yield from _by_head(inputs.mask, {part: table[0] for part, table in tables.items()}, heads, None)
        return
    together: dict[tuple[tuple[tuple[int, ...], Mask], ...], list[int]] = {}
    for element in range(lead[0]):
        own = {part: table[element if len(table) > 1 else 0] for part, table in tables.items()}
        found = tuple((group.heads, group.mask) for group in _by_head(inputs.mask, own, heads, element))
        together.setdefault(found, []).append(element)
    for found, elements in together.items():
        for some, mask in found:
            yield CellGroup(tuple(elements), some, mask)


def _by_head(mask: Mask, tables: dict[Mask, Bools], heads: int, element: int | None) -> Iterator[CellGroup]:
    """The heads by their mask; of one element of the batch, or of all of them together."""
    found: dict[Mask, list[int]] = {}
    for head in range(heads):
        own = mask.substitute({part: bool(table[head]) for part, table in tables.items()})
        if element is not None and own.lead:
            own = own.select((element, 0))
        found.setdefault(own, []).append(head)
    for own, some in found.items():
        yield CellGroup(None, tuple(some), own)


def is_cell_table(part: Mask) -> bool:
    """Whether this is a table that says for each element of the batch and each head, not for each pair."""
    return isinstance(part, Dense) and bool(part.lead) and part.table.values.shape[-2:] == (1, 1)


def _table(part: Mask, heads: int) -> Bools:
    """The values of such a table, ``(batch or 1, head)``."""
    assert isinstance(part, Dense)
    values = part.table.values[..., 0, 0]
    return np.broadcast_to(values.reshape(-1, values.shape[-1]), (prod(values.shape[:-1]), heads))


def cell_table(cells: Tensor, lead: tuple[int, ...]) -> Mask:
    """The mask that is True for all pairs of these cells, a tensor ``(batch or 1, head or 1)`` of bools.

    ``lead`` are the leading axes of the call, without the head axis.

    >>> cell_table(torch.tensor([[True, False, True]]), (2,))
    dense([[[[1]], [[0]], [[1]]]])
    """
    if bool(cells.all()) or not bool(cells.any()):
        return Constant(bool(cells.all()))
    if len(lead) != 1:
        cells = cells.reshape(*(lead if len(cells) > 1 else (1,) * len(lead)), cells.shape[1])
    return dense(cells[..., None, None])
