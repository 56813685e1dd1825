"""Edits of the scores: ``uniform`` and ``temperature``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from torch import Tensor

from regard.edits.edit import Edit, HeadEdit
from regard.edits.edited_call import EditedCall
from regard.edits.scope import Numbers, Rows, Scope
from regard.errors import ArgumentError, EditError
from regard.interception.steps import InterceptedCall
from regard.kernels.inputs import LARGEST_SCALE


@dataclass(frozen=True, repr=False)
class UniformEdit(HeadEdit):
    """All scores are 0."""

    def edit_inputs(self, edited: EditedCall) -> InterceptedCall:
        inputs = edited.call.inputs
        bias = None if edited.whole else edited.scaled(inputs.bias, 0.0)
        return replace(
            edited.call, inputs=replace(inputs, q=inputs.q.masked_fill(edited.where, 0.0), bias=bias)
        )


def uniform(
    *, layers: Numbers = None, heads: Numbers = None, kind: str | None = None, rows: Rows = None
) -> Edit:
    """Every key that a query sees gets the same weight: all scores are 0, a position bias included.

    Where a model has a learned sink, the sink keeps its score.

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
        changed = replace(
            inputs,
            bias=edited.scaled(inputs.bias, 1 / self.t),
            sinks=None if inputs.sinks is None else self._sinks(edited, inputs.sinks, factors),
        )
        if edited.whole:
            softcap = None if inputs.softcap is None else inputs.softcap / self.t
            return replace(edited.call, inputs=replace(changed, scale=inputs.scale / self.t, softcap=softcap))
        if inputs.softcap is not None:
            raise self._refused(edited, "softcap")
        return replace(
            edited.call, inputs=replace(changed, q=inputs.q * factors[..., None].to(inputs.q.dtype))
        )

    def _sinks(self, edited: EditedCall, sinks: Tensor, factors: Tensor) -> Tensor:
        """A sink is a score too. Every head has one, for all elements of the batch and all rows."""
        if factors.shape[0] != 1 or factors.shape[2] != 1:
            raise self._refused(edited, "sinks")
        return sinks * factors[0, :, 0].to(sinks.dtype)

    def _refused(self, edited: EditedCall, what: str) -> EditError:
        return EditError(
            "With a softcap, temperature must apply to whole layers; with learned sinks, to whole heads.",
            got="{edit!r} for {name}, which has {what}",
            do="Omit heads= and rows=, and do not use each.",
            edit=self,
            name=edited.place.name,
            what=what,
        )


def temperature(
    t: float,
    *,
    layers: Numbers = None,
    heads: Numbers = None,
    kind: str | None = None,
    rows: Rows = None,
) -> Edit:
    """Scores divided by ``t``: above 1 the weights become more even, below 1 sharper.

    >>> temperature(2, kind="decoder")
    temperature(2.0, kind='decoder')
    """
    number = isinstance(t, int | float) and not isinstance(t, bool)
    if not number or not (math.isfinite(t) and t > 0):
        raise ArgumentError(
            "temperature(t): t must be a finite number above 0.", got="t = {t!r}", do="Pass 2.0, say.", t=t
        )
    return TemperatureEdit(Scope.of(layers, heads, kind, rows), float(t))
