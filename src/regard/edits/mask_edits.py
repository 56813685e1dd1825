"""Edits of the mask: ``block`` and ``only``."""

from __future__ import annotations

from dataclasses import dataclass

from regard.edits.edit import Edit, HeadEdit
from regard.edits.edited_call import EditedCall
from regard.edits.scope import Indices, Rows, Scope
from regard.interception.call_types import InterceptedCall
from regard.interception.placed_mask import sees_none
from regard.masks import Mask, MaskLike, as_mask


@dataclass(frozen=True, repr=False)
class BlockEdit(HeadEdit):
    """These pairs may not be seen."""

    mask: Mask

    def edit_inputs(self, edited: EditedCall) -> InterceptedCall:
        return edited.restricted(~(self.mask & self.scope.row_mask & edited.cell_mask))

    def changes(self, edited: EditedCall) -> bool:
        blocked = edited.placed(self.mask & self.scope.row_mask)
        return not sees_none(blocked, edited.call.inputs.extent)


@dataclass(frozen=True, repr=False)
class OnlyEdit(HeadEdit):
    """No other pairs may be seen."""

    mask: Mask

    def edit_inputs(self, edited: EditedCall) -> InterceptedCall:
        return edited.restricted(self.mask | ~(self.scope.row_mask & edited.cell_mask))


def block(
    mask: MaskLike,
    *,
    layers: Indices = None,
    heads: Indices = None,
    kind: str | None = None,
    rows: Rows = None,
) -> Edit:
    """Pairs in ``mask`` may no longer be seen: attention knock-out.

    Positions are those of the text, padding included, also with a cache. A query that sees no key
    afterwards gets output 0. ``rows`` limits the edit to queries at these positions.

    >>> from regard import masks
    >>> block(masks.span(2, 5), layers=3, rows=8)  # token 8 does not see tokens 2, 3 and 4 in layer 3
    block(span(2, 5), layers=[3], rows=8)
    """
    return BlockEdit(Scope.of(layers, heads, kind, rows), as_mask(mask))


def only(
    mask: MaskLike,
    *,
    layers: Indices = None,
    heads: Indices = None,
    kind: str | None = None,
    rows: Rows = None,
) -> Edit:
    """Of the pairs that a query sees, only those in ``mask`` remain.

    >>> from regard import masks
    >>> only(masks.window(128, 0) | masks.prefix(4))  # a sliding window and the first tokens
    only(window(128, 0) | prefix(4))
    """
    return OnlyEdit(Scope.of(layers, heads, kind, rows), as_mask(mask))
