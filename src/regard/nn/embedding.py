"""Tokens to vectors, and back to logits."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from regard.checks import check_choice, check_integer, check_probability
from regard.nn.dropout import Dropout
from regard.nn.positions import LearnedPositions, Offset, SinusoidalPositions

MODEL_POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", "relative", "none")
"""The options of ``positions=`` of a model; the first two are added to the embeddings."""


class TokenEmbedding(nn.Module):
    """Token ids to vectors with positions: ``dropout(table[token] · √width + position)``.

    With ``norm=True``, as in BERT: ``dropout(LayerNorm(table[token] + position))``.

    Shapes: ``(batch, length)`` → ``(batch, length, width)``.

    >>> import torch
    >>> embed = TokenEmbedding(100, 16, positions="learned", length=32, dropout=0.0)
    >>> embed(torch.tensor([[5, 7]]), offset=3).shape
    torch.Size([1, 2, 16])
    """

    def __init__(
        self,
        vocabulary: int,
        width: int,
        *,
        positions: str = "sinusoidal",
        length: int = 512,
        dropout: float = 0.1,
        norm: bool = False,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        check_choice("positions", positions, MODEL_POSITIONS)
        self.vocabulary = check_integer("vocabulary", vocabulary)
        self.scale = 1.0 if norm else math.sqrt(width)
        self.table = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.table.weight, std=width**-0.5)
        self.positions: SinusoidalPositions | LearnedPositions | None = None
        if positions == "sinusoidal":
            self.positions = SinusoidalPositions(width, length=length)
        elif positions == "learned":
            self.positions = LearnedPositions(width, length=length)
        self.norm = nn.LayerNorm(width, eps=eps) if norm else None
        self.dropout = Dropout(check_probability("dropout", dropout))

    def forward(self, tokens: Tensor, offset: Offset = 0) -> Tensor:
        """The vectors of ``tokens``; the first token is at position ``offset``."""
        x = self.table(tokens) * self.scale
        if self.positions is not None:
            x = self.positions(x, offset)
        if self.norm is not None:
            x = self.norm(x)
        out: Tensor = self.dropout(x)
        return out

    def logits(self, x: Tensor) -> Tensor:
        """The embedding table as output projection: ``(…, width)`` → ``(…, vocabulary)``."""
        return F.linear(x, self.table.weight)
