"""Statistics of row tiles by the compiled pass: two products, and one pass per row between them."""

from __future__ import annotations

from copy import copy

import torch
from torch import Tensor

from regard.kernels.compiled_pass import CompiledPass, RowPassArguments, compiled_pass
from regard.kernels.inputs import Inputs
from regard.kernels.mask_parts import MaskPart, RowTile
from regard.kernels.statistics_pass import LOG2_E, ScoreBuffer, StatisticsPass
from regard.kernels.statistics_totals import Totals
from regard.kernels.tile_columns import PartColumns, TileColumns
from regard.kernels.tile_pass import HeadGroup

TOTALS = (
    "lse", "entropy", "mass", "far", "self_weight", "previous_weight", "first_weight", "peak", "visible",
    "peak_key",
)  # fmt: skip
"""The totals to which the compiled pass adds."""


def compiled_pass_for(inputs: Inputs) -> CompiledPass | None:
    """The compiled pass if it can compute these inputs: in float32, and in memory that it can read."""
    q = inputs.q
    if q.device.type != "cpu" or q.dtype == torch.float64 or type(q) not in (Tensor, torch.nn.Parameter):
        return None
    if torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None:
        return None
    return compiled_pass()


class CompiledStatistics(StatisticsPass):
    """One part for one head group, its scores turned into weights and statistics by ``row_pass.c``."""

    max_scores = 1 << 19
    split_scores = 1 << 18

    def __init__(
        self,
        inputs: Inputs,
        head_group: HeadGroup,
        part: MaskPart,
        totals: Totals,
        *,
        lse_known: bool,
        scratch: ScoreBuffer,
        columns: PartColumns,
        compiled: CompiledPass,
    ) -> None:
        super().__init__(inputs, head_group, part, totals, lse_known=lse_known, scratch=scratch)
        self.columns, self.compiled = columns, compiled
        own = {name: totals.of_queries(name)[head_group.batch, head_group.heads] for name in TOTALS}
        assert len({x.stride() for x in own.values()}) == 1
        assert own["lse"].stride(-1) == 1
        self.arguments = RowPassArguments(
            batch=self.batch,
            heads=self.heads,
            totals_batch=own["lse"].stride(0),
            totals_head=own["lse"].stride(1),
            counts=inputs.bias is not None,  # a bias may forbid anywhere
            lse_known=lse_known,
            **{name: x.data_ptr() for name, x in own.items()},
        )
        self.sinks: Tensor | None = None
        if inputs.sinks is not None:
            self.sinks = inputs.sinks.detach()[head_group.heads].float() * LOG2_E
            self.arguments.sinks = self.sinks.data_ptr()

    def stretch(self, tiles: list[RowTile]) -> Tensor:
        """Compute some rows, with separate arguments; return what each key received from them."""
        own = copy(self)
        own.arguments = RowPassArguments.from_buffer_copy(self.arguments)
        return super(CompiledStatistics, own).stretch(tiles)

    def add_tile(self, tile: RowTile) -> None:
        """Scores, then weights in the same memory, then output."""
        weights = self._scores(tile)
        received = self._buffer(1, (self.batch, self.heads, tile.width))
        columns = self.columns.of(tile)
        self._describe(columns)
        self.arguments.rows, self.arguments.width = tile.stop - tile.start, tile.width
        self.arguments.scores, self.arguments.received = weights.data_ptr(), received.data_ptr()
        self.compiled.run(self.arguments)
        self._receive(tile, received)
        self._merge_top(tile, weights)
        self._add_output(tile, weights)

    def _describe(self, columns: TileColumns) -> None:
        """Where the arrays of the columns are in memory, and where ranges and table of these heads begin."""
        arguments, addresses = self.arguments, columns.addresses
        for name in ("queries", "query_places", "key_places", "key_positions", "special_columns"):
            setattr(arguments, name, addresses[name])
        batch, heads, rows = columns.starts.shape
        step_batch, step_head = (0 if batch == 1 else heads * rows), (0 if heads == 1 else rows)
        group = self.head_group
        first = step_batch * (group.batch.start or 0) + step_head * (group.heads.start or 0)
        arguments.range_batch, arguments.range_head = step_batch, step_head
        arguments.starts = addresses["starts"] + first * columns.starts.itemsize
        arguments.stops = addresses["stops"] + first * columns.stops.itemsize
        arguments.allowed = None
        if columns.allowed is not None:
            width = columns.allowed.shape[-1]
            arguments.allowed = addresses["allowed"] + first * width
            arguments.allowed_batch, arguments.allowed_head = step_batch * width, step_head * width
