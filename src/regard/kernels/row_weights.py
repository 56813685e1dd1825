"""Scores of whole rows to weights in place, by the compiled pass, for those who look at every weight.

    scores (batch, head, row, key) in bits, lse (batch, head, row) → weights, and their sums

The map's levels and the survey of a corpus use it. Where the pass is missing, they compute in torch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.kernels.compiled_pass import RowPassArguments, compiled_pass
from regard.masks.extent import Bools


class RowSums(NamedTuple):
    """What the pass found besides the weights."""

    entropy: Tensor  # (batch, head, row), in nats
    peak: Tensor  # (batch, head, row): the greatest weight
    received: Tensor  # (batch, head, key): Σ over these rows


def weigh_rows(
    scores: Tensor, lse: Tensor, allowed: Bools | None = None, *, can_forbid: bool = False
) -> RowSums | None:
    """Turn scores into weights, in the memory of the scores; None, with the scores unchanged, if it cannot.

    ``scores (batch, head, row, key)`` are multiplied by log₂ e; ``lse`` is that of the whole rows, in nats.
    ``allowed`` broadcasts to ``(batch, head, row, key)``; ``can_forbid`` says that scores can be −inf.

    >>> scores = torch.zeros(1, 1, 2, 4)
    >>> sums = weigh_rows(scores, torch.full((1, 1, 2), 4.0).log())
    >>> torch.equal(scores, torch.full((1, 1, 2, 4), 0.25)) or sums is None
    True
    """
    compiled = compiled_pass()
    usable = scores.device.type == "cpu" and scores.dtype == torch.float32 and scores.is_contiguous()
    if compiled is None or not usable or type(scores) is not Tensor or not scores.numel():
        return None
    batch, heads, rows, width = scores.shape
    shape = (batch, heads, rows)
    lse = lse.detach().to(torch.float32).expand(shape).contiguous()
    totals = torch.zeros(8, *shape)
    counts = torch.zeros(2, *shape, dtype=torch.int64)
    received = torch.empty(batch, heads, width)
    table = None if allowed is None else _table(allowed, rows, width)
    steps = (0, 0) if table is None else _steps(table)
    whole = np.full(rows, width)
    nothing, keys = np.zeros(rows, np.int64), np.zeros(width, np.int64)
    places = np.zeros(max(rows, width), np.float32)  # nobody asks for distances here
    special, order = np.full((3, rows), -1), np.arange(rows)
    arguments = RowPassArguments(
        scores=scores.data_ptr(), batch=batch, heads=heads, rows=rows, width=width,
        totals_batch=heads * rows, totals_head=rows,
        queries=order.ctypes.data, query_places=places.ctypes.data, key_places=places.ctypes.data,
        key_positions=keys.ctypes.data, special_columns=special.ctypes.data,
        starts=nothing.ctypes.data, stops=whole.ctypes.data, range_batch=0, range_head=0,
        allowed=None if table is None else table.ctypes.data,
        allowed_batch=steps[0], allowed_head=steps[1],
        counts=can_forbid, sinks=None, lse_known=True, received=received.data_ptr(),
        lse=lse.data_ptr(), entropy=totals[0].data_ptr(), mass=totals[1].data_ptr(), far=totals[2].data_ptr(),
        self_weight=totals[3].data_ptr(), previous_weight=totals[4].data_ptr(),
        first_weight=totals[5].data_ptr(), peak=totals[6].data_ptr(),
        visible=counts[0].data_ptr(), peak_key=counts[1].data_ptr(),
    )  # fmt: skip
    compiled.run(arguments)
    return RowSums(totals[0], totals[6], received)


def _table(allowed: Bools, rows: int, width: int) -> NDArray[np.uint8]:
    """``(batch or 1, head or 1, row, key)``, one byte each."""
    lead = allowed.shape[:-2]
    shape = (*(1,) * (2 - len(lead)), *lead, rows, width)
    whole = np.broadcast_to(allowed, (*lead, rows, width)).reshape(shape)
    return np.ascontiguousarray(whole).view(np.uint8)


def _steps(table: NDArray[np.uint8]) -> tuple[int, int]:
    """Bytes from one batch entry, and from one head, to the next; 0 if they share the table."""
    batch, heads, rows, width = table.shape
    return (0 if batch == 1 else heads * rows * width), (0 if heads == 1 else rows * width)
