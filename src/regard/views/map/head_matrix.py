"""One head of one sequence as a matrix of weights, or of another quantity, any part of it computed exactly.

Sinks can be hidden. With the keys of a set S hidden, the weights are those of the softmax over the
other keys, ``w'_ij = exp(s_ij − lse'_i)`` with ``lse'_i = log Σ_{k∉S} exp s_ik`` (a learned sink stays
in the sum); hidden keys have weight 0. That is ``w_ij / (1 − Σ_{s∈S} w_is)``, computed without the
subtraction, which would lose all precision where a sink takes nearly everything. A query that sees only
hidden keys has weights 0. Of a dense matrix, which has no scores, the other weights of a row are divided by
their sum.

Gradients, products and sizes of contributions (``docs/why.md``) are what happened in the model, so hiding
keys leaves the others as they are. Masked and hidden pairs have no number: NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.checks import check_choice
from regard.errors import ShapeError
from regard.kernels.plain_kernel import ScoreOptions, scores_of
from regard.kernels.precision import full_precision
from regard.kernels.row_weights import weigh_rows
from regard.kernels.statistics_pass import LOG2_E
from regard.masks import padding
from regard.masks.extent import Bools, Integers, TiledAxis
from regard.masks.mask import NONE, SOME
from regard.recording import Call, DenseCall, ScoredCall
from regard.views.page.head_groups import HeadSlice
from regard.views.page.page_quantities import check_what, given_by_keys, quantities_of

TILE = 256
"""Cells along each side of a tile."""

HIDING = ("show", "first", "special")
"""What can be hidden: nothing, the first key, every special token."""


def hidden_keys(hiding: str, special: Sequence[bool]) -> Bools:
    """Which keys are hidden, given which of them are special tokens.

    >>> hidden_keys("first", [True, False, True]).tolist()
    [True, False, False]
    """
    check_choice("sinks", hiding, HIDING)
    found = np.zeros(len(special), bool)
    if hiding == "special":
        found[:] = special
    elif hiding == "first":
        found[:1] = True
    return found


class WeightedRows(NamedTuple):
    """The weights of some rows and columns, and what the margins show of them."""

    weights: Tensor  # (row, column)
    entropy: Tensor  # (row,): over these columns, in nats
    received: Tensor  # (column,): from these rows


class HeadMatrix:
    """The weights of one head, or another quantity of it, with some keys hidden.

    >>> q = k = torch.zeros(1, 1, 4, 8)  # four equal scores
    >>> call = ScoredCall("attention", "encoder", 0, q, k, torch.full((1, 1, 4), math.log(4)))
    >>> HeadMatrix(call, head=0).weights(slice(0, 1), slice(0, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    >>> HeadMatrix(call, head=0, hidden=[True, False, False, False]).weights(slice(0, 1), slice(0, 4))
    tensor([[0.0000, 0.3333, 0.3333, 0.3333]])
    """

    def __init__(
        self,
        call: Call,
        head: int,
        batch: int = 0,
        hidden: Sequence[bool] | Bools | None = None,
        what: str = "weight",
    ) -> None:
        check_what(what, quantities_of([call]))
        # Raises if the head or the batch is wrong, or if the call kept only its statistics.
        call.weights(head, slice(0, 0), slice(0, 0), batch)
        hides = np.zeros(call.keys, bool) if hidden is None else np.asarray(hidden, bool)
        if hides.shape != (call.keys,):
            raise ShapeError(
                "hidden must have one truth value for each key (keys = {keys}).",
                got="{size} truth values",
                do="Pass one for each key.",
                keys=call.keys,
                size=hides.size,
            )
        one: Call = replace(call.select(batch, [call.head_numbers.index(head)]), numbers=None)
        self.what = what
        self._quantity = None if what == "weight" else _Quantity(one.scored().on_cpu(), hides, what)
        if isinstance(one, ScoredCall):
            one = replace(
                one, v=None, output_gradient=None, projection=None, projection_bias=None, residual=None
            )
        self.call = self._recorded = one.on_cpu()
        # Hidden keys are not masked.
        self._mask = None if isinstance(one, DenseCall) else one.mask.select((0, 0))
        self._unknown: Bools | None = None  # strips of rows whose lse is not yet known
        if hides.any():
            self._hide(hides)

    @property
    def queries(self) -> int:
        """Rows."""
        return self.call.queries

    @property
    def keys(self) -> int:
        """Columns."""
        return self.call.keys

    @property
    def coarsest(self) -> int:
        """The first level at which one tile shows everything: a cell is 2^level × 2^level pairs."""
        return max(0, math.ceil(math.log2(max(self.queries, self.keys, 1) / TILE)))

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.call.nbytes + (0 if self._quantity is None else self._quantity.call.nbytes)

    def weights(self, rows: slice, columns: slice) -> Tensor:
        """The weights of some rows and columns, ``(rows, columns)``, exactly."""
        self._know(rows)
        return self.call.weights(0, rows, columns)

    def weighted(self, rows: slice, columns: slice) -> WeightedRows:
        """The weights of some rows and columns, with the sums that the margins need."""
        self._know(rows)
        found = _in_one_pass(self.call, rows, columns) if isinstance(self.call, ScoredCall) else None
        if found is not None:
            return found
        weights = self.call.weights(0, rows, columns)
        logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log_()
        return WeightedRows(weights, -logs.mul_(weights).sum(1), weights.sum(0))

    def values(self, rows: slice, columns: slice) -> Tensor:
        """What is shown of some rows and columns; NaN where another quantity than weights is masked."""
        if self._quantity is None:
            return self.weights(rows, columns)
        return self._quantity.values(rows, columns)

    def visible(self, rows: slice, columns: slice) -> Bools:
        """Which pairs of some rows and columns are not masked; a dense matrix has only its weights."""
        return self._visible(np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop))

    def _visible(self, queries: Integers, keys: Integers) -> Bools:
        if self._mask is None:
            weights = self._recorded.weights(0, slice(queries[0], queries[-1] + 1), slice(0, self.keys))
            return (weights[queries - queries[0]][:, keys] > 0).numpy()
        return self._mask.evaluate(self.call.extent, queries + self.call.extent.offset, keys)

    def masked_blocks(self, rows: slice, columns: slice, step: int, among: Bools) -> Bools:
        """Which blocks of ``step × step`` pairs are masked as a whole, ``(row of blocks, column of blocks)``.

        Only the blocks in ``among`` are looked at. Masks answer for most blocks without their pairs.
        """
        queries, keys = np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop)
        if self._mask is None:
            verdicts = np.full(among.shape, SOME, np.uint8)
        else:
            extent = self.call.extent
            down, across = TiledAxis.cut(queries + extent.offset, step), TiledAxis.cut(keys, step)
            verdicts = self._mask.tiles(down, across, extent)
        masked: Bools = among & (verdicts == NONE)
        unsure = among & (verdicts == SOME)
        for row in np.flatnonzero(unsure.any(1)):
            blocks = np.flatnonzero(unsure[row])
            for query in queries[row * step : (row + 1) * step]:
                if not len(blocks):
                    break
                inside = np.minimum(blocks[:, None] * step + np.arange(step), len(keys) - 1)
                seen = self._visible(np.array([query]), keys[inside.ravel()])[0].reshape(inside.shape)
                blocks = blocks[~seen.any(1)]
            masked[row, blocks] = True
        return masked

    def reach(self, rows: slice) -> slice:
        """The columns outside of which these rows certainly see nothing, in whole tiles."""
        if isinstance(self.call, DenseCall) or rows.start >= rows.stop:
            return slice(0, self.keys)
        positions = np.arange(rows.start, rows.stop) + self.call.extent.offset
        whole = TiledAxis(positions, np.zeros(1, np.int64))
        columns = TiledAxis.cut(np.arange(self.keys), TILE)
        found = np.flatnonzero(self.call.mask.tiles(whole, columns, self.call.extent)[0] != NONE)
        if not len(found):
            return slice(0, 0)
        return slice(int(found[0]) * TILE, min(self.keys, (int(found[-1]) + 1) * TILE))

    # ---- hidden keys -----------------------------------------------------------------------------

    def _hide(self, hides: Bools) -> None:
        call = self.call
        if isinstance(call, DenseCall):
            kept = call.matrix.masked_fill(torch.from_numpy(hides), 0.0)
            mass = kept.sum(-1, keepdim=True)
            self.call = replace(call, matrix=kept / torch.where(mass > 0, mass, 1.0))
            return
        mask, lse = call.mask & padding(~hides), call.scored().lse
        self.call = replace(call.scored(), mask=mask, lse=torch.full_like(lse, -torch.inf))
        self._unknown = np.ones(-(-call.queries // TILE), bool)

    def _know(self, rows: slice) -> None:
        """Find the lse of these rows over the keys that are left, a whole at a time, once."""
        if self._unknown is None or rows.start >= rows.stop:
            return
        strips = slice(rows.start // TILE, -(-rows.stop // TILE))
        for whole in strips.start + np.flatnonzero(self._unknown[strips]):
            self._find(int(whole))
            # Set last: another thread that sees this also sees the numbers. Two may do it twice.
            self._unknown[whole] = False

    def _find(self, whole: int) -> None:
        call = self.call.scored()
        one = slice(0, 1)
        piece = HeadSlice(
            one, one, call.q[0], call.k[0], call.mask, call.bias, call.scale, call.softcap, call.sinks
        )
        rows = torch.arange(whole * TILE, min((whole + 1) * TILE, call.queries))
        found = torch.logsumexp(piece.scores(rows, call.q.dtype)[0], -1)
        if call.sinks is not None:
            found = torch.logaddexp(found, call.sinks.to(found.dtype))
        call.lse[0, 0, rows] = found.to(call.lse.dtype)


def _in_one_pass(call: ScoredCall, rows: slice, columns: slice) -> WeightedRows | None:
    """The same by the compiled pass; None without it, or in float64."""
    if call.q.dtype != torch.float32:
        return None
    i, j = np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop)
    bias = call.bias_at(0, 0, i, j)
    with full_precision(call.q):
        scores, _ = scores_of(
            call.q[0, 0, rows] * LOG2_E if call.softcap is None else call.q[0, 0, rows],
            call.k[0, 0, columns],
            None,
            ScoreOptions(call.scale, call.softcap),
        )
    if call.softcap is not None:
        scores = scores.mul_(LOG2_E)
    scores = scores if bias is None else scores.add_(bias * LOG2_E)
    seen = call.mask.select((0, 0)).evaluate(call.extent, i + call.extent.offset, j)
    allowed = None if seen.all() else seen
    sums = weigh_rows(scores[None, None], call.lse[:, :, rows], allowed, can_forbid=bias is not None)
    return None if sums is None else WeightedRows(scores, sums.entropy[0, 0], sums.received[0, 0])


class _Quantity:
    """A quantity of the one head of a call, with some keys hidden."""

    def __init__(self, call: ScoredCall, hides: Bools, what: str) -> None:
        self.call = call
        self._what = what
        self._mask = call.mask.select((0, 0)) & padding(~hides)
        self._given = given_by_keys(call, None)[0] if what == "contribution" else None  # (key,)

    def values(self, rows: slice, columns: slice) -> Tensor:
        """Some rows and columns of it, NaN where they are masked or hidden."""
        call = self.call
        if self._given is not None:
            weights = call.weights(0, rows, columns)
            found = weights * self._given[columns].to(weights)
        elif self._what == "gradient":
            found = call.gradient(0, rows, columns)
        else:
            found = call.weights_times_gradient(0, rows, columns)
        queries, keys = (
            np.arange(length)[part] for length, part in ((call.queries, rows), (call.keys, columns))
        )
        allowed = self._mask.evaluate(call.extent, queries + call.extent.offset, keys)
        return found.masked_fill(~torch.from_numpy(np.ascontiguousarray(allowed)), torch.nan)
