"""A matrix as small as the picture: the greatest weight of each block of cells.

A picture of 4,096 tokens has fewer pixels than cells. A mean would hide single peaks and skipping
cells would lose them, so each pixel shows the greatest weight of its block. One block of rows
is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from regard.masks.extent import Bools
from regard.views.figures.style import DOTS
from regard.views.figures.weight_matrix import BLOCK, Floats, Matrix


@dataclass(frozen=True)
class BlockMaxima:
    """The greatest weight of blocks of ``tall`` × ``wide`` cells; blocks at the ends may be smaller."""

    values: np.ma.MaskedArray[tuple[int, int], np.dtype[np.floating[Any]]]  # hidden where no pair may attend
    shape: tuple[int, int]  # of the whole matrix
    tall: int = 1
    wide: int = 1

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the image in cells; cell (0, 0) has its centre at 0."""
        rows, columns = self.values.shape
        return (-0.5, columns * self.wide - 0.5, rows * self.tall - 0.5, -0.5)

    @property
    def whole(self) -> bool:
        """Whether each block is a single cell."""
        return self.tall == self.wide == 1


def reduced(matrix: Matrix, *, rows: int, columns: int) -> BlockMaxima:
    """The matrix in at most ``rows`` × ``columns`` blocks of equal size.

    >>> from regard.views.figures.weight_matrix import matrices_of
    >>> matrix, = matrices_of([[0.1, 0.9, 0.0], [0.2, 0.3, 0.5], [0.6, 0.0, 0.4]])
    >>> reduced(matrix, rows=2, columns=2).values.tolist()
    [[0.9, 0.5], [0.6, 0.4]]
    """
    tall, wide = (ceil(length / most) for length, most in zip(matrix.shape, (rows, columns)))
    # Whole blocks at a time, so that none is cut in two.
    at_a_time = tall * max(1, BLOCK // (tall * matrix.shape[1]))
    parts = [
        (
            _greatest(block.values, tall, wide, block.hidden),
            _all_hidden(block.hidden, tall, wide, block.values),
        )
        for block in matrix.blocks(at_a_time)
    ]
    values = np.ma.array(
        np.concatenate([values for values, _ in parts]), mask=np.concatenate([hidden for _, hidden in parts])
    )
    return BlockMaxima(values, matrix.shape, tall, wide)


def picture_of(matrix: Matrix, width: float, height: float) -> BlockMaxima:
    """The matrix in as many blocks as an area of ``width`` × ``height`` inches has pixels."""
    return reduced(matrix, rows=max(1, int(height * DOTS)), columns=max(1, int(width * DOTS)))


def _greatest(values: Floats, tall: int, wide: int, hidden: Bools | None) -> Floats:
    if hidden is not None:
        # A masked pair is not a candidate where other pairs of the block are visible, whatever their sign.
        values = np.where(hidden, -np.inf, values)
    high = np.maximum.reduceat(values, np.arange(0, values.shape[0], tall), axis=0)
    high = np.maximum.reduceat(high, np.arange(0, values.shape[1], wide), axis=1)
    return np.where(high == -np.inf, 0.0, high)


def _all_hidden(hidden: Bools | None, tall: int, wide: int, values: Floats) -> Bools:
    if hidden is None:
        return np.zeros((ceil(values.shape[0] / tall), ceil(values.shape[1] / wide)), bool)
    rows = np.logical_and.reduceat(hidden, np.arange(0, hidden.shape[0], tall), axis=0)
    return np.logical_and.reduceat(rows, np.arange(0, hidden.shape[1], wide), axis=1)


def range_of(pictures: Iterable[BlockMaxima]) -> tuple[float, float]:
    """The least and the greatest number in all pictures; 0 and 0 where everything is hidden."""
    found = [np.ma.compressed(picture.values) for picture in pictures]
    everything = np.concatenate(found) if found else np.zeros(1)
    return (float(everything.min()), float(everything.max())) if len(everything) else (0.0, 0.0)
