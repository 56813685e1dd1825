"""Edits of the output of a head: ``remove``, ``scale`` and ``average``."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.checks import is_number
from regard.edits.edit import Edit, HeadEdit
from regard.edits.edited_call import EditedCall
from regard.edits.mean_outputs import MeanOutputs
from regard.edits.scope import Indices, Rows, Scope
from regard.errors import ArgumentError, DtypeError


@dataclass(frozen=True, repr=False)
class RemoveEdit(HeadEdit):
    """The output is 0."""

    def edit_output(self, edited: EditedCall, output: Tensor) -> Tensor:
        return output.masked_fill(edited.where, 0.0)


@dataclass(frozen=True, repr=False)
class ScaleEdit(HeadEdit):
    """The output times a factor."""

    factor: float

    def edit_output(self, edited: EditedCall, output: Tensor) -> Tensor:
        return output * edited.factors(self.factor)[..., None].to(output.dtype)


def remove(
    *, layers: Indices = None, heads: Indices = None, kind: str | None = None, rows: Rows = None
) -> Edit:
    """Set the output of these heads to 0: nothing of them reaches the output projection.

    >>> remove(layers=4, heads=[0, 7])
    remove(layers=[4], heads=[0, 7])
    """
    return RemoveEdit(Scope.of(layers, heads, kind, rows))


def scale(
    factor: float,
    *,
    layers: Indices = None,
    heads: Indices = None,
    kind: str | None = None,
    rows: Rows = None,
) -> Edit:
    """The output of these heads times a factor.

    >>> scale(0.5, kind="cross")
    scale(0.5, kind='cross')
    """
    if not is_number(factor):
        raise ArgumentError(
            "scale(factor): factor must be a finite number.",
            got="factor = {factor!r}",
            do="Pass 0.5, say.",
            factor=factor,
        )
    return ScaleEdit(Scope.of(layers, heads, kind, rows), float(factor))


@dataclass(frozen=True, repr=False)
class AverageEdit(HeadEdit):
    """The output is its mean over a corpus."""

    mean: MeanOutputs

    def edit_output(self, edited: EditedCall, output: Tensor) -> Tensor:
        return torch.where(edited.where, self.mean.at(edited.place, output), output)


def average(
    mean: MeanOutputs,
    *,
    layers: Indices = None,
    heads: Indices = None,
    kind: str | None = None,
    rows: Rows = None,
) -> Edit:
    """The output of these heads is its mean over a corpus: mean ablation.

    ``mean`` comes from ``regard.heads.mean_outputs(model, texts)``.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> mean = regard.heads.mean_outputs(model, [torch.tensor([[5, 6, 7]])])
    >>> with regard.edit(model, average(mean, heads=0)):
    ...     _ = model(torch.tensor([[5, 6, 7]]))
    """
    if not isinstance(mean, MeanOutputs):
        raise DtypeError(
            "average(mean) needs the mean outputs of a model.",
            got="{type}",
            do="Compute them: regard.heads.mean_outputs(model, texts).",
            type=type(mean).__name__,
        )
    return AverageEdit(Scope.of(layers, heads, kind, rows), mean)
