"""The score of each role of the heads of one call, from its statistics and from weights at pairs.

Every role names, for a query, the keys that belong to it. The score of a head is the weight on
them, averaged over the queries that have such a key in sight; chance is what even weights would
put there. The definitions stand in ``docs/statistics.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.attention import Statistics
from regard.attention.plain import AT_ONCE
from regard.heads.findings import Example, Score
from regard.heads.pairs import allowed_at, same_token, weights_at
from regard.masks.mask import Constant
from regard.masks.positions import Integers
from regard.recording import Call


class Tally:
    """The score of one role under way, for every head of a call."""

    def __init__(self, heads: int) -> None:
        self.total, self.chance = np.zeros(heads), np.zeros(heads)
        self.count = np.zeros(heads, np.int64)
        self.best = np.full(heads, -np.inf)
        self.shown: list[tuple[int, int, int, float] | None] = [None] * heads

    def add(self, mass: Tensor, chance: Tensor, counts: Tensor) -> None:
        """Rows ``(head, row)``: the weight that belongs to the role, by chance, and which rows count."""
        self.total += torch.where(counts, mass.double(), 0.0).sum(-1).cpu().numpy()
        self.chance += torch.where(counts, chance.double(), 0.0).sum(-1).cpu().numpy()
        self.count += counts.sum(-1).cpu().numpy()

    def offer(self, batch: int, query: Integers, key: Integers, weights: Tensor, above: Tensor) -> None:
        """Pairs ``(head, pair)`` that may serve as an example; the one furthest above chance is kept."""
        if not len(query):
            return
        keys = np.broadcast_to(key, above.shape)  # one for all heads, or each its own
        best, at = above.max(-1)
        for head, (value, pair) in enumerate(zip(best.tolist(), at.tolist())):
            if value > self.best[head]:
                self.best[head] = value
                where = batch, int(query[pair]), int(keys[head, pair])
                self.shown[head] = (*where, float(weights[head, pair]))

    def scores(self, text: Text) -> list[Score | None]:
        """What came out; None for a head that was never in the situation."""
        found: list[Score | None] = []
        for head, count in enumerate(self.count):
            if not count:
                found.append(None)
                continue
            shown = self.shown[head]
            # Float rounding may carry a sum of weights a hair beyond 1.
            value, chance = (float(min(max(x[head] / count, 0.0), 1.0)) for x in (self.total, self.chance))
            found.append(Score(value, chance, None if shown is None else text.example(*shown)))
        return found


@dataclass(frozen=True, eq=False)
class Text:
    """The tokens around a call, as words and as numbers; None where they are not known."""

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
class Scene:
    """One call, what is known about its rows, and what is to be measured."""

    call: Call
    text: Text
    real: Tensor  # (batch, query), no padding
    shown: Tensor  # (batch, key), no padding
    batches: Sequence[int]
    separates: Callable[[str], bool]
    reach: int
    found: Statistics

    def rows(self, batch: int) -> Integers:
        """The queries that are no padding."""
        return np.flatnonzero(self.real[batch].numpy())

    def positions(self, rows: Integers) -> Integers:
        """Where queries stand among the keys."""
        return rows + self.call.extent.offset

    def first(self, batch: int) -> int:
        """The first key that is no padding."""
        return int(self.shown[batch].int().argmax())

    def visible(self, batch: int, rows: Integers) -> Tensor:
        """How many keys each row sees, ``(head, row)``."""
        at = torch.from_numpy(rows).to(self.found.visible.device)
        return self.found.visible[batch][:, at]

    def even(self, batch: int, rows: Integers) -> Tensor:
        """The weight that each key of a row would have if all had the same."""
        return 1 / self.visible(batch, rows).clamp(min=1).double()

    def telling(self, batch: int, rows: Integers, keys: Integers, weights: Tensor, allowed: Tensor) -> Tensor:
        """How well each pair serves as an example: its weight above even ones, −inf where it may not be.

        Many heads rest on the first key, so a pair with another key tells more.
        """
        above = weights - self.even(batch, rows).to(weights.dtype)
        above -= torch.from_numpy(keys == self.first(batch)).to(weights)
        return above.masked_fill_(~allowed, -torch.inf)


# ---- one key per query -----------------------------------------------------------------------


def at_offset(scene: Scene, offset: int) -> Tally:
    """The weight on the key ``offset`` positions after the query's own."""
    tally = Tally(scene.call.heads)
    for batch in scene.batches:
        rows = scene.rows(batch)
        keys = scene.positions(rows) + offset
        inside = (keys >= 0) & (keys < scene.call.keys)
        _single(scene, tally, batch, rows[inside], keys[inside])
    return tally


