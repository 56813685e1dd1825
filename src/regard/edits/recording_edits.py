"""Edits by another run: ``pattern`` takes its weights, ``output`` takes its outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.edits.edit import Edit, HeadEdit
from regard.edits.edited_call import EditedCall
from regard.edits.recorded_call import RecordedCall, check_recording, recorded_for
from regard.edits.scope import Indices, Rows, Scope
from regard.interception.call_types import FixedMaskView, InterceptedCall
from regard.kernels.bias import Bias, Sum
from regard.kernels.inputs import Inputs
from regard.kernels.scaled_bias import scaled
from regard.recording import Recording


@dataclass(frozen=True, repr=False)
class RecordingEdit(HeadEdit):
    """An edit by another run."""

    recording: Recording

    def changes(self, edited: EditedCall) -> bool:
        return super().changes(edited) and recorded_for(self.recording, edited) is not None


class PatternEdit(RecordingEdit):
    """The weights of another run, on the values of this one: its Q and K, and its mask."""

    def edit_inputs(self, edited: EditedCall) -> InterceptedCall:
        recorded = recorded_for(self.recording, edited)
        if recorded is None:
            return edited.call
        inputs = edited.call.inputs
        recorded.check_scores(inputs)
        mask = recorded.mask
        if not edited.whole:
            here = edited.cell_mask & edited.placed(self.scope.row_mask)
            mask = (inputs.mask | here) & (mask | ~here)
        # Heads that share a key head may now have different keys.
        group = inputs.heads // inputs.k.shape[1]
        k, v = (x.repeat_interleave(group, 1) if group > 1 else x for x in (inputs.k, inputs.v))
        own = recorded.own
        q = recorded.put(inputs.q, recorded.finite("Q", own.q) * (own.scale / inputs.scale))
        other_k = recorded.put_keys(k, recorded.finite("K", own.k))
        if edited.rows is None:
            k = other_k
        else:
            # Each row has its queries in the channels of its keys, and 0 in the others.
            q = torch.cat([q.masked_fill(rows, 0.0) for rows in (edited.where, ~edited.where)], -1)
            k = torch.cat([k, other_k], -1)
        changed = replace(inputs, q=q, k=k, v=v, mask=mask, bias=_joined_bias(inputs, recorded))
        return replace(edited.call, inputs=changed, view=FixedMaskView(mask, inputs.extent.queries))


def _joined_bias(inputs: Inputs, recorded: RecordedCall) -> Bias | None:
    """The recorded bias in the edited heads, the bias of this run in the others."""
    own, other, edited = inputs.bias, recorded.bias, recorded.edited
    if edited.whole or _same(own, other):
        return other
    here = edited.factors(0.0)
    parts = [scaled(bias, factors) for bias, factors in ((own, here), (other, 1 - here)) if bias is not None]
    return Sum(tuple(parts)) if len(parts) > 1 else parts[0]


def _same(own: Bias | None, other: Bias | None) -> bool:
    if own is None or other is None:
        return own is other
    return type(own) is type(other) and all(
        a.shape == b.shape and torch.equal(a.detach(), b.to(a)) for a, b in zip(own.tables, other.tables)
    )


def pattern(
    recording: Recording,
    *,
    layers: Indices = None,
    heads: Indices = None,
    kind: str | None = None,
    rows: Rows = None,
) -> Edit:
    """The attention weights of another run, on the values of this one.

    The recording is of the same model and of a text with the same number of tokens. In generation, only the
    prompt gets them.

    >>> import torch, regard
    >>> model = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    >>> x, y = torch.randn(2, 1, 5, 16)
    >>> with regard.watch(model) as seen:
    ...     _ = model(x, x, x)
    >>> with regard.edit(model, pattern(seen, heads=1)), regard.watch(model) as patched:
    ...     _ = model(y, y, y)
    >>> torch.allclose(patched[0].weights(1), seen[0].weights(1), atol=1e-6)
    True
    """
    return PatternEdit(Scope.of(layers, heads, kind, rows), check_recording(recording, "pattern"))


class OutputEdit(RecordingEdit):
    """The output of another run."""

    def edit_output(self, edited: EditedCall, output: Tensor) -> Tensor:
        recorded = recorded_for(self.recording, edited)
        assert recorded is not None
        return recorded.put(output, recorded.output())


def output(
    recording: Recording,
    *,
    layers: Indices = None,
    heads: Indices = None,
    kind: str | None = None,
    rows: Rows = None,
) -> Edit:
    """The output of these heads in another run: activation patching.

    The recording is of the same model, made with ``watch(model, values=True)``, and of a text with as many
    tokens. In generation, only the prompt is patched.

    >>> import torch, regard
    >>> model = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    >>> x, y = torch.randn(2, 1, 5, 16)
    >>> with regard.watch(model, values=True) as seen:
    ...     wanted = model(x, x, x)[0]
    >>> with regard.edit(model, output(seen)):
    ...     torch.allclose(model(y, y, y)[0], wanted, atol=1e-6)
    True
    """
    return OutputEdit(Scope.of(layers, heads, kind, rows), check_recording(recording, "output"))
