"""Choosing the next token: the most probable one, or a random sample."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.checks import check_positive
from regard.errors import ArgumentError


@dataclass(frozen=True)
class TokenSampler:
    """Chooses tokens from logits; without a temperature, the most probable ones.

    >>> TokenSampler.of(None, None, None).sample(torch.tensor([[0.0, 2.0, 1.0]]))
    tensor([1])
    >>> TokenSampler.of(1.0, 0.5, None).sample(torch.tensor([[0.0, 9.0, 1.0]]))  # one token has the 0.5 alone
    tensor([1])
    """

    temperature: float | None
    top_p: float | None
    generator: torch.Generator | None

    @classmethod
    def of(
        cls, temperature: float | None, top_p: float | None, generator: torch.Generator | None
    ) -> TokenSampler:
        """A sampler from checked options; ``top_p`` alone means a temperature of 1."""
        if temperature is not None:
            temperature = check_positive("temperature", temperature, example=0.7)
        if top_p is not None and not 0 < top_p <= 1:
            raise ArgumentError(
                "top_p must be a probability above 0, at most 1.",
                got="top_p = {top_p}",
                do="Try {example}.",
                example=0.9,
                top_p=top_p,
            )
        if top_p is not None and temperature is None:
            temperature = 1.0
        return cls(temperature, top_p, generator)

    def sample(self, logits: Tensor) -> Tensor:
        """One token ``(row,)`` from logits ``(row, vocabulary)``."""
        if self.temperature is None:
            return logits.argmax(-1)
        chances = (logits / self.temperature).softmax(-1)
        if self.top_p is not None:
            chances = nucleus(chances, self.top_p)
        return torch.multinomial(chances, 1, generator=self.generator)[:, 0]


def nucleus(chances: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of most probable tokens whose probabilities sum to ``top_p``; 0 for all others.

    >>> nucleus(torch.tensor([[0.5, 0.1, 0.4]]), 0.8)
    tensor([[0.5000, 0.0000, 0.4000]])
    """
    ordered, order = chances.sort(-1, descending=True)
    # A token is kept if those before it do not reach top_p, so the first one always is.
    before = ordered.cumsum(-1) - ordered
    return torch.zeros_like(chances).scatter(-1, order, ordered.masked_fill(before >= top_p, 0.0))
