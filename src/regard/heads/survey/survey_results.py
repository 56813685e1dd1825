"""The results of a survey as tables: heads, distances, examples; and as Parquet."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.checked_files import json_bytes
from regard.errors import PackageError
from regard.heads.role_results import Head, Score
from regard.heads.survey import distance_bins
from regard.heads.survey.accumulators import COUNTS, Accumulators, HeadLayout
from regard.heads.survey.measures import MEASURES
from regard.heads.survey.quantile_sketch import quantile
from regard.heads.survey.survey_folder import replace_file
from regard.heads.survey.tokenized_batch import PAIRS
from regard.table import Table, Value

QUANTILES = (5, 25, 50, 75, 95)
"""In per cent."""

PLACE = ("name", "kind", "layer", "head")
ROLES = (*PAIRS, "broad")
"""The measures that are roles; their means are the scores."""


@dataclass(frozen=True, eq=False)
class Survey:
    """What every head of a model does over a corpus."""

    identity: dict[str, Any]
    layout: HeadLayout
    found: Accumulators
    failures: bytes  # JSON lines, as they came
    seconds: float
    repeats: tuple[float | None, ...] | None = None  # induction on repeated random tokens, of decoders

    @property
    def counts(self) -> dict[str, int]:
        """Documents, parts, tokens, and how many documents were truncated, divided or failed."""
        return {name: self.found.counted(name) for name in COUNTS}

    @cached_property
    def places(self) -> list[tuple[str, str, int, int]]:
        """Name, kind, layer and number of every head."""
        return [(one.name, one.kind, one.layer, head) for one in self.layout.places for head in one.heads]

    # ---- heads -----------------------------------------------------------------------------------

    @cached_property
    def positional(self) -> Tensor:
        """The share of the variance of the weights that their distance explains, ``(head,)``.

        ``η² = Σ_δ n_δ (a_δ − a)² / Σ (w − a)²``, with ``a_δ`` the mean weight of the n pairs at
        distance δ. It adds up over texts, which the overlap that ``heads.roles`` takes does not.
        """
        mass, pairs = self.found.mass, self.found.pairs
        count = pairs.sum(-1).clamp(min=1)
        level = mass.sum(-1).square() / count
        between = (mass.square() / pairs.clamp(min=1)).sum(-1) - level
        total = self.found.squares - level
        return torch.where(total > 0, between / torch.where(total > 0, total, 1.0), 0.0).clamp(0, 1)

    @cached_property
    def heads(self) -> tuple[Head, ...]:
        """Every head with its scores of the roles."""
        moments = self.found.moments
        chance = (self.found.chance / moments.count.clamp(min=1)).tolist()
        mean, count, positional = moments.mean.tolist(), moments.count.tolist(), self.positional.tolist()
        found = []
        for row, (name, kind, layer, head) in enumerate(self.places):
            scores = {
                role: Score(min(1.0, mean[row][at]), chance[row][at])
                for role in ROLES
                if count[row][at := MEASURES.index(role)]
            }
            scores["positional"] = Score(positional[row])
            call = self.layout.places.index(
                next(p for p in self.layout.places if (p.name, p.layer) == (name, layer))
            )
            found.append(Head(call, name, kind, layer, head, 0, scores))  # type: ignore[arg-type]
        return tuple(found)

    @cached_property
    def table(self) -> Table:
        """One row per head: mean, variance, least, quantiles and greatest of every measure; the best role."""
        moments, columns = self.found.moments, list(PLACE)
        cells: list[list[Value]] = [list(place) for place in self.places]

        def put(name: str, values: Tensor, where: Tensor | None = None) -> None:
            columns.append(name)
            for row, value in enumerate(values.tolist()):
                cells[row].append(value if where is None or bool(where[row]) else None)

        put("queries", moments.count[:, MEASURES.index("entropy")])
        for at, measure in enumerate(MEASURES):
            there = moments.count[:, at] > 0
            least, greatest = moments.least[:, at], moments.greatest[:, at]
            put(f"{measure}_mean", moments.mean[:, at], there)
            put(f"{measure}_variance", moments.variance[:, at], there)
            put(f"{measure}_min", least, there)
            for percent in QUANTILES:
                # A bin reaches a little beyond the values in it.
                value = quantile(self.found.sketch[:, at], percent / 100).clamp(least, greatest)
                put(f"{measure}_p{percent:02d}", value, there)
            put(f"{measure}_max", greatest, there)
            if measure in ROLES:
                put(f"{measure}_chance", self.found.chance[:, at] / moments.count[:, at].clamp(min=1), there)
        put("positional", self.positional)
        columns += ["induction_on_repeats", "best"]
        for row, head in enumerate(self.heads):
            cells[row] += [None if self.repeats is None else self.repeats[row], head.best]
        return Table(tuple(columns), [tuple(row) for row in cells])

    # ---- distances and examples --------------------------------------------------------------------

    @cached_property
    def distances(self) -> Table:
        """The mean weight of every head at every distance that occurs: ``key − query``, ``first … last``."""
        rows: list[tuple[Value, ...]] = []
        for place, mass, pairs in zip(self.places, self.found.mass.tolist(), self.found.pairs.tolist()):
            for (first, last), weight, count in zip(distance_bins.ranges(), mass, pairs):
                if count:
                    rows.append((*place, first, last, int(count), weight, weight / count))
        return Table((*PLACE, "first", "last", "pairs", "weight", "mean_weight"), rows)

    def examples(self) -> Iterator[dict[str, Any]]:
        """The texts that excite each head most, best first; as ids, not tokens."""
        found = {name: tensor.tolist() for name, tensor in self.found.examples.tensors().items()}
        for row, place in enumerate(self.places):
            for rank, score in enumerate(found["score"][row]):
                if not math.isfinite(score):
                    continue
                document, part, query, key, first = found["place"][row][rank]
                ids = [one for one in found["tokens"][row][rank] if one >= 0]
                yield {
                    **dict(zip(PLACE, place)),
                    "rank": rank,
                    "score": score,
                    "document": document,
                    "part": part,
                    "query": query,
                    "key": key,
                    "weight": found["weight"][row][rank],
                    "first_shown": first,
                    "pair": found["pair"][row][rank],
                    "ids": ids,
                    "weights": found["row"][row][rank][: len(ids)],
                }

    def failed(self) -> Iterator[dict[str, Any]]:
        """What could not be read, in the order of the corpus."""
        lines = self.failures.decode("utf-8").split("\n")[:-1]
        yield from sorted(map(json.loads, lines), key=lambda one: (one["document"], one["part"]))

    # ---- files -----------------------------------------------------------------------------------

    def save(self, folder: Path, tokens: Any) -> None:
        """Write Parquet, ``failed.jsonl`` and ``summary.json``; ``tokens`` turns ids into tokens."""
        examples = []
        for one in self.examples():
            query, key = tokens(one.pop("pair"))
            examples.append({**one, "query_token": query, "key_token": key, "tokens": tokens(one["ids"])})
        for name, table in (("heads", self.table), ("distances", self.distances)):
            _write_parquet(folder / f"{name}.parquet", table.to_arrow())
        _write_parquet(folder / "examples.parquet", _package("pyarrow").Table.from_pylist(examples))
        lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in self.failed()]
        replace_file(folder / "failed.jsonl", json_bytes("".join(lines)))
        summary = {
            **self.identity,
            **self.counts,
            "heads": len(self.places),
            "seconds": round(self.seconds, 3),
        }
        replace_file(folder / "summary.json", json_bytes(json.dumps(summary, indent=1, ensure_ascii=False)))


def check_parquet() -> None:
    """Raise now, rather than after hours, if the results could not be written."""
    _package("pyarrow.parquet")


def _write_parquet(path: Path, table: Any) -> None:
    sink = _package("pyarrow").BufferOutputStream()
    _package("pyarrow.parquet").write_table(table, sink)
    replace_file(path, sink.getvalue().to_pybytes())


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise PackageError(
            "Writing the results of a survey as Parquet needs pyarrow.",
            got="an installation without it",
            do='Install it: pip install "regard[survey]".',
        ) from error
