"""Edits of the output of a head: ``remove`` and ``scale``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from regard.edits.edit import Edit, HeadEdit
from regard.edits.edited_call import EditedCall
from regard.edits.scope import Numbers, Rows, Scope
from regard.errors import ArgumentError


@dataclass(frozen=True, repr=False)
class Remove(HeadEdit):
    """The output is 0."""

    def edit_output(self, edited: EditedCall, output: Tensor) -> Tensor:
        return output.masked_fill(edited.where, 0.0)


@dataclass(frozen=True, repr=False)
class Scale(HeadEdit):
    """The output times a factor."""

    factor: float

    def edit_output(self, edited: EditedCall, output: Tensor) -> Tensor:
        return output * edited.factors(self.factor)[..., None].to(output.dtype)


def remove(
    *, layers: Numbers = None, heads: Numbers = None, kind: str | None = None, rows: Rows = None
) -> Edit:
    """The output of these heads is 0: nothing of them reaches the output projection.

    >>> remove(layers=4, heads=[0, 7])
    remove(layers=[4], heads=[0, 7])
    """
    return Remove(Scope.of(layers, heads, kind, rows))


def scale(
    factor: float,
    *,
    layers: Numbers = None,
    heads: Numbers = None,
    kind: str | None = None,
    rows: Rows = None,
) -> Edit:
    """The output of these heads times a factor.

    >>> scale(0.5, kind="cross")
    scale(0.5, kind='cross')
    """
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not math.isfinite(factor):
        raise ArgumentError(
            "scale(factor): factor is a finite number.",
            got="factor = {factor!r}",
            do="Pass 0.5, say.",
            factor=factor,
        )
    return Scale(Scope.of(layers, heads, kind, rows), float(factor))
