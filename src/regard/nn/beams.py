"""Beam search: several texts per prompt side by side, the best of them in the end.

A beam that has ended stays where it is and competes with the others by its penalised score
``log p / length ** length_penalty``. The search stops when no beam that goes on can still win.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.nn.decoding import Decoding


@dataclass(frozen=True, eq=False)
class _Beams:
    """The state of the search; every tensor begins with ``(batch, beam)``."""

    scores: Tensor  # log-probability of the text so far
    lengths: Tensor
    ended: Tensor
    tokens: Tensor  # (batch, beam, step)
    chances: Tensor  # (batch, beam, step)

    def take(self, parents: Tensor) -> _Beams:
        """The beams at ``parents (batch, beam)``."""
        long = parents[..., None].expand(-1, -1, self.tokens.shape[2])
        return _Beams(
            self.scores.gather(1, parents),
            self.lengths.gather(1, parents),
            self.ended.gather(1, parents),
            self.tokens.gather(1, long),
            self.chances.gather(1, long),
        )


def beam_search(
    decoding: Decoding,
    *,
    beams: int,
    maximum: int,
    end: int | None,
    padding: int,
    forbidden: int | None,
    length_penalty: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens, lengths, log-probabilities and score of the best text of each prompt."""
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
        if _decided(state, maximum, length_penalty):
            break
        first_rows = torch.arange(batch, device=parents.device)[:, None] * beams
        decoding.reorder((first_rows + parents).flatten())
        decoding.append(tokens.flatten())
    return _best(state, padding, length_penalty)


def _first(batch: int, beams: int, like: Tensor) -> _Beams:
    """All beams are the same text yet, so that all but one are out of the race."""
    scores = like.new_full((batch, beams), -torch.inf, dtype=torch.float32)
    scores[:, 0] = 0.0
    whole = torch.zeros(batch, beams, dtype=torch.int64, device=like.device)
    empty = like.new_empty((batch, beams, 0), dtype=torch.float32)
    return _Beams(scores, whole, whole.bool(), empty.long(), empty)


def _chances(logits: Tensor, state: _Beams, padding: int, forbidden: int | None) -> Tensor:
    """Log-probabilities ``(batch, beam, vocabulary)``; an ended beam can only stay."""
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
    """The best continuations of all beams, the beam that each came from, and its new token."""
    vocabulary = chances.shape[-1]
    totals = state.scores[..., None] + chances
    lengths = state.lengths + ~state.ended
    ranks = totals / lengths[..., None] ** length_penalty
    best = ranks.flatten(1).topk(state.scores.shape[1]).indices
    parents, tokens = best // vocabulary, best % vocabulary
    before = state.take(parents)
    grown = _Beams(
        totals.flatten(1).gather(1, best),
        lengths.gather(1, parents),
        before.ended if end is None else before.ended | (tokens == end),
        torch.cat([before.tokens, tokens[..., None]], 2),
        torch.cat([before.chances, chances.flatten(1).gather(1, best)[..., None]], 2),
    )
    return grown, parents, tokens


def _decided(state: _Beams, maximum: int, length_penalty: float) -> bool:
    """Whether the best ended beam of every prompt can no longer be reached.

    A text that goes on only loses log-probability, and at most gains the greatest length.
    """
    ranks = state.scores / state.lengths**length_penalty
    ended = ranks.masked_fill(~state.ended, -torch.inf).amax(1)
    hopes = (state.scores / maximum**length_penalty).masked_fill(state.ended, -torch.inf).amax(1)
    return bool((state.ended.any(1) & (ended >= hopes)).all())


def _best(state: _Beams, padding: int, length_penalty: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    ranks = state.scores / state.lengths**length_penalty
    winner = state.take(ranks.argmax(1, keepdim=True))
    lengths = winner.lengths[:, 0]
    longest = int(lengths.max())
    behind = torch.arange(longest, device=lengths.device) >= lengths[:, None]
    tokens = winner.tokens[:, 0, :longest].masked_fill(behind, padding)
    chances = winner.chances[:, 0, :longest].masked_fill(behind, 0.0)
    return tokens, lengths, chances, ranks.amax(1)
