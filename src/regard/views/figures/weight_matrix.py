"""The weights of a head as figures read them: a few rows at a time, with their tokens.

Whatever a figure is given (a recording, one of its calls, an array) becomes :class:`Matrix`. Long
texts are read block by block, so that nothing n×n is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.checks import is_index
from regard.errors import ArgumentError, DtypeError, RecordingError, ShapeError
from regard.masks.extent import Bools
from regard.recording import Call, Recording
from regard.views.figures.figure_texts import place_name
from regard.views.page.display_tokens import text_of

Floats = NDArray[np.floating[Any]]

BLOCK = 2**18
"""How many weights are read at a time."""


@dataclass(frozen=True)
class RowBlock:
    """Some neighbouring rows of a matrix."""

    start: int
    values: Floats  # (rows, keys)
    hidden: Bools | None  # (rows, keys): pairs that may not attend; None if all may

    @property
    def stop(self) -> int:
        """The row after the last."""
        return self.start + len(self.values)


@dataclass(frozen=True)
class Matrix:
    """One head: who it is, its tokens, and a way to read some of its rows.

    >>> matrix, = matrices_of([[0.9, 0.1], [0.4, 0.6]], queries=["I", "am"])
    >>> matrix.shape, matrix.keys
    ((2, 2), ['I', 'am'])
    >>> [block.values.shape for block in matrix.blocks(rows=1)]
    [(1, 2), (1, 2)]
    """

    shape: tuple[int, int]
    read: Callable[[slice], tuple[Floats, Bools | None]]
    queries: Sequence[str] | None = None
    keys: Sequence[str] | None = None
    head: int | None = None
    layer: int | None = None
    kind: str = ""

    def name(self, lang: str = "en") -> str:
        """Such as "layer 2, head 3"; empty if nothing is known."""
        return place_name(self.layer, self.head, self.kind, lang)

    def layer_name(self, lang: str = "en") -> str:
        """Such as "layer 2", for a figure of several heads; empty where nothing is known."""
        return place_name(self.layer, None, self.kind, lang)

    def blocks(self, rows: int | None = None) -> Iterator[RowBlock]:
        """All rows from the first to the last, ``rows`` at a time."""
        queries, keys = self.shape
        step = rows or max(1, BLOCK // keys)
        for start in range(0, queries, step):
            values, hidden = self.read(slice(start, min(start + step, queries)))
            bad = np.isnan(values) | (values == np.inf)
            if bad.any():
                row, column = np.argwhere(bad)[0]
                raise ArgumentError(
                    "Weights must be finite numbers ({weights})."
                    if self.name()
                    else "Weights must be finite numbers.",
                    got="{values} at query {start}, key {column}",
                    do="Check the scores that they come from.",
                    weights=self.name(),
                    values=values[row, column],
                    start=start + row,
                    column=column,
                )
            yield RowBlock(start, values, hidden)

    def row(self, query: int) -> RowBlock:
        """One row alone."""
        if not is_index(query, self.shape[0]):
            raise ArgumentError(
                "query must be one of the rows (0 … {shape}).",
                got="query = {query!r}",
                do="Count from 0.",
                shape=self.shape[0] - 1,
                query=query,
            )
        one = Matrix((1, self.shape[1]), lambda _: self.read(slice(query, query + 1)))
        return next(one.blocks())


def matrices_of(
    given: object,
    *,
    layer: int | None = None,
    heads: int | Sequence[int] | None = None,
    kind: str | None = None,
    run: int | None = None,
    batch: int = 0,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
) -> list[Matrix]:
    """The requested heads, each as a matrix.

    ``given`` is a recording (``layer``, ``kind`` and ``run`` choose the call), one call, or an array
    ``(query, key)`` or ``(head, query, key)``. ``queries`` and ``keys`` replace the recorded tokens.
    """
    if isinstance(given, Recording):
        call = call_of(given, layer=layer, kind=kind, run=run)
        queries = shown_tokens(given.row_tokens(call, batch)) if queries is None else queries
        keys = shown_tokens(given.key_tokens(call, batch)) if keys is None else keys
    elif isinstance(given, Call):
        call = given
    else:
        return _of_array(given, heads, queries, keys)
    if 0 in call.shape:
        raise ShapeError(
            "A figure needs at least one query and one key.", got="{call!r}", do="Record a text.", call=call
        )
    known = call.head_numbers
    chosen = known if heads is None else (heads,) if isinstance(heads, int) else tuple(heads)
    labels = _labels(queries, keys, (call.queries, call.keys))
    return [_of_call(call, head, batch, *labels) for head in chosen]


def shown_tokens(tokens: Sequence[str] | None) -> Sequence[str] | None:
    """Recorded tokens without the marks of their tokenizer, as pages show them."""
    return None if tokens is None else text_of(tokens).tokens


def one_matrix(given: object, *, head: int | None, **options: Any) -> Matrix:
    """The requested head, of which there must be one."""
    found = matrices_of(given, heads=head, **options)
    if len(found) > 1:
        raise ArgumentError(
            "This figure can show only one head.",
            got="{found_count} heads ({head} … {found_head})",
            do="Pass head=0, or draw all of them with figures.grid.",
            found_count=len(found),
            head=found[0].head,
            found_head=found[-1].head,
        )
    return found[0]


def call_of(
    recording: Recording, *, layer: int | None = None, kind: str | None = None, run: int | None = None
) -> Call:
    """The requested call, of which there must be one."""
    found = calls_of(recording, layer=layer, kind=kind, run=run)
    for name, values in (
        ("layer", {call.layer for call in found}),
        ("kind", {call.kind for call in found}),
        ("run", {call.run for call in found}),
    ):
        if len(values) > 1:
            raise ArgumentError(
                "This figure can show only one call of the recording.",
                got="{found_count} calls; {name} is one of {values}",
                do="Pass {name}={first!r}.",
                found_count=len(found),
                name=name,
                values=", ".join(map(str, sorted(values))),
                first=sorted(values)[0],
            )
    if len(found) > 1:
        raise ArgumentError(
            "This figure can show only one call of the recording.",
            got="{found_count} calls that have layer, kind and run in common",
            do="Pass one of them: figures.heatmap(seen[0], head=0).",
            found_count=len(found),
        )
    return found[0]


def calls_of(
    recording: Recording, *, layer: int | None = None, kind: str | None = None, run: int | None = None
) -> list[Call]:
    """The calls that have this layer, kind and run, where these are given."""
    found = list(recording.calls)
    if not found:
        raise RecordingError(
            "A figure needs a recording with at least one attention call.",
            got="{recording!r}",
            do="Run the model inside the watch block.",
            recording=recording,
        )
    for name, wanted in (("kind", kind), ("layer", layer), ("run", run)):
        if wanted is None:
            continue
        known = sorted({getattr(call, name) for call in found})
        found = [call for call in found if getattr(call, name) == wanted]
        if not found or isinstance(wanted, bool):
            raise ArgumentError(
                "{name} must be one of those recorded ({known}).",
                got="{name} = {wanted!r}",
                do="Choose one, or record it.",
                name=name,
                known=", ".join(map(str, known)),
                wanted=wanted,
            )
    return found


def _of_call(
    call: Call, head: int, batch: int, queries: Sequence[str] | None, keys: Sequence[str] | None
) -> Matrix:
    call.weights(head, rows=slice(0, 0), batch=batch)  # raises now what it would raise later
    mask = call.mask.select((batch, call.head_numbers.index(head)))

    def read(rows: slice) -> tuple[Floats, Bools | None]:
        values = call.weights(head, rows=rows, batch=batch).cpu().numpy()
        positions = np.arange(call.queries)[rows] + call.extent.offset
        allowed = mask.evaluate(call.extent, positions)
        hidden = None if allowed.all() else ~np.broadcast_to(allowed, values.shape)
        return values, hidden

    return Matrix((call.queries, call.keys), read, queries, keys, head, call.layer, call.kind)


def _of_array(
    given: object,
    heads: int | Sequence[int] | None,
    queries: Sequence[str] | None,
    keys: Sequence[str] | None,
) -> list[Matrix]:
    values = numbers_of(given, "Weights")
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise ShapeError(
            "Weights must be (query, key) or (head, query, key), and not empty.",
            got="shape {shape}",
            do="Choose one sequence of the batch.",
            shape=values.shape,
        )
    stack = values if values.ndim == 3 else values[None]
    chosen = range(len(stack)) if heads is None else (heads,) if isinstance(heads, int) else heads
    for head in chosen:
        if not is_index(head, len(stack)):
            raise ArgumentError(
                "head must be one of the given heads (0 … {stack_count}).",
                got="head = {head!r}",
                do="Count from 0.",
                stack_count=len(stack) - 1,
                head=head,
            )
    rows, columns = _labels(queries, keys, (values.shape[-2], values.shape[-1]))

    def reader(head: int) -> Callable[[slice], tuple[Floats, Bools | None]]:
        def read(part: slice) -> tuple[Floats, Bools | None]:
            some = stack[head, part]
            hidden = some == -np.inf  # masked scores
            return (np.where(hidden, 0.0, some), hidden) if hidden.any() else (some, None)

        return read

    return [
        Matrix(
            (stack.shape[1], stack.shape[2]), reader(head), rows, columns, head if values.ndim == 3 else None
        )
        for head in chosen
    ]


def numbers_of(given: object, name: str) -> Floats:
    """An array of floats from a tensor, an array or lists."""
    if isinstance(given, torch.Tensor):
        wide = torch.promote_types(given.dtype, torch.float32)
        values: NDArray[Any] = given.detach().to("cpu", wide).numpy()
    else:
        try:
            values = np.asarray(given)
        except ValueError:
            values = np.asarray(None)  # lists of different lengths
    if values.dtype.kind not in "fiub":
        raise DtypeError(
            "{name} must be real numbers in an array, a tensor or lists of equal length.",
            got="{type} of {dtype}" if values.ndim else "{type}",
            do="Pass numbers, or a recording.",
            name=name,
            type=type(given).__name__,
            dtype=values.dtype,
        )
    return values.astype(np.promote_types(values.dtype, np.float32), copy=False)


def _labels(
    queries: Sequence[str] | None, keys: Sequence[str] | None, shape: tuple[int, int]
) -> tuple[list[str] | None, list[str] | None]:
    """The labels of both sides, checked; keys of a square matrix have those of the queries by default."""
    if keys is None and queries is not None and shape[0] == shape[1]:
        keys = queries
    return checked_labels("queries", queries, shape[0]), checked_labels("keys", keys, shape[1])


def checked_labels(name: str, labels: Sequence[str] | None, count: int) -> list[str] | None:
    """The labels as a list, one for each position."""
    if labels is None:
        return None
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise DtypeError(
            "{name} must be labels, a list of strings.",
            got="{text}",
            do="Split the text into tokens.",
            name=name,
            text=f"{labels!r}"[:60],
        )
    if len(labels) != count:
        raise ShapeError(
            "There must be one label for each position ({name} = {count}).",
            got="{labels_count} labels",
            do="Include special tokens and padding.",
            name=name,
            count=count,
            labels_count=len(labels),
        )
    return list(labels)
