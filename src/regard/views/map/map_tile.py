"""One tile: 256 × 256 cells at some level, each the mean or the maximum of its block of pairs.

Level 0 is the matrix itself, ``exp(QKᵀ − lse)`` of that tile alone. A cell at the right or lower end
represents the pairs that exist; the mean is over all of them, and a masked pair has weight 0. A cell of
masked pairs alone is −0, so that it can be told from a weight that is too small for a number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.checks import check_choice
from regard.errors import ArgumentError, RecordingError
from regard.views.map.head_matrix import TILE, HeadMatrix
from regard.views.map.levels import Levels, base_level, in_blocks, signed_in_blocks

KINDS = ("max", "mean")
"""What a cell can show of its block."""


@torch.no_grad()
def tile(
    matrix: HeadMatrix, *, level: int, row: int, column: int, kind: str = "max", levels: Levels | None = None
) -> NDArray[np.float32]:
    """The cells of one tile, at most 256 × 256; ``levels`` is needed where ``level`` is a kept one.

    >>> from regard.recording import DenseCall
    >>> call = DenseCall("a", "encoder", 0, torch.eye(3)[None, None])
    >>> tile(HeadMatrix(call, 0), level=0, row=0, column=0)
    array([[ 1., -0., -0.],
           [-0.,  1., -0.],
           [-0., -0.,  1.]], dtype=float32)
    """
    check_choice("kind", kind, KINDS)
    rows, columns = _part(matrix, level, row, column)
    step = 2**level
    if level < base_level(matrix):
        blocks = in_blocks if matrix.what == "weight" else signed_in_blocks
        sums, maxima = blocks(matrix.values(rows, columns), step)
    elif levels is None:
        raise RecordingError(
            "Levels from {base_level} on need one pass over the head.",
            got="level = {level} before it",
            do="Build them first.",
            base_level=base_level(matrix),
            level=level,
        )
    else:
        at = slice(row * TILE, (row + 1) * TILE), slice(column * TILE, (column + 1) * TILE)
        place = level - levels.base
        sums, maxima = levels.sums[place][at], levels.maxima[place][at]
    cells = maxima if kind == "max" else sums / (_counts(rows, step)[:, None] * _counts(columns, step))
    found: NDArray[np.float32] = cells.numpy()
    empty = maxima.numpy() == 0
    if matrix.what != "weight" or not empty.any():
        return found
    return np.where(matrix.masked_blocks(rows, columns, step, empty), np.float32(-0.0), found)


class Peak(NamedTuple):
    """The contents of one cell: the pair with the greatest weight, the mean, and the number of pairs.

    Of another quantity, ``weight`` is the number furthest from 0. It is None if all pairs are masked.
    """

    query: int
    key: int
    weight: float | None
    mean: float
    pairs: int


@torch.no_grad()
def peak(matrix: HeadMatrix, *, level: int, row: int, column: int) -> Peak:
    """The greatest weight among the pairs of cell (row, column) of a level, and where it is."""
    step = 2 ** _checked_level(matrix, level)
    rows, columns = slice(row * step, (row + 1) * step), slice(column * step, (column + 1) * step)
    if row < 0 or column < 0 or rows.start >= matrix.queries or columns.start >= matrix.keys:
        raise ArgumentError(
            "A cell must be one of this level's (rows = {rows}, columns = {columns}).",
            got="row = {row}, column = {column}",
            do="Count from 0.",
            rows=-(-matrix.queries // step),
            columns=-(-matrix.keys // step),
            row=row,
            column=column,
        )
    within = _within(matrix, rows, columns)
    seen = torch.from_numpy(np.ascontiguousarray(matrix.visible(*within)))
    found = matrix.values(*within).masked_fill(~seen, torch.nan)
    at = int(found.abs().nan_to_num(-1.0).argmax())
    down, across = divmod(at, found.shape[1])
    furthest = float(found[down, across])
    return Peak(
        rows.start + down,
        columns.start + across,
        None if math.isnan(furthest) else furthest,
        float(found.nan_to_num(0.0).mean()),
        found.numel(),
    )


@torch.no_grad()
def strongest_key(matrix: HeadMatrix, *, row: int) -> Peak:
    """The key that one query attends to most, and how much."""
    if not 0 <= row < matrix.queries:
        raise ArgumentError(
            "A row must be one of the queries (queries = {queries}).",
            got="row = {row}",
            do="Count from 0.",
            queries=matrix.queries,
            row=row,
        )
    found = matrix.weights(slice(row, row + 1), slice(0, matrix.keys))[0]
    key = int(found.argmax())
    return Peak(row, key, float(found[key]), float(found.mean()), found.numel())


def line_of(matrix: HeadMatrix, *, side: str, token: int) -> Tensor:
    """What one query attends to, ``(key,)``, or with ``side="key"`` what attends to one key, ``(query,)``.

    >>> from regard.recording import ScoredCall
    >>> q = k = torch.zeros(1, 1, 4, 8)
    >>> matrix = HeadMatrix(ScoredCall("a", "encoder", 0, q, k, torch.full((1, 1, 4), math.log(4))), head=0)
    >>> line_of(matrix, side="query", token=2)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    check_choice("side", side, ("query", "key"))
    count = matrix.queries if side == "query" else matrix.keys
    if not 0 <= token < count:
        raise ArgumentError(
            "A token must be one of this side (0 … {last}).",
            got="token = {token}",
            do="Count from 0.",
            last=count - 1,
            token=token,
        )
    one = slice(token, token + 1)
    if side == "query":
        return matrix.values(one, slice(0, matrix.keys))[0]
    return matrix.values(slice(0, matrix.queries), one)[:, 0]


def _part(matrix: HeadMatrix, level: int, row: int, column: int) -> tuple[slice, slice]:
    """The pairs that a tile shows."""
    side = TILE * 2 ** _checked_level(matrix, level)
    down, across = -(-matrix.queries // side), -(-matrix.keys // side)
    if not (0 <= row < down and 0 <= column < across):
        raise ArgumentError(
            "A tile must be one of this level's (rows = {down}, columns = {across}).",
            got="row = {row}, column = {column}",
            do="Count from 0.",
            down=down,
            across=across,
            row=row,
            column=column,
        )
    rows, columns = slice(row * side, (row + 1) * side), slice(column * side, (column + 1) * side)
    return _within(matrix, rows, columns)


def _within(matrix: HeadMatrix, rows: slice, columns: slice) -> tuple[slice, slice]:
    return slice(rows.start, min(rows.stop, matrix.queries)), slice(
        columns.start, min(columns.stop, matrix.keys)
    )


def _checked_level(matrix: HeadMatrix, level: int) -> int:
    if not 0 <= level <= matrix.coarsest:
        raise ArgumentError(
            "level must be between 0 and {coarsest}, the level at which one tile shows everything.",
            got="level = {level}",
            do="0 is the finest level.",
            coarsest=matrix.coarsest,
            level=level,
        )
    return level


def _counts(part: slice, step: int) -> Tensor:
    """How many positions each cell covers along one axis."""
    starts = torch.arange(part.start, part.stop, step)
    counts: Tensor = (part.stop - starts).clamp(max=step).float()
    return counts
