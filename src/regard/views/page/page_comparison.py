"""Two recordings on one page: which calls belong together, and by how much their heads differ.

The browser has Q, K and lse of both, so it computes the difference of two weights where it is displayed. What
it cannot know before it has computed everything is here: the divergence of every head, its greatest
difference, and a small picture of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ArgumentError
from regard.heads.head_changes import HeadChange, both_weights, changed_heads, paired_calls, same_positions
from regard.heads.padding import real_queries
from regard.recording import Call, Recording
from regard.views.page.page_payload import Payload
from regard.views.page.page_quantities import QuantityPicture, furthest_in_blocks, picture_of_blocks
from regard.views.page.sequence import one_sequence
from regard.views.page.thumbnails import block_size

CHANGED = 5
"""Heads that changed most, shown below the text."""

SHARED = ("format", "digits", "arrays")
"""Parts of a header that both recordings have in common."""


@dataclass(frozen=True, eq=False)
class ComparedRecording:
    """One of the recordings of a comparison: the calls that are shown, and their payload."""

    recording: Recording
    calls: Sequence[Call]
    payload: Payload
    name: str

    def place(self, call: Call) -> int:
        """The number of a call on the page."""
        return next(place for place, one in enumerate(self.calls) if one is call)

    def described(self, call: Call) -> dict[str, Any]:
        """What the payload says about a call."""
        found: dict[str, Any] = self.payload.header["calls"][self.place(call)]
        return found


def compare(
    one: ComparedRecording, other: ComparedRecording, *, batch: int = 0, chosen: bool = False
) -> Payload:
    """The payload of both sides, whose arrays are the same; ``chosen`` if the head to begin with is given."""
    pairs = paired_calls(one.calls, other.calls)
    if not pairs:
        raise ArgumentError(
            "Two recordings on one page must have a kind of attention in common.",
            got="{one} and {two}",
            do="Compare two encoders, two decoders, or two encoder-decoders.",
            one=_kinds(one.calls),
            two=_kinds(other.calls),
        )
    found: list[tuple[Call, Call, HeadChange]] = []
    header = one.payload.header
    header["pairs"] = []
    for call, twin in pairs:
        is_same = same_positions(one.recording, call, other.recording, twin, batch)
        header["pairs"].append([one.place(call), other.place(twin), is_same])
        if is_same:
            changed = _put_differences(one, other, call, twin, batch)
            found += [(call, twin, change) for change in changed]
    if found:
        header["what"] = [*header["what"], "difference"]
        found.sort(key=lambda head: -head[2].divergence)
        header["changed"] = [
            [one.place(call), call.head_numbers.index(change.head)]
            for call, _, change in found[:CHANGED]
            if change.divergence > 0
        ]
        header["start"].setdefault("sort", "change")
        if header["changed"] and not chosen:
            call, twin, change = found[0]
            place, head = header["changed"][0]
            pinned = _telling_query(one, call, twin, change, batch)
            header["start"] |= {"call": place, "head": head, "query": pinned}
    header["side"] = one.name
    header["other"] = {name: value for name, value in other.payload.header.items() if name not in SHARED}
    header["other"]["side"] = other.name
    header["arrays"] = one.payload.arrays.described
    return one.payload


def _kinds(calls: Sequence[Call]) -> str:
    return ", ".join(dict.fromkeys(call.kind for call in calls))


def _put_differences(
    one: ComparedRecording, other: ComparedRecording, call: Call, twin: Call, batch: int
) -> list[HeadChange]:
    """Describe the differences of two calls; returns how far each head changed."""
    own, theirs = one_sequence(call, batch), one_sequence(twin, batch)
    changed = changed_heads(own, theirs, real_queries(one.recording, call)[batch])
    numbers = {change.head: change.divergence for change in changed}
    for side, mine in ((one, call), (other, twin)):
        values = [numbers.get(head, np.nan) for head in mine.head_numbers]
        side.described(mine)["change"] = side.payload.arrays.put(np.array(values, np.float32))
    picture = _picture(own, theirs)
    described = one.described(call)
    described["difference"] = {
        "error": described["error"] + other.described(twin)["error"],
        "greatest": one.payload.arrays.put(picture.greatest),
        "thumbnails": one.payload.arrays.put(picture.tones),
    }
    return [change for change in changed if not math.isnan(change.divergence)]


def _picture(call: Call, twin: Call) -> QuantityPicture:
    """Of every head the greatest difference of each block of pairs; masked where both see nothing."""
    height, width = block_size(call.queries), block_size(call.keys)
    parts = []
    for head in call.head_numbers:
        if head not in twin.head_numbers:
            parts.append(torch.full((-(-call.queries // height), -(-call.keys // width)), torch.nan))
            continue
        blocks = [
            furthest_in_blocks(_difference(own, theirs)[None], height, width)[0]
            for own, theirs in both_weights(call, twin, head, multiple=height)
        ]
        parts.append(torch.cat(blocks))
    return picture_of_blocks(torch.stack(parts))


def _difference(own: Tensor, theirs: Tensor) -> Tensor:
    """The second weights minus the first; NaN where neither may see anything."""
    return (theirs - own).masked_fill((own == 0) & (theirs == 0), torch.nan)


def _telling_query(side: ComparedRecording, call: Call, twin: Call, change: HeadChange, batch: int) -> int:
    """The query whose weight on another word changed most: neither is special, the key is not the first."""
    texts = side.payload.header["texts"]
    described = side.described(call)
    quiet_rows, quiet_keys = (texts[described[name]]["special"] for name in ("queryText", "keyText"))
    best, found, start = 0.0, change.query, 0
    for own, theirs in both_weights(call, twin, change.head, batch=batch):
        apart = (theirs - own).abs()
        apart[:, [0, *quiet_keys]] = 0
        apart[[row - start for row in quiet_rows if start <= row < start + len(own)]] = 0
        if float(apart.max()) > best:
            best, found = float(apart.max()), start + int(apart.argmax()) // call.keys
        start += len(own)
    return found
