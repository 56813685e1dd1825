"""The statistics of one part of a plan: heads and stretches of rows in parallel, compiled or in torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from regard.kernels.inputs import Inputs
from regard.kernels.layout import MaskPart
from regard.kernels.statistics_compiled import CompiledStatistics, compiled_pass_for
from regard.kernels.statistics_pass import MAX_ROWS, ScoreBuffer, StatisticsPass
from regard.kernels.statistics_torch import TorchStatistics
from regard.kernels.statistics_totals import Totals
from regard.kernels.tile_columns import columns_of
from regard.kernels.tile_pass import HeadGroup
from regard.threads import each

TASKS_PER_PART = 16
"""About how many parallel tasks a part makes: one per head, or stretches of rows if there are few heads."""


def collect(
    inputs: Inputs, head_group: HeadGroup, part: MaskPart, totals: Totals, *, lse_known: bool
) -> None:
    """Compute the rows of one part and add their statistics to the totals.

    Heads, and stretches of rows of all heads, are computed in parallel.
    """
    batch, heads, _, _ = inputs.q.shape
    group_size = heads // inputs.k.shape[1]
    elements = len(range(batch)[head_group.batch]) * len(range(heads)[head_group.heads])
    rows = sum(row.stop - row.start for row in part.rows)
    width = sum(row.pairs for row in part.rows) // max(1, rows)
    with _pass_maker(inputs, part, totals, lse_known=lse_known) as (kind, new_pass):
        cuts = max(1, elements * MAX_ROWS * width // kind.split_scores)
        passes = each(new_pass, head_group.cut(batch, heads, group_size, cuts))
        count = -(-TASKS_PER_PART // len(passes))
        stretches = [(one, tiles) for one in passes for tiles in one.stretches(count)]
        received = each(lambda one: one[0].stretch(one[1]), stretches)
    # Several stretches may contribute to the same key; added in order, so that the sums are reproducible.
    for (one, _), found in zip(stretches, received):
        one.add_received(found)


@contextmanager
def _pass_maker(
    inputs: Inputs, part: MaskPart, totals: Totals, *, lse_known: bool
) -> Iterator[tuple[type[StatisticsPass], Callable[[HeadGroup], StatisticsPass]]]:
    """Which kind of pass computes a part, and what makes one for some heads."""
    compiled, scratch = compiled_pass_for(inputs), ScoreBuffer()
    if compiled is None:
        yield (
            TorchStatistics,
            lambda some: TorchStatistics(inputs, some, part, totals, lse_known=lse_known, scratch=scratch),
        )
        return
    columns = columns_of(part, inputs.extent, inputs.lead)
    yield (
        CompiledStatistics,
        lambda some: CompiledStatistics(
            inputs,
            some,
            part,
            totals,
            lse_known=lse_known,
            scratch=scratch,
            columns=columns,
            compiled=compiled,
        ),
    )
    columns.forget_tables()
