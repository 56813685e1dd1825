"""Which heads align two texts: a source and its translation, or two spans of one text.

A head aligns if each query gives its weight to few keys, and different queries to different keys. With the
weights of a row over the keys of the span, ``p_ij = w_ij / Σ_{j∈keys} w_ij``:

* ``mass`` is ``Σ_{j∈keys} w_ij``, averaged over the queries: how much of the row lies on the span at all;
* ``sharpness`` is ``1 − H(p_i) / log(keys)``, averaged: 0 for even rows, 1 for rows with a single key;
* ``one_to_one`` is the share of pairs of a query and a key that are each other's strongest, among
  ``min(queries, keys)`` possible ones;
* ``monotony`` is the rank correlation of queries with their strongest keys: 1 in order, −1 reversed;
* ``score = mass · sharpness · one_to_one`` says how much a head aligns anything with anything. Order is not
  part of it: languages and chemical reactions reorder.

A head that looks one word ahead is as sharp and one-to-one as one that looks at the word itself, so no score
of a single head tells them apart. Together the heads do: they miss in different ways, and agree where they
are right. The heads with at least half of the best score are taken as aligning, and come first;

* ``agreement`` is ``Σ_j min(p_ij, c_ij)``, averaged over the queries, where ``c`` is the mean of the aligning
  heads: 1 for a head like all of them, 0 for one that never looks where they do. It sorts the aligning heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import index as whole_number
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.errors import ArgumentError, RecordingError
from regard.heads.head_selection import Chosen, chosen
from regard.heads.head_table import check_batch, check_recording
from regard.heads.padding import real_keys, real_queries
from regard.interception.call_types import Kind
from regard.masks.extent import Integers
from regard.recording import Call, Recording
from regard.recording.call import Positions
from regard.table import Table

SCORES = ("mass", "sharpness", "one_to_one", "monotony", "score")
COLUMNS = ("name", "kind", "layer", "head", "texts", *SCORES, "agreement")

AGAINST_PAIRS = ("precision", "auc")
"""The further columns where pairs are known."""

CELLS = 4_000_000
"""Weights of a head that are in memory at once."""

ALIGNING = 0.5
"""Heads with at least this share of the best score are taken as aligning."""

TextSpan = Positions | Callable[[list[str]], Positions]
"""Positions in the text, or a function that finds them among the tokens."""

PositionPair = tuple[int, int]
"""A query and the key that belongs to it, as positions in the recording."""


def alignment(
    recording: Recording,
    *,
    queries: TextSpan | None = None,
    keys: TextSpan | None = None,
    pairs: Iterable[PositionPair] | None = None,
    kind: Kind | None = None,
    batch: int | None = None,
    layers: Chosen = None,
    heads: Chosen = None,
) -> Table:
    """One row per head, the best first: how well it aligns the queries with the keys.

    Of an encoder-decoder, cross-attention is scored and spans are optional. Within one text, ``queries`` and
    ``keys`` are two spans that do not overlap: positions, or functions of the tokens, so that one call
    serves texts of different lengths. Scores are averaged over texts, which are the elements of the batch and
    the runs; ``batch`` chooses an element. The heads with at least half of the best ``score`` come first,
    sorted by their ``agreement`` with each other; then the others, by score.

    >>> import regard
    >>> from regard.translator import embedded, look
    >>> seen = look(embedded(), "The cat sat on the mat.").recording
    >>> best = alignment(seen)[0]
    >>> best["kind"], 0 < best["score"] <= 1
    ('cross', True)

    With ``pairs`` of positions that belong together there are two more columns, over the queries that have a
    pair: ``precision``, the share whose strongest key is one of theirs, and ``auc``, the mean share of other
    keys that weigh less than theirs. The heads are then sorted by precision. Rows are read in chunks, so that
    nothing of n×n is built.
    """
    check_recording(recording)
    known = None if pairs is None else _by_query(pairs)
    found: dict[HeadPlace, list[list[float]]] = {}
    texts: dict[tuple[object, ...], AlignedText] = {}
    for call in aligning_calls(recording, queries, keys, kind, layers, heads):
        check_batch(call, batch)
        for one in range(call.batch) if batch is None else [batch]:
            span = spans_of(recording, call, one, queries, keys)
            if known is not None:
                _check_pairs(known, span)
            same = call.run, one, call.kind, span.queries.tobytes(), span.keys.tobytes()
            text = texts.setdefault(same, AlignedText(one, span, []))
            for index, head in enumerate(call.head_numbers):
                place = call.name, call.kind, call.layer, head
                text.heads.append((place, call, index))
                found.setdefault(place, []).append(_scores(call, index, one, span, known))
    means = {place: np.mean(scores, 0).tolist() for place, scores in found.items()}
    score = {place: float(values[SCORES.index("score")]) for place, values in means.items()}
    aligning = {place for place, value in score.items() if value >= ALIGNING * max(score.values())}
    agreement = _agreement(list(texts.values()), aligning)
    blind = len(SCORES)  # after these come precision and auc

    def worth(place: HeadPlace) -> tuple[float, float]:
        if known is not None:
            return means[place][blind], agreement[place]
        return (1.0, agreement[place]) if place in aligning else (0.0, score[place])

    return Table(
        (*COLUMNS, *(() if known is None else AGAINST_PAIRS)),
        [
            (*place, len(found[place]), *means[place][:blind], agreement[place], *means[place][blind:])
            for place in sorted(means, key=worth, reverse=True)
        ],
    )


# ---- which part of the matrix ------------------------------------------------------------------


@dataclass(frozen=True)
class AlignedSpans:
    """The queries and the keys that are aligned with each other, as positions in a call."""

    queries: Integers
    keys: Integers


HeadPlace = tuple[str, Kind, int, int]
"""The name, kind and layer of a call, and the number of a head."""


class AlignedText(NamedTuple):
    """One text, its spans, and every head that is scored in it."""

    batch: int
    span: AlignedSpans
    heads: list[tuple[HeadPlace, Call, int]]  # with the index of the head in the call


def aligning_calls(
    recording: Recording,
    queries: TextSpan | None,
    keys: TextSpan | None,
    kind: Kind | None = None,
    layers: Chosen = None,
    heads: Chosen = None,
) -> list[Call]:
    """The calls between the two sides: cross-attention where there is any, otherwise all of them."""
    known = {call.kind for call in recording}
    if kind is None:
        kind = "cross" if "cross" in known else None
    elif kind not in known:
        _raise_kind(known, kind)
    if kind != "cross" and (queries is None or keys is None):
        raise RecordingError(
            "Without cross-attention, queries= and keys= must say which two spans of the text are aligned.",
            got="queries = {queries!r}, keys = {keys!r}",
            do="Pass both, such as queries=slice(8, 12), keys=slice(0, 5).",
            queries=queries,
            keys=keys,
        )
    found = [call for _, call in chosen(recording, layers, heads) if kind is None or call.kind == kind]
    if not found:
        _raise_kind(known, kind)
    if any(not call.has_weights for call in found):
        raise RecordingError(
            "An alignment needs weights.",
            got="a recording of statistics",
            do="Record without statistics=True.",
        )
    return found


def _raise_kind(known: set[Kind], kind: Kind | None) -> None:
    raise RecordingError(
        "The recording has calls of the kinds {kinds}.",
        got="kind = {kind!r}",
        do="Choose one of them.",
        kinds=", ".join(sorted(known)),
        kind=kind,
    )


def spans_of(
    recording: Recording, call: Call, batch: int, queries: TextSpan | None, keys: TextSpan | None
) -> AlignedSpans:
    """The positions of both spans in one text; by default everything that is not padding."""
    i = _positions("queries", queries, recording.query_tokens(call, batch), call.queries)
    j = _positions("keys", keys, recording.key_tokens(call, batch), call.keys)
    if call.kind != "cross" and np.intersect1d(i + (call.keys - call.queries), j).size:
        raise ArgumentError(
            "The queries and the keys of an alignment within one text must not overlap.",
            got="queries {queries}, keys {keys}",
            do="Choose two spans without a common position.",
            queries=_range(i),
            keys=_range(j),
        )
    i = i[real_queries(recording, call)[batch].numpy()[i]]
    j = j[real_keys(call)[batch].numpy()[j]]
    if not (i.size and j.size):
        raise ArgumentError(
            "Both spans of an alignment must have at least one token that is not padding.",
            got="{queries} queries, {keys} keys",
            do="Compare the spans with the length of the text.",
            queries=i.size,
            keys=j.size,
        )
    return AlignedSpans(i, j)


def _positions(name: str, span: TextSpan | None, tokens: list[str] | None, length: int) -> Integers:
    if span is None:
        return np.arange(length)
    if callable(span):
        if tokens is None:
            raise RecordingError(
                "A function for {name}= needs the tokens of the text.",
                got="a recording without tokens",
                do="Set seen.tokens first.",
                name=name,
            )
        span = span(tokens)
    try:
        found = np.arange(length)[span if isinstance(span, slice) else _integers(span)]
    except (IndexError, TypeError, ValueError):
        found = np.arange(0)
    if not found.size or len(np.unique(found)) < len(found):
        raise ArgumentError(
            "{name} must be a slice or positions of the text (0 … {last}), at least one, each once.",
            got="{name} = {span!r}",
            do="Count from 0.",
            name=name,
            last=length - 1,
            span=span,
        )
    return found


def _integers(span: Positions) -> Integers:
    positions = np.atleast_1d(np.asarray(span))
    if positions.dtype.kind not in "iu":
        raise TypeError(positions.dtype)
    return positions.astype(np.int64)


def _range(positions: Integers) -> str:
    return f"{positions.min()} … {positions.max()}"


# ---- scores of one head ------------------------------------------------------------------------


class AlignmentTally:
    """What the rows of one head say about alignment, added a few rows at a time."""

    def __init__(self, span: AlignedSpans, known: dict[int, set[int]] | None) -> None:
        self.span, self.known = span, known
        self.mass: list[Tensor] = []
        self.sharpness: list[Tensor] = []
        self.strongest_keys: list[Tensor] = []
        self.peaks = torch.zeros(len(span.keys), dtype=torch.float64)  # the greatest share of each key
        self.strongest_queries = torch.full((len(span.keys),), -1)
        self.right: list[float] = []
        self.below: list[float] = []

    def add(self, start: int, weights: Tensor) -> None:
        """Add the rows from ``start`` on, ``weights (rows, keys)``."""
        mass = weights.sum(1)
        shares = weights / mass.clamp(min=torch.finfo(weights.dtype).tiny)[:, None]
        entropy = -torch.special.xlogy(shares, shares).sum(1)
        even = max(float(np.log(len(self.span.keys))), torch.finfo(weights.dtype).tiny)
        self.mass.append(mass)
        self.sharpness.append(torch.where(mass > 0, 1 - entropy / even, 0.0))
        self.strongest_keys.append(torch.where(mass > 0, shares.argmax(1), -1))
        peaks, at = shares.max(0)
        better = peaks > self.peaks
        self.peaks = torch.where(better, peaks, self.peaks)
        self.strongest_queries = torch.where(better, at + start, self.strongest_queries)
        if self.known is not None:
            self._compare(start, shares, self.known)

    def _compare(self, start: int, shares: Tensor, known: dict[int, set[int]]) -> None:
        """Add whether a row's strongest key is a known one, and the share of other keys that weigh less."""
        for offset, row in enumerate(shares):
            own = known.get(int(self.span.queries[start + offset]))
            if own is None:
                continue
            mine = torch.from_numpy(np.isin(self.span.keys, list(own)))
            others, paired = row[~mine], row[mine][:, None]
            self.right.append(float(mine[int(row.argmax())]))
            less = (others < paired).double() + 0.5 * (others == paired).double()
            self.below.append(float(less.mean()) if len(others) else 1.0)

    def scores(self) -> list[float]:
        """The columns of the table, in their order."""
        keys = torch.cat(self.strongest_keys)
        mutual = (keys >= 0) & (self.strongest_queries[keys.clamp(min=0)] == torch.arange(len(keys)))
        one_to_one = float(mutual.sum()) / min(len(self.span.queries), len(self.span.keys))
        mass, sharpness = float(torch.cat(self.mass).mean()), float(torch.cat(self.sharpness).mean())
        order = _rank_correlation(self.span.keys[keys[keys >= 0].numpy()])
        found = [mass, sharpness, one_to_one, order, mass * sharpness * one_to_one]
        return (
            found if self.known is None else [*found, float(np.mean(self.right)), float(np.mean(self.below))]
        )


