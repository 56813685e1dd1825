"""Documents of equal length, one after the other, as a single kernel call: they are its batch.

    q, k, v (batch, head, query, channel) → (batch · document, head, query of it, channel), without a copy

The kernel's output has the strides of its queries, so that it is the output of the whole sequence and nothing
is copied. With one call for each document, every output would have to be copied into place.
"""

from __future__ import annotations

from torch import Tensor

from regard.kernels import fused_kernel
from regard.kernels.bias import WHOLE
from regard.kernels.plain_kernel import ScoreOptions, Tile
from regard.kernels.tile_pass import TiledCall


def equal_squares(call: TiledCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor] | None:
    """Output and lse of a call that consists of equal squares; None for all others."""
    square = _square_of(call)
    if square is None or q.shape[1] != k.shape[1]:
        return None
    side, causal = square
    queries, keys, values = (_stacked(x, side) for x in (q, k, v))
    if queries is None or keys is None or values is None:
        return None
    options = ScoreOptions(call.inputs.scale, None, 0.0)
    output, lse = fused_kernel.forward(Tile(queries, keys, values, None, None, options, causal=causal))
    return _unstacked(output, q.shape[0]), _unstacked(lse, q.shape[0])


def _square_of(call: TiledCall) -> tuple[int, bool] | None:
    """The side of the squares, and whether each is causal; None if there is anything else."""
    if len(call.head_groups) != 1 or not call.use_fused or call.inputs.bias is not None:
        return None
    (group,) = call.head_groups
    if group.causal or (group.batch, group.heads) != (WHOLE, WHOLE) or len(group.parts) != 1:
        return None
    (part,) = group.parts
    if part.queries is not None or part.keys is not None or len(part.rows) < 2:
        return None
    side, causal = part.rows[0].stop - part.rows[0].start, part.rows[0].causal
    if side * len(part.rows) != len(part.region.queries) or len(part.region.keys) != len(part.region.queries):
        return None
    for number, row in enumerate(part.rows):
        own = (number * side, (number + 1) * side)
        if (row.start, row.stop) != own or row.runs != (own,) or row.causal != causal:
            return None
        if row.mixed and not causal:
            return None
    return side, causal


def _stacked(x: Tensor, side: int) -> Tensor | None:
    """A view ``(batch · square, head, side, channel)`` of ``(batch, head, position, channel)``, or None."""
    apart: Tensor = x.unflatten(2, (-1, side)).transpose(1, 2)  # (batch, square, head, side, channel)
    if x.shape[0] > 1 and apart.stride(0) != apart.shape[1] * apart.stride(1):
        return None
    return apart.flatten(0, 1) if x.stride(-1) == 1 else None


def _unstacked(x: Tensor, batch: int) -> Tensor:
    """``(batch · square, head, side, ...)`` as ``(batch, head, position, ...)``: a view of an output."""
    apart: Tensor = x.unflatten(0, (batch, -1))
    return apart.transpose(1, 2).flatten(2, 3)
