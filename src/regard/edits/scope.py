"""Where an edit applies: layers, heads, kinds of call and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.checks import check_integer, check_integers
from regard.errors import ArgumentError
from regard.interception.call_types import KINDS, CallPlace, Kind
from regard.masks import Mask, everything, span
from regard.masks.extent import MAX_LENGTH
from regard.masks.mask import Either

Indices = int | Iterable[int] | None
"""One number, several, or None for all."""

Rows = int | slice | Iterable[int] | None
"""Positions of queries in their text; None for all."""


@dataclass(frozen=True)
class Interval:
    """The positions ``start … stop − 1``; without a stop, all from ``start`` on."""

    start: int
    stop: int | None

    def __repr__(self) -> str:
        return f"{self.start}:{'' if self.stop is None else self.stop}"

    @property
    def mask(self) -> Mask:
        """The queries at these positions."""
        return span(self.start, MAX_LENGTH if self.stop is None else self.stop).T

    def holds(self, positions: Tensor) -> Tensor:
        """Which of the positions are inside."""
        return (positions >= self.start) & (positions < (MAX_LENGTH if self.stop is None else self.stop))


@dataclass(frozen=True)
class Scope:
    """The calls, heads and rows that an edit changes; None means all of them.

    >>> Scope.of(layers=range(3), heads=2, rows=[5, 6, 9])
    Scope(layers=(0, 1, 2), heads=(2,), kind=None, rows=(5:7, 9:10))
    """

    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    kind: Kind | None = None
    rows: tuple[Interval, ...] | None = None

    @classmethod
    def of(
        cls, layers: Indices = None, heads: Indices = None, kind: str | None = None, rows: Rows = None
    ) -> Scope:
        """The scope that a user asks for, checked."""
        return cls(_numbers("layers", layers), _numbers("heads", heads), _kind(kind), _rows(rows))

    def covers(self, place: CallPlace) -> bool:
        """Whether the call is one of those that are changed."""
        return self.kind in (None, place.kind) and (self.layers is None or place.layer in self.layers)

    @property
    def row_mask(self) -> Mask:
        """All pairs of the rows."""
        return everything() if self.rows is None else Either.of(*(rows.mask for rows in self.rows))

    def at(self, positions: Tensor) -> Tensor | None:
        """Which of these queries are changed, ``(query,)``; None means all of them."""
        if self.rows is None:
            return None
        return torch.stack([rows.holds(positions) for rows in self.rows]).any(0)

    def said(self) -> Iterator[str]:
        """The options as they are written in Python."""
        for name, numbers in (("layers", self.layers), ("heads", self.heads)):
            if numbers is not None:
                yield f"{name}={_written(numbers)}"
        if self.kind is not None:
            yield f"kind={self.kind!r}"
        if self.rows is not None:
            yield f"rows={_rows_written(self.rows)}"


def _written(numbers: Sequence[int]) -> str:
    """Numbers as Python, short where they follow each other."""
    first, last = numbers[0], numbers[-1]
    consecutive = len(numbers) > 2 and list(numbers) == list(range(first, last + 1))
    return f"range({first}, {last + 1})" if consecutive else str(list(numbers))


def _rows_written(rows: Sequence[Interval]) -> str:
    if len(rows) == 1:
        start, stop = rows[0].start, rows[0].stop
        return str(start) if stop == start + 1 else f"slice({start}, {stop})"
    return str([row for part in rows for row in range(part.start, part.stop or 0)])


# ---- checks ----------------------------------------------------------------------------------


def _numbers(name: str, given: Any) -> tuple[int, ...] | None:
    if given is None:
        return None
    numbers = check_integers(name, given.tolist() if isinstance(given, Tensor) else given)
    return tuple(sorted(set(numbers)))


def _kind(given: str | None) -> Kind | None:
    for kind in KINDS:
        if given == kind:
            return kind
    if given is None:
        return None
    raise ArgumentError(
        "kind must be encoder, decoder or cross.",
        got="kind = {given!r}",
        do="Omit it to change all calls.",
        given=given,
    )


def _rows(given: Any) -> tuple[Interval, ...] | None:
    if isinstance(given, slice) and given.step in (None, 1):
        start = 0 if given.start is None else check_integer("rows", given.start, least=0)
        stop = None if given.stop is None else check_integer("rows", given.stop, least=0)
        if stop is not None and stop <= start:
            raise ArgumentError(
                "rows must name at least one position.",
                got="rows = {given!r}",
                do="Omit it to change all rows.",
                given=given,
            )
        return (Interval(start, stop),)
    if isinstance(given, slice):
        raise ArgumentError(
            "rows must be a position, a slice without a step, or a list of positions.",
            got="rows = {given!r}",
            do="Pass range(start, stop, step).",
            given=given,
        )
    positions = _numbers("rows", given)
    if positions is None:
        return None
    found: list[Interval] = []
    for position in positions:
        if found and found[-1].stop == position:
            found[-1] = Interval(found[-1].start, position + 1)
        else:
            found.append(Interval(position, position + 1))
    return tuple(found)