def _scores(
    call: Call, index: int, batch: int, span: AlignedSpans, known: dict[int, set[int]] | None
) -> list[float]:
    tally = AlignmentTally(span, known)
    step = max(1, CELLS // len(span.keys))
    for start in range(0, len(span.queries), step):
        tally.add(start, _weights(call, index, batch, span.queries[start : start + step], span.keys))
    return tally.scores()


def _rank_correlation(keys: Integers) -> float:
    """Spearman's correlation of rows 0, 1, … with their keys; rows that share a key share its rank."""
    if len(keys) < 2 or keys.min() == keys.max():
        return 0.0
    _, at, counts = np.unique(keys, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[at]
    return float(np.corrcoef(np.arange(len(keys)), ranks)[0, 1])


# ---- heads together ----------------------------------------------------------------------------


def _agreement(texts: Sequence[AlignedText], aligning: set[HeadPlace]) -> dict[HeadPlace, float]:
    """How far each head looks where the mean of the aligning heads looks, averaged over the texts."""
    found: dict[HeadPlace, list[float]] = {}
    for batch, span, heads in texts:
        voices = [at for at, (place, _, _) in enumerate(heads) if place in aligning]
        overlap = torch.zeros(len(heads), dtype=torch.float64)
        step = max(1, CELLS // (len(span.keys) * len(heads)))
        for start in range(0, len(span.queries), step) if voices else ():
            rows = span.queries[start : start + step]
            shares = torch.stack([_shares(call, index, batch, rows, span.keys) for _, call, index in heads])
            mean = shares[voices].mean(0)  # (row, key)
            overlap += torch.stack([torch.minimum(one, mean).sum() for one in shares])
        for (place, _, _), total in zip(heads, overlap.tolist(), strict=True):
            found.setdefault(place, []).append(total / len(span.queries))
    return {place: float(np.mean(values)) for place, values in found.items()}


def _shares(call: Call, index: int, batch: int, rows: Integers, keys: Integers) -> Tensor:
    """The weights of some rows divided by their sum over the keys of the span."""
    weights = _weights(call, index, batch, rows, keys)
    return weights / weights.sum(1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)


def _weights(call: Call, index: int, batch: int, rows: Integers, keys: Integers) -> Tensor:
    head = call.head_numbers[index]
    return call.weights(head, rows=rows.tolist(), columns=keys.tolist(), batch=batch).double().cpu()


# ---- known pairs -------------------------------------------------------------------------------


def _by_query(pairs: Iterable[PositionPair]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    try:
        for query, key in pairs:
            found.setdefault(whole_number(query), set()).add(whole_number(key))
    except (TypeError, ValueError):
        found = {}
    if not found:
        raise ArgumentError(
            "pairs must be positions of a query and the key that belongs to it, at least one pair.",
            got="{pairs}",
            do="Pass pairs=[(7, 2), (8, 3)], say.",
            pairs=repr(pairs)[:60],
        )
    return found


def _check_pairs(known: dict[int, set[int]], span: AlignedSpans) -> None:
    outside = [
        (query, key)
        for query, keys in known.items()
        for key in sorted(keys)
        if query not in span.queries or key not in span.keys
    ]
    if outside:
        raise ArgumentError(
            "Every pair must have its query among queries ({queries}) and its key among keys ({keys}).",
            got="{pair}",
            do="Count positions from 0 in the recording, special tokens included.",
            queries=_range(span.queries),
            keys=_range(span.keys),
            pair=outside[0],
        )
