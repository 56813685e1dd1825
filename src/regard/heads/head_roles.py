"""``roles(recording)``: what each head does, by how much weight it puts where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from regard.checks import check_integer
from regard.errors import RecordingError
from regard.heads.custom_roles import OwnRole, on_own, own_roles
from regard.heads.distance_role import by_distance
from regard.heads.head_selection import Chosen, chosen
from regard.heads.head_table import check_batch, check_recording, without_padding
from regard.heads.key_set_roles import on_separators
from regard.heads.key_sets import KeySetChannels, by_chance, channels, effective_mask, measured
from regard.heads.padding import real_keys, real_queries
from regard.heads.role_inputs import RoleInputs
from regard.heads.role_results import ROLES, Head, Roles, Score, check_role
from regard.heads.role_tally import CallTokens
from regard.heads.separators import is_separator
from regard.heads.significance import adjusted
from regard.heads.single_key_roles import at_offset, on_first
from regard.heads.statistics_roles import aligned, broadly
from regard.heads.token_roles import on_equal_tokens
from regard.kernels import Statistics
from regard.recording import Call, Recording

REACH = 16
"""The reach of the positional role by default."""

PAIRS = ("next", "separator", "induction", "duplicate", "same", "positional")
"""Roles that need weights at pairs, which statistics do not have."""

TOKENS = ("separator", "induction", "duplicate", "same")
"""Roles that compare tokens."""

OF_CROSS = ("first", "separator", "alignment", "broad")
"""Roles that make sense if queries and keys are different texts."""


def roles(
    recording: Recording,
    tokens: Sequence[str] | Sequence[Sequence[str]] | Mapping[str, object] | None = None,
    *,
    source_tokens: Sequence[str] | Sequence[Sequence[str]] | None = None,
    own: Mapping[str, object] | None = None,
    layers: Chosen = None,
    heads: Chosen = None,
    batch: int | None = None,
    names: str | Sequence[str] | None = None,
    separators: Collection[str] | Callable[[str], bool] = is_separator,
    reach: int = REACH,
    progress: Callable[[int, int], None] | None = None,
) -> Roles:
    """A score in [0, 1] for every role of every head, with the pair of tokens that shows it.

    Weights are computed at the pairs that a role asks about and nowhere else.
    The definitions, with papers, are in ``docs/statistics.md``.

    Args:
        recording: with Q and K, dense weights, or only statistics, for which fewer roles can be measured.
        tokens: by default those of the recording; without any, roles that need tokens are left out.
            A mapping here is taken as ``own``.
        source_tokens: the same for the encoder's side of an encoder-decoder.
        own: your own roles: for each name the pairs (query, key) that belong to it, or a mask.
        layers: only these layers.
        heads: only these heads.
        batch: one sequence; by default all of them together.
        names: only these roles; raises if one of them cannot be measured.
        separators: the tokens that separate, or a function that recognizes them.
        reach: how many positions to each side the positional role looks.
        progress: called after each call with the number done and the total.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> found = roles(seen, ["a", "b", "a", "b", "."])
    >>> list(found[0].scores)[:6]
    ['previous', 'next', 'self', 'first', 'separator', 'induction']
    >>> 0 <= found[0].scores["induction"].value <= 1
    True
    """
    check_recording(recording)
    if isinstance(tokens, Mapping):
        own, tokens = (tokens if own is None else {**tokens, **own}), None
    mine = own_roles(own or {})
    wanted = _wanted(names, tuple(mine))
    check_integer("reach", reach, example=16)
    if tokens is not None or source_tokens is not None:
        recording = _with_tokens(recording, tokens, source_tokens)
    calls = chosen(recording, layers, heads)
    if names is not None and "alignment" in wanted:
        _check_cross([call for _, call in calls])
    beside = len({call.kind for call in recording}) > 1
    builder = _RoleInputsBuilder(recording, wanted, separators, reach, batch)
    found: list[Head] = []
    tokens_read = 0
    for done, (number, call) in enumerate(calls, start=1):
        check_batch(call, batch)
        inputs = builder.inputs(call)
        if names is not None:
            _check_possible(inputs, wanted)
        possible = [role for role in wanted if not _missing(inputs, role)]
        found += _heads(number, inputs, possible, mine, beside=beside)
        tokens_read = max(tokens_read, sum(len(inputs.rows(one)) for one in inputs.batches))
        if progress is not None:
            progress(done, len(calls))
    return Roles(_corrected(found), tokens_read)


class _RoleInputsBuilder:
    """Builds the inputs of every call; what is the same in all layers is built once."""

    def __init__(
        self,
        recording: Recording,
        wanted: Collection[str],
        separators: Collection[str] | Callable[[str], bool],
        reach: int,
        batch: int | None,
    ) -> None:
        self.recording, self.wanted, self.reach, self.batch = recording, wanted, reach, batch
        self.separates = separators if callable(separators) else frozenset(separators).__contains__
        self._channels: dict[Any, KeySetChannels] = {}
        self._chance: dict[Any, Statistics] = {}

    def inputs(self, call: Call) -> RoleInputs:
        """What the roles of one call are measured from."""
        text, real, shown = _text(self.recording, call), real_queries(self.recording, call), real_keys(call)
        mask = effective_mask(call, shown, real)
        place = (call.kind, call.run, call.batch, call.extent, shown.numpy().tobytes())
        if place not in self._channels:
            self._channels[place] = self._made(call, text, shown)
        sets = self._channels[place]
        key = (*place, mask, call.heads if mask.lead and mask.lead[-1] > 1 else 1)
        if key not in self._chance:
            self._chance[key] = by_chance(mask, call, sets)
        return RoleInputs(
            call=call,
            text=text,
            real=real,
            shown=shown,
            batches=range(call.batch) if self.batch is None else (self.batch,),
            reach=min(self.reach, call.keys),
            mask=mask,
            channels=sets,
            found=measured(without_padding(call, real), sets),
            chance=self._chance[key],
        )

    def _made(self, call: Call, text: CallTokens, shown: Tensor) -> KeySetChannels:
        marks = numbers = None
        if call.has_weights and "separator" in self.wanted and text.keys is not None:
            known: dict[str, bool] = {}
            marks = np.array(
                [[known.setdefault(token, self.separates(token)) for token in row] for row in text.keys]
            )
        asked = {"same", "duplicate", "induction"} & set(self.wanted)
        if (
            call.has_weights
            and call.kind != "cross"
            and asked
            and text.queries is not None
            and text.keys is not None
        ):
            numbers = [text.numbers(batch)[1] for batch in range(call.batch)]
        return channels(marks, numbers, shown)


def _corrected(heads: Sequence[Head]) -> tuple[Head, ...]:
    """The heads with p-values corrected for all heads and roles together."""
    places = [
        (at, role) for at, head in enumerate(heads) for role, s in head.scores.items() if s.p is not None
    ]
    corrected = adjusted([p for at, role in places if (p := heads[at].scores[role].p) is not None])
    scores = [dict(head.scores) for head in heads]
    for (at, role), value in zip(places, corrected):
        scores[at][role] = replace(scores[at][role], adjusted=value)
    return tuple(replace(head, scores=new) for head, new in zip(heads, scores))


def _heads(
    number: int, inputs: RoleInputs, wanted: Sequence[str], mine: Mapping[str, OwnRole], *, beside: bool
) -> list[Head]:
    call = inputs.call
    by_role = _scores(inputs, wanted, mine)
    found = []
    for index, head in enumerate(call.head_numbers):
        scores = {role: score for role in wanted if (score := by_role[role][index]) is not None}
        found.append(Head(number, call.name, call.kind, call.layer, head, call.run, scores, beside))
    return found


def _scores(
    inputs: RoleInputs, wanted: Sequence[str], mine: Mapping[str, OwnRole]
) -> dict[str, list[Score | None]]:
    alone: dict[str, Callable[[], Any]] = {
        "previous": lambda: at_offset(inputs, -1),
        "next": lambda: at_offset(inputs, 1),
        "self": lambda: at_offset(inputs, 0),
        "first": lambda: on_first(inputs),
        "separator": lambda: on_separators(inputs),
        "positional": lambda: by_distance(inputs),
        "broad": lambda: broadly(inputs),
        "alignment": lambda: aligned(inputs),
    }
    together = {"same", "duplicate", "induction"} & set(wanted)
    tallies = on_equal_tokens(inputs, together) if together else {}
    tallies |= {role: measure() for role, measure in alone.items() if role in wanted}
    tallies |= {role: on_own(inputs, role, where) for role, where in mine.items() if role in wanted}
    return {role: tallies[role].scores(inputs.text) for role in wanted}


# ---- what is requested, and what can be measured ---------------------------------------------


def _wanted(names: str | Sequence[str] | None, own: tuple[str, ...]) -> tuple[str, ...]:
    known = (*ROLES, *own)
    asked = known if names is None else (names,) if isinstance(names, str) else tuple(names)
    for role in asked:
        check_role(role, known)
    return tuple(role for role in known if role in asked)


def _check_cross(calls: Sequence[Call]) -> None:
    """Raise unless there is cross-attention; only its heads can align."""
    if not any(call.kind == "cross" for call in calls):
        raise RecordingError(
            "The role 'alignment' needs cross-attention between two texts.",
            got="only heads of the {calls}",
            do="Record an encoder-decoder, or omit the role.",
            calls=", ".join(sorted({call.kind for call in calls})),
        )


def _missing(inputs: RoleInputs, role: str) -> str | None:
    """Why a role cannot be measured for a call: the word for what is missing, or None."""
    call = inputs.call
    if role not in ROLES:
        return None if call.has_weights else "weights"
    if role not in OF_CROSS if call.kind == "cross" else role == "alignment":
        return "kind"
    if role in TOKENS and (
        inputs.text.keys is None or (call.kind != "cross" and inputs.text.queries is None)
    ):
        return "tokens"
    if call.has_weights:
        return None
    late = role == "first" and any(inputs.first(batch) for batch in inputs.batches)
    return "weights" if role in PAIRS or late else None


def _check_possible(inputs: RoleInputs, wanted: Sequence[str]) -> None:
    """Raise if a role that was requested by name lacks something that the user can provide."""
    for role in wanted:
        missing = _missing(inputs, role)
        if missing == "tokens":
            raise RecordingError(
                "The role {role!r} needs the tokens.",
                got="no tokens for {name}",
                do="Pass tokens= (and source_tokens= for an encoder-decoder), or set seen.tokens.",
                role=role,
                name=inputs.call.name,
            )
        if missing == "weights":
            raise RecordingError(
                "The role {role!r} needs Q and K, but {name} has only statistics.",
                do="Record with watch(model) instead of watch(model, statistics=True).",
                role=role,
                name=inputs.call.name,
            )


def _with_tokens(recording: Recording, tokens: Any, source_tokens: Any) -> Recording:
    """A copy of the recording with other tokens."""
    named = Recording(recording.model, recording.calls)
    named.tokens = recording.tokens if tokens is None else tokens
    if source_tokens is not None or recording.source_tokens is not None:
        named.source_tokens = recording.source_tokens if source_tokens is None else source_tokens
    return named


def _text(recording: Recording, call: Call) -> CallTokens:
    return CallTokens(
        _all_or_none([recording.row_tokens(call, batch) for batch in range(call.batch)]),
        _all_or_none([recording.key_tokens(call, batch) for batch in range(call.batch)]),
    )


def _all_or_none(texts: Sequence[list[str] | None]) -> list[list[str]] | None:
    known = [text for text in texts if text is not None]
    return known if len(known) == len(texts) else None
