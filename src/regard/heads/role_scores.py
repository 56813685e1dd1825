"""The score of each role of the heads of one call, from its statistics and from weights at pairs.

Every role names, for a query, the keys that belong to it. The score of a head is the weight on
them, averaged over the queries that have such a key in sight; chance is what even weights would
put there. The definitions are in ``docs/statistics.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from regard.heads.key_sets import BEFORE, Channels, before_queries, by_chance, looks_back
from regard.heads.pair_weights import allowed_at, same_token, weights_at, weights_near
from regard.heads.role_results import Example, Score
from regard.heads.significance import Columns, Numbers, Peaks, of_columns, of_distinct, tail
from regard.kernels import Statistics
from regard.kernels.plain_kernel import MAX_SCORES
from regard.masks import Mask
from regard.masks.extent import Bools, Integers
from regard.recording import Call

EXAMPLE_ROWS = 2
"""Rows that are searched for an example where a role is measured without its pairs."""


class RoleTally:
    """The running score of one role, for every head of a call."""

    def __init__(self, heads: int) -> None:
        self.total, self.chance, self.bound = np.zeros(heads), np.zeros(heads), np.zeros(heads)
        self.count = np.zeros(heads, np.int64)
        self.shared = 1  # rows that share a key of the role, at most; they do not count one by one
        self.p: Numbers | None = None  # where the rows alone do not tell it
        self.testable = True
        self.best = np.full(heads, -np.inf)
        self.shown: list[tuple[int, int, int, float] | None] = [None] * heads

    def add(self, mass: Tensor, chance: Tensor, counts: Tensor, bound: Tensor | None = None) -> None:
        """Rows ``(head, row)``: the weight that belongs to the role, by chance, and which rows count.

        ``bound`` is the most that a row could have, by default 1.
        """
        counts = counts.expand(mass.shape)
        self.total += torch.where(counts, mass.double(), 0.0).sum(-1).cpu().numpy()
        self.chance += torch.where(counts, chance.double(), 0.0).sum(-1).cpu().numpy()
        self.count += counts.sum(-1).cpu().numpy()
        highest = torch.ones_like(mass) if bound is None else bound.clamp(max=1)
        if mass.shape[-1]:
            here = torch.where(counts, highest.double(), 0.0).amax(-1).cpu().numpy()
            self.bound = np.maximum(self.bound, here)

    def offer(self, batch: int, query: Integers, key: Integers, weights: Tensor, above: Tensor) -> None:
        """Pairs ``(head, pair)`` that may serve as an example; the one furthest above chance is kept."""
        if not len(query):
            return
        keys = np.broadcast_to(key, above.shape)  # one for all heads, or each its own
        best, at = above.max(-1)
        for head, (value, pair) in enumerate(zip(best.tolist(), at.tolist())):
            where = batch, int(query[pair]), int(keys[head, pair])
            self.consider(head, value, where, weights[head, pair])

    def consider(self, head: int, above: float, where: tuple[int, int, int], weight: Tensor) -> None:
        """One pair of one head that may serve as its example."""
        if above > self.best[head]:
            self.best[head] = above
            self.shown[head] = (*where, float(weight))

    def scores(self, text: CallTokens) -> list[Score | None]:
        """The scores; None for a head whose rows never had a key of the role."""
        counts = np.maximum(self.count, 1)
        # Rounding can carry a sum of weights slightly beyond 1.
        values, chances = (np.clip(sums / counts, 0.0, 1.0) for sums in (self.total, self.chance))
        p = self.p
        if p is None and self.testable:
            p = tail(values, chances, self.count / self.shared, self.bound)
        return [
            Score(
                float(values[head]),
                float(chances[head]),
                None if shown is None else text.example(*shown),
                None if p is None else float(p[head]),
            )
            if self.count[head]
            else None
            for head, shown in enumerate(self.shown)
        ]


@dataclass(frozen=True, eq=False)
class CallTokens:
    """The tokens of a call, as strings and as numbers; None where they are not known."""

    queries: Sequence[Sequence[str]] | None  # of each sequence
    keys: Sequence[Sequence[str]] | None

    def example(self, batch: int, query: int, key: int, weight: float) -> Example:
        """A pair with its words."""
        here = None if self.queries is None else self.queries[batch][query]
        there = None if self.keys is None else self.keys[batch][key]
        return Example(batch, query, key, weight, here, there)

    def numbers(self, batch: int) -> tuple[Integers, Integers]:
        """The tokens of queries and keys as numbers, equal where the words are."""
        assert self.queries is not None
        assert self.keys is not None
        words = [*self.queries[batch], *self.keys[batch]]
        known: dict[str, int] = {}
        found = np.array([known.setdefault(word, len(known)) for word in words], np.int64)
        return found[: len(self.queries[batch])], found[len(self.queries[batch]) :]


@dataclass(frozen=True, eq=False)
class RoleInputs:
    """What the roles of one call are measured from: the call, its tokens, padding and statistics."""

    call: Call
    text: CallTokens
    real: Tensor  # (batch, query), no padding
    shown: Tensor  # (batch, key), no padding
    batches: Sequence[int]
    reach: int
    mask: Mask  # with padding queries blind
    channels: Channels
    found: Statistics  # its output is the weight on the sets of the channels
    chance: Statistics  # the same of even weights; axes of batch and heads may be 1

    def rows(self, batch: int) -> Integers:
        """The queries that are not padding."""
        return np.flatnonzero(self.real[batch].numpy())

    def positions(self, rows: Integers) -> Integers:
        """The positions of queries among the keys."""
        return rows + self.call.extent.offset

    def keys(self, batch: int) -> Integers:
        """The keys that are not padding."""
        return np.flatnonzero(self.shown[batch].numpy())

    def first(self, batch: int) -> int:
        """The first key that is not padding."""
        return int(self.shown[batch].int().argmax())

    def visible(self, batch: int, rows: Integers) -> Tensor:
        """How many keys each row sees, ``(head, row)``."""
        at = torch.from_numpy(rows).to(self.found.visible.device)
        return self.found.visible[batch][:, at]

    def even(self, batch: int, rows: Integers) -> Tensor:
        """The weight of each key of a row if all had the same."""
        return 1 / self.visible(batch, rows).clamp(min=1).double()

    def peak(self, batch: int, rows: Integers) -> Tensor:
        """The greatest weight of each row, ``(head, row)``."""
        return self.found.peak[batch][:, torch.from_numpy(rows).to(self.found.peak.device)]

    def received(self, batch: int) -> Tensor:
        """What each key receives, ``(head, key)``; rows that do not see a key count there as even ones."""
        visible = self.chance.visible[batch]
        evenly = torch.where(visible > 0, 1 / visible.clamp(min=1).double(), 0.0).sum(-1, keepdim=True)
        return self.found.received[batch].double().cpu() + evenly - self.chance.received[batch].double()

    def telling(self, batch: int, rows: Integers, keys: Integers, weights: Tensor, allowed: Tensor) -> Tensor:
        """How well each pair serves as an example: its weight above even ones, −inf where it may not be.

        Many heads rest on the first key, so a pair with another key says more.
        """
        above = weights - self.even(batch, rows).to(weights.dtype)
        above -= torch.from_numpy(keys == self.first(batch)).to(weights)
        return above.masked_fill_(~allowed, -torch.inf)


# ---- one key per query -----------------------------------------------------------------------


def at_offset(inputs: RoleInputs, offset: int) -> RoleTally:
    """The weight on the key ``offset`` positions after the query's own."""
    tally = RoleTally(inputs.call.heads)
    for batch in inputs.batches:
        rows = inputs.rows(batch)
        keys = inputs.positions(rows) + offset
        inside = (keys >= 0) & (keys < inputs.call.keys)
        _single(inputs, tally, batch, rows[inside], keys[inside])
    return tally


