"""Which keys a cache can drop: how much attention later queries lose under each policy.

A text is read up to a position, then the cache of every key head is cut to a budget, and reading continues.
With ``R_j = Σ_{i later} w_ij`` the attention that later queries give to key j, the mean weight that they
keep is ``Σ_{j kept} R_j / later queries``. So one pass gives the answer for all policies and budgets,
exactly, and no matrix is built. :meth:`Eviction.edit` lets you measure what that costs the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.checks import is_integer, is_number
from regard.edits import Edit, only
from regard.errors import ArgumentError, RecordingError
from regard.heads.head_selection import Chosen, chosen
from regard.heads.head_table import PLACE, check_recording, place_of
from regard.masks import Mask, span
from regard.masks.id_table import IdTable
from regard.masks.patterns import Padding
from regard.recording import Call, Recording, ScoredCall
from regard.table import Table, Value

FIRST = 4
"""The first keys that ``recent`` keeps: sinks, as in StreamingLLM."""

OBSERVED, POOLED = 32, 5
"""The last queries that ``observed`` looks at, and the keys over which it averages, as in SnapKV."""

IGNORED = -100
"""The label of a token that does not count in a loss."""


@dataclass(frozen=True, eq=False)
class Eviction:
    """The weight that later queries keep, for each head, policy and budget; and the keys that were kept.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> with torch.no_grad(), regard.watch(model) as seen:
    ...     _ = model(torch.arange(1, 41)[None])
    >>> regard.heads.eviction(seen, budgets=0.5).policies
    ('recent', 'received', 'observed', 'norm', 'oracle')
    """

    table: Table
    start: int  # the position at which the cache is cut
    length: int
    kept: Mapping[tuple[int, int, str, float], Tensor]  # run, layer, policy, budget → (batch, head, start)

    def __repr__(self) -> str:
        policies = ", ".join(self.policies)
        return f"<Eviction at {self.start:,} of {self.length:,} keys: {policies}>"

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies, in order."""
        return tuple(dict.fromkeys(str(name) for name in self.table.column("policy")))

    @property
    def budgets(self) -> tuple[float, ...]:
        """The budgets, in order."""
        return tuple(dict.fromkeys(float(one) for one in self.table.column("budget")))  # type: ignore[arg-type]

    @property
    def means(self) -> Table:
        """The kept weight of each policy and budget, averaged over all heads."""
        rows: list[tuple[Value, ...]] = []
        for policy in self.policies:
            for budget in self.budgets:
                cells = self.table.filter(policy=policy, budget=budget).column("kept")
                rows.append((policy, budget, float(np.mean(np.array(cells, np.float64)))))
        return Table(("policy", "budget", "kept"), rows)

    def mask(self, layer: int, policy: str, budget: float, run: int = 0) -> Mask:
        """What queries may see after the cut: kept keys, and all that came later. Earlier queries see all."""
        kept = self.kept.get((run, layer, policy, budget))
        if kept is None:
            raise ArgumentError(
                "The layer must have been recorded; the policies are {policies}, the budgets {budgets}.",
                got="layer = {layer!r}, policy = {policy!r}, budget = {budget!r}",
                do="Choose one of each, and a layer that was recorded.",
                policies=", ".join(self.policies),
                budgets=", ".join(map(str, self.budgets)),
                layer=layer,
                policy=policy,
                budget=budget,
            )
        later = kept.new_ones((*kept.shape[:2], self.length - self.start))
        return span(0, self.start).T | Padding(False, IdTable(torch.cat([kept, later], -1).numpy()))

    def edit(self, policy: str, budget: float, run: int = 0) -> Edit:
        """The edit that makes a model read the text with such a cache: ``edits.only(kept)`` in each layer."""
        layers = [layer for own, layer, *rest in self.kept if own == run and rest == [policy, budget]]
        self.mask(layers[0] if layers else -1, policy, budget, run)  # its error lists the layers
        each = [only(self.mask(layer, policy, budget, run), layers=layer, kind="decoder") for layer in layers]
        return sum(each[1:], start=each[0])

    def labels(self, ids: Tensor) -> Tensor:
        """Labels for the loss of what comes after the cut alone; −100 before."""
        if ids.shape[-1] != self.length:
            raise ArgumentError(
                "The text must be the one that was recorded (tokens = {length}).",
                got="{given}",
                do="Pass the same ids.",
                length=self.length,
                given=ids.shape[-1],
            )
        place = torch.arange(self.length, device=ids.device)
        return torch.where(place > self.start, ids, IGNORED)


