"""Masks whose positions are those of the text, applied to a call that holds a part of it.

A mask counts from the first key of a call and puts the last query at the last key. With a cache that has
dropped its oldest keys, key 0 is somewhere in the text; in cross-attention queries and keys are in two texts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from regard.interception.call_types import MaskView
from regard.masks import Mask
from regard.masks.extent import Array, Extent, Pairs, TiledAxis
from regard.masks.mask import Both, Either, Not, Verdicts
from regard.masks.patterns import OneAxis, Window


@dataclass(frozen=True, repr=False)
class PlacedMask(Mask):
    """A pattern over positions of the text."""

    pattern: Mask
    first_key: int  # position of key 0 in its text
    start: int | None  # position of the first query in its text; None: the last query is at the last key

    def __repr__(self) -> str:
        return f"{self.pattern!r} from query {self.start}, key {self.first_key}"

    @property
    def lead(self) -> tuple[int, ...]:
        return self.pattern.lead

    def _shift(self, extent: Extent) -> int:
        """From positions of queries here to those in the text."""
        return self.first_key if self.start is None else self.start - extent.offset

    def _extent(self, extent: Extent) -> Extent:
        """The text up to here, as the pattern sees it."""
        if isinstance(self.pattern, OneAxis) and self.pattern.transposed:
            length = extent.keys + self._shift(extent)
            return Extent(length, length)
        return Extent(extent.queries, extent.keys + self.first_key)

    def check(self, extent: Extent) -> None:
        self.pattern.check(self._extent(extent))

    def select(self, index: tuple[int, ...]) -> Mask:
        return replace(self, pattern=self.pattern.select(index))

    def table_lengths(self) -> tuple[int, ...]:
        return self.pattern.table_lengths()

    def allows(self, pairs: Pairs) -> Array:
        q, k = pairs.q + self._shift(pairs.extent), pairs.k + self.first_key
        return self.pattern.allows(Pairs(self._extent(pairs.extent), q, k, pairs.lead, pairs.library))

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        moved = (
            TiledAxis(rows.positions + self._shift(extent), rows.starts),
            TiledAxis(columns.positions + self.first_key, columns.starts),
        )
        return self.pattern.tiles(*moved, self._extent(extent))


def placed(mask: Mask, first_key: int, start: int | None) -> Mask:
    """The mask with its positions in the text; tables over pairs keep their own alignment."""
    if not first_key and start is None:
        return mask
    if isinstance(mask, Both | Either):
        return type(mask).of(*(placed(part, first_key, start) for part in mask.parts))
    if isinstance(mask, Not):
        return ~placed(mask.part, first_key, start)
    return PlacedMask(mask, first_key, start) if _moves(mask, first_key, start) else mask


def _moves(mask: Mask, first_key: int, start: int | None) -> bool:
    """Whether a pattern reads positions that differ from those in the text."""
    if isinstance(mask, OneAxis):
        return bool(first_key) or (mask.transposed and start is not None)
    return isinstance(mask, Window) and start is not None


@dataclass(frozen=True, eq=False)
class EditedMaskView:
    """The view of an edited call."""

    view: MaskView
    allowed: Mask  # over positions of the text
    start: int | None  # as in PlacedMask

    def over(self, first: int, stop: int) -> Mask:
        """The mask whose key 0 is at ``first`` and whose last query and key are at ``stop − 1``."""
        return self.view.over(first, stop) & placed(self.allowed, first, self.start)

    def after(self, before: MaskView, length: int) -> MaskView | None:
        """The edit of both views, if it is the same one."""
        if not isinstance(before, EditedMaskView) or self.allowed != before.allowed:
            return None
        merged = self.view.after(before.view, length)
        return None if merged is None else EditedMaskView(merged, self.allowed, before.start)


def sees_none(mask: Mask, extent: Extent) -> bool:
    """Whether the mask is known to allow no pair at all."""
    if not all(extent):
        return True
    whole = np.zeros(1, np.int64)
    rows, columns = TiledAxis(extent.query_positions(), whole), TiledAxis(extent.key_positions(), whole)
    elements = np.ndindex(*mask.lead) if mask.lead else [()]
    return not any(mask.select(index).tiles(rows, columns, extent).any() for index in elements)