def on_first(inputs: RoleInputs) -> RoleTally:
    """The weight on the first key of the text, of all queries but the one at that position."""
    tally = RoleTally(inputs.call.heads)
    received: list[Columns] = []
    for batch in inputs.batches:
        rows, first = inputs.rows(batch), inputs.first(batch)
        if inputs.call.kind != "cross":
            rows = rows[inputs.positions(rows) > first]
        _single(inputs, tally, batch, rows, np.full(len(rows), first))
        received.append(_columns(inputs, batch, inputs.keys(batch), np.array([first])))
    tally.p = of_columns(received)
    return tally


def _columns(inputs: RoleInputs, batch: int, population: Integers, chosen: Integers) -> Columns:
    """What the keys of a population receive, with the chosen ones among them."""
    received = inputs.received(batch)[:, torch.from_numpy(population)]
    return Columns(received, np.flatnonzero(np.isin(population, chosen)))


def _single(inputs: RoleInputs, tally: RoleTally, batch: int, rows: Integers, keys: Integers) -> None:
    if not len(rows):
        return
    allowed = _allowed(inputs, batch, rows, keys)
    weights = _known_weights(inputs, batch, rows, keys)
    tally.add(weights, inputs.even(batch, rows), allowed, inputs.peak(batch, rows))
    tally.offer(batch, rows, keys, weights, inputs.telling(batch, rows, keys, weights, allowed))


