"""Runs a plan: row tiles through a kernel, forward and backward, as one autograd function.

    Inputs, Plan → TiledCall with its HeadGroups → a TilePass for each MaskPart → output, lse

The forward pass saves the output and the lse of every row. The weights of any tile are then
``exp(scores − lse)``, so the backward pass recomputes each tile on its own and adds up the
gradients: no merge has to be differentiated, however many parts a row was computed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ArgumentError
from regard.kernels import fused_kernel
from regard.kernels.bias import WHOLE
from regard.kernels.equal_squares import equal_squares
from regard.kernels.inputs import Inputs
from regard.kernels.layout import MAX_TILE_ROWS, lay_out
from regard.kernels.plain_kernel import BackwardRows, add_sinks, finite_lse, merge
from regard.kernels.planner import ElementPlan, Plan
from regard.kernels.precision import full_precision
from regard.kernels.tile_pass import HeadGroup, PartTiles, TiledCall, TilePass, device_tables_for
from regard.threads import each, spread

MIN_CALL_PAIRS = 1 << 14
"""The least number of pairs per kernel call when heads are computed in parallel."""


def run(inputs: Inputs, plan: Plan) -> tuple[Tensor, Tensor]:
    """Output ``(batch, head, query, channel)`` and lse ``(batch, head, query)`` of a planned call."""
    return run_call(tiled_call(inputs, plan))


def tiled_call(inputs: Inputs, plan: Plan, also: PartTiles | None = None) -> TiledCall:
    """What runs a plan. On another device, the tables of the ``also`` tiles are sent along."""
    inputs = inputs.with_positive_scale()
    use_fused = _fused_can(inputs)
    # The fused kernel has a built-in causal mask for squares, but cannot combine it with a bias.
    head_groups = tuple(head_groups_of(inputs, plan, builtin_causal=use_fused and inputs.bias is None))
    # The seed comes from torch's generator, so that torch.manual_seed determines it.
    seed = int(torch.randint(1 << 62, ())) if inputs.dropout else 0
    return TiledCall(inputs, head_groups, use_fused, seed, device_tables_for(inputs, head_groups, also))


def run_call(call: TiledCall) -> tuple[Tensor, Tensor]:
    """Output and lse of a call."""
    inputs = call.inputs
    tables = inputs.bias.tables if inputs.bias is not None else ()
    with full_precision(inputs.q):
        output, lse = _TiledAttention.apply(  # type: ignore[no-untyped-call]
            call, inputs.q, inputs.k, inputs.v, inputs.sinks, *tables
        )
    return output, lse


def _fused_can(inputs: Inputs) -> bool:
    bias_learns = inputs.bias is not None and any(table.requires_grad for table in inputs.bias.tables)
    return (
        fused_kernel.available()
        and inputs.q.device.type == "cpu"
        and inputs.softcap is None
        and not inputs.steep  # rounding can push weights far above 1 in its backward pass
        and not inputs.dropout
        and not (bias_learns and torch.is_grad_enabled())
        and inputs.q.shape[-1] == inputs.v.shape[-1]
    )


def head_groups_of(
    inputs: Inputs, plan: Plan, *, builtin_causal: bool, max_rows: int = MAX_TILE_ROWS
) -> Iterator[HeadGroup]:
    """The elements of a plan, mapped to the batch and the heads of the tensors.

    ``builtin_causal`` says that the kernel has a built-in causal mask for squares; otherwise a
    causal square is split into row tiles of at most ``max_rows`` rows.
    """
    if not inputs.q.numel() or not inputs.k.numel():
        return  # the fused kernel divides by these sizes
    mask_lead = plan.mask.lead
    elements = {element.index: element for element in plan.elements}

    def head_group(element: ElementPlan, batch: slice, heads: slice) -> HeadGroup:
        causal = element.path == "causal"
        # Without a built-in causal mask, tiles skip the empty half. Only the kernels of this file take
        # positions that are not in order.
        cut = not builtin_causal and (causal or any(part.reordered for part in element.parts))
        parts = _tiles_of(element.mask, plan.extent, plan.region, max_rows=max_rows) if cut else element.parts
        return HeadGroup(batch, heads, causal and builtin_causal, parts)

    if () in elements:
        yield head_group(elements[()], WHOLE, WHOLE)
        return
    *mask_batch, mask_heads = mask_lead
    every_batch = all(size == 1 for size in mask_batch)
    batches = [(0,) * len(inputs.lead)] if every_batch else list(np.ndindex(*inputs.lead))
    for head in range(mask_heads):
        heads = WHOLE if mask_heads == 1 else slice(head, head + 1)

        def element_of(place: tuple[int, ...], head: int = head) -> ElementPlan:
            index = (*place, head)[len(place) + 1 - len(mask_lead) :]
            return elements[tuple(0 if size == 1 else i for i, size in zip(index, mask_lead))]

        # Consecutive batch elements with the same layout are computed together.
        start = 0
        for _, same in groupby(map(element_of, batches), key=lambda element: id(element.parts)):
            together = list(same)
            batch = WHOLE if every_batch else slice(start, start + len(together))
            yield head_group(together[0], batch, heads)
            start += len(together)


# Cached, because every layer of a model needs the same.
_tiles_of = lru_cache(maxsize=16)(lay_out)


def run_backward(
    inputs: Inputs, plan: Plan, grad: Tensor, output: Tensor, lse: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients of q, k, v, the sinks and the tables of the bias, from output and lse of the forward pass."""
    flipped = inputs.scale < 0
    if inputs.steep:
        inputs = inputs.in_double()
    inputs = inputs.with_positive_scale()
    # The fused kernel has no gradient for a bias.
    use_fused = _fused_can(inputs) and inputs.bias is None
    head_groups = tuple(head_groups_of(inputs, plan, builtin_causal=use_fused))
    call = TiledCall(inputs, head_groups, use_fused, 0, device_tables_for(inputs, head_groups))
    tables = inputs.bias.tables if inputs.bias is not None else ()
    wide = torch.promote_types(inputs.q.dtype, torch.float32)
    rows = (grad.to(inputs.q.dtype), output.to(inputs.q.dtype), lse.to(wide))
    of_q, *others = _gradients(call, rows[0], inputs.q, inputs.k, inputs.v, inputs.sinks, *rows[1:], *tables)
    assert of_q is not None
    return -of_q if flipped else of_q, *others


