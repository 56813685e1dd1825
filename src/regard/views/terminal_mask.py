"""A mask in the terminal: two characters per pair, or per block of pairs if it is too large."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from regard.masks import Mask
from regard.masks.extent import Extent
from regard.masks.mask import ALL, SOME
from regard.views.figures.mask_picture import verdict_map

ALL_SIGN, NONE_SIGN = ("██", "rgb(40,140,255)"), ("· ", "dim")
SOME_SIGNS = tuple((sign, "rgb(40,140,255)") for sign in ("░░", "▒▒", "▓▓"))
"""These differ without colour too."""

FINER = 8
"""A block of which some pairs are allowed is cut into this many rows and columns to see how many."""


@dataclass(frozen=True, eq=False)
class MaskGrid:
    """What is drawn: a verdict for each block of ``tall`` × ``wide`` pairs."""

    verdicts: NDArray[np.uint8]
    tall: int
    wide: int
    shares: NDArray[np.float64] | None = None  # of each block, about

    @property
    def whole(self) -> bool:
        """Whether each cell is a single pair."""
        return self.tall == self.wide == 1

    def lines(self) -> list[Text]:
        """One line for each row of cells, with the first query of the row before it."""
        margin = len(f"{(len(self.verdicts) - 1) * self.tall:,}")
        return [
            Text.assemble(
                (f"{place * self.tall:>{margin},} ", "dim"),
                *(self._sign(place, column, int(verdict)) for column, verdict in enumerate(row)),
            )
            for place, row in enumerate(self.verdicts)
        ]

    def _sign(self, row: int, column: int, verdict: int) -> tuple[str, str]:
        if verdict != SOME:
            return ALL_SIGN if verdict == ALL else NONE_SIGN
        share = 0.5 if self.shares is None else float(self.shares[row, column])
        return SOME_SIGNS[0 if share < 0.35 else 1 if share < 0.7 else 2]


def mask_grid(mask: Mask, extent: Extent, *, columns: int, rows: int) -> MaskGrid:
    """The mask reduced to at most ``columns`` × ``rows`` characters; it must not have leading axes.

    Blocks are square if the mask is, and the mask is evaluated for blocks, never for n×n pairs.

    >>> from regard import masks
    >>> for line in mask_grid(masks.causal(), Extent(3, 3), columns=40, rows=10).lines():
    ...     print(line.plain.rstrip())
    0 ██· ·
    1 ████·
    2 ██████
    >>> mask_grid(masks.causal(), Extent(1 << 20, 1 << 20), columns=40, rows=10).verdicts.shape
    (10, 10)
    """
    margin = len(f"{extent.queries:,}") + 1
    across = max(1, (columns - margin) // 2)
    tall, wide = ceil(extent.queries / max(1, rows)), ceil(extent.keys / across)
    if extent.queries == extent.keys:
        tall = wide = max(tall, wide)
    verdicts = verdict_map(mask, extent, tall, wide)
    if not (verdicts == SOME).any():
        return MaskGrid(verdicts, tall, wide)
    return MaskGrid(verdicts, tall, wide, _shares(mask, extent, tall, wide))


def _shares(mask: Mask, extent: Extent, tall: int, wide: int) -> NDArray[np.float64]:
    """About which share of each block is allowed, from the verdicts of smaller ones; some counts as half."""
    high, broad = ceil(tall / FINER), ceil(wide / FINER)
    fine = verdict_map(mask, extent, high, broad)
    values = np.select([fine == ALL, fine == SOME], [1.0, 0.5], 0.0)
    rows = np.minimum(np.arange(fine.shape[0]) * high // tall, ceil(extent.queries / tall) - 1)
    columns = np.minimum(np.arange(fine.shape[1]) * broad // wide, ceil(extent.keys / wide) - 1)
    one_row = np.eye(rows[-1] + 1)[rows]  # (fine row, row)
    one_column = np.eye(columns[-1] + 1)[columns]
    counts: NDArray[np.float64] = one_row.sum(0)[:, None] * one_column.sum(0)
    return np.asarray(one_row.T @ values @ one_column, dtype=np.float64) / counts