def _known_weights(inputs: RoleInputs, batch: int, rows: Integers, keys: Integers) -> Tensor:
    """Weights of one key per row; those that every pass of statistics has taken need no Q and K."""
    at = torch.from_numpy(rows).to(inputs.found.lse.device)
    gap = set((keys - inputs.positions(rows)).tolist())
    if gap == {0}:
        return inputs.found.self_weight[batch][:, at]
    if gap == {-1}:
        return inputs.found.previous_weight[batch][:, at]
    if set(keys.tolist()) == {0}:
        return inputs.found.first_weight[batch][:, at]
    return weights_at(inputs.call, batch, rows, keys)


def _allowed(inputs: RoleInputs, batch: int, rows: Integers, keys: Integers) -> Tensor:
    """Whether each pair may attend, ``(head, pair)``.

    A call that kept no mask answers by its kind: a decoder looks back, and no query sees padding.
    """
    found = allowed_at(inputs.call, batch, rows, keys)
    if not inputs.call.mask_known:
        back = keys <= inputs.positions(rows) if inputs.call.kind == "decoder" else True
        found = found & back & inputs.shown[batch].numpy()[keys]
    sees = inputs.visible(batch, rows) > 0
    return torch.from_numpy(found).to(sees.device) & sees


# ---- several keys per query ------------------------------------------------------------------


