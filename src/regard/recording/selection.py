"""Select heads or sequences of masks and biases, and join the biases of several steps of generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from regard.errors import ArgumentError, RecordingError
from regard.interception.call_types import AttentionStep
from regard.kernels.bias import Bias
from regard.masks import Mask, dense
from regard.masks.extent import Extent
from regard.masks.id_table import IdTable
from regard.masks.mask import Both, Either, Not
from regard.masks.pair_patterns import Dense
from regard.recording.beam_rows import mask_of_rows
from regard.recording.kept_statistics import some_heads
from regard.recording.step_masks import StackedMask


def of_heads(step: AttentionStep, heads: tuple[int, ...]) -> AttentionStep:
    """The step with these heads only; each of them then has its own key head."""
    check_heads(heads, step.q.shape[1])
    group = step.q.shape[1] // step.k.shape[1]
    own = torch.tensor(heads, device=step.q.device)
    return replace(
        step,
        q=step.q.index_select(1, own),
        k=step.k.index_select(1, own // group),
        v=step.v.index_select(1, own // group),
        lse=None if step.lse is None else step.lse.index_select(1, own),
        statistics=None if step.statistics is None else some_heads(step.statistics, own),
        bias=None if step.bias is None else step.bias.select(heads=own),
        sinks=None if step.sinks is None else step.sinks.index_select(0, own),
    )


def check_heads(heads: tuple[int, ...], known: int) -> None:
    """Raise if a requested head does not exist in the model."""
    if any(head >= known for head in heads):
        raise ArgumentError(
            "heads= must name heads of the model (0 … {last}).",
            got="heads = {heads}",
            do="Omit it to record all of them.",
            last=known - 1,
            heads=list(heads),
        )


def mask_of_heads(mask: Mask, heads: Sequence[int] | None, extent: Extent) -> Mask:
    """The mask of these heads. What differs by head is a table; the other parts stay lazy."""
    if heads is None or not mask.lead or mask.lead[-1] == 1:
        return mask
    if isinstance(mask, Both | Either):
        return type(mask).of(*(mask_of_heads(part, heads, extent) for part in mask.parts))
    if isinstance(mask, Not):
        return ~mask_of_heads(mask.part, heads, extent)
    if isinstance(mask, StackedMask):
        return StackedMask(
            tuple(replace(step, mask=mask_of_heads(step.mask, heads, step.extent)) for step in mask.steps)
        )
    if isinstance(mask, Dense):
        return Dense(IdTable(mask.table.values[..., list(heads), :, :]))
    return dense(mask.dense(*extent)[..., list(heads), :, :])


def selected_mask(mask: Mask, batch: int | None, heads: Sequence[int] | None, extent: Extent) -> Mask:
    """The mask of one sequence, or of some heads; None means all. Of one sequence, it has a ``lead`` only
    if its heads differ."""
    if batch is None:
        return mask_of_heads(mask, heads, extent)
    if not mask.lead or mask.lead[-1] == 1:
        return mask.select((batch, 0))
    if heads is not None and len(heads) == 1:
        return mask.select((batch, heads[0]))
    return mask_of_heads(mask_of_rows(mask, torch.tensor([batch])), heads, extent)


def longer_bias(before: Bias | None, after: Bias | None, rows: int, name: str) -> Bias | None:
    """The bias of all rows: a bias by distance covers all of them; tables are concatenated."""
    if before is None and after is None:
        return None
    joined = None if before is None or after is None else before.concat(after, rows)
    if joined is not None:
        return joined
    raise RecordingError(
        "All steps of a call must have the same kind of bias.",
        got="{first} and then {second} in {name}",
        do="Watch one forward pass over the whole text instead.",
        first=type(before).__name__,
        second=type(after).__name__,
        name=name,
    )
