"""The relevance that the text of a page can be shaded by: a vector for each row, computed when it is written.

A loss that is read at some positions gives the attention output of the last layer a gradient at these
positions alone, because everything above it treats each position by itself. So the rows need not be named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.checks import is_integer
from regard.errors import ArgumentError, RegardError
from regard.heads.token_relevance import relevance
from regard.recording import Call, Recording, ScoredCall
from regard.views.page.array_packing import ArrayStore

MOST_ROWS = 4
"""Rows whose relevance is computed by default, at most: a loss over all positions has no single row."""


@dataclass(frozen=True, eq=False)
class RowRelevance:
    """The relevance of every token for one row of a run."""

    run: int
    row: int
    own: NDArray[np.float32]  # (token,)
    source: NDArray[np.float32] | None  # (token of the source,)

    def described(self, arrays: ArrayStore) -> dict[str, Any]:
        """Its part of the header."""
        return {
            "run": self.run,
            "row": self.row,
            "own": arrays.put(self.own),
            "source": None if self.source is None else arrays.put(self.source),
        }


def rows_asked(rows: int | Sequence[int] | None) -> list[int] | None:
    """The rows as a list.

    >>> rows_asked(-1), rows_asked([0, 3]), rows_asked(None)
    ([-1], [0, 3], None)
    """
    if rows is None:
        return None
    found = [rows] if isinstance(rows, int) else list(rows)
    if not found or not all(is_integer(row) for row in found):
        raise ArgumentError(
            "relevance must be a row or several.",
            got="{rows!r}",
            do="Pass relevance=-1 for the last one.",
            rows=rows,
        )
    return found


def relevance_rows(
    recording: Recording, calls: Sequence[Call], batch: int, rows: Sequence[int] | None
) -> list[RowRelevance]:
    """The relevance for these rows of every run on the page; by default those that the loss was read at."""
    runs = sorted({call.run for call in calls})
    if rows is not None:
        return [_found(recording, batch, run, row) for run in runs for row in rows]
    if not all(isinstance(call, ScoredCall) and call.has_gradient for call in recording.calls):
        return []
    try:
        return [
            _found(recording, batch, run, row)
            for run in runs
            for row in loss_rows([call for call in recording.calls if call.run == run], batch)
        ]
    except RegardError:
        # Nobody asked for it, and not every recording has one text that its layers follow.
        return []


def loss_rows(calls: Sequence[Call], batch: int) -> list[int]:
    """The positions that the loss was read at, where a gradient reaches the last layer; none if many."""
    decoder = [call for call in calls if call.kind == "decoder"]
    stack = decoder or [call for call in calls if call.kind == "encoder"]
    if not stack:
        return []
    last = max(stack, key=lambda call: call.layer).scored()
    rows = last.gradients[batch].ne(0).any(-1).any(0).nonzero()[:, 0].tolist()
    return [int(row) for row in rows] if len(rows) <= MOST_ROWS else []


def _found(recording: Recording, batch: int, run: int, row: int) -> RowRelevance:
    found = relevance(recording, row=row, batch=batch, run=run)
    source = None if found.source is None else found.source.float().cpu().numpy()
    return RowRelevance(run, found.row, found.own.float().cpu().numpy(), source)
