"""Beam search: several candidate texts per prompt, of which one is returned.

A beam that has ended is kept and competes with the others by its penalised score
``log p / length ** length_penalty``. The search stops when no unfinished beam can still win. If the caller
chooses among the beams, it stops when all of them have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor, nn

from regard.nn.decoding import Decoding


class BeamObserver(Protocol):
    """Is notified of every beam search, and of the rows through which it reached its texts."""

    def begin(self, model: nn.Module) -> None:
        """A search begins; called before the first forward pass."""

    def end(self, rows: Tensor | None) -> None:
        """A search ended: token t of a text was chosen in row ``rows[text, t]`` of a pass, −1 after the end.

        ``rows`` is None if the search failed.
        """


@dataclass(frozen=True)
class BeamCandidate:
    """A text that a beam search found for a prompt.

    >>> BeamCandidate(tokens=(7, 8, 2), log_probability=-1.5, ended=True).tokens
    (7, 8, 2)
    """

    tokens: tuple[int, ...]  # including the end token
    log_probability: float
    ended: bool  # False if the search was cut off first


Choice = Callable[[int, Sequence[BeamCandidate]], int]
"""Gets the number of a prompt and its candidates, best first; returns the place of the one to keep."""

_observers: ContextVar[tuple[BeamObserver, ...]] = ContextVar("observers", default=())


@contextmanager
def followed(observer: BeamObserver) -> Iterator[None]:
    """Notify the observer of every beam search in this thread."""
    before = _observers.get()
    _observers.set((*before, observer))
    try:
        yield
    finally:
        _observers.set(tuple(other for other in _observers.get() if other is not observer))


@dataclass(frozen=True, eq=False)
class _Beams:
    """The state of the search; the first axes of every tensor are ``(batch, beam)``."""

    scores: Tensor  # log-probability of the text so far
    lengths: Tensor
    ended: Tensor
    tokens: Tensor  # (batch, beam, step)
    chances: Tensor  # (batch, beam, step)
    rows: Tensor  # (batch, beam, step), the row of the pass that chose each token

    def ranks(self, length_penalty: float) -> Tensor:
        """The penalised scores by which beams compete, ``(batch, beam)``."""
        return self.scores / self.lengths**length_penalty

    def take(self, parents: Tensor) -> _Beams:
        """The beams at ``parents (batch, beam)``."""
        long = parents[..., None].expand(-1, -1, self.tokens.shape[2])
        return _Beams(
            self.scores.gather(1, parents),
            self.lengths.gather(1, parents),
            self.ended.gather(1, parents),
            self.tokens.gather(1, long),
            self.chances.gather(1, long),
            self.rows.gather(1, long),
        )


def beam_search(
    model: nn.Module,
    decoding: Decoding,
    *,
    beams: int,
    maximum: int,
    end: int | None,
    padding: int,
    forbidden: int | None,
    length_penalty: float,
    choose: Choice | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens, lengths, log-probabilities and score of the best, or the chosen, text of each prompt."""
    observers = _observers.get()
    for observer in observers:
        observer.begin(model)
    best = None
    try:
        found = _searched(decoding, beams, maximum, end, padding, forbidden, length_penalty, choose)
        best = _winner(found, padding, length_penalty, choose)
    finally:
        for observer in observers:
            observer.end(None if best is None else best.rows[:, 0])
    return best.tokens[:, 0], best.lengths[:, 0], best.chances[:, 0], best.ranks(length_penalty)[:, 0]


def _searched(
    decoding: Decoding,
    beams: int,
    maximum: int,
    end: int | None,
    padding: int,
    forbidden: int | None,
    length_penalty: float,
    choose: Choice | None,
) -> _Beams:
    """The beams of each prompt when the search stops."""
    logits = decoding.logits()
    batch = len(logits)
    decoding.split(beams)
    logits = logits.repeat_interleave(beams, 0)
    state = _first(batch, beams, logits)
    for step in range(maximum):
        if step:
            logits = decoding.logits()
        chances = _chances(logits, state, padding, forbidden)
        state, parents, tokens = _grow(state, chances, end, length_penalty)
        if bool(state.ended.all()) if choose else _decided(state, maximum, length_penalty):
            break
        first_rows = torch.arange(batch, device=parents.device)[:, None] * beams
        decoding.reorder((first_rows + parents).flatten())
        decoding.append(tokens.flatten())
    return state