def on_first(scene: Scene) -> Tally:
    """The weight on the first key of the text, of all queries but the one that stands there."""
    tally = Tally(scene.call.heads)
    for batch in scene.batches:
        rows, first = scene.rows(batch), scene.first(batch)
        if scene.call.kind != "cross":
            rows = rows[scene.positions(rows) > first]
        _single(scene, tally, batch, rows, np.full(len(rows), first))
    return tally


def _single(scene: Scene, tally: Tally, batch: int, rows: Integers, keys: Integers) -> None:
    if not len(rows):
        return
    allowed = _allowed(scene, batch, rows, keys)
    weights = _known_weights(scene, batch, rows, keys)
    tally.add(weights, scene.even(batch, rows), allowed)
    tally.offer(batch, rows, keys, weights, scene.telling(batch, rows, keys, weights, allowed))


def _known_weights(scene: Scene, batch: int, rows: Integers, keys: Integers) -> Tensor:
    """Weights of one key per row; those that every pass of statistics has taken need no Q and K."""
    at = torch.from_numpy(rows).to(scene.found.lse.device)
    gap = set((keys - scene.positions(rows)).tolist())
    if gap == {0}:
        return scene.found.self_weight[batch][:, at]
    if gap == {-1}:
        return scene.found.previous_weight[batch][:, at]
    if set(keys.tolist()) == {0}:
        return scene.found.first_weight[batch][:, at]
    return weights_at(scene.call, batch, rows, keys)


def _allowed(scene: Scene, batch: int, rows: Integers, keys: Integers) -> Tensor:
    """Whether each pair may attend, ``(head, pair)``.

    A call that kept no mask answers by its kind: a decoder looks back, and nobody sees padding.
    """
    found = allowed_at(scene.call, batch, rows, keys)
    if scene.call.q is None and isinstance(scene.call.mask, Constant):
        back = keys <= scene.positions(rows) if scene.call.kind == "decoder" else True
        found = found & back & scene.shown[batch].numpy()[keys]
    sees = scene.visible(batch, rows) > 0
    return torch.from_numpy(found).to(sees.device) & sees


# ---- several keys per query ------------------------------------------------------------------


