"""What a page opens with: a head worth seeing, a token pinned in it, and heads whose roles are clear."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import heads
from regard.heads import Head, Roles
from regard.heads.role_results import CLEAR, TIERS
from regard.recording import Call, Recording
from regard.views.page.display_tokens import SideTokens, is_unspaced

CARDS = 5
"""Heads on cards below the text."""

RESTING_ROLES = ("first", "separator", "broad")
"""Roles of heads that look at nothing in particular; they come last."""

MIN_EXCESS = 0.6 * CLEAR
"""The least excess over chance of a role that a head seems to play in a short text."""

ROWS = 256
"""Queries at the beginning of a long text, from which the one to open with is chosen."""

NEAR = 2
"""Pairs this close say little: neighbouring tokens attend to each other in any text."""

FAR = 48
"""Pairs farther apart than this are not visible together."""

HeadKey = tuple[str, str, int, int, int]
"""Kind, module, layer, run and number of a head: what roles and calls both know."""


@dataclass(frozen=True)
class HeadRoles:
    """The roles of the heads of a page."""

    found: Mapping[HeadKey, Head]
    short: bool = False
    """Whether the text is too short for most roles to be told from chance."""

    def of(self, call: Call) -> list[Head]:
        """The heads of a call."""
        return [self.found[(call.kind, call.name, call.layer, call.run, head)] for head in call.head_numbers]

    def described(self, call: Call) -> list[list[Any] | None]:
        """For every head its clearest role, its score and its example (query, key, weight), or None."""
        return [_described(head, head.best) for head in self.of(call)]


def head_roles(
    recording: Recording,
    calls: Sequence[Call],
    batch: int,
    progress: Callable[[int, int], None] | None = None,
) -> HeadRoles:
    """The roles of the heads of these calls of a recording; ``progress`` as in ``regard.heads.roles``.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> len(head_roles(seen, seen.calls, 0).of(seen[0]))
    2
    """
    layers = sorted({call.layer for call in calls})
    # A recording put together by hand may have an lse that does not fit its scores, and infinite weights.
    with np.errstate(all="ignore"):
        found: Roles = heads.roles(recording, layers=layers, batch=batch, progress=progress)
    by_key: dict[HeadKey, Head] = {
        (head.kind, head.name, head.layer, head.run, head.head): head for head in found
    }
    return HeadRoles(by_key, found.short)


def _described(head: Head, role: str | None) -> list[Any] | None:
    if role is None or not math.isfinite(head.scores[role].value):
        return None
    score = head.scores[role]
    found = score.example
    if found is None or not math.isfinite(found.weight):
        return [role, round(float(score.value), 4), None, None, None]
    where = [found.query, found.key, round(float(found.weight), 4)]
    return [role, round(float(score.value), 4), *where]


def cards(calls: Sequence[Call], roles: HeadRoles) -> dict[str, Any]:
    """Up to five heads that do something clear: ``[call, head, role, score, query, key, weight]`` of each.

    The first ``clear`` of them are clear. If none is, or in a short text too few, those follow that come
    closest, in other roles.
    """
    found = _ranked(calls, roles, clear=True)
    if found and not roles.short:
        return {"clear": len(found), "heads": found}
    shown = {card[2] for card in found}
    others = [card for card in _ranked(calls, roles, clear=False) if card[2] not in shown]
    return {"clear": len(found), "heads": [*found, *others][:CARDS]}


def _ranked(calls: Sequence[Call], roles: HeadRoles, *, clear: bool) -> list[list[Any]]:
    """The best head of every role first, then the second best; a third would show nothing new.

    Without ``clear``, the heads whose role is not.
    """
    found = []
    for call, one in enumerate(calls):
        for index, head in enumerate(roles.of(one)):
            role = head.best if clear else _nearest(head) if head.best is None else None
            described = _described(head, role)
            if role is not None and described is not None and described[-1] is not None:
                order = (role in RESTING_ROLES, -head.scores[role].excess)
                found.append((order, role, [call, index, *described]))
    found.sort(key=lambda one: one[0])
    of_role: dict[str, list[list[Any]]] = {}
    for _, role, described in found:
        of_role.setdefault(role, []).append(described)
    return [own[turn] for turn in (0, 1) for own in of_role.values() if turn < len(own)][:CARDS]


def _nearest(head: Head) -> str | None:
    """The role that a head plays in this text, perhaps by chance; None if none stands out."""
    for tier in TIERS:
        strong = [role for role in tier if role in head.scores and head.scores[role].excess >= MIN_EXCESS]
        if strong:
            return max(strong, key=lambda role: head.scores[role].excess)
    return None


# ---- the first head --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _StrongestPair:
    """The most informative pair of a head, and how informative the head is as a whole."""

    worth: float
    call: int
    head: int
    query: int | None


def opening(
    calls: Sequence[Call],
    texts: Sequence[tuple[SideTokens, SideTokens]],
    roles: HeadRoles,
    start: Mapping[str, Any],
) -> dict[str, Any]:
    """The call, head and query to open with, of those that ``start`` allows, if a pair is informative enough.

    The strongest head that does not rest on a sink: the one whose words attend most to other words that are
    neither neighbours nor equal. A translation opens with the cross-attention head that aligns best.
    """
    places = [start["call"]] if "call" in start else range(len(calls))
    cross = [place for place in places if calls[place].kind == "cross"]
    candidates = [
        (place, head)
        for place in cross or places
        for head in range(calls[place].heads)
        if head == start.get("head", head)
    ]
    if cross:
        candidates = [max(candidates, key=lambda one: _alignment(roles.of(calls[one[0]])[one[1]]))]
    links = [_link(calls[place], *texts[place], place, head) for place, head in candidates]
    best = max(links, key=lambda link: link.worth)
    if best.query is not None:
        return {"call": best.call, "head": best.head, "query": best.query}
    # A translation is worth seeing as a whole, even if none of its words stands out.
    return {"call": best.call, "head": best.head} if cross else {}


def _alignment(head: Head) -> float:
    score = head.scores.get("alignment")
    return 0.0 if score is None else score.value


def _link(call: Call, rows: SideTokens, columns: SideTokens, place: int, head: int) -> _StrongestPair:
    """What one head shows best."""
    chosen = slice(0, min(ROWS, call.queries))
    weights = call.weights(call.head_numbers[head], chosen).double().numpy()
    weights = np.where(_telling(call, rows, columns, chosen) & np.isfinite(weights), weights, 0.0)
    peaks, keys = weights.max(-1, initial=0.0), weights.argmax(-1)
    words = peaks > 0
    if not words.any():
        return _StrongestPair(0.0, place, head, None)
    # A head that always looks at the same key says little, whichever key that is.
    variety = len(np.unique(keys[words])) / words.sum()
    # The first of about the strongest: readers begin at the beginning.
    query = int(np.argmax(peaks >= 0.9 * peaks.max()))
    return _StrongestPair(float(peaks[words].mean() * variety), place, head, query)


def _telling(call: Call, rows: SideTokens, columns: SideTokens, chosen: slice) -> NDArray[np.bool_]:
    """Pairs worth seeing: a word that attends to another word, neither its neighbour nor its equal."""
    queries = np.arange(call.queries)[chosen]
    keys = np.arange(call.keys)
    own = np.array([_is_word(rows, int(query), least=2) for query in queries])
    others = np.array([_is_word(columns, key, least=4) for key in range(call.keys)])
    others &= keys > 0
    pairs: NDArray[np.bool_] = own[:, None] & others
    if call.kind == "cross":
        return pairs
    spelled = {
        token: number for number, token in enumerate({*map(str.lower, (*rows.tokens, *columns.tokens))})
    }
    of_rows = np.array([spelled[token.lower()] for token in rows.tokens])[queries]
    of_columns = np.array([spelled[token.lower()] for token in columns.tokens])
    distance = np.abs(queries[:, None] + call.extent.offset - keys)
    pairs &= (distance > NEAR) & (distance <= FAR) & (of_rows[:, None] != of_columns)
    return pairs


def _is_word(text: SideTokens, place: int, *, least: int) -> bool:
    """Whether a token is a word of ``least`` or more characters, or of ideographs."""
    token = text.tokens[place]
    return not text.special[place] and token.isalpha() and (len(token) >= least or is_unspaced(token))