@torch.no_grad()
def eviction(
    recording: Recording,
    budgets: Sequence[float] = (0.1, 0.25, 0.5),
    policies: Sequence[str] = ("recent", "received", "observed", "norm", "oracle"),
    *,
    start: int | None = None,
    layers: Chosen = None,
    heads: Chosen = None,
) -> Eviction:
    """How much of their attention later queries keep if the cache is cut to a share of its keys.

    The policies see what was read so far; heads that share a key head share its cache.

    | policy | keeps |
    |---|---|
    | ``recent`` | the first 4 keys and the last ones (StreamingLLM) |
    | ``received`` | the keys that received most attention so far, and as many recent ones (H2O) |
    | ``observed`` | the keys that the last 32 queries look at, with their neighbours (SnapKV) |
    | ``norm`` | the keys with the smallest norm |
    | ``oracle`` | the keys that later queries will look at: no policy can do better |

    Args:
        recording: of a decoder that read a text in one go.
        budgets: shares of the keys that stay.
        policies: which of them.
        start: the position at which the cache is cut; the middle of the text by default.
        layers, heads: only these.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.arange(20)[None])
    >>> found = eviction(seen, budgets=(0.5, 1.0))
    >>> [round(row["kept"], 4) for row in found.means if row["budget"] == 1.0]
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    check_recording(recording)
    shares, names = _checked_budgets(budgets), _checked_policies(policies)
    calls = [(number, call) for number, call in chosen(recording, layers, heads) if call.kind == "decoder"]
    lengths = {call.keys for _, call in calls if call.queries == call.keys}
    if len(lengths) != 1:
        raise RecordingError(
            "Eviction must be measured on a decoder that read one text.",
            got="calls with {lengths} keys" if lengths else "no such call",
            do="Record one forward pass over the whole text.",
            lengths=", ".join(map(str, sorted(lengths))),
        )
    length = lengths.pop()
    cut = _checked_start(start, length)
    rows: list[tuple[Value, ...]] = []
    kept: dict[tuple[int, int, str, float], Tensor] = {}
    for number, call in calls:
        later = _received(call, cut, length)  # (batch, head, key)
        scores = {name: POLICIES[name](call, cut, later) for name in names}
        for name in names:
            for share in shares:
                stays = _stays(name, scores[name], max(1, round(share * cut)))
                kept[call.run, call.layer, name, share] = _of_query_heads(stays, call)
                means = _kept_weight(later, kept[call.run, call.layer, name, share], cut)
                rows += [
                    (*place_of(number, call, head), name, share, means[head]) for head in range(call.heads)
                ]
    return Eviction(Table((*PLACE, "policy", "budget", "kept"), rows), cut, length, kept)


# ---- policies: the score of each key, (batch, key head, key), the greatest stay ------------------


def _recent(call: Call, cut: int, later: Tensor) -> Tensor:
    place = torch.arange(cut, dtype=torch.float64, device=later.device)
    return torch.where(place < FIRST, torch.inf, place).expand(call.batch, _key_heads(call), cut)


def _so_far(call: Call, cut: int, later: Tensor) -> Tensor:
    del later
    return _of_key_heads(_received(call, 0, cut)[..., :cut], call)


def _last_seen(call: Call, cut: int, later: Tensor) -> Tensor:
    del later
    first = max(0, cut - OBSERVED)
    seen = _of_key_heads(_received(call, first, cut)[..., :cut], call)
    pooled = F.avg_pool1d(seen, POOLED, stride=1, padding=POOLED // 2, count_include_pad=False)
    pooled[..., first:] = torch.inf
    return pooled


def _small(call: Call, cut: int, later: Tensor) -> Tensor:
    del later
    if not isinstance(call, ScoredCall):
        raise RecordingError(
            "The policy norm needs the keys, and {name} gave its weights alone.",
            do="Omit norm from the policies.",
            name=call.name,
        )
    norms: Tensor = torch.linalg.vector_norm(call.k[:, :, :cut].double(), dim=-1)
    return -norms


def _future(call: Call, cut: int, later: Tensor) -> Tensor:
    return _of_key_heads(later[..., :cut], call)


POLICIES: dict[str, Callable[[Call, int, Tensor], Tensor]] = {
    "recent": _recent,
    "received": _so_far,
    "observed": _last_seen,
    "norm": _small,
    "oracle": _future,
}


def _stays(policy: str, scores: Tensor, count: int) -> Tensor:
    """Which keys stay, ``(batch, key head, key)``."""
    if policy == "received":
        # H2O keeps as many recent keys as heavy ones.
        scores = scores.clone()
        scores[..., scores.shape[-1] - count // 2 :] = torch.inf
    # Of equal scores the later key stays.
    order = scores.flip(-1).argsort(dim=-1, descending=True, stable=True)[..., :count]
    chosen_keys = scores.shape[-1] - 1 - order
    return torch.zeros(scores.shape, dtype=torch.bool).scatter_(-1, chosen_keys.cpu(), True)


# ---- sums ------------------------------------------------------------------------------------


def _received(call: Call, first: int, stop: int) -> Tensor:
    """The attention that each key receives from queries ``first … stop − 1``, ``(batch, head, key)``."""
    if not call.has_weights:
        raise RecordingError(
            "Eviction needs Q and K, but {name} kept only its statistics.",
            do="Record with watch(model) instead of watch(model, statistics=True).",
            name=call.name,
        )
    asking = torch.zeros(call.batch, call.queries, dtype=torch.bool)
    asking[:, first:stop] = True
    return call.hide_queries(asking).statistics().received.double()


def _key_heads(call: Call) -> int:
    return call.k.shape[1] if isinstance(call, ScoredCall) else call.heads


def _of_key_heads(received: Tensor, call: Call) -> Tensor:
    """``(batch, head, key)`` → ``(batch, key head, key)``: heads that share a key head count together."""
    grouped: Tensor = received.unflatten(1, (_key_heads(call), -1))
    return grouped.sum(2)


def _of_query_heads(stays: Tensor, call: Call) -> Tensor:
    return stays.repeat_interleave(call.heads // stays.shape[1], 1)


def _kept_weight(later: Tensor, kept: Tensor, cut: int) -> list[float]:
    """The share of later attention that goes to keys still there, for each head; 1 is all of it."""
    stays = (later[..., :cut] * kept.to(later.device)).sum(-1) + later[..., cut:].sum(-1)
    return (stays.sum(0) / later.sum((0, -1))).tolist()


# ---- checks ----------------------------------------------------------------------------------


def _checked_budgets(given: Any) -> tuple[float, ...]:
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    several: tuple[Any, ...] = (given,) if is_one else tuple(given)
    for one in several:
        if not is_number(one, 0, 1) or not one:
            raise ArgumentError(
                "A budget must be a share of the keys, above 0 and at most 1.",
                got="{one!r}",
                do="Pass, for example, budgets=(0.1, 0.25, 0.5).",
                one=one,
            )
    return tuple(float(one) for one in several)


def _checked_policies(given: object) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)  # type: ignore[arg-type]
    for name in names:
        if name not in POLICIES:
            raise ArgumentError(
                "A policy must be one of {names}.",
                got="{name!r}",
                do="Choose some of them.",
                names=", ".join(POLICIES),
                name=name,
            )
    return names


def _checked_start(given: int | None, length: int) -> int:
    if given is None:
        given = length // 2
    if not is_integer(given, 1, length - 1):
        raise ArgumentError(
            "start must be a position in the text, after its first token (1 … {last}).",
            got="start = {given!r}",
            do="Omit it to cut the cache in the middle of the text.",
            last=length - 1,
            given=given,
        )
    return int(given)
