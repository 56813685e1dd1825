"""Running a plan: row tiles through a kernel, forward and backward, as one autograd function.

The forward pass keeps the output and the lse of every row. With them the weights of any tile are
``exp(scores − lse)``, so the backward pass recomputes each tile on its own and adds up: no merge
has to be differentiated, however many parts a row was computed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.kernels import fused_kernel
from regard.kernels.inputs import Inputs
from regard.kernels.layout import TALLEST, lay_out
from regard.kernels.plain_kernel import full_precision
from regard.kernels.plan import Member, Plan
from regard.kernels.tile_pass import WHOLE, Job, Known, Piece, Scene
from regard.threads import each, spread

LEAST_PAIRS = 1 << 14
"""Pairs of a call of the kernel, at least, when heads are worked on side by side."""


def run(inputs: Inputs, plan: Plan) -> tuple[Tensor, Tensor]:
    """Output ``(batch, head, query, channel)`` and lse ``(batch, head, query)`` of a planned call."""
    inputs = inputs.with_positive_scale()
    use_fused = _fused_can(inputs)
    # The fused kernel has a causal mask for the square; a bias is added row by row, so not to it.
    pieces = tuple(pieces_of(inputs, plan, own_causal=use_fused and inputs.bias is None))
    # Dropout draws from torch's own chance, so that torch.manual_seed rules it too.
    seed = int(torch.randint(1 << 62, ())) if inputs.dropout else 0
    job = Job(inputs, pieces, use_fused, seed)
    tables = inputs.bias.tables if inputs.bias is not None else ()
    with full_precision(inputs.q):
        output, lse = _Planned.apply(  # type: ignore[no-untyped-call]
            job, inputs.q, inputs.k, inputs.v, inputs.sinks, *tables
        )
    return output, lse


def _fused_can(inputs: Inputs) -> bool:
    bias_learns = inputs.bias is not None and any(table.requires_grad for table in inputs.bias.tables)
    return (
        fused_kernel.available()
        and inputs.q.device.type == "cpu"
        and inputs.softcap is None
        and not inputs.steep  # its backward pass may find weights above 1, however far
        and not inputs.dropout
        and not (bias_learns and torch.is_grad_enabled())
        and inputs.q.shape[-1] == inputs.v.shape[-1]
    )


def pieces_of(inputs: Inputs, plan: Plan, *, own_causal: bool, tallest: int = TALLEST) -> Iterator[Piece]:
    """The members of the plan, spread over the batch and the heads of the tensors.

    ``own_causal`` says that the kernel has a causal mask of its own for the square; otherwise the
    square is cut into row tiles of at most ``tallest`` rows.
    """
    if not inputs.q.numel() or not inputs.k.numel():
        return  # the fused kernel divides by these sizes
    mask_lead = plan.mask.lead
    members = {member.index: member for member in plan.members}

    def piece(member: Member, batch: slice, heads: slice) -> Piece:
        causal = member.path == "causal"
        # Where the kernel's own causal mask cannot be used, tiles leave out the empty half.
        cut = causal and not own_causal
        parts = lay_out(member.mask, plan.extent, tallest=tallest) if cut else member.parts
        return Piece(batch, heads, causal and own_causal, parts)

    if () in members:
        yield piece(members[()], WHOLE, WHOLE)
        return
    *mask_batch, mask_heads = mask_lead
    every_batch = all(size == 1 for size in mask_batch)
    batches = [(0,) * len(inputs.lead)] if every_batch else list(np.ndindex(*inputs.lead))
    for head in range(mask_heads):
        heads = WHOLE if mask_heads == 1 else slice(head, head + 1)

        def member_of(place: tuple[int, ...], head: int = head) -> Member:
            index = (*place, head)[len(place) + 1 - len(mask_lead) :]
            return members[tuple(0 if size == 1 else i for i, size in zip(index, mask_lead))]

        # Neighbours in the batch with the same layout are computed together.
        start = 0
        for _, same in groupby(map(member_of, batches), key=lambda member: id(member.parts)):
            together = list(same)
            batch = WHOLE if every_batch else slice(start, start + len(together))
            yield piece(together[0], batch, heads)
            start += len(together)


class _Planned(torch.autograd.Function):
    """Attention over the tiles of a plan."""

    @staticmethod
    def forward(
        ctx: Any, job: Job, q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None, *tables: Tensor
    ) -> tuple[Tensor, Tensor]:
        output, lse = spread(lambda: _forward(job, q, k, v, sinks, tables), _spread_size(job, q))
        ctx.job = job
        ctx.save_for_backward(q, k, v, sinks, output, lse, *tables)
        ctx.mark_non_differentiable(lse)
        return output, lse

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        job, saved = ctx.job, ctx.saved_tensors
        q, k = saved[:2]
        with full_precision(q):
            apart = list(_apart(job, q, k))
            # Fewer pieces than threads are better left to torch's own.
            size = _spread_size(job, q) if len(apart) >= torch.get_num_threads() else 0
            found = spread(lambda: _backward(job, apart, grad, *saved), size)
        return None, *found


def _forward(
    job: Job, q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None, tables: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    merged = any(len(piece.parts) > 1 for piece in job.pieces)
    output = q.new_zeros((*q.shape[:-1], v.shape[-1]), dtype=wide if merged else q.dtype)
    lse = q.new_full(q.shape[:-1], -torch.inf, dtype=wide)
    alone: list[Callable[[], None]] = []
    together: list[tuple[Tensor, Tensor, list[Scene]]] = []
    for piece, seed in _seeded(job):
        scenes = [Scene(job, piece, part, (q, k, v), tables, (), own) for part, own in zip(piece.parts, seed)]
        here = (output[piece.batch, piece.heads], lse[piece.batch, piece.heads])
        if len(scenes) == 1 and scenes[0].queries is None:
            alone += scenes[0].forward(*here)
        else:
            together.append((*here, scenes))
    each(_call, alone)
    each(_merge, together)
    if sinks is not None:
        total = torch.logaddexp(lse, sinks.to(wide)[:, None])
        output.mul_(torch.exp(lse - total)[..., None])
        lse = total
    return output.to(q.dtype), lse


def _backward(
    job: Job,
    pieces: list[tuple[Piece, range]],
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sinks: Tensor | None,
    output: Tensor,
    lse: Tensor,
    *tables: Tensor,
) -> tuple[Tensor | None, ...]:
    finite = torch.where(lse == -torch.inf, 0.0, lse)
    drained = (grad.to(lse.dtype) * output).sum(-1)
    grads = [torch.zeros_like(x, dtype=lse.dtype) for x in (q, k, v)]

    def add(one: tuple[Piece, range]) -> tuple[Tensor, ...]:
        """The gradients of some heads, all parts of them; those of the bias are summed up afterwards."""
        piece, seed = one
        of_tables = tuple(torch.zeros_like(table) for table in tables)
        for part, own_seed in zip(piece.parts, seed):
            scene = Scene(job, piece, part, (q, k, v), tables, of_tables, own_seed)
            here, there = (piece.batch, piece.heads), (piece.batch, scene.key_heads)
            known = Known(grad[here], output[here], finite[here], drained[here])
            scene.backward(known, grads[0][here], grads[1][there], grads[2][there])
        return of_tables

    each_of_tables = each(add, pieces)
    of_tables = tuple(torch.zeros_like(table) for table in tables)
    for some in each_of_tables:
        for total, own in zip(of_tables, some):
            total += own
    of_sinks = None
    if sinks is not None:
        # The sink gives nothing, so all that softmax does is take back.
        taken = torch.exp(sinks.to(lse.dtype)[:, None] - finite) * drained
        of_sinks = -taken.sum((0, 2)).to(sinks.dtype)
    return *(g.to(x.dtype) for g, x in zip(grads, (q, k, v))), of_sinks, *of_tables


def _seeded(job: Job) -> Iterator[tuple[Piece, range]]:
    """Every piece with the seeds of its parts, the same forward and backward."""
    apart = 1 << 20  # more than a part has tiles, so that no two draw the same
    seed = job.seed
    for piece in job.pieces:
        after = seed + apart * len(piece.parts)
        yield piece, range(seed, after, apart)
        seed = after


def _apart(job: Job, q: Tensor, k: Tensor) -> Iterator[tuple[Piece, range]]:
    """The pieces cut by batch and heads, which can be worked on side by side without touching each other."""
    batch, heads = q.shape[:2]
    for piece, seed in _seeded(job):
        # Dropout draws for all heads of a tile together.
        whole = bool(job.inputs.dropout) or piece.calls < 2
        pieces = [piece] if whole else piece.cut(batch, heads, heads // k.shape[1], _cuts(piece, q))
        for one in pieces:
            yield one, seed


def _cuts(piece: Piece, q: Tensor) -> int:
    """Into how many pieces of fewer heads: a call of the kernel still has enough to do."""
    rows = [row for part in piece.parts for row in part.rows]
    elements = len(range(q.shape[0])[piece.batch]) * len(range(q.shape[1])[piece.heads])
    return max(1, elements * sum(row.pairs for row in rows) // (len(rows) * LEAST_PAIRS))


def _spread_size(job: Job, q: Tensor) -> int:
    """How much there is to do in pieces, in multiplications."""
    if q.device.type != "cpu" or sum(piece.calls for piece in job.pieces) < 2:
        return 0  # a single call of the kernel is best split by torch itself
    pairs = (row.pairs for piece in job.pieces for part in piece.parts for row in part.rows)
    return sum(pairs) * q.shape[0] * q.shape[1] * q.shape[-1] // len(job.pieces)


def _call(work: Callable[[], None]) -> None:
    work()


def _merge(target: tuple[Tensor, Tensor, list[Scene]]) -> None:
    """The parts of a piece one after the other, each added to what the others found for the same queries."""
    output, lse, scenes = target
    for scene in scenes:
        rows = WHOLE if scene.queries is None else scene.queries
        shape = scene.q.shape[:-1]
        own, own_lse = output.new_zeros((*shape, output.shape[-1])), lse.new_full(shape, -torch.inf)
        each(_call, scene.forward(own, own_lse))
        each(partial(_merge_head, output, lse, rows, own, own_lse), range(shape[1]))


def _merge_head(
    output: Tensor, lse: Tensor, rows: slice | Tensor, own: Tensor, own_lse: Tensor, head: int
) -> None:
    here, here_lse = output[:, head, rows], lse[:, head, rows]
    merge(here, here_lse, own[:, head], own_lse[:, head])
    output[:, head, rows], lse[:, head, rows] = here, here_lse


def merge(output: Tensor, lse: Tensor, other_output: Tensor, other_lse: Tensor) -> None:
    """Make output and lse over some keys those over all, with what was found over the others; in place."""
    total = torch.logaddexp(lse, other_lse)
    finite = torch.where(total == -torch.inf, 0.0, total)
    output.mul_(torch.exp(lse - finite)[..., None])
    output.add_(other_output.mul_(torch.exp(other_lse - finite)[..., None]))
    lse.copy_(total)
