"""A small picture of every head: the greatest weight of each block, at most 32 × 32 of them by default.

The greatest weight of a row in a block is ``exp(max s − lse)``, so only one number of each row and
block goes through the exponential, and a few rows of scores exist at a time. The compiled pass of the kernels
makes a weight of every score, which is more work: 10 ms instead of 7 for 12 heads of 508 tokens, and 52
instead of 27 for 9 heads of 2,048. So it is not used here.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from regard.threads import each
from regard.views.page.head_groups import HeadSlice

SIDE = 32
"""Blocks along each side of a picture inside a page, at most."""

CHUNK_SCORES = 1 << 21
"""Scores that a thread has in memory at a time: 8 MB in float32."""


def block_size(length: int, side: int = SIDE) -> int:
    """How many positions share a block, so that there are at most ``side`` blocks."""
    return max(1, -(-length // side))


def thumbnail(piece: HeadSlice, lse: Tensor, side: int = SIDE) -> NDArray[np.uint8]:
    """The greatest weights ``(head, block of queries, block of keys)``, 255 for weight 1."""
    heads, (queries, keys) = piece.q.shape[0], piece.extent
    height, width = block_size(queries, side), block_size(keys, side)
    finite = torch.where(lse == -torch.inf, torch.inf, lse)  # a row that sees nothing has weights 0
    # Whole blocks of rows at a time, as many as fit.
    step = max(1, CHUNK_SCORES // max(1, heads * keys * height)) * height

    def tile(start: int) -> Tensor:
        rows = torch.arange(start, min(start + step, queries))
        scores = piece.scores(rows, piece.q.dtype)
        highest = _in_blocks(scores, width) - finite[:, rows, None].to(scores.dtype)
        return _in_blocks(highest.exp().transpose(1, 2), height).transpose(1, 2)

    tiles = each(tile, range(0, queries, step))
    return shades(torch.cat(tiles, 1)) if tiles else np.zeros((heads, 0, 0), np.uint8)


def thumbnail_of_weights(weights: Tensor, side: int = SIDE) -> NDArray[np.uint8]:
    """The same of dense weights ``(head, query, key)``."""
    across = _in_blocks(weights.float(), block_size(weights.shape[2], side))
    return shades(_in_blocks(across.transpose(1, 2), block_size(weights.shape[1], side)).transpose(1, 2))


def shades(weights: Tensor) -> NDArray[np.uint8]:
    """Weights as bytes."""
    return (weights.clamp(0, 1) * 255).round().to(torch.uint8).numpy()


def _in_blocks(values: Tensor, size: int) -> Tensor:
    """The maxima of neighbours along the last axis; the last block may be shorter."""
    if size == 1 or not values.shape[-1]:
        return values
    missing = -values.shape[-1] % size
    padded = F.pad(values, (0, missing), value=-torch.inf) if missing else values
    highest: Tensor = padded.unflatten(-1, (-1, size)).amax(-1)
    return highest
