"""The one place where an intercepted attention is computed.

    edit the inputs → compute → edit the output → write down

Editors come in the order in which their blocks were entered, so an inner edit changes what an outer one
left. Writers come last: what they write is what was computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.interception.head_masks import output_and_lse
from regard.interception.module_tracker import ModuleTracker, computing
from regard.interception.steps import (
    AttentionStep,
    CallEditor,
    CallPlace,
    CallWriter,
    InterceptedCall,
)
from regard.kernels import Statistics, attention_statistics
from regard.kernels.inputs import Inputs


def attend(call: InterceptedCall, trackers: list[ModuleTracker]) -> tuple[Tensor, Inputs]:
    """The output of attention ``(batch, head, query, channel)``, and the inputs it was computed from."""
    editors: list[tuple[CallEditor, CallPlace]] = []
    writers: list[tuple[CallWriter, CallPlace]] = []
    for tracker in trackers:
        place = tracker.place(call.module, call.kind)
        if tracker.editor is not None:
            editors.append((tracker.editor, place))
        if tracker.writer is not None:
            writers.append((tracker.writer, place))
    # Scores are computed in at least float32, whatever autocast would make of the products.
    with computing(), torch.autocast(call.inputs.q.device.type, enabled=False):
        for editor, place in editors:
            call = editor.edit_inputs(place, call)
        # For cross-attention, the position of a row among the keys is known only once all rows are there.
        output, lse, statistics = _computed(call.inputs, writers, at_once=call.kind != "cross")
        own = output = _with_gradient(output, writers)
        for editor, place in editors:
            output = editor.edit_output(place, call, output)
    if writers:
        _write(call, writers, own, lse, statistics)
    return output, call.inputs


def _with_gradient(output: Tensor, writers: list[tuple[CallWriter, CallPlace]]) -> Tensor:
    """The output with a gradient, if a writer waits for it and all parameters are frozen."""
    wanted = any(writer.gradients and place.recorded for writer, place in writers)
    if wanted and torch.is_grad_enabled() and not output.requires_grad:
        output.requires_grad_()
    return output


def _write(
    call: InterceptedCall,
    writers: list[tuple[CallWriter, CallPlace]],
    output: Tensor,
    lse: Tensor | None,
    statistics: Statistics | None,
) -> None:
    inputs = call.inputs
    step = AttentionStep(
        inputs.q.detach(),
        inputs.k.detach(),
        inputs.v.detach(),
        lse,
        statistics,
        call.mask_view,
        None if inputs.bias is None else inputs.bias.detach(),
        inputs.scale,
        inputs.softcap,
        None if inputs.sinks is None else inputs.sinks.detach().clone(),
        call.past,
        call.first_key,
        output,
        inputs.dropout,
    )
    bare = step if statistics is None else replace(step, statistics=None)
    for writer, place in writers:
        writer.add(place, step if writer.statistics else bare)


def _computed(
    inputs: Inputs, writers: list[tuple[CallWriter, CallPlace]], *, at_once: bool
) -> tuple[Tensor, Tensor | None, Statistics | None]:
    """Output, lse and statistics, as far as any writer needs them, in as few passes as possible."""
    needed = [writer for writer, place in writers if place.recorded]
    statistics = None
    if at_once and any(writer.statistics for writer in needed):
        statistics = _statistics(inputs, max(writer.top for writer in needed))
        if statistics.output is not None:
            return statistics.output, statistics.lse, replace(statistics, output=None)
    return *output_and_lse(inputs, with_lse=bool(needed)), statistics


def _statistics(inputs: Inputs, top: int) -> Statistics:
    """The statistics, with the output of the same pass unless there is a gradient or dropout."""
    tensors = (inputs.q, inputs.k, inputs.v)
    learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    given: Any = tensors[:2] if learns or inputs.dropout else tensors
    return attention_statistics(
        *given,
        mask=inputs.mask,
        bias=inputs.bias,
        scale=inputs.scale,
        softcap=inputs.softcap,
        sinks=inputs.sinks,
        top=top,
    )