def on_equal_tokens(scene: Scene, wanted: Collection[str]) -> dict[str, Tally]:
    """Same, duplicate and induction: all begin at the keys whose token equals the query's."""
    tallies = {role: Tally(scene.call.heads) for role in ("same", "duplicate", "induction") if role in wanted}
    most = max(1, AT_ONCE // scene.call.heads)
    for batch in scene.batches:
        for query, key in same_token(*scene.text.numbers(batch), scene.rows(batch), most):
            position = scene.positions(query)
            if "same" in tallies:
                _several(scene, tallies["same"], batch, query, key)
            if "duplicate" in tallies:
                before = key < position
                _several(scene, tallies["duplicate"], batch, query[before], key[before])
            if "induction" in tallies:
                # What followed an earlier occurrence; it must itself lie before the query.
                follows = key + 1 < position
                _several(scene, tallies["induction"], batch, query[follows], key[follows] + 1)
    return tallies


def _several(scene: Scene, tally: Tally, batch: int, query: Integers, key: Integers) -> None:
    """Pairs with several keys per row; those of a row stand side by side, and come together."""
    if not len(query):
        return
    begins = np.append(True, query[1:] != query[:-1])
    rows = query[begins]
    weights = weights_at(scene.call, batch, query, key)
    allowed = _allowed(scene, batch, query, key)
    index = torch.from_numpy(np.cumsum(begins) - 1).to(weights.device)
    mass = weights.new_zeros(len(weights), len(rows)).index_add_(1, index, weights)
    counts = mass.new_zeros(mass.shape).index_add_(1, index, allowed.to(mass.dtype))
    tally.add(mass, counts * scene.even(batch, rows), counts > 0)
    tally.offer(batch, query, key, weights, scene.telling(batch, query, key, weights, allowed))


def on_separators(scene: Scene) -> Tally:
    """The weight on separators behind the first key, of queries that are none themselves."""
    tally = Tally(scene.call.heads)
    assert scene.text.keys is not None
    for batch in scene.batches:
        marks = np.array([scene.separates(token) for token in scene.text.keys[batch]], np.bool_)
        first = scene.first(batch)
        keys = np.flatnonzero(marks & scene.shown[batch].numpy())
        keys = keys[keys != first]
        rows = scene.rows(batch)
        if scene.call.kind != "cross":
            rows = rows[~marks[scene.positions(rows)]]
        if len(keys):
            _columns(scene, tally, batch, rows, keys)
    return tally


def _columns(scene: Scene, tally: Tally, batch: int, rows: Integers, keys: Integers) -> None:
    """Every row against the same keys, a few rows at a time."""
    step = max(1, AT_ONCE // (scene.call.heads * len(keys)))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        _several(scene, tally, batch, np.repeat(part, len(keys)), np.tile(keys, len(part)))


# ---- distance --------------------------------------------------------------------------------


def by_distance(scene: Scene) -> Tally:
    """How much of the weight within reach the mean weight of each distance explains.

    The profile ``a_δ`` is the mean of ``w_{i, p_i + δ}``. A row is explained as far as it overlaps
    with the profile, ``Σ_δ min(w, a)``; chance is its overlap with even weights.
    """
    tally = Tally(scene.call.heads)
    offsets = np.arange(-scene.reach, scene.reach + 1)
    parts = [(batch, *_band(scene, batch, offsets)) for batch in scene.batches]
    total = sum(torch.where(allowed, weights, 0.0).sum(1) for _, _, weights, allowed in parts)
    count = sum(allowed.sum(1) for _, _, _, allowed in parts)
    assert isinstance(total, Tensor)
    assert isinstance(count, Tensor)
    profile = (total / count.clamp(min=1))[:, None]  # (head, 1, offset)
    mass = profile.sum(-1, keepdim=True).clamp(max=1)
    for batch, rows, weights, allowed in parts:
        # At the edges some distances do not exist; the others have the mass of all.
        here = torch.where(allowed, profile, 0.0)
        whole = here.sum(-1, keepdim=True)
        guess = here * (mass / torch.where(whole > 0, whole, 1.0))
        even = scene.even(batch, rows)[..., None]
        sees = scene.visible(batch, rows) > 0
        explained = torch.minimum(weights, guess).sum(-1)
        tally.add(explained, torch.where(allowed, torch.minimum(weights, even), 0.0).sum(-1), sees)
        query = np.repeat(rows, len(offsets))
        key = (scene.positions(rows)[:, None] + offsets).ravel()
        explained_there = torch.minimum(weights, guess).flatten(1)
        above = scene.telling(batch, query, key, explained_there, allowed.flatten(1))
        tally.offer(batch, query, key, weights.flatten(1), above)
    return tally


def _band(scene: Scene, batch: int, offsets: Integers) -> tuple[Integers, Tensor, Tensor]:
    """Rows, and their weights and permissions at each offset, ``(head, row, offset)``."""
    rows = scene.rows(batch)
    key = scene.positions(rows)[:, None] + offsets
    inside = ((key >= 0) & (key < scene.call.keys)).ravel()
    query, near = np.repeat(rows, len(offsets)), key.clip(0, scene.call.keys - 1).ravel()
    weights = weights_at(scene.call, batch, query, near)
    allowed = _allowed(scene, batch, query, near) & torch.from_numpy(inside).to(weights.device)
    shape = (len(weights), len(rows), len(offsets))
    return rows, torch.where(allowed, weights, 0.0).reshape(shape), allowed.reshape(shape)


# ---- from statistics alone -------------------------------------------------------------------


def broadly(scene: Scene) -> Tally:
    """``(e^entropy − 1) / (visible − 1)``: the share of the keys in sight that a row spreads over."""
    tally = Tally(scene.call.heads)
    for batch in scene.batches:
        rows = scene.rows(batch)
        at = torch.from_numpy(rows).to(scene.found.entropy.device)
        visible = scene.visible(batch, rows)
        spread = torch.expm1(scene.found.entropy[batch][:, at].double()) / (visible - 1).clamp(min=1)
        tally.add(spread, torch.zeros_like(spread), visible > 1)
    return tally


def aligned(scene: Scene) -> Tally:
    """``Σ_j max_{i looks most at j} peak_i / min(queries, keys)``: pairs of words, each key once.

    Even weights have the peak of every row at one key.
    """
    tally = Tally(scene.call.heads)
    for batch in scene.batches:
        rows = scene.rows(batch)
        at = torch.from_numpy(rows).to(scene.found.peak.device)
        peak = scene.found.peak[batch][:, at].double()  # (head, row)
        winner = scene.found.peak_key[batch][:, at]
        sees = winner >= 0
        if not bool(sees.any()):
            continue
        highest = peak.new_zeros(len(peak), scene.call.keys)
        highest.scatter_reduce_(1, winner.clamp(min=0), torch.where(sees, peak, 0.0), "amax")
        pairs = sees.sum(-1).clamp(1, int(scene.shown[batch].sum()))
        chance = scene.even(batch, rows).amax(-1) / pairs
        tally.add((highest.sum(-1) / pairs)[:, None], chance[:, None], sees.any(-1, keepdim=True))
        tally.offer(batch, rows, winner.cpu().numpy(), peak, torch.where(sees, peak, -torch.inf))
    return tally
