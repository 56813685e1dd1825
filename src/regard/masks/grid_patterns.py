"""Patterns over positions that are the points of a grid: the patches of an image, the voxels of a video."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from regard.checks import check_integer
from regard.errors import MaskError, ShapeError
from regard.masks.extent import MAX_LENGTH, Array, Extent, Integers, Pairs, TiledAxis
from regard.masks.mask import Mask, Verdicts, verdicts

MAX_AXES = 8
"""The most axes of a grid."""


@dataclass(frozen=True, repr=False)
class Neighbourhood(Mask):
    """Points at most ``radius`` away along every axis of a grid, whose positions count row by row."""

    shape: tuple[int, ...]
    radius: tuple[int, ...]
    shifted: bool  # whether neighbourhoods at the border are moved inside, so that none is smaller
    transposed: bool = False

    def __repr__(self) -> str:
        radius = self.radius[0] if len(set(self.radius)) == 1 else list(self.radius)
        shifted = ", shifted=True" if self.shifted else ""
        return f"neighbourhood({list(self.shape)}, {radius}{shifted})" + (".T" if self.transposed else "")

    def coordinates(self, positions: Array) -> list[Array]:
        """The coordinate of every position along each axis."""
        found = []
        for axis, size in enumerate(self.shape):
            after = prod(self.shape[axis + 1 :])
            along = positions // after if after != 1 else positions
            found.append(along % size if axis else along)
        return found

    def centres(self, coordinates: list[Array]) -> list[Array]:
        """The middle of the neighbourhood of points with these coordinates."""
        if not self.shifted:
            return coordinates
        # In an axis shorter than the neighbourhood, every point sees all of it.
        return [
            along.clip(reach, size - 1 - reach) if size > 2 * reach else along * 0 + size // 2
            for along, size, reach in zip(coordinates, self.shape, self.radius)
        ]

    def allows(self, pairs: Pairs) -> Array:
        q, k = (pairs.k, pairs.q) if self.transposed else (pairs.q, pairs.k)
        near = None
        for centre, along, reach in zip(self.centres(self.coordinates(q)), self.coordinates(k), self.radius):
            here = (along >= centre - reach) & (along <= centre + reach)
            near = here if near is None else near & here
        return near

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        del extent
        q, k = (columns, rows) if self.transposed else (rows, columns)
        everywhere = np.ones((len(q), len(k)), np.bool_)
        nowhere = ~everywhere
        of_q, of_k = self.centres(self.coordinates(q.positions)), self.coordinates(k.positions)
        for centre, along, reach in zip(of_q, of_k, self.radius):
            (low, high), (least, greatest) = q.span(centre), k.span(along)
            everywhere &= (least >= high[:, None] - reach) & (greatest <= low[:, None] + reach)
            nowhere |= (least > high[:, None] + reach) | (greatest < low[:, None] - reach)
        found = verdicts(everywhere, nowhere)
        return found.T if self.transposed else found

    def tile_key(self, q: Integers, k: Integers) -> Hashable | None:
        # Only differences matter, so most blocks of an image look alike.
        if self.shifted or not len(q):
            return None
        first = [int(along) for along in self.coordinates(q[0])]
        return tuple(
            (along - start).astype(np.int32).tobytes()
            for positions in (q, k)
            for along, start in zip(self.coordinates(positions), first)
        )

    def check(self, extent: Extent) -> None:
        if extent.keys != prod(self.shape) or extent.queries > extent.keys:
            raise ShapeError(
                "neighbourhood(shape) needs one key for every point of its grid ({shape}: keys = {points}), "
                "and no more queries than keys.",
                got="{extent}",
                do="Give the height and width of the image, in patches.",
                shape=" × ".join(map(str, self.shape)),
                points=prod(self.shape),
                extent=extent,
            )

    @property
    def T(self) -> Mask:  # noqa: N802
        return replace(self, transposed=not self.transposed) if self.shifted else self


def neighbourhood(shape: Sequence[int], radius: int | Sequence[int], *, shifted: bool = False) -> Mask:
    """Each query sees the points of a grid that are at most ``radius`` away from it along every axis.

    ``shape`` is ``(height, width)`` of an image, or of more axes, with the positions counted row by row, so
    ``neighbourhood((64, 64), 6)`` is a neighbourhood of 13 × 13 patches. ``radius`` is one number, or one for
    each axis. At the border a neighbourhood is cut off, as windows are; with ``shifted=True`` it is moved
    inside instead, so that every query sees the same number of keys, as in NATTEN.

    >>> neighbourhood((3, 3), 1).dense(9)[0].int().reshape(3, 3).tolist()  # what the first corner sees
    [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    >>> neighbourhood((3, 4), (0, 1), shifted=True).dense(12)[0].int().reshape(3, 4).tolist()
    [[1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    """
    sizes = _numbers("shape", shape, least=1)
    given: Any = radius
    reaches = _numbers("radius", [given] * len(sizes) if np.ndim(given) == 0 else given, least=0)
    if prod(sizes) > MAX_LENGTH:
        raise MaskError(
            "The grid of neighbourhood(shape, radius) must have at most {most:,} points.",
            got="{points:,}",
            do="Give the height and width in patches.",
            most=MAX_LENGTH,
            points=prod(sizes),
        )
    if len(reaches) != len(sizes) or not 1 <= len(sizes) <= MAX_AXES:
        raise MaskError(
            "neighbourhood(shape, radius) must have 1 to {most} axes, and one radius for all or for each.",
            got="shape {shape} and radius {radius}",
            do="Write neighbourhood((64, 64), 6), for example.",
            most=MAX_AXES,
            shape=list(sizes),
            radius=list(reaches),
        )
    if np.ndim(shifted):
        raise MaskError(
            "In neighbourhood(shape, radius, shifted), shifted must be True or False.",
            got="shifted = {given}",
            do="Omit it for neighbourhoods that are cut off at the border.",
            given=repr(shifted)[:60],
        )
    # Along an axis, no point is further away than its size minus 1.
    return Neighbourhood(sizes, tuple(min(r, size - 1) for r, size in zip(reaches, sizes)), bool(shifted))


def _numbers(name: str, given: Any, *, least: int) -> tuple[int, ...]:
    if np.ndim(given) != 1:
        raise MaskError(
            "In neighbourhood(shape, radius), {name} must be a list of whole numbers.",
            got="{given!r}",
            do="Write neighbourhood((64, 64), 6), for example.",
            name=name,
            given=given,
        )
    values = given.tolist() if hasattr(given, "tolist") else list(given)
    return tuple(check_integer(name, value, least=least, most=MAX_LENGTH) for value in values)
