"""``effects()``: the metric before and after each of some edits, several of them in one forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.checks import is_integer
from regard.edits import Edit, each
from regard.edits.model_edit import edit
from regard.errors import ArgumentError, DtypeError, Phrase
from regard.metrics import AnyMetric, check_metric, divergence_of, measured
from regard.model_outcome import ModelInputs, Outcome, part_of
from regard.table import Table

TOKENS = 512
"""Tokens of one forward pass: with more of them, larger batches save little and need more memory."""

Progress = Callable[[int, int], object]
"""Called with how many edits are done, and how many there are."""

COLUMNS = ("edit", "before", "after", "difference", "kl")


@dataclass(frozen=True, eq=False)
class Experiment:
    """A model and its inputs, and what it gives without any edit."""

    model: nn.Module
    inputs: ModelInputs
    metric: AnyMetric
    plain: Any
    before: float

    @classmethod
    def begin(
        cls,
        model: nn.Module,
        given: object,
        metric: AnyMetric,
        during: AbstractContextManager[Any] | None = None,
    ) -> Experiment:
        """Run the model once without edits, perhaps with ``during`` watching it."""
        if not isinstance(model, nn.Module):
            raise DtypeError(
                "effects and ablate need a PyTorch module.",
                got="{type}",
                do="Pass the model itself.",
                type=type(model).__name__,
            )
        check_metric(metric)
        inputs = ModelInputs.of(model, given)
        if during is None:
            plain = inputs.run(model)
        else:
            with during:
                plain = inputs.run(model)
        before = measured(metric, Outcome(plain, inputs, plain), Phrase("the model without an edit"))
        return cls(model, inputs, metric, plain, before)

    @property
    def together(self) -> int:
        """How many edits one forward pass tries."""
        if not callable(getattr(self.metric, "of", None)) and _has_totals(self.plain):
            return 1  # a function of the output may read its loss, which is one number for the whole batch
        tensors = [x for x in (*self.inputs.args, *self.inputs.named.values()) if isinstance(x, Tensor)]
        tokens = max(x.shape[0] * (x.shape[1] if x.ndim > 1 else 1) for x in tensors if x.ndim)
        return max(1, TOKENS // tokens)

    def row(self, output: Any, what: object) -> tuple[float, float, float, float | None]:
        """Before, after, difference and KL of an output."""
        outcome = Outcome(output, self.inputs, self.plain)
        after = measured(self.metric, outcome, what)
        return self.before, after, after - self.before, divergence_of(self.metric, outcome)

    def rows(self, edits: Sequence[Edit]) -> list[tuple[float, float, float, float | None]]:
        """The numbers of each edit, all of them tried in one forward pass."""
        batch, times = self.inputs.batch, len(edits)
        # Every sequence of the batch gets the edit of the repetition that it belongs to.
        one = edits[0] if times == 1 else each([one for one in edits for _ in range(batch)])
        with edit(self.model, one):
            output = self.inputs.run(self.model, times)
        return [self.row(part_of(output, at, batch, times), edits[at]) for at in range(times)]


def _has_totals(output: Any) -> bool:
    values = output.values() if isinstance(output, Mapping) else ()
    return any(isinstance(x, Tensor) and x.ndim == 0 for x in values)


@torch.no_grad()
def effects(
    model: nn.Module,
    inputs: object,
    edits: Edit | Sequence[Edit],
    metric: AnyMetric,
    *,
    together: int | None = None,
    progress: Progress | None = None,
) -> Table:
    """One row per edit: the metric before and after it, the difference, and KL of the changed distribution.

    Args:
        model: any PyTorch module whose attention can be edited.
        inputs: a dict for ``model(**inputs)``, a tensor, or a tuple of tensors.
        edits: edits of ``regard.edits``, each tried alone.
        metric: one of ``regard.metrics``, or a function of the model's output that gives a number.
        together: how many edits one forward pass tries; by default as many as make 512 tokens.
        progress: called with how many edits are done and how many there are.

    >>> import torch, regard
    >>> from regard import edits, metrics
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=2)
    >>> tried = [edits.remove(layers=0), edits.remove(layers=1, heads=1)]
    >>> found = effects(model, torch.arange(9)[None], tried, metrics.loss)
    >>> found.columns
    ('edit', 'before', 'after', 'difference', 'kl')
    """
    tried = [edits] if isinstance(edits, Edit) else list(edits)
    if not tried or not all(isinstance(one, Edit) for one in tried):
        raise ArgumentError(
            "effects needs edits, one or more.",
            got="{edits}",
            do="Pass, for example, [edits.remove(layers=3)].",
            edits=repr(edits)[:60],
        )
    with evaluating(model):
        experiment = Experiment.begin(model, inputs, metric)
        size = experiment.together if together is None else checked_together(together)
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(tried), size):
            some = tried[start : start + size]
            rows += [(repr(one), *row) for one, row in zip(some, experiment.rows(some))]
            if progress is not None:
                progress(len(rows), len(tried))
    return Table(COLUMNS, rows)


def checked_together(given: object) -> int:
    """The number of edits in one forward pass."""
    if not is_integer(given, 1):
        raise ArgumentError(
            "together must be a number of edits, 1 or more.",
            got="together = {given!r}",
            do="Omit it to let regard choose.",
            given=given,
        )
    return int(given)


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """The model without dropout until the block ends."""
    was_training = isinstance(model, nn.Module) and model.training
    if isinstance(model, nn.Module) and was_training:
        model.eval()
    try:
        yield
    finally:
        if isinstance(model, nn.Module) and was_training:
            model.train()
