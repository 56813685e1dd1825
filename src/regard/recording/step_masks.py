"""The mask of a text that was read in several steps, each with its own mask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from regard.errors import MaskError
from regard.masks.extent import Array, Extent, Pairs, TiledAxis
from regard.masks.mask import NONE, SOME, Mask, Verdicts


@dataclass(frozen=True)
class MaskRows:
    """The queries at positions ``start … stop − 1``; they see keys below ``stop`` under ``mask``."""

    start: int
    stop: int
    mask: Mask

    @property
    def extent(self) -> Extent:
        """The lengths that the mask was made for; positions in it are those of the whole text."""
        return Extent(self.stop - self.start, self.stop)


@dataclass(frozen=True, repr=False)
class StackedMask(Mask):
    """Rows stacked on rows: each query has the mask of the step in which it was read."""

    steps: tuple[MaskRows, ...]

    def __repr__(self) -> str:
        return "; ".join(f"queries {rows.start}…{rows.stop - 1}: {rows.mask!r}" for rows in self.steps)

    @property
    def lead(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*(rows.mask.lead for rows in self.steps))

    def check(self, extent: Extent) -> None:
        for rows in self.steps:
            rows.mask.check(rows.extent)
        if extent != Extent(self.steps[-1].stop - self.steps[0].start, self.steps[-1].stop):
            raise MaskError(
                "A mask of several steps must cover exactly their rows.", got="{extent}", extent=extent
            )

    def select(self, index: tuple[int, ...]) -> Mask:
        return StackedMask(tuple(replace(rows, mask=rows.mask.select(index)) for rows in self.steps))

    def allows(self, pairs: Pairs) -> Array:
        return reduce(lambda a, b: a | b, (self._rows_allow(rows, pairs) for rows in self.steps))

    def _rows_allow(self, rows: MaskRows, pairs: Pairs) -> Array:
        here = (pairs.q >= rows.start) & (pairs.q < rows.stop) & (pairs.k < rows.stop)
        # Positions outside are clipped, because tables end there; their answer is not used.
        q, k = pairs.q.clip(rows.start, rows.stop - 1), pairs.k.clip(0, rows.stop - 1)
        inside = Pairs(rows.extent, q, k, pairs.lead, pairs.library)
        return here & rows.mask.allows(inside)

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        del extent
        found = np.full((len(rows), len(columns)), SOME, np.uint8)
        for step in self.steps:
            inside = (rows.low >= step.start) & (rows.high < step.stop)
            found[np.ix_(inside, columns.low >= step.stop)] = NONE
            whole = columns.high < step.stop
            if inside.any() and whole.any():
                some_rows, some_columns = (
                    axis.pick(np.flatnonzero(chosen)) for axis, chosen in ((rows, inside), (columns, whole))
                )
                asked = step.mask.tiles(some_rows, some_columns, step.extent)
                found[np.ix_(inside, whole)] = asked
        return found


def stacked(before: Mask, after: Mask, *, start: int, middle: int, stop: int) -> Mask:
    """Queries ``start … middle − 1`` under one mask, those up to ``stop − 1`` under another."""
    steps = before.steps if isinstance(before, StackedMask) else (MaskRows(start, middle, before),)
    return StackedMask((*steps, MaskRows(middle, stop, after)))
