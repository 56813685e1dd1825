"""Small pictures and statistics of every head of a recording, call by call: the Overview of a long text.

A page of a long text carries the numbers of one call; its Overview shows the heads of all calls. They come
one call after another, so that only one call is worked on at a time, and pictures have few enough pixels
that all heads together stay within a few megabytes.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import heads
from regard.recording import Call, DenseCall, Recording, ScoredCall
from regard.views.page.head_groups import pieces_of
from regard.views.page.opening import cards, head_roles
from regard.views.page.page_payload import numbers_of_heads
from regard.views.page.page_quantities import quantities_of
from regard.views.page.sequence import one_sequence
from regard.views.page.thumbnails import SIDE, thumbnail, thumbnail_of_weights

SIDES = (64, 48, SIDE, 16)
"""Blocks along each side of a picture, at most: the more heads there are, the fewer."""

ALL_PICTURES = 4_000_000
"""Bytes that the pictures of all heads may have together, as long as 16 blocks along each side allow it."""


@dataclass(frozen=True, eq=False)
class CallSummary:
    """The heads of one call: one number of each statistic and one picture for each head."""

    call: int
    statistics: dict[str, Sequence[float | None]]
    pictures: NDArray[np.uint8] | None  # (head, row, column): the greatest weights; None without Q and K

    def described(self) -> dict[str, Any]:
        """What a browser gets."""
        return {
            "call": self.call,
            "statistics": {name: [_finite(value) for value in own] for name, own in self.statistics.items()},
            "thumbnails": None
            if self.pictures is None
            else {
                "rows": self.pictures.shape[1],
                "columns": self.pictures.shape[2],
                "values": base64.b64encode(self.pictures.tobytes()).decode("ascii"),
            },
        }


def picture_side(heads_shown: int) -> int:
    """Blocks along each side of a picture where this many heads are shown.

    >>> picture_side(270), picture_side(1_200), picture_side(100_000)
    (64, 48, 16)
    """
    return next((side for side in SIDES if heads_shown * side * side <= ALL_PICTURES), SIDES[-1])


def summaries_bytes(calls: Sequence[Call]) -> int:
    """About how much memory the summaries of all calls take."""
    count = sum(call.heads for call in calls)
    return count * (picture_side(count) ** 2 + 2_000)


def call_summaries(
    recording: Recording, batch: int = 0, *, places: Sequence[int] | None = None
) -> Iterator[CallSummary]:
    """The summary of every call of one sequence, or of the calls at ``places``, in their order.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 100, 16))
    >>> (found,) = call_summaries(seen)
    >>> found.pictures.shape, round(found.statistics["visible"][0])
    ((2, 50, 50), 100)
    """
    what = quantities_of(recording.calls)
    side = picture_side(sum(call.heads for call in recording.calls))
    for place in range(len(recording.calls)) if places is None else places:
        alone = one_sequence(recording.calls[place], batch)
        rows = list(heads.table(Recording(recording.model, [alone])))
        yield CallSummary(place, numbers_of_heads(alone, rows, what), _pictures(alone, side))


@dataclass(frozen=True, eq=False)
class RoleSummary:
    """What the heads of all calls do, and those that are worth a card."""

    roles: list[list[list[Any] | None]]  # for each call, of each head
    cards: dict[str, Any]


def role_summary(
    recording: Recording, batch: int = 0, progress: Callable[[int, int], None] | None = None
) -> RoleSummary:
    """The roles of all heads, judged together as on a page of all calls."""
    found = head_roles(recording, recording.calls, batch, progress)
    return RoleSummary([found.described(call) for call in recording.calls], cards(recording.calls, found))


def _pictures(call: Call, side: int) -> NDArray[np.uint8] | None:
    if not call.queries or not call.keys:
        return None
    if isinstance(call, DenseCall):
        return thumbnail_of_weights(call.matrix[0], side)
    if not isinstance(call, ScoredCall):
        return None
    lse = call.lse[0]
    return np.concatenate([thumbnail(piece, lse[piece.heads], side) for piece in pieces_of(call)])


def _finite(value: float | None) -> float | None:
    """JSON has no other numbers."""
    return float(value) if value is not None and math.isfinite(value) else None
