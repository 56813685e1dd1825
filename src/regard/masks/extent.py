"""Where a mask is asked: lengths, pairs of positions, and axes cut into tiles.

Positions are absolute. Key ``j`` stands at position ``j``; query ``i`` stands at
``i + keys − queries``, so the last query stands beside the last key. One query at the end
of a cache therefore gets the same answer as the last row of the whole square.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = Any
"""A NumPy array or a torch tensor: predicates are written with operators that both share."""

Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


MAX_LENGTH = 1 << 30
"""Queries or keys of one text. Then each difference of two positions, and each sum of a position and a
distance below this, fits into 32 bits."""


class Extent(NamedTuple):
    """How many queries look at how many keys."""

    queries: int
    keys: int

    @property
    def offset(self) -> int:
        """The absolute position of the first query."""
        return self.keys - self.queries

    def __str__(self) -> str:
        return f"queries = {self.queries}, keys = {self.keys}"

    def query_positions(self) -> Integers:
        """Absolute positions of all queries."""
        return np.arange(self.offset, self.keys)

    def key_positions(self) -> Integers:
        """Absolute positions of all keys."""
        return np.arange(self.keys)


def _unchanged(values: Array) -> Array:
    return values


@dataclass(frozen=True)
class Pairs:
    """Pairs of positions at which a mask is asked; all arrays broadcast against each other.

    ``lead`` says which element of the leading axes ``(..., batch, head)`` is meant, for masks
    whose tables differ between them. ``library`` turns a NumPy table into an array of the kind
    that the positions have.
    """

    extent: Extent
    q: Array
    k: Array
    lead: tuple[Array, ...] = ()
    library: Callable[[Array], Array] = field(default=_unchanged)

    @classmethod
    def grid(cls, extent: Extent, q: Integers, k: Integers, lead: tuple[int, ...] = ()) -> Pairs:
        """Every query position with every key position, for every element of the ``lead`` axes."""
        axes = len(lead)
        which = tuple(
            np.arange(size).reshape((-1,) + (1,) * (axes - axis + 1)) for axis, size in enumerate(lead)
        )
        return cls(extent, q[:, None], k[None, :], which)

    def look_up(self, table: NDArray[Any], *index: Array) -> Array:
        """``table[lead, index]``, where axes of size 1 in the table serve every element."""
        lead_axes = table.ndim - len(index)
        which = self.lead[len(self.lead) - lead_axes :]
        chosen = tuple(0 if size == 1 else i for i, size in zip(which, table.shape))
        return self.library(table)[chosen + index]


@dataclass(frozen=True, eq=False)
class Strip:
    """Positions along one axis, in order, cut into tiles at ``starts``.

    The positions need not be neighbours: after a gather a tile holds whatever was picked, and
    what a mask says of the tile is true of those positions.
    """

    positions: Integers
    starts: Integers

    @classmethod
    def cut(cls, positions: Integers, size: int) -> Strip:
        """Tiles of ``size`` positions; the last may be shorter."""
        return cls(positions, np.arange(0, len(positions), size))

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def stops(self) -> Integers:
        """Where each tile ends."""
        return np.append(self.starts[1:], len(self.positions)).astype(np.int64)

    @cached_property
    def low(self) -> Integers:
        """The first position of each tile."""
        return self.positions[self.starts]

    @cached_property
    def high(self) -> Integers:
        """The last position of each tile."""
        return self.positions[self.stops - 1]

    def span(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least and the greatest of ``values`` (one per position) in each tile."""
        if not len(self.starts):
            return values[:0], values[:0]
        return np.minimum.reduceat(values, self.starts), np.maximum.reduceat(values, self.starts)

    def pick(self, tiles: Integers) -> Strip:
        """The strip of the given tiles alone."""
        lengths = (self.stops - self.starts)[tiles]
        starts = np.cumsum(lengths) - lengths
        inside = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
        return Strip(self.positions[np.repeat(self.starts[tiles], lengths) + inside], starts)
