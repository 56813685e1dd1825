"""The monotone path through a matrix that collects the most weight: dynamic time warping.

A path goes from the first row and column to the last, one step at a time: down, right, or both. Cells on
one anti-diagonal (row + column = d) depend only on the two before, so each is one NumPy operation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DIAGONAL, DOWN, RIGHT = 0, 1, 2
"""The step that led to a cell."""


def monotone_path(gains: NDArray[np.float64]) -> NDArray[np.int64]:
    """The cells of the path with the greatest sum of ``gains (rows, columns)``, as ``(cell, 2)``.

    ``D_ij = g_ij + max(D_i−1,j−1, D_i−1,j, D_i,j−1)``. The diagonal step is taken where it alone is best,
    then the step down where it alone is best, otherwise the step to the right.

    >>> monotone_path(np.array([[9.0, 1, 0], [0, 1, 8]])).tolist()
    [[0, 0], [0, 1], [1, 1], [1, 2]]
    """
    rows, columns = gains.shape
    steps = _steps(np.ascontiguousarray(gains, np.float64))
    path = np.empty((rows + columns - 1, 2), np.int64)
    row, column, at = rows - 1, columns - 1, len(path)
    while True:
        at -= 1
        path[at] = row, column
        if row == column == 0:
            return path[at:]
        step = RIGHT if row == 0 else DOWN if column == 0 else steps[row, column]
        row -= step != RIGHT
        column -= step != DOWN


def _steps(gains: NDArray[np.float64]) -> NDArray[np.int8]:
    """The best step to each cell, ``(rows, columns)``, one anti-diagonal at a time."""
    rows, columns = gains.shape
    steps = np.full((rows, columns), RIGHT, np.int8)
    flat_gains, flat_steps = gains.reshape(-1), steps.reshape(-1)
    # best[i + 1] is D of row i on an anti-diagonal; outside of the matrix it is −inf.
    before, last = np.full(rows + 1, -np.inf), np.full(rows + 1, -np.inf)
    last[1] = gains[0, 0]
    for diagonal in range(1, rows + columns - 1):
        first, stop = max(0, diagonal - columns + 1), min(rows, diagonal + 1)
        # Row i of this anti-diagonal is cell i·columns + diagonal − i: every (columns − 1)-th one.
        cells = slice(first * columns + diagonal - first, None, max(1, columns - 1))
        both, down, right = before[first:stop], last[first:stop], last[first + 1 : stop + 1]
        now = np.full(rows + 1, -np.inf)
        now[first + 1 : stop + 1] = np.maximum(np.maximum(both, down), right)
        chosen = np.full(stop - first, RIGHT, np.int8)
        chosen[(down > both) & (down > right)] = DOWN
        chosen[(both > down) & (both > right)] = DIAGONAL
        flat_steps[cells][: stop - first] = chosen
        now[first + 1 : stop + 1] += flat_gains[cells][: stop - first]
        before, last = last, now
    return steps
