"""Statistics of row tiles in plain torch, on any device and in any precision.

It is fast because of what it avoids: the shifted scores ``t = s − max`` are kept, so the entropy is
``log Σ e^t − Σ e^t t / Σ e^t``; weights are never normalised, each result of a row is scaled once, by
``e^{max − lse}``; the maximum is searched in blocks, and only the best block for its key; distances to far
keys take a sum and a product with the key positions, not one subtraction per pair. What happens between the
products happens to so few scores at once that they stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.kernels.mask_parts import RowTile
from regard.kernels.statistics_pass import LOG2_E, MASKED_SCORE, StatisticsPass
from regard.kernels.tile_pass import take_positions
from regard.masks.extent import Integers

NEAR_KEYS = 128
"""Distances to keys at most this many positions away are computed one by one."""

ARGMAX_BLOCK = 64
"""The maximum is searched in blocks of this many scores."""

CACHED_SCORES = 1 << 18
"""Scores on which the operations between the products run at once: 1 MB in float32. Fewer mean more calls."""


class SoftmaxRows(NamedTuple):
    """Some rows before normalisation; the axes are (batch, key head, query head of its group, query, ...)."""

    tile: RowTile
    positions: tuple[Tensor, Tensor]  # of the queries and of the keys
    powers: Tensor  # 2^(score − highest), (..., key)
    highest: Tensor  # (...)
    sums: Tensor  # Σ powers
    distances: Tensor  # Σ powers · |position − key|
    shifted: Tensor  # Σ powers · (score − highest)
    factor: Tensor  # powers · factor = weights; 0 for rows that see no key
    sees: Tensor  # whether the row sees any key


class DistanceSums:
    """Σ power · |position − key| of the rows of a tile.

    Distances to near keys are computed one by one, those to far keys by a product. Far away,
    ``Σ p (k − q) = Σ p k − q Σ p`` loses no precision; nearby, that difference would.
    """

    def __init__(
        self, queries: Integers, keys: Integers, places: tuple[Tensor, Tensor], like: Tensor
    ) -> None:
        """``places`` are the positions of queries and keys on the device of ``like``."""
        first, last = int(queries[0]), int(queries[-1])
        self._left = int(np.searchsorted(keys, first - NEAR_KEYS))
        self._right = max(self._left, int(np.searchsorted(keys, last + NEAR_KEYS, side="right")))
        self._own, self._places = ((x - first).to(like.dtype) for x in places)
        # The signed place of each far key, and its sign.
        self._far = torch.stack([self._places, torch.ones_like(self._places)])
        self._far[:, : self._left].neg_()
        self._far[:, self._left : self._right] = 0
        self._far_rows = self._far.unbind()

    def add_moments(self, powers: Tensor, moments: Tensor) -> None:
        """Write what products say of the far keys of some rows ``(row, key)`` to ``moments (2, row)``."""
        for far, moment in zip(self._far_rows, moments):  # one product with two columns is slower
            torch.mv(powers, far, out=moment)

    def sums(self, powers: Tensor, moments: Tensor) -> Tensor:
        """The sums of all rows, ``(head, row)``."""
        near = powers[..., self._left : self._right]
        gaps = (self._places[self._left : self._right] - self._own[:, None]).abs_()
        return (near * gaps).sum(-1) + moments[0] - self._own * moments[1]


class TorchStatistics(StatisticsPass):
    """One part for one head group, in torch operations on a few rows at a time."""

    # Many at once, since each tile takes dozens of operations; between the products they run in chunks.
    # Threads also hand each other Python's lock at every operation, so fewer and larger ones scale better.
    max_scores = 1 << 22
    split_scores = 1 << 22

    @cached_property
    def buffer_sizes(self) -> tuple[int, int]:
        """The scores of a tile, and those of a chunk minus their maximum."""
        scores = super().buffer_sizes[0]
        return scores, min(scores, CACHED_SCORES)

    def add_tile(self, tile: RowTile) -> None:
        """Powers, their sums, and what follows from them."""
        self._write(self._rows(tile))

    # ---- scores and powers -------------------------------------------------------------------

    def _rows(self, tile: RowTile) -> SoftmaxRows:
        """The powers of some rows, and their sums."""
        scores, positions = self._scores(tile), self.positions(tile)
        visible = self._hide(tile, scores)
        sees = visible > 0
        (highest, sums, shifted, distances), peak_column = self._powers(tile, positions, scores)
        lse = self._lse(tile, highest, sums, sees)
        factor = torch.exp2(highest - torch.where(lse == -torch.inf, 0.0, lse * LOG2_E)) * sees
        self._keep_peaks(tile, visible, factor, positions[1][peak_column])
        return SoftmaxRows(tile, positions, scores, highest, sums, distances, shifted, factor, sees)

    def _powers(
        self, tile: RowTile, positions: tuple[Tensor, Tensor], scores: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores to powers in place; for each row four numbers, and the column of the greatest.

        The numbers ``(4, ...)`` are the greatest score, Σ power, Σ power · (score − greatest), and
        Σ power · |position − key|.
        """
        count, width = scores.shape[-2:]
        flat = scores.view(-1, count, width)
        numbers = flat.new_empty(4, *flat.shape[:2])
        moments = flat.new_empty(2, *flat.shape[:2])
        maxima = flat.new_empty(*flat.shape[:2], -(-width // ARGMAX_BLOCK))
        own, keys = self.q_positions[tile.start : tile.stop], take_positions(self.k_positions, tile)
        gaps = DistanceSums(own, keys, positions, flat)
        for heads, rows in _chunks(*flat.shape):
            chunk, (highest, sums, shifted, _) = flat[heads, rows], numbers[:, heads, rows]
            of_blocks = maxima[heads, rows]
            _block_maxima(chunk, of_blocks)
            torch.amax(of_blocks, -1, out=highest)
            shift = torch.sub(chunk, highest[..., None], out=self._buffer(1, chunk.shape))
            torch.exp2(shift, out=chunk)
            torch.sum(chunk, -1, out=sums)
            torch.sum(shift.mul_(chunk), -1, out=shifted)
            gaps.add_moments(chunk.view(-1, width), moments[:, heads, rows].view(2, -1))
        numbers[3] = gaps.sums(flat, moments)
        return numbers.view(4, *scores.shape[:-1]), _peak_columns(maxima, flat).view(scores.shape[:-1])

    def _hide(self, tile: RowTile, scores: Tensor) -> Tensor:
        """Write MASKED_SCORE where the mask or the bias forbids; return how many keys each row may see."""
        count = tile.stop - tile.start
        if self.inputs.bias is not None:
            scores.clamp_(min=MASKED_SCORE)
        hidden = torch.zeros((1, 1, 1, count), dtype=torch.int64, device=scores.device)
        for columns, forbidden in self._forbidden(tile):
            scores[..., columns].masked_fill_(forbidden, MASKED_SCORE)
            width = columns.stop - columns.start
            hidden = hidden + forbidden.expand(*forbidden.shape[:-1], width).sum(-1)
        if self.inputs.bias is not None:  # a bias may forbid anywhere
            return (scores > 0.5 * MASKED_SCORE).sum(-1)
        return (tile.width - hidden).expand(scores.shape[:-1])

    def _lse(self, tile: RowTile, highest: Tensor, sums: Tensor, sees: Tensor) -> Tensor:
        """The lse of the whole rows: looked up, or computed here and stored."""
        place = self._place(tile)
        if self.lse_known:
            return self._grouped(self.totals.lse[self.head_group.batch, self.head_group.heads][:, :, place])
        lse = torch.where(sees, (highest + torch.log2(sums)) / LOG2_E, -torch.inf)
        if self.inputs.sinks is not None:
            sinks = self.inputs.sinks[self.head_group.heads].to(lse.dtype)
            lse = torch.logaddexp(lse, self._by_group(sinks.view(1, -1, 1)))
        self.totals.lse[self.head_group.batch, self.head_group.heads][:, :, place] = lse.flatten(1, 2)
        return lse

    # ---- statistics --------------------------------------------------------------------------

    def _write(self, rows: SoftmaxRows) -> None:
        """Add all statistics of some rows to the totals."""
        place = self._place(rows.tile)
        lse = self._grouped(self.totals.lse[self.head_group.batch, self.head_group.heads][:, :, place])
        # Σ w (lse − s), with lse − s = (lse − highest) − (s − highest); from bits back to nats.
        above = torch.where(rows.sees, lse * LOG2_E - rows.highest, 0.0)
        entropy = (above * rows.sums - rows.shifted) / LOG2_E
        sums = torch.stack([entropy, rows.sums, rows.distances, *_powers_on_special_keys(rows)])
        target = self.totals.sums[:, self.head_group.batch, self.head_group.heads]
        target[:, :, :, place] += (sums * rows.factor).flatten(2, 3)
        self._add_received(rows)
        self._merge_top(rows.tile, rows.powers, rows.factor)
        self._add_output(rows.tile, rows.powers, rows.factor)

    def _keep_peaks(self, tile: RowTile, visible: Tensor, factor: Tensor, key: Tensor) -> None:
        place = self._place(tile)
        self.totals.visible[self.head_group.batch, self.head_group.heads][:, :, place] += visible.flatten(
            1, 2
        )
        peak = self.totals.peak[self.head_group.batch, self.head_group.heads]
        peak_key = self.totals.peak_key[self.head_group.batch, self.head_group.heads]
        # The greatest power is 1, so the greatest weight equals the factor.
        mine, before = factor.flatten(1, 2), peak[:, :, place]
        key, earlier = key.flatten(1, 2), peak_key[:, :, place]
        # Parts come in any order; among equal weights the first key counts.
        better = (mine > before) | ((mine == before) & (key < earlier))
        peak_key[:, :, place] = torch.where(better, key, earlier)
        peak[:, :, place] = torch.maximum(mine, before)

    def _add_received(self, rows: SoftmaxRows) -> None:
        heads = rows.powers.flatten(0, 2)  # (batch · head, query, key)
        found = torch.bmm(rows.factor.flatten(0, 2).unsqueeze(1), heads)
        self._receive(rows.tile, found.view(self.batch, -1, rows.tile.width))

    def _grouped(self, x: Tensor) -> Tensor:
        grouped: Tensor = x.unflatten(1, (self.key_head_count, self.group_size))
        return grouped


def _powers_on_special_keys(rows: SoftmaxRows) -> Iterable[Tensor]:
    """Each row's powers on the key at its own position, on the one before, and on the first; 0 for no key."""
    own, keys = rows.positions
    wanted = torch.stack([own, own - 1, torch.zeros_like(own)], -1)  # (row, 3)
    column = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
    found = rows.powers.gather(-1, column.expand(*rows.powers.shape[:-1], 3))
    return (found * (keys[column] == wanted)).unbind(-1)


def _chunks(heads: int, rows: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Heads and rows in chunks that fit the cache: several heads, or some rows of one."""
    some_rows = min(rows, max(1, CACHED_SCORES // width))
    some_heads = max(1, CACHED_SCORES // (rows * width))
    for head in range(0, heads, some_heads):
        for row in range(0, rows, some_rows):
            yield slice(head, head + some_heads), slice(row, min(row + some_rows, rows))


def _block_maxima(scores: Tensor, out: Tensor) -> None:
    """The maximum of every block of scores; the last block may be shorter."""
    width = scores.shape[-1]
    whole = width // ARGMAX_BLOCK
    if whole:
        blocks = scores[..., : whole * ARGMAX_BLOCK].unflatten(-1, (whole, ARGMAX_BLOCK))
        torch.amax(blocks, -1, out=out[..., :whole])
    if width % ARGMAX_BLOCK:
        torch.amax(scores[..., whole * ARGMAX_BLOCK :], -1, out=out[..., whole])


def _peak_columns(maxima: Tensor, powers: Tensor) -> Tensor:
    """The first column with the greatest power of each row, searched only in its best block."""
    inside = torch.arange(ARGMAX_BLOCK, device=powers.device)
    columns = (maxima.argmax(-1, keepdim=True) * ARGMAX_BLOCK + inside).clamp_(max=powers.shape[-1] - 1)
    best = powers.gather(-1, columns).argmax(-1, keepdim=True)
    return columns.gather(-1, best).squeeze(-1)
