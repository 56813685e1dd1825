"""Statistics of a sequence that is sharded across processes (ring attention).

Every process keeps its queries. The blocks of keys and values circulate in a ring, so each process
sees every block once and never holds more than two. There are two rounds:

1. output and lse of each block, merged by ``lse = log Σ_blocks exp lse_block``;
2. with the lse of whole rows known, every weight of a block is ``exp(s − lse)``, and all statistics
   are sums of weights. What each key received travels with its block and returns with the last step.

One round would suffice for statistics of queries, including the entropy, kept relative to a running
maximum. But what a key receives is a sum over rows, each divided by the sum of its whole row, which is
unknown until all blocks have been seen: keys need a second round in any case. So the first round is left
to the fused kernel, which computes output and lse fastest, and no sum is ever rescaled.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.kernels.inputs import Inputs, check_tensors, prepare
from regard.kernels.plain_kernel import add_sinks, merge
from regard.kernels.planner import plan_extent
from regard.kernels.shards import Ring, agree, check_group, gather_ring
from regard.kernels.statistics_pass import MAX_ROWS
from regard.kernels.statistics_rows import collect, tiles_to_send
from regard.kernels.statistics_totals import Totals
from regard.kernels.tile_pass import device_tables_for
from regard.kernels.tiled import head_groups_of, run


def prepare_shard(
    q: Tensor, k: Tensor, v: Tensor | None, group: Any, *, top: int, **options: Any
) -> tuple[Inputs, Ring]:
    """The shard of this process, checked, and the ring. Masks and biases are those of the whole sequence."""
    check_group(group)
    failed: RegardError | None = None
    try:
        check_tensors(q, k, v)
    except RegardError as error:
        failed = error
    ring = gather_ring(q, k, v, group, failed, _comparable_options(top, **options))
    inputs: Inputs | None = None
    try:
        inputs = prepare(q, k, v, extent=ring.extent, **options)
    except RegardError as error:
        failed = error
    agree(ring, failed, q.device)
    assert inputs is not None
    return inputs, ring


def _comparable_options(top: int, **options: Any) -> dict[str, float]:
    """The options as comparable numbers; infinity, which no option may be, means None."""
    numbers = {name: options[name] for name in ("scale", "softcap")}
    numeric = {name: math.inf if value is None else float(value) for name, value in numbers.items()}
    given = {name: float(options[name] is not None) for name in ("mask", "bias", "sinks")}
    return {**numeric, **given, "top": float(top)}


def collect_around(inputs: Inputs, ring: Ring, *, with_output: bool, top: int) -> Totals:
    """The statistics of this process's queries, and what its keys received from all queries."""
    totals = Totals.blank(inputs, with_output=False, top=top)
    output, totals.lse = _first_round(inputs, ring, with_output=with_output)
    for owner, (k,) in ring.blocks(inputs.k):
        block = replace(inputs, k=k, v=k)
        plan = plan_extent(inputs.mask, inputs.extent, ring.region(owner))
        head_groups = list(head_groups_of(block, plan, builtin_causal=False, max_rows=MAX_ROWS))
        tables = device_tables_for(block, (), tiles_to_send(block, head_groups))
        collect(block, head_groups, totals, lse_known=True, tables=tables)
        # The sums for these keys travel with them; the last step returns our own.
        totals.received = ring.hand_on(totals.received, owner)
    totals.output = None if output is None else output.to(inputs.q.dtype)
    return totals


def _first_round(inputs: Inputs, ring: Ring, *, with_output: bool) -> tuple[Tensor | None, Tensor]:
    """Output, if requested, and lse of this process's queries over all keys."""
    wide = torch.promote_types(inputs.q.dtype, torch.float32)
    q = inputs.q.to(wide)
    channels = inputs.v.shape[-1] if with_output else 0
    output = q.new_zeros((*q.shape[:3], channels))
    lse = q.new_full(q.shape[:3], -torch.inf)
    own = (inputs.k, inputs.v) if with_output else (inputs.k,)
    for owner, held in ring.blocks(*own):
        k, v = (x.to(wide) for x in (held[0], held[-1]))
        block = replace(inputs, q=q, k=k, v=v, sinks=None)
        found, found_lse = run(block, plan_extent(inputs.mask, inputs.extent, ring.region(owner)))
        merge(output, lse, found[..., :channels], found_lse)
    # The sink belongs to the whole row, so it is added once, after all keys.
    output, lse = add_sinks(output, lse, inputs.sinks)
    return output if with_output else None, lse