class _TiledAttention(torch.autograd.Function):
    """Attention over the tiles of a plan."""

    @staticmethod
    def forward(
        call: TiledCall, q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None, *tables: Tensor
    ) -> tuple[Tensor, Tensor]:
        found = equal_squares(call, q, k, v)
        if found is not None:
            return add_sinks(*found, sinks)
        return spread(lambda: _forward(call, q, k, v, sinks, tables), _spread_size(call, q))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        call, q, k, v, sinks, *tables = inputs
        ctx.call = call
        ctx.save_for_backward(q, k, v, sinks, *output, *tables)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> None:
        del ctx, tangents
        raise ArgumentError(
            "regard.attention has no forward-mode derivatives.",
            got="a forward-mode derivative of a masked or capped call",
            do="Compute it with regard.attention_weights(...) @ v, which torch differentiates.",
        )

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return None, *_TiledGradient.apply(ctx.call, grad, *ctx.saved_tensors)  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], call: TiledCall, *tensors: Tensor | None
    ) -> tuple[Any, Any]:
        return _one_by_one(_TiledAttention, info.batch_size, in_dims[1:], call, tensors)


class _TiledGradient(torch.autograd.Function):
    """The gradients of ``_TiledAttention``; they cannot be differentiated again."""

    @staticmethod
    def forward(call: TiledCall, grad: Tensor, *saved: Any) -> tuple[Tensor | None, ...]:
        return _gradients(call, grad, *saved)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
        del ctx, inputs, output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        del ctx, grads
        raise ArgumentError(
            "regard.attention has first derivatives only.",
            got="a second derivative of a masked or capped call",
            do="Compute it with regard.attention_weights(...) @ v, which torch differentiates.",
        )

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], call: TiledCall, *tensors: Tensor | None
    ) -> tuple[Any, Any]:
        return _one_by_one(_TiledGradient, info.batch_size, in_dims[1:], call, tensors)


