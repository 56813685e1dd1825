"""Edits of the scores: ``uniform`` and ``temperature``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.checks import is_number
from regard.edits.edit import Edit, HeadEdit
from regard.edits.edited_call import EditedCall
from regard.edits.scope import Indices, Rows, Scope
from regard.errors import ArgumentError
from regard.interception.call_types import InterceptedCall
from regard.kernels import attention, attention_with_lse
from regard.kernels.bias import Bias, TensorBias
from regard.kernels.capped_bias import CappedBias
from regard.kernels.inputs import Inputs
from regard.kernels.precision import LARGEST_SCALE
from regard.kernels.scaled_bias import ScaledBias


@dataclass(frozen=True, repr=False)
class UniformEdit(HeadEdit):
    """All scores of a row are the same."""

    def edit_inputs(self, edited: EditedCall) -> InterceptedCall:
        inputs = edited.call.inputs
        bias = None if edited.whole else edited.scaled(inputs.bias, 0.0)
        if inputs.sinks is not None:
            level = torch.where(edited.where[..., 0], _even_score(inputs), 0.0)
            bias = _plus(bias, TensorBias(level[..., None]))
        return replace(
            edited.call, inputs=replace(inputs, q=inputs.q.masked_fill(edited.where, 0.0), bias=bias)
        )


def _even_score(inputs: Inputs) -> Tensor:
    """The score that makes n equal keys as heavy against a sink as the keys are, ``(batch, head, query)``.

    ``n · exp(c) = Σ_j exp(s_ij)``, so c is the lse of the row minus log n.
    """
    ones = inputs.v.new_ones(()).expand(*inputs.v.shape[:3], 1)
    where: dict[str, Any] = {"mask": inputs.mask, "scale": inputs.scale}
    scored = {**where, "bias": inputs.bias, "softcap": inputs.softcap}
    with torch.no_grad():
        lse = attention_with_lse(inputs.q, inputs.k, ones, **scored)[1]
        count = attention_with_lse(torch.zeros_like(inputs.q), inputs.k, ones, **where)[1]
        level = torch.where(lse == -torch.inf, 0.0, lse - count)
    if not (torch.is_grad_enabled() and (inputs.q.requires_grad or inputs.k.requires_grad)):
        return level
    # An lse has no gradient, but r = 1 − (the weight of the sink) has: dr = r (1 − r) d lse.
    assert inputs.sinks is not None
    kept = attention(inputs.q, inputs.k, ones, **scored, sinks=inputs.sinks.detach())[..., 0]
    slope = (kept * (1 - kept)).detach()
    return level + torch.where(slope > 0, (kept - kept.detach()) / slope.clamp(min=1e-30), 0.0)


def _plus(bias: Bias | None, more: Bias) -> Bias:
    return more if bias is None else bias + more


def uniform(
    *, layers: Indices = None, heads: Indices = None, kind: str | None = None, rows: Rows = None
) -> Edit:
    """Every key that a query sees gets the same weight, whatever its score and position bias.

    With n visible keys, ``w_ij = 1/n``. Where a learned sink takes the share p_i of a row, it keeps it:
    ``w_ij = (1 − p_i)/n``, so that how much a head looks at keys stays, and only where it looks changes.

    >>> uniform(layers=2, heads=5)
    uniform(layers=[2], heads=[5])
    """
    return UniformEdit(Scope.of(layers, heads, kind, rows))


@dataclass(frozen=True, repr=False)
class TemperatureEdit(HeadEdit):
    """Scores divided by t."""

    t: float

    def edit_inputs(self, edited: EditedCall) -> InterceptedCall:
        inputs, factors = edited.call.inputs, edited.factors(1 / self.t)
        if abs(inputs.scale) / self.t > LARGEST_SCALE:
            raise ArgumentError(
                "temperature(t): 1/t times the scale of the scores ({scale:g}) must be at most 1e8.",
                got="t = {t!r}",
                do="Pass a larger t.",
                scale=inputs.scale,
                t=self.t,
            )
        changed = self._with_sinks(edited, replace(inputs, bias=edited.scaled(inputs.bias, 1 / self.t)))
        if edited.whole:
            softcap = None if inputs.softcap is None else inputs.softcap / self.t
            changed = replace(changed, scale=inputs.scale / self.t, softcap=softcap)
        elif inputs.softcap is None:
            changed = replace(changed, q=inputs.q * factors[..., None].to(inputs.q.dtype))
        else:
            k = inputs.k.repeat_interleave(inputs.heads // inputs.k.shape[1], 1)
            more = ScaledBias(CappedBias(inputs.q, k, inputs.scale, inputs.softcap), factors - 1)
            changed = replace(changed, bias=_plus(changed.bias, more))
        return replace(edited.call, inputs=changed)

    def _with_sinks(self, edited: EditedCall, inputs: Inputs) -> Inputs:
        """A sink is a score too.

        Every head has one for all elements of the batch and all rows. Where these differ, the scores move
        against the sink instead: ``softmax(s/t, z/t) = softmax(s/t + z − z/t, z)``.
        """
        factors = edited.factors(1 / self.t)
        if inputs.sinks is None:
            return inputs
        if edited.rows is None and factors.shape[0] == 1:
            return replace(inputs, sinks=inputs.sinks * factors[0, :, 0].to(inputs.sinks.dtype))
        moved = inputs.sinks[:, None, None] * (1 - factors)[..., None].to(inputs.sinks.dtype)
        return replace(inputs, bias=_plus(inputs.bias, TensorBias(moved)))


def temperature(
    t: float,
    *,
    layers: Indices = None,
    heads: Indices = None,
    kind: str | None = None,
    rows: Rows = None,
) -> Edit:
    """Scores divided by ``t``: above 1 the weights become more even, below 1 sharper.

    Everything that goes into softmax is divided: with a softcap c, ``c · tanh(s/c) / t``; position biases and
    learned sinks too.

    >>> temperature(2, kind="decoder")
    temperature(2.0, kind='decoder')
    """
    if not is_number(t) or t <= 0:
        raise ArgumentError(
            "temperature(t): t must be a finite number above 0.", got="t = {t!r}", do="Pass 2.0, say.", t=t
        )
    return TemperatureEdit(Scope.of(layers, heads, kind, rows), float(t))
