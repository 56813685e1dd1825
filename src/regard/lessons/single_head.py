"""One head twice: with bare parameters and with linear layers. Given equal weights they are equal.

``x W_q`` and ``nn.Linear`` differ only in the layout of the weight: a linear layer keeps it transposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from regard.kernels import attention, attention_weights
from regard.lessons.facts import Fact, text
from regard.lessons.panels import Cells, draw
from regard.masks import MaskLike, causal


class BareSelfAttention(nn.Module):
    """One head with bare parameters: ``softmax(x W_q (x W_k)ᵀ / √channels) x W_v``.

    Shapes: x ``(batch, length, width)`` → ``(batch, length, channels)``; ``mask`` as for ``attention``.

    >>> BareSelfAttention(8, 4)(torch.randn(2, 5, 8), mask=causal()).shape
    torch.Size([2, 5, 4])
    """

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.w_q, self.w_k, self.w_v = (
            nn.Parameter(torch.randn(width, channels) / sqrt(width)) for _ in range(3)
        )

    def forward(self, x: Tensor, mask: MaskLike | None = None) -> Tensor:
        """Attend from every token to every token that the mask allows."""
        q, k, v = (x @ weight for weight in (self.w_q, self.w_k, self.w_v))
        return attention(q[:, None], k[:, None], v[:, None], mask=mask)[:, 0]

    def weights(self, x: Tensor, mask: MaskLike | None = None) -> Tensor:
        """``(batch, query, key)``."""
        return attention_weights((x @ self.w_q)[:, None], (x @ self.w_k)[:, None], mask=mask)[:, 0]


class LinearSelfAttention(nn.Module):
    """The same head with ``nn.Linear``; :meth:`take` copies the weights of a bare one.

    >>> bare, linear = BareSelfAttention(8, 4), LinearSelfAttention(8, 4)
    >>> linear.take(bare)
    >>> x = torch.randn(2, 5, 8)
    >>> torch.allclose(linear(x), bare(x), atol=1e-6)
    True
    """

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, channels, bias=False) for _ in range(3))

    def forward(self, x: Tensor, mask: MaskLike | None = None) -> Tensor:
        """Attend from every token to every token that the mask allows."""
        q, k, v = (layer(x)[:, None] for layer in (self.query, self.key, self.value))
        return attention(q, k, v, mask=mask)[:, 0]

    def weights(self, x: Tensor, mask: MaskLike | None = None) -> Tensor:
        """``(batch, query, key)``."""
        return attention_weights(self.query(x)[:, None], self.key(x)[:, None], mask=mask)[:, 0]

    @torch.no_grad()
    def take(self, bare: BareSelfAttention) -> None:
        """Copy the weights of a bare head."""
        for layer, weight in ((self.query, bare.w_q), (self.key, bare.w_k), (self.value, bare.w_v)):
            layer.weight.copy_(weight.T)


@dataclass(frozen=True, eq=False)
class SingleHead:
    """Both heads on the same tokens, with and without a mask."""

    before: float  # the largest difference with different weights
    difference: float  # and with equal weights
    masked_difference: float
    bare_weights: Tensor  # (query, key), causal
    linear_weights: Tensor

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        return (
            Fact("single.before", {"difference": self.before}),
            Fact("single.equal", {"difference": self.difference, "masked": self.masked_difference}),
        )


def compare_single(length: int = 6, *, width: int = 12, channels: int = 8, seed: int = 0) -> SingleHead:
    """A bare head and one of linear layers, before and after they have the same weights.

    >>> found = compare_single()
    >>> found.before > 0.01, found.difference < 1e-12, found.masked_difference < 1e-12
    (True, True, True)
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        bare, linear = BareSelfAttention(width, channels), LinearSelfAttention(width, channels)
        x = torch.randn(2, length, width, dtype=torch.float64)
    bare, linear = bare.double(), linear.double()
    with torch.no_grad():
        before = _apart(bare(x), linear(x))
        linear.take(bare)
        return SingleHead(
            before,
            _apart(bare(x), linear(x)),
            _apart(bare(x, causal()), linear(x, causal())),
            bare.weights(x, causal())[0],
            linear.weights(x, causal())[0],
        )


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


def draw_single(found: SingleHead, lang: str = "en") -> Figure:
    """The causal weights of both."""
    sides = (text("axis.query", lang), text("axis.key", lang))
    return draw(
        Cells(text("single.bare", lang), found.bare_weights.numpy(), sides=sides),
        Cells(text("single.linear", lang), found.linear_weights.numpy(), sides=sides),
        title=text("demo.single.claim", lang),
    )
