"""Everything that a survey adds up, for all heads of a model: one object that merges, reduces and is saved.

Counts are whole numbers and sums float64. Two of these merge into the one of both corpora, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.heads.survey import distance_bins
from regard.heads.survey.corpus_batches import DocumentPart
from regard.heads.survey.examples import LEAST, Examples
from regard.heads.survey.measures import MEASURES, MeasuredRows, measured
from regard.heads.survey.moments import Moments
from regard.heads.survey.quantile_sketch import BINS, sketch
from regard.heads.survey.tokenized_batch import TokenizedBatch
from regard.interception.call_types import Kind
from regard.processes import Processes
from regard.recording.call import Call

COUNTS = ("documents", "parts", "tokens", "truncated", "divided", "failed")


@dataclass(frozen=True)
class AttentionPlace:
    """One attention of a model."""

    name: str
    kind: Kind
    layer: int
    heads: tuple[int, ...]  # the model's numbers


@dataclass(frozen=True)
class HeadLayout:
    """The attentions of a model, in the order of its pass; heads are numbered through all of them."""

    places: tuple[AttentionPlace, ...]

    @property
    def heads(self) -> int:
        """How many heads there are in all."""
        return sum(len(place.heads) for place in self.places)

    def rows(self, call: Call) -> slice:
        """The rows of the heads of a call."""
        start = 0
        for place in self.places:
            if (place.name, place.layer, place.kind) == (call.name, call.layer, call.kind):
                return slice(start, start + len(place.heads))
            start += len(place.heads)
        raise KeyError(f"{call!r} was not there when the model was first run")


@dataclass(eq=False)
class Accumulators:
    """What was found so far."""

    moments: Moments  # (head, measure)
    chance: Tensor  # (head, measure): summed over the queries that count
    sketch: Tensor  # (head, measure, bin)
    mass: Tensor  # (head, distance): Σ weight
    pairs: Tensor  # (head, distance): how many pairs there are
    squares: Tensor  # (head,): Σ weight²
    examples: Examples
    counts: Tensor  # of COUNTS

    @classmethod
    def blank(cls, heads: int) -> Accumulators:
        """The accumulators of no texts."""
        measures, bins = len(MEASURES), distance_bins.count()

        def zeros(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
            return torch.zeros(shape, dtype=dtype)

        return cls(
            Moments.blank(heads, measures),
            zeros(heads, measures),
            zeros(heads, measures, BINS, dtype=torch.int64),
            zeros(heads, bins),
            zeros(heads, bins),
            zeros(heads),
            Examples.blank(heads),
            zeros(len(COUNTS), dtype=torch.int64),
        )

    def count(self, **numbers: int) -> None:
        """Add to the counts of this name."""
        for name, number in numbers.items():
            self.counts[COUNTS.index(name)] += number

    def counted(self, name: str) -> int:
        """One of the counts, by name."""
        return int(self.counts[COUNTS.index(name)])

    # ---- a call of the model -------------------------------------------------------------------

    def add(
        self, at: slice, call: Call, texts: TokenizedBatch, parts: Sequence[DocumentPart], bar: Tensor
    ) -> None:
        """Add one attention call over a batch of texts; its heads are at ``at``.

        ``bar`` is the score that an example must reach to be worth keeping, for every head.
        """
        best = _TextScores.blank(call.batch, call.heads, texts)
        for rows in measured(call, texts):
            self._add_measures(at, rows)
            self._add_distances(at, rows)
            best.add(rows, texts)
        self._add_examples(at, call, texts, parts, best, bar[at])

    def _add_measures(self, at: slice, rows: MeasuredRows) -> None:
        found = Moments.of(rows.values, rows.where, dims=(1, 3))  # (measure, head)
        if not bool(torch.isfinite(found.mean).all()):
            raise ArithmeticError("attention weights that are not finite")
        heads = rows.values.shape[2]
        for name, value in found.tensors().items():
            setattr(found, name, value.T.cpu())
        there = Moments(**{name: value[at] for name, value in self.moments.tensors().items()})
        there.merge(found)
        for name, value in there.tensors().items():
            getattr(self.moments, name)[at] = value
        self.chance[at] += torch.where(rows.where, rows.chance, 0).double().sum((1, 3)).T.cpu()
        index = torch.arange(heads, device=rows.values.device) * len(MEASURES)
        places = torch.arange(len(MEASURES), device=index.device)[:, None, None, None] + index[:, None]
        counts = sketch(rows.values, rows.where, places.expand(rows.values.shape), heads * len(MEASURES))
        self.sketch[at] += counts.view(heads, len(MEASURES), BINS).cpu()

    def _add_distances(self, at: slice, rows: MeasuredRows) -> None:
        first = rows.rows.start
        self.mass[at] += distance_bins.by_distance(rows.weights.sum(0), first).cpu()
        self.pairs[at] += distance_bins.by_distance(rows.pairs, first).cpu()
        self.squares[at] += torch.linalg.vector_norm(rows.weights, dim=(0, 2, 3)).double().square().cpu()

    def _add_examples(
        self,
        at: slice,
        call: Call,
        texts: TokenizedBatch,
        parts: Sequence[DocumentPart],
        best: _TextScores,
        bar: Tensor,
    ) -> None:
        score = best.score().cpu().numpy()  # (batch, head), −inf where a text does not compete
        where = [tensor.cpu() for tensor in (best.query, best.key)]
        ids = texts.ids.cpu()
        document, part = (np.array([one[i] for one in parts]) for i in (0, 1))
        kept = self.examples.score.shape[1]
        found = Examples.blank(self.examples.score.shape[0], kept)
        for head in range(call.heads):
            order = np.lexsort((part, document, -score[:, head]))
            different: dict[tuple[int, ...], int] = {}
            for text in order:
                if score[text, head] == -np.inf or score[text, head] < bar[head] or len(different) == kept:
                    break
                different.setdefault(parts[text].ids, int(text))
            for rank, text in enumerate(different.values()):
                query, key = (int(tensor[text, head]) for tensor in where)
                weights = call.weights(call.head_numbers[head], rows=query, batch=text)[0].cpu()
                place = (int(document[text]), int(part[text]), query, key)
                length = len(parts[text].ids)
                found.put(
                    at.start + head,
                    rank,
                    float(score[text, head]),
                    place,
                    weights[:length],
                    ids[text, :length],
                )
        self.examples.merge(found)

    # ---- together ------------------------------------------------------------------------------

    def merge(self, other: Accumulators) -> None:
        """Add what was found in other texts."""
        self.moments.merge(other.moments)
        self.examples.merge(other.examples)
        for name in ("chance", "sketch", "mass", "pairs", "squares", "counts"):
            getattr(self, name).add_(getattr(other, name))

    def shared(self, processes: Processes) -> Accumulators:
        """What all processes found, by all-reduce."""
        sums = ("chance", "sketch", "mass", "pairs", "squares", "counts")
        return Accumulators(
            moments=self.moments.shared(processes),
            examples=self.examples.shared(processes),
            **{name: processes.total(getattr(self, name)) for name in sums},
        )

    def tensors(self) -> dict[str, Tensor]:
        """Everything by name, for a file."""
        own = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        moments = {f"moments.{name}": value for name, value in self.moments.tensors().items()}
        examples = {f"examples.{name}": value for name, value in self.examples.tensors().items()}
        return {**own, **moments, **examples}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Accumulators:
        """The inverse of :meth:`tensors`."""

        def part(prefix: str) -> dict[str, Any]:
            return {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}

        own = {name: tensor for name, tensor in tensors.items() if "." not in name}
        return cls(moments=Moments(**part("moments.")), examples=Examples(**part("examples.")), **own)


@dataclass(eq=False)
class _TextScores:
    """The running excitement of each text and head; see ``examples``."""

    total: Tensor  # (batch, head): Σ over tokens of the greatest weight on another
    tokens: Tensor  # (batch, 1): how many there are
    weight: Tensor  # (batch, head): the greatest of all
    query: Tensor
    key: Tensor

    @classmethod
    def blank(cls, batch: int, heads: int, texts: TokenizedBatch) -> _TextScores:
        zeros = torch.zeros((batch, heads), dtype=torch.float64, device=texts.ids.device)
        none = torch.full_like(zeros, -1, dtype=torch.int64)
        return cls(
            zeros, texts.content.sum(-1, keepdim=True), torch.full_like(zeros, -1.0), none, none.clone()
        )

    def add(self, rows: MeasuredRows, texts: TokenizedBatch) -> None:
        length = texts.ids.shape[1]
        positions = torch.arange(length, device=texts.ids.device)
        others = texts.content[:, None, :] & (positions != positions[rows.rows, None])
        highest, key = (rows.weights * others[:, None]).max(-1)  # (batch, head, query)
        counts = texts.content[:, None, rows.rows]
        self.total += torch.where(counts, highest, 0.0).double().sum(-1)
        weight, query = torch.where(counts, highest, -1.0).max(-1)
        better = weight > self.weight
        self.key = torch.where(better, key.gather(-1, query[..., None])[..., 0], self.key)
        self.query = torch.where(better, query + rows.rows.start, self.query)
        self.weight = torch.where(better, weight.double(), self.weight)

    def score(self) -> Tensor:
        enough = self.tokens >= LEAST
        return torch.where(enough, self.total / self.tokens.clamp(min=1), -torch.inf)
