"""Select heads of a step for ``heads=``, and join the biases of several steps for generation."""

from __future__ import annotations

from dataclasses import replace

import torch

from regard.errors import ArgumentError, RecordingError
from regard.interception.steps import AttentionStep
from regard.kernels.biases import Bias
from regard.masks import Mask, dense
from regard.masks.extent import Extent
from regard.recording.kept_statistics import some_heads


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
        bias=None if step.bias is None else step.bias.select(heads=own),
        sinks=None if step.sinks is None else step.sinks.index_select(0, own),
    )


def check_heads(heads: tuple[int, ...], known: int) -> None:
    """Raise if a head was asked for that the model does not have."""
    if any(head >= known for head in heads):
        raise ArgumentError(
            "heads= names heads of the model (0 … {known}).",
            got="heads = {heads}",
            do="Leave it out to record all of them.",
            known=known - 1,
            heads=list(heads),
        )


def mask_of_heads(mask: Mask, heads: tuple[int, ...] | None, extent: Extent) -> Mask:
    """The mask of these heads. One that differs by head is a table, and stays one."""
    if heads is None or not mask.lead or mask.lead[-1] == 1:
        return mask
    return dense(mask.dense(*extent)[..., list(heads), :, :])


def longer_bias(before: Bias | None, after: Bias | None, rows: int, name: str) -> Bias | None:
    """The bias of all rows: a bias by distance covers all of them; tables are concatenated."""
    if before is None and after is None:
        return None
    joined = None if before is None or after is None else before.concat(after, rows)
    if joined is not None:
        return joined
    raise RecordingError(
        "Steps that are joined have one kind of bias.",
        got="{type} and then {type_type} in {name}",
        do="Watch one forward pass over the whole text instead.",
        type=type(before).__name__,
        type_type=type(after).__name__,
        name=name,
    )
