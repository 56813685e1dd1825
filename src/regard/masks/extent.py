"""Where a mask is evaluated: lengths, pairs of positions, and axes divided into tiles.

Positions are absolute. Key ``j`` is at position ``j``; query ``i`` is at position
``i + keys − queries``, so the last query is at the position of the last key. A single query at the
end of a cache therefore sees the same keys as the last row of the whole square.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = Any
"""A NumPy array or a torch tensor: predicates only use operators that both have."""

Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.float64]


MAX_LENGTH = 1 << 30
"""The most queries or keys of a sequence: differences of two positions, and sums of a position and a
distance up to this length, fit into 32 bits."""


class Extent(NamedTuple):
    """The number of queries and keys."""

    queries: int
    keys: int

    @property
    def offset(self) -> int:
        """The absolute position of the first query."""
        return self.keys - self.queries

    def __str__(self) -> str:
        return f"queries = {self.queries}, keys = {self.keys}"

    def query_positions(self) -> Integers:
        """The absolute positions of all queries."""
        return np.arange(self.offset, self.keys)

    def key_positions(self) -> Integers:
        """The absolute positions of all keys."""
        return np.arange(self.keys)


def _unchanged(values: Array) -> Array:
    return values


@dataclass(frozen=True)
class Pairs:
    """Pairs of positions at which a mask is evaluated; all arrays broadcast against each other.

    ``lead`` holds the indices into the leading axes ``(..., batch, head)``, for masks whose tables
    differ along them. ``library`` converts a NumPy table to the array type of the positions.
    """

    extent: Extent
    q: Array
    k: Array
    lead: tuple[Array, ...] = ()
    library: Callable[[Array], Array] = field(default=_unchanged)

    @classmethod
    def grid(cls, extent: Extent, q: Integers, k: Integers, lead: tuple[int, ...] = ()) -> Pairs:
        """All pairs of the query and key positions, for every element of the ``lead`` axes."""
        axes = len(lead)
        which = tuple(
            np.arange(size).reshape((-1,) + (1,) * (axes - axis + 1)) for axis, size in enumerate(lead)
        )
        return cls(extent, q[:, None], k[None, :], which)

    def look_up(self, table: NDArray[Any], *index: Array) -> Array:
        """``table[lead, index]``, where axes of size 1 in the table broadcast."""
        lead_axes = table.ndim - len(index)
        which = self.lead[len(self.lead) - lead_axes :]
        chosen = tuple(0 if size == 1 else i for i, size in zip(which, table.shape))
        return self.library(table)[chosen + index]


@dataclass(frozen=True, eq=False)
class TiledAxis:
    """Sorted positions along one axis, divided into tiles at ``starts``.

    The positions need not be consecutive: after a gather, a tile holds the gathered positions, and
    the verdict of a mask on the tile holds for exactly those.
    """

    positions: Integers
    starts: Integers

    @classmethod
    def cut(cls, positions: Integers, size: int) -> TiledAxis:
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
        """The minimum and maximum of ``values`` (one per position) in each tile."""
        if not len(self.starts):
            return values[:0], values[:0]
        return np.minimum.reduceat(values, self.starts), np.maximum.reduceat(values, self.starts)

    def pick(self, tiles: Integers) -> TiledAxis:
        """An axis of only the given tiles."""
        lengths = (self.stops - self.starts)[tiles]
        starts = np.cumsum(lengths) - lengths
        inside = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
        return TiledAxis(self.positions[np.repeat(self.starts[tiles], lengths) + inside], starts)