def on_equal_tokens(inputs: RoleInputs, wanted: Collection[str]) -> dict[str, RoleTally]:
    """Same, duplicate and induction: all begin at the keys whose token equals the query's.

    Frequent tokens have channels; the others are computed pair by pair.
    """
    tallies = {
        role: RoleTally(inputs.call.heads) for role in ("same", "duplicate", "induction") if role in wanted
    }
    most = max(1, MAX_SCORES // inputs.call.heads)
    numbers = [inputs.text.numbers(batch) for batch in range(inputs.call.batch)]
    places = inputs.channels.of_rows([queries for queries, _ in numbers])
    for batch in inputs.batches:
        queries, keys = numbers[batch]
        rows = inputs.rows(batch)
        rare = rows[places[batch].numpy()[rows] < 0]
        for query, key in same_token(queries, keys, rare, most):
            if {"same", "duplicate"} & set(tallies):
                equal = _visible_pairs(inputs, batch, query, key)
                if "same" in tallies:
                    _several(inputs, tallies["same"], equal)
                if "duplicate" in tallies:
                    _several(
                        inputs, tallies["duplicate"], equal.where(equal.key < inputs.positions(equal.query))
                    )
            if "induction" in tallies:
                # What followed an earlier occurrence; it must itself lie before the query.
                follows = key + 1 < inputs.positions(query)
                _several(
                    inputs,
                    tallies["induction"],
                    _visible_pairs(inputs, batch, query[follows], key[follows] + 1),
                )
        # Rows of one token look for the same keys.
        most_alike = int(np.bincount(queries[rows]).max()) if len(rows) else 1
        for tally in tallies.values():
            tally.shared = max(tally.shared, most_alike)
    if inputs.channels.count:
        _on_frequent(inputs, tallies, numbers, places)
    return tallies


@dataclass(frozen=True, eq=False)
class VisiblePairs:
    """Pairs that some head may see, with their weights; those of one row are adjacent."""

    batch: int
    query: Integers
    key: Integers
    weights: Tensor  # (head, pair)
    allowed: Tensor

    def where(self, chosen: Bools) -> VisiblePairs:
        """Some of the pairs."""
        at = torch.from_numpy(np.flatnonzero(chosen)).to(self.weights.device)
        return VisiblePairs(
            self.batch, self.query[chosen], self.key[chosen], self.weights[:, at], self.allowed[:, at]
        )


def _visible_pairs(inputs: RoleInputs, batch: int, query: Integers, key: Integers) -> VisiblePairs:
    if looks_back(inputs.mask):
        back = key <= inputs.positions(query)
        query, key = query[back], key[back]
    allowed = _allowed(inputs, batch, query, key)
    seen = allowed.any(0)
    query, key = query[seen.cpu().numpy()], key[seen.cpu().numpy()]
    return VisiblePairs(batch, query, key, weights_at(inputs.call, batch, query, key), allowed[:, seen])


def add_pairs(inputs: RoleInputs, tally: RoleTally, batch: int, query: Integers, key: Integers) -> None:
    """Add pairs, in the order of their queries."""
    _several(inputs, tally, _visible_pairs(inputs, batch, query, key))


def _several(inputs: RoleInputs, tally: RoleTally, pairs: VisiblePairs) -> None:
    """Rows with several keys each: what they have together."""
    query, weights, allowed = pairs.query, pairs.weights, pairs.allowed
    if not len(query):
        return
    begins = np.append(True, query[1:] != query[:-1])
    rows = query[begins]
    index = torch.from_numpy(np.cumsum(begins) - 1).to(weights.device)
    mass = weights.new_zeros(len(weights), len(rows)).index_add_(1, index, weights)
    counts = mass.new_zeros(mass.shape).index_add_(1, index, allowed.to(mass.dtype))
    batch = pairs.batch
    tally.add(mass, counts * inputs.even(batch, rows), counts > 0, counts * inputs.peak(batch, rows))
    tally.offer(batch, query, pairs.key, weights, inputs.telling(batch, query, pairs.key, weights, allowed))


def _on_frequent(
    inputs: RoleInputs,
    tallies: dict[str, RoleTally],
    numbers: Sequence[tuple[Integers, Integers]],
    places: Tensor,
) -> None:
    """The rows of frequent tokens: the weight on each set of keys came with the statistics."""
    channels, first = inputs.channels, inputs.channels.first_word
    assert inputs.found.output is not None
    assert inputs.chance.output is not None
    there = inputs.chance.output * inputs.chance.visible[..., None]  # how many keys of each set are in sight
    earlier, earlier_there = inputs.found.output, there
    if looks_back(inputs.mask):
        # Nothing behind the query is in sight, so of its own set it must only leave out itself.
        own = channels.values[:, None, inputs.call.extent.offset :].to(earlier)
        sees_itself = inputs.chance.self_weight * inputs.chance.visible
        earlier = earlier - own * inputs.found.self_weight[..., None].to(earlier)
        earlier_there = there - own.to(there) * sees_itself[..., None]
    elif {"duplicate", "induction"} & set(tallies):
        earlier = before_queries(inputs.call, channels)
        evenly = by_chance(inputs.mask & BEFORE, inputs.call, channels)
        assert evenly.output is not None
        earlier_there = evenly.output * evenly.visible[..., None]
    of_role = {
        "same": (inputs.found.output, there, first),
        "duplicate": (earlier, earlier_there, first),
        "induction": (earlier, earlier_there, first + channels.count),
    }
    for role, tally in tallies.items():
        mass, counts, channel = of_role[role]
        for batch in inputs.batches:
            rows = inputs.rows(batch)
            rows = rows[places[batch].numpy()[rows] >= 0]
            if not len(rows):
                continue
            at = torch.from_numpy(rows)
            place = (places[batch][at] + channel)[None, :, None]
            found, count = (
                x[batch].cpu()[:, at].gather(-1, place.expand(len(x[batch]), -1, -1))[..., 0].clamp(min=0)
                for x in (mass, counts)
            )
            count = count.round().expand(found.shape)
            _add_rows(inputs, tally, batch, rows, found, count)
            queries, keys = numbers[batch]
            shift = int(role == "induction")

            def keys_of(row: int) -> Integers:
                near = np.flatnonzero(keys == queries[row]) + shift  # noqa: B023 - asked at once
                limit = inputs.call.keys if role == "same" else inputs.positions(np.array([row]))[0]  # noqa: B023
                return near[near < limit]

            _offer_rows(inputs, tally, batch, rows, found - count * inputs.even(batch, rows).cpu(), keys_of)


def on_separators(inputs: RoleInputs) -> RoleTally:
    """The weight on separators behind the first key, of queries that are none themselves."""
    tally = RoleTally(inputs.call.heads)
    marks, separators, received = inputs.channels.marks, inputs.channels.separators, []
    assert marks is not None
    assert separators is not None
    for batch in inputs.batches:
        keys = np.flatnonzero(marks[batch])
        rows = inputs.rows(batch)
        if inputs.call.kind != "cross":
            rows = rows[~separators[batch][inputs.positions(rows)]]
        if not len(keys) or not len(rows):
            continue
        assert inputs.found.output is not None
        assert inputs.chance.output is not None
        at = torch.from_numpy(rows)
        mass = inputs.found.output[batch].cpu()[:, at, 0]
        count = (inputs.chance.output[batch][:, at, 0] * inputs.chance.visible[batch][:, at]).round()
        _add_rows(inputs, tally, batch, rows, mass, count.expand(mass.shape))
        above = mass - count * inputs.even(batch, rows).cpu()
        _offer_rows(inputs, tally, batch, rows, above, partial(_always, keys))
        others = inputs.keys(batch)
        received.append(_columns(inputs, batch, others[others != inputs.first(batch)], keys))
    if received:
        tally.p = of_columns(received)
    return tally


def _always(keys: Integers, row: int) -> Integers:
    """The same keys for every row."""
    del row
    return keys


def _add_rows(
    inputs: RoleInputs, tally: RoleTally, batch: int, rows: Integers, mass: Tensor, count: Tensor
) -> None:
    """Rows with their weight on a set of keys and the number of those in sight, ``(head, row)``."""
    bound = count * inputs.peak(batch, rows).cpu()
    tally.add(mass, count * inputs.even(batch, rows).cpu(), count > 0, bound)


def _offer_rows(
    inputs: RoleInputs,
    tally: RoleTally,
    batch: int,
    rows: Integers,
    above: Tensor,
    keys_of: Callable[[int], Integers],
) -> None:
    """Examples out of the rows that are furthest above chance: a pair of theirs is likely the best."""
    first, even = inputs.first(batch), inputs.even(batch, rows)
    for head, number in enumerate(inputs.call.head_numbers):
        for at in above[head].topk(min(EXAMPLE_ROWS, len(rows))).indices.tolist():
            row = int(rows[at])
            keys = keys_of(row)
            if not len(keys):
                continue
            weights = inputs.call.weights(number, [row], keys.tolist(), batch)[0]
            # As telling() has it: a pair with another key than the first tells more.
            telling = weights - torch.from_numpy(keys == first).to(weights)
            best = int(telling.argmax())
            if float(weights[best]) > 0:  # what the mask hides has none
                where = batch, row, int(keys[best])
                tally.consider(head, float(telling[best]) - float(even[head, at]), where, weights[best])


# ---- distance --------------------------------------------------------------------------------


def by_distance(inputs: RoleInputs) -> RoleTally:
    """How much of the weight within reach the mean weight of each distance explains.

    The profile ``a_δ`` is the mean of ``w_{i, p_i + δ}``. A row is explained as far as it overlaps
    with the profile, ``Σ_δ min(w, a)``; chance is its overlap with even weights.
    """
    tally = RoleTally(inputs.call.heads)
    ahead = 0 if looks_back(inputs.mask) else inputs.reach
    offsets = np.arange(-inputs.reach, ahead + 1)
    parts = [(batch, *_band(inputs, batch, offsets)) for batch in inputs.batches]
    total = sum(torch.where(allowed, weights, 0.0).sum(1) for _, _, weights, allowed in parts)
    count = sum(allowed.sum(1) for _, _, _, allowed in parts)
    assert isinstance(total, Tensor)
    assert isinstance(count, Tensor)
    profile = (total / count.clamp(min=1))[:, None]  # (head, 1, offset)
    mass = profile.sum(-1, keepdim=True).clamp(max=1)
    tally.p = _any_distance(inputs, parts, total, count)
    for batch, rows, weights, allowed in parts:
        # At the edges some distances do not exist; the others have the mass of all.
        here = torch.where(allowed, profile, 0.0)
        whole = here.sum(-1, keepdim=True)
        guess = here * (mass / torch.where(whole > 0, whole, 1.0))
        even = inputs.even(batch, rows)[..., None]
        sees = inputs.visible(batch, rows) > 0
        explained = torch.minimum(weights, guess).sum(-1)
        tally.add(explained, torch.where(allowed, torch.minimum(weights, even), 0.0).sum(-1), sees)
        query = np.repeat(rows, len(offsets))
        key = (inputs.positions(rows)[:, None] + offsets).ravel()
        explained_there = torch.minimum(weights, guess).flatten(1)
        above = inputs.telling(batch, query, key, explained_there, allowed.flatten(1))
        tally.offer(batch, query, key, weights.flatten(1), above)
    return tally


def _any_distance(
    inputs: RoleInputs, parts: Sequence[tuple[int, Integers, Tensor, Tensor]], total: Tensor, count: Tensor
) -> Numbers:
    """The p-value of the distance that stands out most, times the number of distances that were tried."""
    evenly = sum(
        torch.where(allowed, inputs.even(batch, rows)[..., None], 0.0).sum(1)
        for batch, rows, _, allowed in parts
    )
    assert isinstance(evenly, Tensor)
    bound = torch.stack([weights.flatten(1).amax(1) for _, _, weights, _ in parts]).amax(0)[:, None]
    rows = count.clamp(min=1)
    found = tail(*(x.double().cpu().numpy() for x in (total / rows, evenly / rows, count, bound)))
    tried = (count > 0).any(0).sum().clamp(min=1)
    least: Numbers = np.minimum(found.min(1) * int(tried), 1.0)
    return least


def _band(inputs: RoleInputs, batch: int, offsets: Integers) -> tuple[Integers, Tensor, Tensor]:
    """Rows, and their weights and permissions at each offset, ``(head, row, offset)``."""
    rows = inputs.rows(batch)
    key = inputs.positions(rows)[:, None] + offsets
    inside = ((key >= 0) & (key < inputs.call.keys)).ravel()
    query, near = np.repeat(rows, len(offsets)), key.clip(0, inputs.call.keys - 1).ravel()
    allowed = _allowed(inputs, batch, query, near)
    allowed = (allowed & torch.from_numpy(inside).to(allowed.device)).unflatten(1, key.shape)
    weights = weights_near(inputs.call, batch, int(offsets[0]), int(offsets[-1]))
    weights = weights[:, torch.from_numpy(rows).to(weights.device)]
    return rows, torch.where(allowed, weights, 0.0), allowed


# ---- from statistics alone -------------------------------------------------------------------


def broadly(inputs: RoleInputs) -> RoleTally:
    """``(e^entropy − 1) / (visible − 1)``: the share of the keys in sight that a row spreads over."""
    tally = RoleTally(inputs.call.heads)
    tally.testable = False  # where the weights are does not matter, so no shuffling changes it
    for batch in inputs.batches:
        rows = inputs.rows(batch)
        at = torch.from_numpy(rows).to(inputs.found.entropy.device)
        visible = inputs.visible(batch, rows)
        spread = torch.expm1(inputs.found.entropy[batch][:, at].double()) / (visible - 1).clamp(min=1)
        tally.add(spread, torch.zeros_like(spread), visible > 1)
    return tally


def aligned(inputs: RoleInputs) -> RoleTally:
    """``Σ_j max_{i looks most at j} peak_i / min(queries, keys)``: pairs of words, each key once.

    Even weights have the peak of every row at one key.
    """
    tally = RoleTally(inputs.call.heads)
    sums, peaks = np.zeros(inputs.call.heads), []
    for batch in inputs.batches:
        rows = inputs.rows(batch)
        at = torch.from_numpy(rows).to(inputs.found.peak.device)
        peak = inputs.found.peak[batch][:, at].double()  # (head, row)
        winner = inputs.found.peak_key[batch][:, at]
        sees = winner >= 0
        if not bool(sees.any()):
            continue
        highest = peak.new_zeros(len(peak), inputs.call.keys)
        highest.scatter_reduce_(1, winner.clamp(min=0), torch.where(sees, peak, 0.0), "amax")
        pairs = sees.sum(-1).clamp(1, int(inputs.shown[batch].sum()))
        chance = inputs.even(batch, rows).amax(-1) / pairs
        tally.add((highest.sum(-1) / pairs)[:, None], chance[:, None], sees.any(-1, keepdim=True))
        tally.offer(batch, rows, winner.cpu().numpy(), peak, torch.where(sees, peak, -torch.inf))
        sums += (highest.sum(-1) / pairs).cpu().numpy()
        peaks.append(Peaks(torch.where(sees, peak, 0.0), len(inputs.keys(batch)), pairs.double()))
    if peaks:
        tally.p = of_distinct(sums, peaks)
    return tally