def _one_by_one(
    function: Any, size: int, in_dims: tuple[int | None, ...], call: TiledCall, tensors: tuple[Any, ...]
) -> tuple[Any, Any]:
    """What torch.vmap needs: one call for each element, and the results stacked."""
    found = [
        function.apply(
            call, *(x if d is None or x is None else x.select(d, i) for x, d in zip(tensors, in_dims))
        )
        for i in range(size)
    ]
    stacked = tuple(None if column[0] is None else torch.stack(column) for column in zip(*found))
    return stacked, tuple(None if x is None else 0 for x in stacked)


def _gradients(call: TiledCall, grad: Tensor, *saved: Any) -> tuple[Tensor | None, ...]:
    q, k = saved[:2]
    with full_precision(q):
        groups = list(_independent_groups(call, q, k))
        # With fewer groups than threads, torch's own threads are faster.
        size = _spread_size(call, q) if len(groups) >= torch.get_num_threads() else 0
        return spread(lambda: _backward(call, groups, grad, *saved), size)


def _forward(
    call: TiledCall, q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None, tables: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    merged = any(len(head_group.parts) > 1 for head_group in call.head_groups)
    shape, dtype = (*q.shape[:-1], v.shape[-1]), wide if merged else q.dtype
    written = bool(call.head_groups) and all(map(writes_all, call.head_groups))
    output = q.new_empty(shape, dtype=dtype) if written else q.new_zeros(shape, dtype=dtype)
    lse = q.new_full(q.shape[:-1], -torch.inf, dtype=wide)
    alone: list[Callable[[], None]] = []
    together: list[tuple[Tensor, Tensor, list[TilePass]]] = []
    for head_group, seed in _seeded(call):
        passes = [
            TilePass(call, head_group, part, (q, k, v), tables, (), own)
            for part, own in zip(head_group.parts, seed)
        ]
        here = (output[head_group.batch, head_group.heads], lse[head_group.batch, head_group.heads])
        if len(passes) == 1:
            alone += passes[0].forward(*here, in_place=True)
        else:
            together.append((*here, passes))
    each(_invoke, alone)
    each(_merge, together)
    output, lse = add_sinks(output, lse, sinks)
    return output.to(q.dtype), lse


def _backward(
    call: TiledCall,
    head_groups: list[tuple[HeadGroup, range]],
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sinks: Tensor | None,
    output: Tensor,
    lse: Tensor,
    *tables: Tensor,
) -> tuple[Tensor | None, ...]:
    finite = finite_lse(lse)
    delta = (grad.to(lse.dtype) * output).sum(-1)
    grads = [torch.zeros_like(x, dtype=lse.dtype) for x in (q, k, v)]

    def add(one: tuple[HeadGroup, range]) -> tuple[Tensor, ...]:
        """Add the gradients of one head group, over all its parts; return those of the bias tables."""
        head_group, seed = one
        table_grads = tuple(torch.zeros_like(table) for table in tables)
        for part, own_seed in zip(head_group.parts, seed):
            tile_pass = TilePass(call, head_group, part, (q, k, v), tables, table_grads, own_seed)
            here, there = (head_group.batch, head_group.heads), (head_group.batch, tile_pass.key_heads)
            saved = BackwardRows(grad[here], output[here], finite[here], delta[here])
            tile_pass.backward(saved, grads[0][here], grads[1][there], grads[2][there])
        return table_grads

    all_table_grads = each(add, head_groups)
    table_grads = tuple(torch.zeros_like(table) for table in tables)
    for some in all_table_grads:
        for total, own in zip(table_grads, some):
            total += own
    of_sinks = None
    if sinks is not None:
        # The sink has no value, so only the −delta term of the softmax gradient remains.
        taken = torch.exp(sinks.to(lse.dtype)[:, None] - finite) * delta
        of_sinks = -taken.sum((0, 2)).to(sinks.dtype)
    return *(g.to(x.dtype) for g, x in zip(grads, (q, k, v))), of_sinks, *table_grads


def writes_all(head_group: HeadGroup) -> bool:
    """Whether the tiles write every row, so that the output needs no zeros."""
    if len(head_group.parts) != 1:
        return False
    (part,) = head_group.parts
    length = len(part.region.queries) if part.queries is None else len(part.queries)
    return length == len(part.region.queries) == sum(row.stop - row.start for row in part.rows)


def _seeded(call: TiledCall) -> Iterator[tuple[HeadGroup, range]]:
    """Every head group with the seeds of its parts, the same forward and backward."""
    apart = 1 << 20  # more than a part has tiles, so that no two tiles share a seed
    seed = call.seed
    for head_group in call.head_groups:
        after = seed + apart * len(head_group.parts)
        yield head_group, range(seed, after, apart)
        seed = after


def _independent_groups(call: TiledCall, q: Tensor, k: Tensor) -> Iterator[tuple[HeadGroup, range]]:
    """The head groups split by batch and heads, so that they can be computed in parallel."""
    batch, heads = q.shape[:2]
    for head_group, seed in _seeded(call):
        # Dropout draws for all heads of a tile at once.
        whole = bool(call.inputs.dropout) or head_group.calls < 2
        head_groups = (
            [head_group] if whole else head_group.cut(batch, heads, heads // k.shape[1], _cuts(head_group, q))
        )
        for one in head_groups:
            yield one, seed


def _cuts(head_group: HeadGroup, q: Tensor) -> int:
    """How many groups to split into so that each kernel call still has enough to do."""
    rows = [row for part in head_group.parts for row in part.rows]
    elements = len(range(q.shape[0])[head_group.batch]) * len(range(q.shape[1])[head_group.heads])
    return max(1, elements * sum(row.pairs for row in rows) // (len(rows) * MIN_CALL_PAIRS))


def _spread_size(call: TiledCall, q: Tensor) -> int:
    """The number of multiplications that threads could share; 0 if torch should use its own threads."""
    if q.device.type != "cpu" or sum(head_group.calls for head_group in call.head_groups) < 2:
        return 0  # torch itself parallelizes a single kernel call best
    pairs = (row.pairs for head_group in call.head_groups for part in head_group.parts for row in part.rows)
    return sum(pairs) * q.shape[0] * q.shape[1] * q.shape[-1] // len(call.head_groups)


def _invoke(work: Callable[[], None]) -> None:
    work()


def _merge(target: tuple[Tensor, Tensor, list[TilePass]]) -> None:
    """Compute the parts of a head group one after the other and merge them."""
    output, lse, passes = target
    for tile_pass in passes:
        rows = WHOLE if tile_pass.queries is None else tile_pass.queries
        shape = tile_pass.shape
        own, own_lse = output.new_zeros((*shape, output.shape[-1])), lse.new_full(shape, -torch.inf)
        each(_invoke, tile_pass.forward(own, own_lse, in_place=False))
        each(partial(_merge_head, output, lse, rows, own, own_lse), range(shape[1]))


def _merge_head(
    output: Tensor, lse: Tensor, rows: slice | Tensor, own: Tensor, own_lse: Tensor, head: int
) -> None:
    here, here_lse = output[:, head, rows], lse[:, head, rows]
    merge(here, here_lse, own[:, head], own_lse[:, head])
    output[:, head, rows], lse[:, head, rows] = here, here_lse
