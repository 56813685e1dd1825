"""Pairs of tokens that belong together, according to the attention of some heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from regard.checks import check_choice, check_integer
from regard.errors import ArgumentError, RecordingError
from regard.heads.alignment_scores import TextSpan, aligning_calls, alignment, spans_of
from regard.heads.head_table import check_batch, check_recording, check_run
from regard.heads.monotone_path import monotone_path
from regard.interception.call_types import Kind
from regard.masks.extent import Integers, Numbers
from regard.recording import Call, Recording
from regard.table import Table

METHODS = ("dtw", "argmax", "mutual")

COLUMNS = ("query", "query_token", "key", "key_token", "weight")


class AlignedPair(NamedTuple):
    """A query and a key that belong together, as positions in the recording, and the weight between them.

    >>> pair = AlignedPair(query=3, key=1, weight=0.8)
    >>> pair.query, pair.key
    (3, 1)
    """

    query: int
    key: int
    weight: float


@dataclass(frozen=True, eq=False)
class Alignment:
    """Pairs of queries and keys, and the weights that they were found in.

    ``weights (query, key)`` are those between the two spans, as the method saw them: the mean of the heads.

    >>> from regard.translator import embedded, look
    >>> seen = look(embedded(), "I love you.", translation="我爱你。").recording
    >>> all(0 <= pair.weight <= 1 for pair in align(seen, method="argmax").pairs)
    True
    """

    method: str
    heads: tuple[tuple[int, int], ...]
    kind: Kind
    pairs: tuple[AlignedPair, ...]
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    weights: Numbers
    query_tokens: tuple[str, ...] | None = None
    key_tokens: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        heads = ", ".join(f"layer {layer} head {head}" for layer, head in self.heads)
        return f"<Alignment: {len(self.pairs)} pairs by {self.method}, {self.kind} {heads}>"

    def table(self) -> Table:
        """One row per pair, with its tokens."""
        row_names, column_names = _names(self.queries, self.query_tokens), _names(self.keys, self.key_tokens)
        return Table(
            COLUMNS,
            [
                (pair.query, row_names[pair.query], pair.key, column_names[pair.key], pair.weight)
                for pair in self.pairs
            ],
        )

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as comma-separated text; also written to ``path``, if given."""
        return self.table().to_csv(path)

    def to_json(self, path: str | Path | None = None) -> str:
        """The table as JSON; also written to ``path``, if given."""
        return self.table().to_json(path)


def align(
    recording: Recording,
    heads: Sequence[tuple[int, int]] | None = None,
    *,
    method: str = "dtw",
    queries: TextSpan | None = None,
    keys: TextSpan | None = None,
    kind: Kind | None = None,
    run: int | None = None,
    batch: int = 0,
    median: int = 1,
    standardize: bool = False,
) -> Alignment:
    """Pairs of queries and keys from the attention of one head, or of several averaged.

    Args:
        recording: a recording with cross-attention, or of one text with two spans.
        heads: ``(layer, head)`` pairs; by default the best of :func:`regard.heads.alignment`.
        method: "dtw", the monotone path that collects the most weight above the mean (speech, text in the
            same order); "argmax", the strongest key of each query; "mutual", pairs that are each other's
            strongest.
        queries, keys: the two spans, as in :func:`regard.heads.alignment`.
        kind, run, batch: which calls, and which text.
        median: the width of a median filter along the keys, an odd number; 1 for none.
        standardize: subtract the mean over the queries from every key and divide by the deviation, so that
            keys that everything attends to do not attract the path.

    Each head's rows are divided by their sum over the span first, and the heads are averaged last.

    >>> import regard
    >>> from regard.translator import embedded, look
    >>> seen = look(embedded(), "The cat sat on the mat.").recording
    >>> found = align(seen, method="argmax")
    >>> found.table().columns
    ('query', 'query_token', 'key', 'key_token', 'weight')
    """
    check_recording(recording)
    check_choice("method", method, METHODS)
    check_median(median)
    calls = aligning_calls(recording, queries, keys, kind)
    if run is not None:
        check_run(recording, run)
        calls = [call for call in calls if call.run == run]
    if heads is None:
        best = alignment(recording, queries=queries, keys=keys, kind=kind, batch=batch)[0]
        found = [(int(str(best["layer"])), int(str(best["head"])))]
        calls = [call for call in calls if call.name == best["name"]]
    else:
        found = _checked_heads(heads)
    chosen = [(_call_of(calls, layer), head) for layer, head in found]
    first = chosen[0][0]
    check_batch(first, batch)
    span = spans_of(recording, first, batch, queries, keys)
    weights = np.mean(
        [
            smoothed(_shares(call, head, batch, span.queries, span.keys), median, standardize)
            for call, head in chosen
        ],
        0,
    )
    names = recording.row_tokens(first, batch), recording.key_tokens(first, batch)
    return Alignment(
        method,
        tuple(found),
        first.kind,
        tuple(
            AlignedPair(int(span.queries[row]), int(span.keys[column]), float(weights[row, column]))
            for row, column in _cells(weights, method, centred=standardize)
        ),
        tuple(span.queries.tolist()),
        tuple(span.keys.tolist()),
        weights,
        *(
            None if tokens is None else tuple(tokens[at] for at in positions)
            for tokens, positions in zip(names, (span.queries, span.keys))
        ),
    )


