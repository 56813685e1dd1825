"""The statistics of one part of a plan: heads and stretches of rows in parallel, compiled or in torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from regard.kernels.device_tables import DeviceTables
from regard.kernels.inputs import Inputs
from regard.kernels.mask_parts import MaskPart, RowTile
from regard.kernels.statistics_compiled import CompiledStatistics, compiled_pass_for
from regard.kernels.statistics_pass import MAX_ROWS, ScoreBuffer, StatisticsPass, score_tiles
from regard.kernels.statistics_torch import TorchStatistics
from regard.kernels.statistics_totals import Totals
from regard.kernels.tile_columns import columns_of
from regard.kernels.tile_pass import HeadGroup, PartTiles, on_host
from regard.threads import each

TASKS_PER_PART = 16
"""About how many parallel tasks a part makes: one per head, or stretches of rows if there are few heads."""


def collect(
    inputs: Inputs,
    head_groups: Sequence[HeadGroup],
    totals: Totals,
    *,
    lse_known: bool,
    tables: DeviceTables | None,
) -> None:
    """Compute the rows of all parts and add their statistics to the totals."""
    for head_group in head_groups:
        for part in head_group.parts:
            _collect_part(inputs, head_group, part, totals, lse_known=lse_known, tables=tables)


def tiles_to_send(inputs: Inputs, head_groups: Sequence[HeadGroup]) -> PartTiles:
    """The tiles that ``collect`` will compute, for ``device_tables_for``; none on the CPU."""
    if on_host(inputs):
        return {}
    batch, heads, _, _ = inputs.q.shape
    found: dict[MaskPart, dict[RowTile, None]] = {}
    for head_group in head_groups:
        for part in head_group.parts:
            for own in _cut(inputs, head_group, part, TorchStatistics):
                elements = len(range(batch)[own.batch]) * len(range(heads)[own.heads])
                tiles = score_tiles(part, elements, TorchStatistics.max_scores)
                found.setdefault(part, {}).update(dict.fromkeys(tiles))
    return {part: tuple(tiles) for part, tiles in found.items()}


def _collect_part(
    inputs: Inputs,
    head_group: HeadGroup,
    part: MaskPart,
    totals: Totals,
    *,
    lse_known: bool,
    tables: DeviceTables | None,
) -> None:
    """The same for one part. Heads, and stretches of rows of all heads, are computed in parallel."""
    with _pass_maker(inputs, part, totals, lse_known=lse_known, tables=tables) as (kind, new_pass):
        passes = each(new_pass, _cut(inputs, head_group, part, kind))
        count = -(-TASKS_PER_PART // len(passes))
        stretches = [(one, tiles) for one in passes for tiles in one.stretches(count)]
        received = each(lambda one: one[0].stretch(one[1]), stretches)
    # Several stretches may contribute to the same key; added in order, so that the sums are reproducible.
    for (one, _), found in zip(stretches, received):
        one.add_received(found)


def _cut(
    inputs: Inputs, head_group: HeadGroup, part: MaskPart, kind: type[StatisticsPass]
) -> list[HeadGroup]:
    """The heads of a part in groups, each for one pass of a kind."""
    batch, heads, _, _ = inputs.q.shape
    elements = len(range(batch)[head_group.batch]) * len(range(heads)[head_group.heads])
    rows = sum(row.stop - row.start for row in part.rows)
    width = sum(row.pairs for row in part.rows) // max(1, rows)
    cuts = max(1, elements * MAX_ROWS * width // kind.split_scores)
    return head_group.cut(batch, heads, heads // inputs.k.shape[1], cuts)


@contextmanager
def _pass_maker(
    inputs: Inputs, part: MaskPart, totals: Totals, *, lse_known: bool, tables: DeviceTables | None
) -> Iterator[tuple[type[StatisticsPass], Callable[[HeadGroup], StatisticsPass]]]:
    """Which kind of pass computes a part, and what makes one for some heads."""
    compiled, scratch = compiled_pass_for(inputs), ScoreBuffer()
    if compiled is None or tables is not None:
        yield (
            TorchStatistics,
            lambda some: TorchStatistics(
                inputs, some, part, totals, lse_known=lse_known, scratch=scratch, tables=tables
            ),
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
