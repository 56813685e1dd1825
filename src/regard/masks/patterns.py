"""Patterns of the distance or of one axis: causal, window, prefix, span, every, local_global, padding.

Each is a small frozen class that defines its predicate, its verdict on a tile, and its text.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.checks import check_integer
from regard.errors import ArgumentError, MaskError, ShapeError
from regard.masks.extent import MAX_LENGTH, Array, Bools, Extent, Integers, Pairs, TiledAxis
from regard.masks.id_table import IdTable, aligned, as_array, as_table, with_head, without_head
from regard.masks.mask import Constant, Mask, Verdicts, verdicts
from regard.masks.table_text import write_table


def everything() -> Mask:
    """Every query sees every key.

    >>> everything().dense(1, 3).tolist()
    [[True, True, True]]
    """
    return Constant(True)


def nothing() -> Mask:
    """No query sees any key.

    >>> nothing().dense(1, 3).tolist()
    [[False, False, False]]
    """
    return Constant(False)


# ---- distance --------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Window(Mask):
    """Keys from ``before`` positions before the query to ``after`` positions after it; None: no limit."""

    before: int | None
    after: int | None

    def __repr__(self) -> str:
        if (self.before, self.after) == (None, 0):
            return "causal()"
        if (self.before, self.after) == (0, None):
            return "causal().T"
        return f"window({self.before}, {self.after})"

    def allows(self, pairs: Pairs) -> Array:
        # Each side is its own comparison, so that FlexAttention traces plain integer arithmetic.
        sides = []
        if self.before is not None:
            sides.append(pairs.k >= pairs.q - self.before)
        if self.after is not None:
            sides.append(pairs.k <= pairs.q + self.after)
        return sides[0] & sides[1] if len(sides) == 2 else sides[0]

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        del extent
        nearest = columns.low[None, :] - rows.high[:, None]  # the least k − q in the tile
        furthest = columns.high[None, :] - rows.low[:, None]  # the greatest
        everywhere = np.ones(nearest.shape, np.bool_)
        nowhere = np.zeros(nearest.shape, np.bool_)
        if self.before is not None:
            everywhere &= nearest >= -self.before
            nowhere |= furthest < -self.before
        if self.after is not None:
            everywhere &= furthest <= self.after
            nowhere |= nearest > self.after
        return verdicts(everywhere, nowhere)

    @property
    def shifts(self) -> bool:
        return True

    @property
    def T(self) -> Mask:  # noqa: N802
        return Window(self.after, self.before)


def causal() -> Mask:
    """Each query sees the keys up to its own position; the last query is at the last key.

    >>> causal().dense(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> causal().dense(2, 4).int().tolist()  # two queries at the end of four keys
    [[1, 1, 1, 0], [1, 1, 1, 1]]
    """
    return Window(None, 0)


def upper_left_causal(queries: int, keys: int) -> Mask:
    """Torch's ``is_causal``, which aligns the first query with the first key, for these lengths.

    regard's causal mask aligns the last query with the last key; on a square the two are equal.

    >>> upper_left_causal(2, 4).dense(2, 4).int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0]]
    >>> upper_left_causal(3, 2).dense(3, 2).int().tolist()
    [[1, 0], [1, 1], [1, 1]]
    """
    if queries == keys:
        return causal()
    return window(None, queries - keys) if queries > keys else ~window(keys - queries - 1, None)


def window(before: int | None, after: int | None) -> Mask:
    """Each query ``i`` sees keys ``i − before … i + after``, both ends included.

    >>> window(1, 1).dense(4).int().tolist()
    [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    >>> window(None, 0)  # None: no limit on that side
    causal()
    >>> window(2, 0).T
    window(0, 2)
    >>> window(10**30, 0)  # longer than any sequence
    causal()
    """
    reaches = [
        None if reach is None else _whole(reach, name, least=0)
        for name, reach in (("before", before), ("after", after))
    ]
    limited = [None if reach is None or reach >= MAX_LENGTH else reach for reach in reaches]
    return Constant(True) if limited == [None, None] else Window(*limited)


# ---- one axis alone --------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class OneAxis(Mask):
    """A mask that depends only on the position of the key or, transposed, of the query."""

    transposed: bool

    @abstractmethod
    def text(self) -> str:
        """The pattern as text, without ``.T``."""

    @abstractmethod
    def holds(self, positions: Array, pairs: Pairs) -> Array:
        """Whether the pattern holds at these positions of its axis."""

    def __repr__(self) -> str:
        return self.text() + (".T" if self.transposed else "")

    def allows(self, pairs: Pairs) -> Array:
        return self.holds(pairs.q if self.transposed else pairs.k, pairs)

    def along(self, positions: Integers, extent: Extent) -> Bools:
        """The value at each position of its axis. The mask must have no ``lead``."""
        return np.asarray(self.holds(positions, Pairs(extent, positions, positions)), np.bool_)

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        axis = rows if self.transposed else columns
        least, greatest = axis.span(self.along(axis.positions, extent))
        line = verdicts(least, ~greatest)
        return np.broadcast_to(line[:, None] if self.transposed else line, (len(rows), len(columns)))

    @property
    def T(self) -> Mask:  # noqa: N802
        return replace(self, transposed=not self.transposed)


@dataclass(frozen=True, repr=False)
class Prefix(OneAxis):
    """The first ``length`` positions."""

    length: int

    def text(self) -> str:
        return f"prefix({self.length})"

    def holds(self, positions: Array, pairs: Pairs) -> Array:
        del pairs
        return positions < self.length


def prefix(length: int) -> Mask:
    """Every query sees the first ``length`` keys; ``causal() | prefix(n)`` is the prefix-LM mask.

    >>> (causal() | prefix(2)).dense(3).int().tolist()
    [[1, 1, 0], [1, 1, 0], [1, 1, 1]]
    """
    return Prefix(False, _whole(length, "length", least=0))


@dataclass(frozen=True, repr=False)
class Span(OneAxis):
    """The positions from ``start`` up to, but not including, ``stop``."""

    start: int
    stop: int

    def text(self) -> str:
        return f"span({self.start}, {self.stop})"

    def holds(self, positions: Array, pairs: Pairs) -> Array:
        del pairs
        return (positions >= self.start) & (positions < self.stop)


def span(start: int, stop: int) -> Mask:
    """Every query sees keys ``start … stop − 1``; with ``.T``, those queries see every key.

    >>> span(1, 3).dense(2, 4).int().tolist()
    [[0, 1, 1, 0], [0, 1, 1, 0]]
    >>> (span(2, 3).T & span(0, 2)).dense(3).int().tolist()  # the edges from query 2 to keys 0 and 1
    [[0, 0, 0], [0, 0, 0], [1, 1, 0]]
    >>> span(0, 4)
    prefix(4)
    """
    start = _whole(start, "start", least=0)
    stop = _whole(stop, "stop", least=0)
    if start > stop:
        raise ArgumentError(
            "In span(start, stop), stop must be at least start (start = {start}).",
            got="stop = {stop}",
            do="Give the first position, and the position after the last one.",
            start=start,
            stop=stop,
        )
    return Span(False, start, stop) if start else Prefix(False, stop)


@dataclass(frozen=True, repr=False)
class Every(OneAxis):
    """The positions 0, stride, 2·stride, …"""

    stride: int

    def text(self) -> str:
        return f"every({self.stride})"

    def holds(self, positions: Array, pairs: Pairs) -> Array:
        del pairs
        return positions % self.stride == 0


def every(stride: int) -> Mask:
    """Every query sees keys 0, stride, 2·stride, …; with ``.T``, those queries see every key.

    >>> every(2).dense(2, 4).int().tolist()
    [[1, 0, 1, 0], [1, 0, 1, 0]]
    >>> every(2).T.dense(3).int().tolist()
    [[1, 1, 1], [0, 0, 0], [1, 1, 1]]
    """
    return Every(False, _whole(stride, "stride", least=1))


def local_global(stride: int) -> Mask:
    """A window of ±stride, plus global keys and global queries at 0, stride, 2·stride, …

    >>> local_global(2)
    window(2, 2) | every(2) | every(2).T
    """
    stride = _whole(stride, "stride", least=1)
    return window(stride, stride) | every(stride) | every(stride).T


@dataclass(frozen=True, repr=False)
class Padding(OneAxis):
    """The positions that are not padding, from a table ``(..., length)``."""

    keep: IdTable  # (lead..., length)

    def text(self) -> str:
        values = self.keep.values
        if values.ndim > 1 and values.shape[-2] > 1:  # each head has its own: only a table can say that
            return f"dense({write_table(values[..., None, :])})"
        return f"padding({write_table(without_head(values))})"

    @property
    def lead(self) -> tuple[int, ...]:
        return self.keep.values.shape[:-1]

    def holds(self, positions: Array, pairs: Pairs) -> Array:
        # The table ends where the keys end: see ``aligned``.
        return pairs.look_up(self.keep.values, aligned(positions, self.keep, pairs.extent))

    def table_lengths(self) -> tuple[int, ...]:
        return self.keep.values.shape[-1:]

    def select(self, index: tuple[int, ...]) -> Mask:
        return replace(self, keep=self.keep.at(index, 1)) if self.lead else self

    def check(self, extent: Extent) -> None:
        length = self.keep.values.shape[-1]
        fitting = {extent.keys, extent.queries} if self.transposed else {extent.keys}
        if length not in fitting or (self.transposed and length < extent.queries):
            raise ShapeError(
                "padding(keep) needs one value per position ({extent}).",
                got="{length} values for the queries" if self.transposed else "{length} values for the keys",
                do="Pass keep with shape (batch, keys), True = a real token.",
                extent=extent,
                length=length,
            )


@dataclass(frozen=True, repr=False)
class Lengths(OneAxis):
    """The first ``lengths`` positions of each batch element."""

    lengths: IdTable  # (lead...)

    def text(self) -> str:
        return f"padding(lengths={write_table(without_head(self.lengths.values[..., None])[..., 0])})"

    @property
    def lead(self) -> tuple[int, ...]:
        return self.lengths.values.shape

    def holds(self, positions: Array, pairs: Pairs) -> Array:
        return positions < pairs.look_up(self.lengths.values)

    def select(self, index: tuple[int, ...]) -> Mask:
        if not self.lead:
            return self
        return Prefix(self.transposed, int(self.lengths.at(index, 0).values))


def padding(keep: object = None, *, lengths: object = None) -> Mask:
    """No query sees padding: only keys where ``keep`` is True, or the first ``lengths`` keys.

    ``keep`` has shape ``(batch, keys)`` or ``(keys,)``, as bools or as the 0/1 integers of a
    tokenizer. ``lengths`` has one integer per batch element.

    >>> padding([True, True, False]).dense(1, 3).int().tolist()
    [[1, 1, 0]]
    >>> padding(lengths=[1, 3]).dense(1, 3).int().tolist()
    [[[[1, 0, 0]]], [[[1, 1, 1]]]]
    """
    if (keep is None) == (lengths is None):
        raise ArgumentError(
            "padding needs either keep or lengths=, not both.", do="padding(keep) or padding(lengths=[…])."
        )
    if lengths is not None:
        return _lengths(as_array(lengths))
    values = as_array(keep)
    if values.dtype.kind in "iu" and values.ndim == 1:
        # A list of integers means lengths, unless it could also be a row of 0 and 1.
        if values.size and not np.isin(values, (0, 1)).all():
            return _lengths(values)
        raise MaskError(
            "A list of 0 and 1 could be truth values or lengths.",
            got="padding({beginning})",
            do="Write padding([True, …]) or padding(lengths=[…]).",
            beginning=_beginning(values),
        )
    table = as_table(values)
    if not table.values.ndim:
        raise ShapeError(
            "padding(keep) must have shape (batch, keys) or (keys,).",
            got="a single value",
            do="Pass one value per key.",
        )
    return Padding(False, with_head(table, own_axes=1))


def _lengths(values: NDArray[Any]) -> Mask:
    if values.size and (values.dtype.kind not in "iu" or (values < 0).any()):
        raise MaskError(
            "Lengths must be 64-bit whole numbers, 0 or more.",
            got="{beginning}",
            do="Pass the number of real tokens of each sequence.",
            beginning=_beginning(values),
        )
    if not values.ndim:
        return prefix(int(values))
    # Lengths from 2**63 on would become negative.
    lengths = np.minimum(values.astype(np.uint64), np.uint64(MAX_LENGTH)).astype(np.int64)
    return Lengths(False, with_head(IdTable(lengths), own_axes=0))


def _beginning(values: NDArray[Any]) -> str:
    """A table for an error message: all of it, or its beginning."""
    if values.size <= 64:
        return write_table(values)
    return f"{write_table(values.reshape(-1)[:64]).rstrip(']')}, …]"


def _whole(number: object, name: str, *, least: int) -> int:
    """A checked number of positions; larger ones than MAX_LENGTH mean the same and are clipped."""
    return min(check_integer(name, number, least=least), MAX_LENGTH)
