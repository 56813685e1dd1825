"""What a page carries: a header in JSON and arrays as text, from which the browser computes weights.

For every call: Q and K rounded to 16 bits with a scale per row, the lse of the *rounded* scores (so
that shown rows sum to 1), intervals of keys for the mask, the bias, statistics and a small picture
of every head. The greatest error of a weight is measured by decoding everything again; where it
exceeds the bound, the call gets more bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard import heads
from regard.ablation import Ablation
from regard.errors import RecordingError
from regard.masks import Mask
from regard.masks.extent import Extent
from regard.recording import Call, Recording, ScoredCall
from regard.recording.call import check_sequence
from regard.recording.next_tokens import NextTokens
from regard.views.page.array_packing import ArrayStore
from regard.views.page.base85 import DIGITS
from regard.views.page.display_tokens import SideTokens, numbered, text_of
from regard.views.page.head_groups import pieces_of
from regard.views.page.mask_intervals import intervals
from regard.views.page.opening import HeadRoles, cards, head_roles, opening
from regard.views.page.page_call import carried_calls
from regard.views.page.page_picture import described_picture, described_rollout
from regard.views.page.page_quantities import check_what, head_numbers, quantities_of
from regard.views.page.page_relevance import relevance_rows
from regard.views.page.sequence import one_sequence

FORMAT = "regard page 2"

STATISTICS = (
    "entropy", "relative_entropy", "distance", "self_weight", "previous_weight", "first_weight",
    "peak", "received_peak", "visible",
)  # fmt: skip
"""The columns of ``regard.heads.table`` that a page shows."""

CARRIED = (
    "q", "k", "v", "own_weights", "output_gradient", "projection", "projection_bias", "residual",
)  # fmt: skip
"""The tensors that a page carries or computes with."""

FINE_VALUES = 1 << 19
"""Numbers in all V of a page up to which each has 16 bits; beyond, 8, because V is only displayed."""


@dataclass(frozen=True)
class TokenDisplay:
    """How tokens are shown: the word of each, if the user passed it, and whether to clean them."""

    words: Sequence[int] | None = None
    source_words: Sequence[int] | None = None
    prettify: bool = True
    sides: Sequence[tuple[SideTokens, SideTokens]] | None = None  # rows and columns of each call, as they are


@dataclass
class Payload:
    """The header being built, and its arrays."""

    header: dict[str, Any]
    arrays: ArrayStore = field(default_factory=ArrayStore)
    _texts: dict[SideTokens, int] = field(default_factory=dict)
    _masks: dict[tuple[Mask, Extent], int | None] = field(default_factory=dict)
    sides: dict[tuple[Any, ...], SideTokens] = field(default_factory=dict)  # made once for all layers

    def put_text(self, text: SideTokens) -> int:
        """Keep the tokens of a side, once."""
        if text not in self._texts:
            self._texts[text] = len(self._texts)
            special = [i for i, is_special in enumerate(text.special) if is_special]
            self.header["texts"].append(
                {
                    "tokens": list(text.tokens),
                    "special": special,
                    "words": list(text.words),
                    "spaces": "".join("01"[space] for space in text.spaces),
                }
            )
        return self._texts[text]

    def put_mask(self, mask: Mask, extent: Extent) -> int | None:
        """Keep the intervals of a mask, once; None where every query sees every key."""
        if (mask, extent) not in self._masks:
            self._masks[mask, extent] = self._put_intervals(mask, extent)
        return self._masks[mask, extent]

    def _put_intervals(self, mask: Mask, extent: Extent) -> int | None:
        found = intervals(mask, extent)
        if found is None:
            return None
        described = {"first": self.arrays.put(found.first), "bounds": self.arrays.put(found.bounds)}
        masks: list[dict[str, int]] = self.header["masks"]
        if described not in masks:
            masks.append(described)
        return masks.index(described)


def payload_of(
    recording: Recording,
    calls: Sequence[Call],
    *,
    batch: int = 0,
    title: str = "",
    language: str = "en",
    start: dict[str, Any] | None = None,
    wording: TokenDisplay | None = None,
    sentence_b: int | None = None,
    effects: Ablation | None = None,
    direction: Tensor | None = None,
    relevance: Sequence[int] | None = None,
    arrays: ArrayStore | None = None,
) -> Payload:
    """The payload of the page of one sequence.

    ``sentence_b`` is the position of the first token of a second sentence, where there are two; ``direction``
    is that of contributions, ``relevance`` the rows whose relevance is computed, by default those that the
    loss was read at; ``arrays`` is where arrays are kept, if another payload shares them.

    >>> import regard
    >>> model = torch.nn.MultiheadAttention(8, 2)
    >>> with regard.watch(model) as seen:
    ...     _ = model(*[torch.randn(3, 8)] * 3)
    >>> payload = payload_of(seen, seen.calls)
    >>> payload.header["model"], payload.header["calls"][0]["queries"]
    ('MultiheadAttention', 3)
    """
    what = quantities_of(calls)
    if direction is not None:
        check_what("contribution", what)
    for call in calls:
        _check(call, batch)
    alone = [one_sequence(call, batch) for call in calls]
    shown = _ShownCalls(recording, calls, alone, batch, what, direction)
    header: dict[str, Any] = {
        "format": FORMAT,
        "digits": DIGITS,
        "model": recording.model,
        "title": title,
        "language": language,
        "start": {**(start or {})},
        "sentenceB": sentence_b,
        "statistics": [*(["effect"] if effects is not None else []), *_own_statistics(what), *STATISTICS],
        "what": what,
        "directed": direction is not None,
        "texts": [],
        "masks": [],
        "calls": [],
    }
    payload = Payload(header, ArrayStore() if arrays is None else arrays)
    numbers = _statistics(shown, effects)
    roles = head_roles(recording, alone, batch)
    texts = _put_calls(payload, shown, numbers, roles, wording or TokenDisplay())
    header["relevance"] = [
        one.described(payload.arrays) for one in relevance_rows(recording, calls, batch, relevance)
    ]
    header["cards"] = cards(alone, roles)
    if recording.picture is not None:
        header["picture"] = described_picture(recording.picture)
        header["rollout"] = described_rollout(recording, calls, batch, payload.arrays)
    if recording.next_tokens is not None and batch == 0:
        header["next"] = _next_tokens(recording.next_tokens, payload.arrays)
    _choose_start(header, shown, texts, roles, numbers, by_relevance=relevance is not None)
    header["arrays"] = payload.arrays.described
    return payload


@dataclass(frozen=True, eq=False)
class _ShownCalls:
    """The calls of a page: as they were recorded, and as calls of its one sequence."""

    recording: Recording
    calls: Sequence[Call]
    alone: Sequence[Call]
    batch: int
    what: Sequence[str]
    direction: Tensor | None  # of contributions


def _put_calls(
    payload: Payload,
    shown: _ShownCalls,
    numbers: Sequence[NDArray[np.float32]],
    roles: HeadRoles,
    wording: TokenDisplay,
) -> list[tuple[SideTokens, SideTokens]]:
    """Describe every call; returns the texts of the rows and columns of each."""
    alone = shown.alone
    values = sum(call.v.numel() for call in alone if isinstance(call, ScoredCall) and call.v is not None)
    bits = 16 if values <= FINE_VALUES else 8
    carried = carried_calls(alone, value_bits=bits, what=shown.what, direction=shown.direction)
    texts = []
    for place, (call, one) in enumerate(zip(shown.calls, alone)):
        if wording.sides is not None:
            rows, columns = wording.sides[place]
        else:
            rows, columns = _texts(payload, shown.recording, call, shown.batch, wording)
        texts.append((rows, columns))
        described = {
            **_described(payload, one, rows, columns),
            "statistics": payload.arrays.put(numbers[place]),
            "roles": roles.described(call),
            **carried[place](payload.arrays),
        }
        payload.header["calls"].append(described)
    return texts


def call_identity(call: Call) -> dict[str, Any]:
    """Which call it is, and its size, as browsers know it."""
    return {
        "name": call.name,
        "layer": call.layer,
        "kind": call.kind,
        "run": call.run,
        "heads": list(call.head_numbers),
        "queries": call.queries,
        "keys": call.keys,
    }


def _described(payload: Payload, call: Call, rows: SideTokens, columns: SideTokens) -> dict[str, Any]:
    """A call of one sequence without its numbers: its name, its texts, its masks."""
    described = {
        **call_identity(call),
        "queryText": payload.put_text(rows),
        "keyText": payload.put_text(columns),
    }
    if isinstance(call, ScoredCall):
        described["masks"] = [payload.put_mask(piece.mask, call.extent) for piece in pieces_of(call)]
    return described


def payload_of_call(recording: Recording, place: int, *, batch: int = 0, title: str = "") -> Payload:
    """The payload of a page with the numbers of one call, which names all other calls of the recording.

    The page can show any of them once it gets their numbers from elsewhere.

    >>> import regard
    >>> model = torch.nn.TransformerEncoder(
    ...     torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 3, enable_nested_tensor=False
    ... )
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> header = payload_of_call(seen, 1).header
    >>> ["q" in call for call in header["calls"]], header["start"]["call"]
    ([False, True, False], 1)
    """
    payload = payload_of(recording, [recording.calls[place]], batch=batch, title=title)
    header = payload.header
    (own,) = header["calls"]
    header["calls"] = [
        own
        if at == place
        else _described(
            payload, one_sequence(call, batch), *_texts(payload, recording, call, batch, TokenDisplay())
        )
        for at, call in enumerate(recording.calls)
    ]
    header["start"]["call"] = place
    header["cards"]["heads"] = [[place, *card[1:]] for card in header["cards"]["heads"]]
    return payload


def _choose_start(
    header: dict[str, Any],
    shown: _ShownCalls,
    texts: Sequence[tuple[SideTokens, SideTokens]],
    roles: HeadRoles,
    numbers: Sequence[NDArray[np.float32]],
    *,
    by_relevance: bool,
) -> None:
    """Add what the page opens with to what was asked for."""
    start = header["start"]
    asked = set(start)
    if start.get("view", "text" if shown.recording.picture is None else "picture") == "text":
        start |= opening(shown.alone, texts, roles, start)
        if by_relevance:
            start["group"] = "relevance"
    if start.get("what", "weight") != "weight" and asked.isdisjoint({"call", "head"}):
        start |= _strongest(header["statistics"], numbers, start["what"])
        start["query"] = min((one["row"] for one in header["relevance"]), default=None)


def _next_tokens(found: NextTokens, arrays: ArrayStore) -> dict[str, Any]:
    """What comes next at each position, with tokens as they are shown."""
    return {
        "words": list(text_of(found.words).tokens),
        "ranks": found.best.shape[1],
        "best": arrays.put(found.best.numpy().astype(np.uint32).ravel()),
        "probabilities": arrays.put(found.probabilities.float().numpy().ravel()),
        "own": arrays.put(found.own.float().numpy()),
        "generated": found.generated,
    }


def _statistics(shown: _ShownCalls, effects: Ablation | None) -> list[NDArray[np.float32]]:
    """For every call ``(statistic, head)``; NaN where there is nothing to average."""
    rows = iter(heads.table(Recording(shown.recording.model, shown.alone)))
    found = []
    for call, one in zip(shown.calls, shown.alone):
        own = [next(rows) for _ in range(one.heads)]
        numbers = numbers_of_heads(one, own, shown.what, shown.direction)
        columns = np.array(list(numbers.values()), np.float32)
        found.append(columns if effects is None else np.concatenate([_effects(effects, call), columns]))
    return found


def numbers_of_heads(
    call: Call, rows: Sequence[Mapping[str, Any]], what: Sequence[str], direction: Tensor | None = None
) -> dict[str, Any]:
    """The statistics of the heads of one call of one sequence, from their rows of ``regard.heads.table``."""
    numbers: dict[str, Any] = {name: [row[name] for row in rows] for name in STATISTICS}
    if len(what) > 1:
        numbers |= head_numbers(call.scored(), what, direction)
    return {name: numbers[name] for name in (*_own_statistics(what), *STATISTICS)}


def _own_statistics(what: Sequence[str]) -> list[str]:
    """The columns of a page that shows more than weights."""
    columns = {"gradient": "importance", "contribution": "contribution"}
    return [column for name, column in columns.items() if name in what]


def _strongest(names: Sequence[str], numbers: Sequence[NDArray[np.float32]], what: str) -> dict[str, int]:
    """The head with the greatest number of a quantity."""
    column = names.index("contribution" if what == "contribution" else "importance")
    sizes = [np.abs(np.nan_to_num(own[column])) for own in numbers]
    call = max(range(len(sizes)), key=lambda place: float(sizes[place].max(initial=0.0)))
    return {"call": call, "head": int(sizes[call].argmax())}


def _effects(found: Ablation, call: Call) -> NDArray[np.float32]:
    """What each head of a call does to the metric, ``(1, head)``; NaN where it was not tried."""
    # The effect on a cosine is how far it falls short of 1.
    sign = -1.0 if found.metric == "cosine" else 1.0
    rows = {(row["kind"], row["layer"], row["head"]): row["difference"] for row in found.table}
    values = [rows.get((call.kind, call.layer, head)) for head in call.head_numbers]
    return np.array([[np.nan if value is None else sign * float(value) for value in values]], np.float32)


def _check(call: Call, batch: int) -> None:
    check_sequence(batch, call.batch)
    if not call.has_weights:
        raise RecordingError(
            "A page needs Q and K to compute weights, but {name} has only statistics.",
            do="Record with watch(model) instead of watch(model, statistics=True).",
            name=call.name,
        )
    if not call.queries or not call.keys:
        raise RecordingError(
            "A page needs calls with queries and keys, but {name} has none.",
            got="{extent}",
            do="Give the model a text.",
            name=call.name,
            extent=call.extent,
        )
    for name, tensor in call.tensors().items():
        if name not in CARRIED:
            continue
        # Only the output projection is the same for all sequences.
        own = tensor if name in ("projection", "projection_bias") else tensor[batch]
        if not bool(torch.isfinite(own).all()):
            raise RecordingError(
                "A page needs finite numbers, but {name} of {call_name} has others.",
                got="NaN or infinity",
                do="Check the model: its numbers overflowed.",
                name=name,
                call_name=call.name,
            )


def _texts(
    payload: Payload, recording: Recording, call: Call, batch: int, wording: TokenDisplay
) -> tuple[SideTokens, SideTokens]:
    """The texts of the rows and of the columns."""
    two_sided = recording.source_tokens is not None
    rows = (recording.row_tokens(call, batch), call.queries, two_sided and call.kind == "encoder")
    columns = (recording.key_tokens(call, batch), call.keys, two_sided and call.kind != "decoder")
    shifted = rows[0] is not None and rows[0] != recording.query_tokens(call, batch)

    def side(tokens: Sequence[str] | None, count: int, of_source: bool, *, shifted: bool) -> SideTokens:
        place = (None if tokens is None else tuple(tokens), count, of_source, shifted)
        if place not in payload.sides:
            payload.sides[place] = _text(tokens, count, of_source, wording, shifted=shifted)
        return payload.sides[place]

    return side(*rows, shifted=shifted), side(*columns, shifted=False)


def _text(
    tokens: Sequence[str] | None, count: int, of_source: bool, wording: TokenDisplay, *, shifted: bool
) -> SideTokens:
    """The tokens of one side, or their numbers; ``shifted`` rows are named by what they write, one later."""
    if tokens is None:
        return numbered(count)
    known = wording.source_words if of_source else wording.words
    # If there are fewer queries than tokens, they are the last ones.
    own = None if known is None else list(known[len(known) - count :])
    if own is not None and shifted:
        own = [*own[1:], -1]
    found = text_of(tokens, own, prettify=wording.prettify)
    if not shifted:
        return found
    # What the last row writes is not known, and not part of the text.
    return replace(
        found,
        special=(*found.special[:-1], True),
        words=(*found.words[:-1], -1),
        spaces=(*found.spaces[:-1], count > 1),
    )
