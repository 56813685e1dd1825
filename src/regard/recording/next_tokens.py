"""The likeliest next tokens at each position of a text, and how likely the model found the text itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.checks import is_index
from regard.errors import ArgumentError, ShapeError

Names = Callable[[Sequence[int]], list[str]]
"""Turns token ids into tokens."""

BEST = 5
"""How many next tokens are kept for each position."""

CHUNK = 1 << 24
"""Logits computed at a time, 64 MB of them."""

WHOLE = 1 << 26
"""Logits that a model may be asked for in one piece, where its own head cannot be used in chunks."""


@dataclass(frozen=True, eq=False)
class NextTokens:
    """For each position p of a text: the likeliest tokens after it, with their probabilities.

    Args:
        words: every token that is among the likeliest anywhere, once.
        best: ``(position, rank)``, int64, places in ``words``, the likeliest first.
        probabilities: ``(position, rank)``.
        own: ``(position − 1)``, the probability of token p + 1 of the text after position p.
        generated: the position of the first token that the model wrote itself; None if it read them all.

    >>> best = torch.tensor([[0, 1], [1, 0]])
    >>> shares = torch.tensor([[0.75, 0.25], [0.5, 0.25]])
    >>> found = NextTokens(("cat", "dog"), best, shares, torch.tensor([0.25]))
    >>> found.at(0), found.probability(1), found.probability(0)
    ([('cat', 0.75), ('dog', 0.25)], 0.25, None)
    """

    words: tuple[str, ...]
    best: Tensor
    probabilities: Tensor
    own: Tensor
    generated: int | None = None

    def __post_init__(self) -> None:
        """Check that everything fits together."""
        positions = self.best.shape[0] if self.best.ndim == 2 else 0
        fits = (
            self.best.ndim == 2
            and positions > 0
            and not self.best.dtype.is_floating_point
            and self.probabilities.shape == self.best.shape
            and self.own.shape == (positions - 1,)
        )
        if not fits:
            raise ShapeError(
                "best and probabilities must have shape (position, rank), and own one entry fewer.",
                got="best {best}, probabilities {probabilities}, own {own}",
                do="Pass what load_reader(...).read(text, next_tokens=True) recorded.",
                best=tuple(self.best.shape),
                probabilities=tuple(self.probabilities.shape),
                own=tuple(self.own.shape),
            )
        numbers = torch.cat([self.probabilities.flatten(), self.own]).double()
        known = bool(((self.best >= 0) & (self.best < len(self.words))).all())
        # Sums of rounded exponentials may be a little above 1.
        if not known or not bool(((numbers >= 0) & (numbers <= 1 + 1e-4)).all()):
            raise ArgumentError(
                "Next tokens must name their words, with probabilities between 0 and 1.",
                got="best up to {best}, {words} words, probabilities {least:.3g} … {most:.3g}",
                do="Record them again.",
                best=int(self.best.max()),
                words=len(self.words),
                least=float(numbers.min()),
                most=float(numbers.max()),
            )
        if self.generated is not None and not is_index(self.generated, positions + 1):
            raise ArgumentError(
                "The first generated token must have a position in the text (0 … {last}).",
                got="generated = {generated!r}",
                do="Pass the number of tokens that the model was given.",
                last=positions,
                generated=self.generated,
            )

    def __len__(self) -> int:
        return int(self.best.shape[0])

    def at(self, position: int) -> list[tuple[str, float]]:
        """The likeliest tokens after a position, with their probabilities."""
        self._check(position)
        places, shares = self.best[position].tolist(), self.probabilities[position].tolist()
        return [(self.words[place], share) for place, share in zip(places, shares)]

    def probability(self, position: int) -> float | None:
        """How likely the token at a position was after those before it; None for the first."""
        self._check(position)
        return None if position == 0 else float(self.own[position - 1])

    def _check(self, position: int) -> None:
        if not is_index(position, len(self)):
            raise ArgumentError(
                "position must be one of the text's (0 … {last}).",
                got="position = {position!r}",
                do="Count from 0.",
                last=len(self) - 1,
                position=position,
            )


@dataclass(eq=False)
class LastStates:
    """What a model computed just before its logits, and its logits of the last position."""

    states: list[Tensor] = field(default_factory=list)  # (batch, position, channel) of each run
    logits: Tensor | None = None  # (vocabulary)

    def joined(self) -> Tensor | None:
        """All positions of the one sequence, ``(position, channel)``; None if there were several."""
        if not self.states or any(state.ndim != 3 or state.shape[0] != 1 for state in self.states):
            return None
        return torch.cat(self.states, 1)[0]


@contextmanager
def last_states(model: Any) -> Iterator[LastStates]:
    """Keep the last hidden states of a transformers model while it runs."""
    kept = LastStates()

    def keep_states(_module: object, _args: object, output: Any) -> None:
        kept.states.append(output[0].detach())

    def keep_logits(_module: object, _args: object, output: Any) -> None:
        kept.logits = output.logits[0, -1].detach()

    hooks = [
        model.base_model.register_forward_hook(keep_states),
        model.register_forward_hook(keep_logits),
    ]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()


def next_tokens_from_states(
    model: Any,
    kept: LastStates,
    ids: Tensor,
    name: Names,
    generated: int | None,
) -> NextTokens | None:
    """The next tokens at every position that a model read, its logits computed in chunks.

    Some models change their logits after the last layer (a cap, a scale). Where the chunks would differ from
    what the model itself said, the model is asked for all logits, or for none if there are too many: None.
    """
    states, head = kept.joined(), model.get_output_embeddings()
    if states is None or kept.logits is None:
        return None
    ids = ids[: states.shape[0]]
    if head is not None and torch.allclose(head(states[-1:])[0], kept.logits, rtol=1e-3, atol=1e-3):
        step = max(1, CHUNK // kept.logits.numel())
        chunks = (head(part) for part in states.split(step))
        return next_tokens_of(chunks, ids, name, generated)
    if ids.numel() * kept.logits.numel() > WHOLE:
        return None
    return next_tokens_of([model(input_ids=ids[None]).logits[0]], ids, name, generated)


def next_tokens_of(logits: Any, ids: Tensor, name: Names, generated: int | None = None) -> NextTokens:
    """The next tokens from logits ``(position, vocabulary)`` in chunks, of the text ``ids (position)``.

    >>> chunks = [torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 2.0]])]
    >>> found = next_tokens_of(chunks, torch.tensor([1, 0]), lambda ids: [f"t{one}" for one in ids])
    >>> [token for token, _ in found.at(1)][0], round(found.probability(1), 3)
    ('t2', 0.787)
    """
    best, shares, own = [], [], []
    start = 0
    for chunk in logits:
        likely = chunk.float().softmax(-1)  # (position, vocabulary)
        top = likely.topk(min(BEST, likely.shape[-1]), -1)
        best.append(top.indices)
        shares.append(top.values)
        following = ids[start + 1 : start + 1 + chunk.shape[0]]
        own.append(likely[torch.arange(len(following)), following])
        start += chunk.shape[0]
    places = torch.cat(best).cpu()
    known, where = places.unique(return_inverse=True)
    return NextTokens(
        tuple(name(known.tolist())),
        where.view_as(places),
        torch.cat(shares).cpu().clamp(0, 1),
        torch.cat(own).cpu().clamp(0, 1),
        generated,
    )
