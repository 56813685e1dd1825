"""Beam search: which row of the batch each token of a returned text came through, pass by pass.

A search reads several continuations of a prompt side by side, and after each pass a row of the batch can
continue any other row. The recording keeps every pass as it was computed; when the search ends and
reports which rows led to the texts it returns, the rows of those texts are selected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.interception.call_types import MaskView
from regard.interception.function_mask import FunctionMask
from regard.interception.placed_mask import PlacedMask
from regard.masks import Mask, padding
from regard.masks.id_table import IdTable
from regard.masks.mask import Both, Either, Not
from regard.masks.pair_patterns import Dense, Documents
from regard.masks.patterns import Lengths, Padding
from regard.recording.step_masks import StackedMask


@dataclass(frozen=True, eq=False)
class BeamRows:
    """The rows of the batch that led to the returned texts.

    The pass that read the prompt chose token 0 of a text in row ``rows[text, 0]``; the pass that read
    token t − 1 chose token t in row ``rows[text, t]``. After the end of a text it is −1.
    """

    rows: Tensor  # (text, step)
    prompt: int  # how many positions come before the first generated token

    @property
    def stop(self) -> int:
        """Where the longest text ends, without its last token, which was never read."""
        return self.prompt + self.rows.shape[1] - 1

    def at(self, start: int, stop: int) -> Tensor:
        """The row of each position ``start … stop − 1``, ``(text, position)``."""
        step = torch.arange(start, stop, device=self.rows.device) - self.prompt + 1
        return self.rows[:, step.clamp(0, self.rows.shape[1] - 1)]


def along(tensor: Tensor, rows: Tensor) -> Tensor:
    """``(row, head, position, …)`` → ``(text, head, position, …)``; 0 where no row is."""
    rows = rows.to(tensor.device)
    position = torch.arange(rows.shape[1], device=tensor.device)
    found = tensor.transpose(1, 2)[rows.clamp(min=0), position]  # (text, position, head, …)
    found[rows < 0] = 0
    return found.transpose(1, 2).contiguous()


def parents(ours: Tensor, theirs: Tensor) -> Tensor | None:
    """For each of their rows the first of our rows that equals it; None if one of them has no match."""
    same = (theirs[:, None] == ours[None]).flatten(2).all(2)  # (theirs, ours)
    return same.int().argmax(1) if bool(same.any(1).all()) else None


@dataclass(frozen=True, eq=False)
class SelectedMaskView:
    """A view of some rows of the batch."""

    view: MaskView
    rows: Tensor  # (text,)

    def over(self, first: int, stop: int) -> Mask:
        """The mask of these rows."""
        return mask_of_rows(self.view.over(first, stop), self.rows)

    def after(self, before: MaskView, length: int) -> MaskView | None:
        """None: views are not merged once rows were selected."""
        del before, length
        return None


def without_ended(mask: Mask, queries: Tensor, keys: Tensor | None) -> Mask:
    """The mask without the rows and keys after the end of each text: False in ``(text, position)``."""
    if bool(queries.all()):
        return mask
    mask = mask & padding(queries.cpu()).T
    return mask if keys is None else mask & padding(keys.cpu())


def mask_of_rows(mask: Mask, rows: Tensor) -> Mask:
    """The mask of some elements of the batch."""
    if len(mask.lead) < 2 or mask.lead[-2] == 1:
        return mask
    if isinstance(mask, Both | Either):
        return type(mask).of(*(mask_of_rows(part, rows) for part in mask.parts))
    if isinstance(mask, Not):
        return ~mask_of_rows(mask.part, rows)
    if isinstance(mask, StackedMask):
        return StackedMask(tuple(replace(step, mask=mask_of_rows(step.mask, rows)) for step in mask.steps))
    if isinstance(mask, PlacedMask):
        return replace(mask, pattern=mask_of_rows(mask.pattern, rows))
    if isinstance(mask, Padding):
        return replace(mask, keep=_rows_of(mask.keep, rows, 1))
    if isinstance(mask, Lengths):
        return replace(mask, lengths=_rows_of(mask.lengths, rows, 0))
    if isinstance(mask, Documents):
        return Documents(_rows_of(mask.query_ids, rows, 1), _rows_of(mask.key_ids, rows, 1))
    if isinstance(mask, Dense):
        return Dense(_rows_of(mask.table, rows, 2))
    assert isinstance(mask, FunctionMask)
    function, index = mask.function, rows.cpu()
    return replace(mask, function=lambda b, h, q, k: function(index[b], h, q, k), batch=len(rows))


def _rows_of(table: IdTable, rows: Tensor, own_axes: int) -> IdTable:
    """A table ``(batch, head, …)`` of some elements of the batch, or the same one if all share it."""
    values = table.values
    if values.ndim < own_axes + 2 or values.shape[0] == 1:
        return table
    return IdTable(values[rows.cpu().numpy()])
