"""A mask in the terminal: two characters per pair, or per block of pairs if it is too large."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from regard.masks import Mask
from regard.masks.extent import Extent
from regard.masks.mask import ALL, NONE, SOME
from regard.views.figures.mask_picture import verdict_map

SIGNS = {ALL: ("██", "rgb(40,140,255)"), SOME: ("▒▒", "rgb(40,140,255)"), NONE: ("· ", "dim")}
"""These differ without colour too."""


@dataclass(frozen=True, eq=False)
class MaskGrid:
    """What is drawn: a verdict for each block of ``tall`` × ``wide`` pairs."""

    verdicts: NDArray[np.uint8]
    tall: int
    wide: int

    @property
    def whole(self) -> bool:
        """Whether each cell is a single pair."""
        return self.tall == self.wide == 1

    def lines(self) -> list[Text]:
        """One line for each row of cells, with the first query of the row before it."""
        margin = len(f"{(len(self.verdicts) - 1) * self.tall:,}")
        return [
            Text.assemble(
                (f"{place * self.tall:>{margin},} ", "dim"), *(SIGNS[int(verdict)] for verdict in row)
            )
            for place, row in enumerate(self.verdicts)
        ]


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
    return MaskGrid(verdict_map(mask, extent, tall, wide), tall, wide)