def _first(batch: int, beams: int, like: Tensor) -> _Beams:
    """At first all beams are the same text, so all but one get score −inf."""
    scores = like.new_full((batch, beams), -torch.inf, dtype=torch.float32)
    scores[:, 0] = 0.0
    whole = torch.zeros(batch, beams, dtype=torch.int64, device=like.device)
    empty = like.new_empty((batch, beams, 0), dtype=torch.float32)
    return _Beams(scores, whole, whole.bool(), empty.long(), empty, empty.long())


def _chances(logits: Tensor, state: _Beams, padding: int, forbidden: int | None) -> Tensor:
    """Log-probabilities ``(batch, beam, vocabulary)``; an ended beam can only add padding."""
    logits = logits.float()
    if forbidden is not None:
        logits[:, forbidden] = -torch.inf
    chances = logits.log_softmax(-1).view(*state.scores.shape, -1)
    staying = torch.full_like(chances[0, 0], -torch.inf)
    staying[padding] = 0.0
    return torch.where(state.ended[..., None], staying, chances)


def _grow(
    state: _Beams, chances: Tensor, end: int | None, length_penalty: float
) -> tuple[_Beams, Tensor, Tensor]:
    """The best continuations of all beams, the parent beam of each, and its new token."""
    vocabulary = chances.shape[-1]
    totals = state.scores[..., None] + chances
    lengths = state.lengths + ~state.ended
    ranks = totals / lengths[..., None] ** length_penalty
    best = ranks.flatten(1).topk(state.scores.shape[1]).indices
    parents, tokens = best // vocabulary, best % vocabulary
    before = state.take(parents)
    batch, beams = parents.shape
    first_rows = torch.arange(batch, device=parents.device)[:, None] * beams
    grown = _Beams(
        totals.flatten(1).gather(1, best),
        lengths.gather(1, parents),
        before.ended if end is None else before.ended | (tokens == end),
        torch.cat([before.tokens, tokens[..., None]], 2),
        torch.cat([before.chances, chances.flatten(1).gather(1, best)[..., None]], 2),
        torch.cat([before.rows, (first_rows + parents)[..., None]], 2),
    )
    return grown, parents, tokens


def _decided(state: _Beams, maximum: int, length_penalty: float) -> bool:
    """Whether no unfinished beam can still beat the best ended one, for every prompt.

    A longer text only loses log-probability, and at best gains the maximum length.
    """
    ended = state.ranks(length_penalty).masked_fill(~state.ended, -torch.inf).amax(1)
    hopes = (state.scores / maximum**length_penalty).masked_fill(state.ended, -torch.inf).amax(1)
    return bool((state.ended.any(1) & (ended >= hopes)).all())


def _winner(state: _Beams, padding: int, length_penalty: float, choose: Choice | None) -> _Beams:
    """One beam of each prompt, with padding after its end."""
    ranks = state.ranks(length_penalty)
    place = ranks.argmax(1, keepdim=True) if choose is None else _chosen(state, ranks, choose)
    winner = state.take(place)
    longest = int(winner.lengths.max())
    behind = torch.arange(longest, device=winner.lengths.device) >= winner.lengths[..., None]
    return replace(
        winner,
        tokens=winner.tokens[..., :longest].masked_fill(behind, padding),
        chances=winner.chances[..., :longest].masked_fill(behind, 0.0),
        rows=winner.rows[..., :longest].masked_fill(behind, -1),
    )


def _chosen(state: _Beams, ranks: Tensor, choose: Choice) -> Tensor:
    """The beam that ``choose`` names for each prompt, ``(batch, 1)``."""
    order = ranks.argsort(dim=1, descending=True, stable=True)
    ranked = state.take(order)
    scores, lengths, ended = ranked.scores.tolist(), ranked.lengths.tolist(), ranked.ended.tolist()
    places = []
    for prompt, texts in enumerate(ranked.tokens.tolist()):
        candidates = [
            BeamCandidate(tuple(tokens[:length]), score, done)
            for tokens, length, score, done in zip(
                texts, lengths[prompt], scores[prompt], ended[prompt], strict=True
            )
            if score > -torch.inf  # with a small vocabulary some beams can stay empty
        ]
        places.append(choose(prompt, candidates))
    return order.gather(1, torch.tensor(places, device=order.device)[:, None])