# ---- weights -----------------------------------------------------------------------------------


def _shares(call: Call, head: int, batch: int, rows: Integers, columns: Integers) -> Numbers:
    """The weights of a head between the spans; each row sums to 1, or is 0 if the span has no weight."""
    weights = call.weights(head, rows=rows.tolist(), columns=columns.tolist(), batch=batch).double().cpu()
    sums = weights.sum(1, keepdim=True)
    return (weights / sums.clamp(min=torch.finfo(weights.dtype).tiny)).numpy()


def smoothed(shares: Numbers, median: int, standardize: bool) -> Numbers:
    """Weights ``(query, key)``, standardized over the queries and filtered along the keys.

    >>> smoothed(np.array([[0.0, 9, 0, 0, 3, 3]]), 3, False).tolist()
    [[9.0, 0.0, 0.0, 0.0, 3.0, 3.0]]
    """
    if standardize:
        deviation = shares.std(0)
        shares = (shares - shares.mean(0)) / np.where(deviation > 0, deviation, 1.0)
    if median == 1 or shares.shape[1] <= median // 2:
        return shares
    # The edges are mirrored without repeating the outermost key.
    padded = np.pad(shares, ((0, 0), (median // 2, median // 2)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, median, axis=1)
    return np.median(windows, -1)


def _cells(weights: Numbers, method: str, *, centred: bool) -> list[tuple[int, int]]:
    """The rows and columns of the pairs; ``centred`` weights have a mean of 0 for each key."""
    if method == "dtw":
        # Above the mean: among weights that are never negative, every detour would pay.
        above = weights if centred else weights - weights.mean()
        return [(int(row), int(column)) for row, column in monotone_path(above)]
    columns = weights.argmax(1)
    cells = list(enumerate(columns.tolist()))
    if method == "argmax":
        return cells
    rows = weights.argmax(0)
    return [(row, column) for row, column in cells if rows[column] == row]


def _names(positions: Sequence[int], tokens: Sequence[str] | None) -> dict[int, str | None]:
    return {at: None if tokens is None else tokens[place] for place, at in enumerate(positions)}


# ---- checks ------------------------------------------------------------------------------------


def check_median(median: object) -> int:
    """The width of a median filter, if it is an odd number."""
    width = check_integer("median", median, least=1)
    if width % 2 == 0:
        raise ArgumentError(
            "median must be an odd number of keys.",
            got="median = {median}",
            do="Try {example}.",
            median=width,
            example=7,
        )
    return width


def _checked_heads(heads: object) -> list[tuple[int, int]]:
    try:
        found = [(index(layer), index(head)) for layer, head in heads]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        found = []
    if not found:
        raise ArgumentError(
            "heads must be pairs of a layer and a head, at least one.",
            got="heads = {heads!r}",
            do="Pass heads=[(10, 5)], say, or omit it to find the best head.",
            heads=heads,
        )
    return found


def _call_of(calls: Sequence[Call], layer: int) -> Call:
    found = [call for call in calls if call.layer == layer]
    if len(found) == 1:
        return found[0]
    if not found:
        raise RecordingError(
            "An alignment must be taken from a recorded layer ({layers}).",
            got="layer = {layer}",
            do="Choose one of them.",
            layers=", ".join(map(str, sorted({call.layer for call in calls}))),
            layer=layer,
        )
    raise RecordingError(
        "Layer {number} was recorded more than once ({count} calls).",
        do="Pass run= or kind=.",
        number=layer,
        count=len(found),
    )
