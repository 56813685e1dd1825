"""Statistics of every attention row in one streaming pass: entropy, peaks, distances, mass.

Only a few rows of scores exist at a time, with all keys that these rows may see; never n×n.
The definitions are in ``docs/statistics.md``.

Two matrix products take most of the time, scores = q kᵀ and output = w v. What is between them decides how
much more the statistics cost than plain attention, because a pass over scores that have left the cache takes
as long as a product. So between the products there is one compiled pass per row (``row_pass.c``), which does
everything while the row is in the cache; without a compiler the same is done in torch operations on a few
rows at a time. ``benchmarks/row_statistics.py`` compares both with plain SDPA.

Heads and stretches of rows run in parallel, with torch at one thread in each (``regard/threads.py``). Torch's
own threads inside every operation take about as long on a quiet machine, and several times as long beside a
busy process.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.checks import check_integer
from regard.errors import ArgumentError
from regard.kernels.bias import BiasLike
from regard.kernels.inputs import Inputs, prepare
from regard.kernels.planner import Plan, plan_extent
from regard.kernels.precision import full_precision
from regard.kernels.ring import collect_around, prepare_shard
from regard.kernels.statistics_pass import MAX_ROWS
from regard.kernels.statistics_rows import collect, tiles_to_send
from regard.kernels.statistics_totals import Statistics, Totals
from regard.kernels.tile_pass import device_tables_for
from regard.kernels.tiled import head_groups_of, run_call, tiled_call, writes_all
from regard.masks import MaskLike
from regard.threads import spread


@torch.no_grad()
def attention_statistics(
    q: Tensor,
    k: Tensor,
    v: Tensor | None = None,
    *,
    mask: MaskLike | None = None,
    bias: BiasLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    top: int = 0,
    group: Any = None,
) -> Statistics:
    """Output and statistics of attention in one pass, without the matrix and without gradients.

    The arguments are those of :func:`regard.attention`. Omit ``v`` to compute no output. ``top`` is
    how many of the greatest weights of each row to return, with their keys.

    With ``group``, a process group of ``torch.distributed``, the sequence is sharded across processes:
    each passes its own queries, keys and values, in the order of the ranks, and gets the statistics
    for its queries and keys. Masks and biases are those of the whole sequence, the same in all
    processes, and positions count from its beginning.

    >>> q = k = torch.zeros(1, 4, 8)  # one head, four equal scores
    >>> s = attention_statistics(q, k)
    >>> s.entropy  # log 4
    tensor([[1.3863, 1.3863, 1.3863, 1.3863]])
    >>> s.distance[0, 0]  # (0 + 1 + 2 + 3) / 4
    tensor(1.5000)
    """
    if any(torch._C._functorch.is_batchedtensor(x) for x in (q, k, v) if isinstance(x, Tensor)):
        raise ArgumentError(
            "regard.attention_statistics cannot run inside torch.vmap.",
            got="a tensor with an axis that vmap hides",
            do="Pass the batch as leading axes of q, k and v.",
        )
    top = check_integer("top", top, least=0, example=5)
    options: dict[str, Any] = {
        "mask": mask,
        "bias": bias,
        "scale": scale,
        "softcap": softcap,
        "sinks": sinks,
    }
    if group is not None:
        shard, ring = prepare_shard(q, k, v, group, top=top, **options)
        shard = shard.in_double() if shard.steep else shard
        with full_precision(q):
            found = collect_around(shard, ring, with_output=v is not None, top=top).finish(shard)
            return found.in_precision_of(q)
    inputs = prepare(q, k, v, **options)
    inputs = inputs.in_double() if inputs.steep else inputs
    with full_precision(q):
        plan = plan_extent(inputs.mask, inputs.extent)
        batch, heads, _, channels = inputs.q.shape
        size = plan.computed * batch * heads * channels if q.device.type == "cpu" else 0
        found = spread(lambda: _collect(inputs, plan, with_output=v is not None, top=top), size)
        return found.in_precision_of(q)


def _collect(inputs: Inputs, plan: Plan, *, with_output: bool, top: int) -> Statistics:
    head_groups = list(head_groups_of(inputs, plan, builtin_causal=False, max_rows=MAX_ROWS))
    written = bool(head_groups) and all(map(writes_all, head_groups))
    totals = Totals.blank(inputs, with_output=with_output, top=top, all_written=written)
    # Rows in several parts need the lse of the whole row first; the fused kernel computes it fastest.
    lse_known = any(len(head_group.parts) > 1 for head_group in head_groups)
    tiles = tiles_to_send(inputs, head_groups)
    if lse_known:
        call = tiled_call(inputs, plan, tiles)
        tables = call.device_tables
        output, totals.lse = run_call(call)
        totals.output = output if with_output else None
    else:
        tables = device_tables_for(inputs, (), tiles)
    collect(inputs, head_groups, totals, lse_known=lse_known, tables=tables)
    return totals.finish(inputs)
