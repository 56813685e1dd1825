"""Select heads or sequences of masks and biases, and join the biases of several steps of generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ArgumentError, RecordingError
from regard.interception.steps import AttentionStep
from regard.kernels.biases import Bias, DistanceBias, Sum, TensorBias
from regard.kernels.scaled_bias import ScaledBias
from regard.masks import Mask, dense
from regard.masks.extent import Extent
from regard.masks.id_table import IdTable
from regard.masks.mask import Both, Either, Not
from regard.masks.pair_patterns import Dense
from regard.recording.beam_rows import mask_of_rows
from regard.recording.kept_statistics import some_heads
from regard.recording.step_masks import StackedMask


def of_heads(step: AttentionStep, heads: tuple[int, ...] | None) -> AttentionStep:
    """The step with these heads only; each of them then has its own key head."""
    if heads is None:
        return step
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
        bias=None if step.bias is None else bias_of_heads(step.bias, own),
        sinks=None if step.sinks is None else step.sinks.index_select(0, own),
    )


def check_heads(heads: tuple[int, ...], known: int) -> None:
    """Raise if a head was asked for that the model does not have."""
    if any(head >= known for head in heads):
        raise ArgumentError(
            "heads= names heads of the model (0 … {last}).",
            got="heads = {heads}",
            do="Omit it to record all of them.",
            last=known - 1,
            heads=list(heads),
        )


def bias_of_heads(bias: Bias, heads: Tensor) -> Bias:
    """The bias of some heads."""
    if isinstance(bias, Sum):
        return Sum(tuple(bias_of_heads(part, heads) for part in bias.parts))
    if bias.heads == 1:
        return bias
    if isinstance(bias, ScaledBias):
        factors = bias.factors if bias.factors.shape[1] == 1 else bias.factors[:, heads]
        return ScaledBias(bias_of_heads(bias.part, heads), factors)
    if isinstance(bias, DistanceBias):
        return replace(bias, table=bias.table.index_select(bias.head_axis, heads))
    assert isinstance(bias, TensorBias)
    return TensorBias(bias.values[:, heads])


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


def selected_bias(bias: Bias, batch: int | None, heads: Sequence[int] | None) -> Bias:
    """The bias of one sequence, or of some heads; None means all."""
    if isinstance(bias, Sum):
        return Sum(tuple(selected_bias(part, batch, heads) for part in bias.parts))
    if heads is not None:
        bias = bias_of_heads(bias, torch.tensor(list(heads), device=bias.tables[0].device))
    if isinstance(bias, ScaledBias) and batch is not None:
        factors = bias.factors if len(bias.factors) == 1 else bias.factors[batch : batch + 1]
        return ScaledBias(selected_bias(bias.part, batch, None), factors)
    if batch is None or not isinstance(bias, TensorBias) or bias.values.shape[0] == 1:
        return bias
    return TensorBias(bias.values[batch : batch + 1])


def bias_on_cpu(bias: Bias) -> Bias:
    """The bias on the CPU, detached. Its dtype stays: it decides how a bias by distance is rounded."""
    if isinstance(bias, Sum):
        return Sum(tuple(bias_on_cpu(part) for part in bias.parts))
    if isinstance(bias, ScaledBias):
        return ScaledBias(bias_on_cpu(bias.part), bias.factors.cpu())
    if isinstance(bias, DistanceBias):
        return replace(bias, table=bias.table.detach().cpu())
    assert isinstance(bias, TensorBias)
    return TensorBias(bias.values.detach().cpu())


def longer_bias(before: Bias | None, after: Bias | None, rows: int, name: str) -> Bias | None:
    """The bias of all rows: a bias by distance covers all of them; tables are concatenated."""
    if before is None and after is None:
        return None
    if isinstance(before, ScaledBias) and isinstance(after, ScaledBias):
        part = longer_bias(before.part, after.part, rows, name)
        assert part is not None
        return ScaledBias(part, _longer_factors(before.factors, after.factors, rows))
    if isinstance(before, DistanceBias) and isinstance(after, DistanceBias):
        return after
    if isinstance(before, TensorBias) and isinstance(after, TensorBias):
        old, new = before.values, after.values
        if old.shape[2] == 1 and new.shape[2] == 1 and old.shape[3] == 1 and new.shape[3] == 1:
            return before
        more = new.shape[3] - old.shape[3]
        old = old.expand(-1, -1, rows, -1)
        # Earlier queries never saw the later keys, so their bias can be any number.
        wide = F.pad(old, (0, more))
        return TensorBias(torch.cat([wide, new.expand(wide.shape[0], wide.shape[1], -1, -1)], 2))
    raise RecordingError(
        "All steps of a call have the same kind of bias.",
        got="{first} and then {second} in {name}",
        do="Watch one forward pass over the whole text instead.",
        first=type(before).__name__,
        second=type(after).__name__,
        name=name,
    )


def _longer_factors(before: Tensor, after: Tensor, rows: int) -> Tensor:
    """The factors ``(batch, head, query)`` of the first rows, followed by those of one step."""
    if before.shape[2] == after.shape[2] == 1 and torch.equal(before, after):
        return before
    first = before.expand(-1, -1, rows)
    batch, heads = (max(a, b) for a, b in zip(first.shape[:2], after.shape[:2]))
    return torch.cat([first.expand(batch, heads, -1), after.expand(batch, heads, -1)], 2)


def bias_of_rows_and_keys(bias: Bias | None, rows: slice, keys: int) -> Bias | None:
    """The bias of some queries and of the first keys. A bias by distance covers any of them."""
    if isinstance(bias, Sum):
        parts = (bias_of_rows_and_keys(part, rows, keys) for part in bias.parts)
        return Sum(tuple(part for part in parts if part is not None))
    if isinstance(bias, ScaledBias):
        part = bias_of_rows_and_keys(bias.part, rows, keys)
        assert part is not None
        factors = bias.factors if bias.factors.shape[2] == 1 else bias.factors[:, :, rows]
        return ScaledBias(part, factors)
    if not isinstance(bias, TensorBias):
        return bias
    values = bias.values if bias.values.shape[2] == 1 else bias.values[:, :, rows]
    return TensorBias(values if values.shape[3] == 1 else values[..., :keys])
