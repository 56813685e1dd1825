"""One part of a plan, a few rows at a time: scores, powers, and the statistics computed from them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.kernels.inputs import Inputs
from regard.kernels.layout import MaskPart, RowTile
from regard.kernels.statistics_totals import Totals
from regard.kernels.tile_pass import HeadGroup, PartTensors, flatten_lead, take
from regard.masks.extent import Integers
from regard.threads import each

MAX_SCORES_PER_THREAD = 1 << 20
"""The most scores that a thread holds at once: twice 4 MB in float32. More would not fit the CPU cache."""

MIN_SPLIT_SCORES = 1 << 20
"""Heads are split if a tile has more scores than this. A lower number means more calls."""

TASKS_PER_PART = 16
"""About how many parallel tasks a part makes: one per head, or stretches of rows if there are few heads."""

MAX_ROWS = 128
"""The most rows computed at once, however short they are."""

MASKED_SCORE = -1e30
"""The score of a masked pair: finite, so that 0 · score is 0 and not NaN."""

LOG2_E = math.log2(math.e)
"""Scores are kept in units of log 2: torch's exp is thirty times slower where the result underflows,
as it does for masked and distant pairs; its exp2 is not."""

NEAR_KEYS = 128
"""Distances to keys at most this many positions away are computed one by one."""

ARGMAX_BLOCK = 64
"""The maximum is searched in blocks of this many scores."""


class SoftmaxRows(NamedTuple):
    """Some rows before normalisation; the axes are (batch, key head, query head of its group, query, ...)."""

    tile: RowTile
    k_positions: Integers
    powers: Tensor  # 2^(score − highest), (..., key)
    highest: Tensor  # (...)
    sums: Tensor  # Σ powers
    distances: Tensor  # Σ powers · |position − key|
    shifted: Tensor  # Σ powers · (score − highest)
    factor: Tensor  # powers · factor = weights; 0 for rows that see no key
    sees: Tensor  # whether the row sees any key


def collect(
    inputs: Inputs, head_group: HeadGroup, part: MaskPart, totals: Totals, *, lse_known: bool
) -> None:
    """Compute the rows of one part and add their statistics to the totals.

    Heads, and stretches of rows of all heads, are computed in parallel.
    """
    batch, heads, _, _ = inputs.q.shape
    group_size = heads // inputs.k.shape[1]
    elements = len(range(batch)[head_group.batch]) * len(range(heads)[head_group.heads])
    rows = sum(row.stop - row.start for row in part.rows)
    width = sum(row.pairs for row in part.rows) // max(1, rows)
    cuts = max(1, elements * MAX_ROWS * width // MIN_SPLIT_SCORES)
    passes = each(
        lambda one: StatisticsPass(inputs, one, part, totals, lse_known=lse_known),
        head_group.cut(batch, heads, group_size, cuts),
    )
    stretches = [(one, tiles) for one in passes for tiles in one.stretches(-(-TASKS_PER_PART // len(passes)))]
    received = each(lambda one: one[0].stretch(one[1]), stretches)
    # Several stretches may contribute to the same key; added in order, so that the sums are reproducible.
    for (one, _), found in zip(stretches, received):
        one.add_received(found)


class StatisticsPass(PartTensors):
    """The statistics of one part for one head group: its tensors, and the totals to add to."""

    def __init__(
        self, inputs: Inputs, head_group: HeadGroup, part: MaskPart, totals: Totals, *, lse_known: bool
    ) -> None:
        super().__init__(inputs.q, inputs.k, head_group, part, inputs.extent)
        self.inputs, self.totals = inputs, totals
        self.lse_known = lse_known  # whether the lse and the output have been computed already
        wide = totals.lse.dtype
        k = self.of_keys(inputs.k).to(wide)
        self.batch, self.key_head_count = k.shape[:2]
        # Keys as columns: the product is a quarter faster than with a transposed view.
        self.k_columns = k.transpose(-1, -2).contiguous().flatten(0, 1)  # (batch · key head, channel, key)
        without_values = totals.output is None or lse_known
        self.v = None if without_values else self.of_keys(inputs.v).to(wide).flatten(0, 1)
        self.store: list[Tensor] = []
        self.received = torch.empty(0)

    def stretches(self, count: int) -> list[list[RowTile]]:
        """All rows in tiles, grouped into about ``count`` stretches with equally many scores."""
        tiles = list(self._tiles())
        done = list(accumulate(tile.pairs for tile in tiles))
        found: dict[int, list[RowTile]] = {}
        for tile, so_far in zip(tiles, done):
            found.setdefault(count * (so_far - 1) // done[-1], []).append(tile)
        return list(found.values())

    def stretch(self, tiles: list[RowTile]) -> Tensor:
        """Compute some rows; return what each key of the part received from them."""
        # Its own buffers, so that other stretches can be computed at the same time.
        own = copy(self)
        wide = self.k_columns
        own.store = [wide.new_empty(0) for _ in range(2)]
        own.received = wide.new_zeros(self.batch, self.key_head_count * self.group_size, wide.shape[-1])
        for tile in tiles:
            own._write(own._rows(tile))
        return own.received

    def add_received(self, found: Tensor) -> None:
        """Add what the keys received from a stretch."""
        target = self.totals.received[self.head_group.batch, self.head_group.heads]
        if self.keys is None:
            target += found
        else:
            target.index_add_(2, self.keys, found)

    def _tiles(self) -> Iterator[RowTile]:
        heads = self.batch * self.key_head_count * self.group_size
        for row in self.part.rows:
            step = min(MAX_ROWS, max(1, MAX_SCORES_PER_THREAD // max(1, heads * row.width)))
            for start in range(row.start, row.stop, step):
                yield replace(row, start=start, stop=min(start + step, row.stop))

    # ---- scores and powers -------------------------------------------------------------------

    def _rows(self, tile: RowTile) -> SoftmaxRows:
        """The powers of some rows, and their sums."""
        k_positions = np.concatenate([self.k_positions[start:stop] for start, stop in tile.runs])
        scores, hidden = self._scores(tile, k_positions)
        highest, peak_column = _greatest(scores)
        visible = self._visible(tile, scores, hidden)
        sees = visible > 0
        scores.sub_(highest[..., None])
        powers = torch.exp2(scores, out=self._buffer(1, scores.shape))
        sums, distances = self._moments(tile, k_positions, powers)
        shifted = torch.mul(powers, scores, out=scores).sum(-1)
        lse = self._lse(tile, highest, sums, sees)
        factor = torch.exp2(highest - torch.where(lse == -torch.inf, 0.0, lse * LOG2_E)) * sees
        peak_key = torch.from_numpy(k_positions).to(scores.device)[peak_column]
        self._keep_peaks(tile, visible, factor, peak_key)
        return SoftmaxRows(tile, k_positions, powers, highest, sums, distances, shifted, factor, sees)

    def _scores(self, tile: RowTile, k_positions: Integers) -> tuple[Tensor, Tensor]:
        """Scores ``(batch, key head, group size, query, key)`` in bits, MASKED_SCORE where the mask forbids.

        Also the number of keys that the mask hides from each row, which broadcasts.
        """
        count = tile.stop - tile.start
        softcap = self.inputs.softcap
        scale = self.inputs.scale * LOG2_E if softcap is None else self.inputs.scale / softcap
        q = self.q[:, :, tile.start : tile.stop].to(self.k_columns.dtype) * scale
        flat = q.reshape(self.batch * self.key_head_count, self.group_size * count, q.shape[-1])
        scores = self._buffer(0, (*flat.shape[:2], tile.width))
        torch.bmm(flat, take(self.k_columns, tile, axis=-1), out=scores)
        scores = scores.view(self.batch, self.key_head_count, self.group_size, count, tile.width)
        if softcap is not None:
            scores.tanh_().mul_(softcap * LOG2_E)
        if self.inputs.bias is not None:
            scores.add_(self._bias(tile, k_positions)).clamp_(min=MASKED_SCORE)
        hidden = torch.zeros((1, 1, 1, count), dtype=torch.int64, device=scores.device)
        for columns, allowed in self.part.questions(tile, self.inputs.extent):
            forbidden = np.broadcast_to(~allowed, (*allowed.shape[:-2], count, columns.stop - columns.start))
            flat_lead = flatten_lead(torch.from_numpy(forbidden.copy()), self.inputs.lead)
            by_head = self._by_group(self.head_group.own(flat_lead)).to(scores.device)
            scores[..., columns].masked_fill_(by_head, MASKED_SCORE)
            hidden = hidden + by_head.sum(-1)
        return scores, hidden

    def _bias(self, tile: RowTile, k_positions: Integers) -> Tensor:
        bias = self.inputs.bias
        assert bias is not None
        device = self.q.device
        q = torch.from_numpy(self.q_positions[tile.start : tile.stop]).to(device)
        tables = bias.narrow(bias.tables, self.head_group.batch, self.head_group.heads)
        values = bias.tile(tables, q, torch.from_numpy(k_positions).to(device), self.inputs.extent)
        return self._by_group(values.to(self.k_columns.dtype) * LOG2_E)

    def _by_group(self, x: Tensor) -> Tensor:
        """``(batch or 1, head or 1, ...)`` with the head axis split into key heads and groups."""
        return x.unsqueeze(2) if x.shape[1] == 1 else x.reshape(x.shape[0], -1, self.group_size, *x.shape[2:])

    def _visible(self, tile: RowTile, scores: Tensor, hidden: Tensor) -> Tensor:
        """The number of keys that each row may see, ``(batch, key head, group size, query)``."""
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
        self._add("entropy", place, rows.factor * (above * rows.sums - rows.shifted) / LOG2_E)
        self._add("mass", place, rows.factor * rows.sums)
        self._add("far", place, rows.factor * rows.distances)
        own = self.q_positions[rows.tile.start : rows.tile.stop]
        self._add("self_weight", place, self._weight_at(rows, own))
        self._add("previous_weight", place, self._weight_at(rows, own - 1))
        self._add("first_weight", place, self._weight_at(rows, np.zeros_like(own)))
        self._add_received(rows)
        if self.totals.top_weights.shape[-1]:
            self._merge_top(rows, place)
        if self.v is not None and self.totals.output is not None:
            flat = rows.powers.flatten(0, 1).flatten(1, 2)
            found = torch.bmm(flat, take(self.v, rows.tile, axis=-2)).view(*rows.powers.shape[:-1], -1)
            output = (found * rows.factor[..., None]).flatten(1, 2)
            target = self.totals.output[self.head_group.batch, self.head_group.heads]
            target[:, :, place] = output.to(target.dtype)

    def _keep_peaks(self, tile: RowTile, visible: Tensor, factor: Tensor, key: Tensor) -> None:
        place = self._place(tile)
        self._add("visible", place, visible)
        peak = self.totals.peak[self.head_group.batch, self.head_group.heads]
        peak_key = self.totals.peak_key[self.head_group.batch, self.head_group.heads]
        # The greatest power is 1, so the greatest weight equals the factor.
        mine, before = factor.flatten(1, 2), peak[:, :, place]
        key, earlier = key.flatten(1, 2), peak_key[:, :, place]
        # Parts come in any order; among equal weights the first key counts.
        better = (mine > before) | ((mine == before) & (key < earlier))
        peak_key[:, :, place] = torch.where(better, key, earlier)
        peak[:, :, place] = torch.maximum(mine, before)

    def _moments(self, tile: RowTile, k: Integers, powers: Tensor) -> tuple[Tensor, Tensor]:
        """``Σ_j power`` and ``Σ_j power · |position − key|``.

        Distances to near keys are computed one by one, those to far keys by products. Far away,
        ``Σ p (k − q) = Σ p k − q Σ p`` loses no precision; nearby, that difference would.
        """
        q = self.q_positions[tile.start : tile.stop]
        left = int(np.searchsorted(k, q[0] - NEAR_KEYS))
        right = max(left, int(np.searchsorted(k, q[-1] + NEAR_KEYS, side="right")))
        own = torch.from_numpy(q - q[0]).to(powers.device, powers.dtype)
        places = torch.from_numpy(k - q[0]).to(powers.device, powers.dtype)
        near = powers[..., left:right]
        sums = near.sum(-1)
        distances = (near * (places[left:right] - own[:, None]).abs()).sum(-1)
        flat = powers.view(-1, len(k))
        for far, sign in ((slice(0, left), -1.0), (slice(right, len(k)), 1.0)):
            if far.start < far.stop:
                mass = powers[..., far].sum(-1)
                moment = torch.mv(flat[:, far], places[far]).view(sums.shape)
                sums += mass
                distances += sign * (moment - own * mass)
        return sums, distances

    def _weight_at(self, rows: SoftmaxRows, position: Integers) -> Tensor:
        """The weight of each row on the key at its own ``position``; 0 if it is not among the keys."""
        column = np.searchsorted(rows.k_positions, position).clip(max=len(rows.k_positions) - 1)
        there = torch.from_numpy(rows.k_positions[column] == position).to(rows.powers.device)
        index = torch.from_numpy(column).to(rows.powers.device)[:, None]
        found = rows.powers.gather(-1, index.expand(*rows.powers.shape[:-1], 1)).squeeze(-1)
        return found * rows.factor * there

    def _add_received(self, rows: SoftmaxRows) -> None:
        heads = rows.powers.flatten(0, 2)  # (batch · head, query, key)
        found = torch.bmm(rows.factor.flatten(0, 2).unsqueeze(1), heads).view(self.batch, -1, rows.tile.width)
        for start, stop in rows.tile.runs:
            column = rows.tile.column(start)
            self.received[..., start:stop] += found[..., column : column + stop - start]

    def _merge_top(self, rows: SoftmaxRows, place: slice | Tensor) -> None:
        weights = self.totals.top_weights[self.head_group.batch, self.head_group.heads]
        keys = self.totals.top_keys[self.head_group.batch, self.head_group.heads]
        top = weights.shape[-1]
        found, column = rows.powers.topk(min(top, rows.tile.width), dim=-1)
        found = (found * rows.factor[..., None]).flatten(1, 2)
        key = torch.from_numpy(rows.k_positions).to(found.device)[column].flatten(1, 2)
        key = torch.where(found > 0, key, -1)
        both = torch.cat([weights[:, :, place], found], -1)
        both_keys = torch.cat([keys[:, :, place], key], -1)
        best, index = both.topk(top, dim=-1)
        weights[:, :, place], keys[:, :, place] = best, both_keys.gather(-1, index)

    # ---- places ------------------------------------------------------------------------------

    def _place(self, tile: RowTile) -> slice | Tensor:
        """The rows of a tile among all queries."""
        rows = slice(tile.start, tile.stop)
        return rows if self.queries is None else self.queries[rows]

    def _add(self, name: str, place: slice | Tensor, value: Tensor) -> None:
        target: Tensor = getattr(self.totals, name)[self.head_group.batch, self.head_group.heads]
        target[:, :, place] += value.flatten(1, 2)

    def _grouped(self, x: Tensor) -> Tensor:
        grouped: Tensor = x.unflatten(1, (self.key_head_count, self.group_size))
        return grouped

    def _buffer(self, number: int, shape: tuple[int, ...]) -> Tensor:
        """Memory that every tile reuses."""
        size = int(np.prod(shape))
        if self.store[number].numel() < size:
            self.store[number] = self.store[number].new_empty(size)
        return self.store[number][:size].view(shape)


def _greatest(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The greatest score of each row and its column: first over blocks, then within the best block."""
    width = scores.shape[-1]
    whole = width - width % ARGMAX_BLOCK
    if not whole:
        best_of_all = scores.max(-1)
        return best_of_all.values, best_of_all.indices
    blocks = scores[..., :whole].unflatten(-1, (-1, ARGMAX_BLOCK))
    highest, block = blocks.amax(-1).max(-1)
    best = blocks.gather(-2, block[..., None, None].expand(*block.shape, 1, ARGMAX_BLOCK)).squeeze(-2)
    column = block * ARGMAX_BLOCK + best.argmax(-1)
    if whole < width:
        rest, rest_column = scores[..., whole:].max(-1)
        column = torch.where(rest > highest, whole + rest_column, column)
        highest = torch.maximum(highest, rest)
    return highest, column
