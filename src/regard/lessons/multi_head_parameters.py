"""Multi-head attention with bare parameters, beside PyTorch's own module with the same weights.

PyTorch keeps W_q, W_k and W_v in one matrix, one below the other. Its weights are averaged over the heads
unless ``average_attn_weights=False`` is passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from regard.errors import ArgumentError
from regard.kernels import attention, attention_weights
from regard.lessons.facts import Fact, text
from regard.masks import MaskLike
from regard.views.figures import grid


class BareMultiHead(nn.Module):
    """Multi-head self-attention with bare parameters, each step visible.

    Shapes: x ``(batch, length, width)`` → the same.

    >>> BareMultiHead(16, 4)(torch.randn(2, 5, 16)).shape
    torch.Size([2, 5, 16])
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ArgumentError(
                "heads must divide width.",
                got="width = {width}, heads = {heads}",
                do="Try 512 and 8.",
                width=width,
                heads=heads,
            )
        self.heads = heads
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Parameter(torch.randn(width, width) / sqrt(width)) for _ in range(4)
        )
        self.b_q, self.b_k, self.b_v, self.b_o = (nn.Parameter(torch.zeros(width)) for _ in range(4))

    def forward(self, x: Tensor, mask: MaskLike | None = None) -> Tensor:
        """Project, split, attend, join, project."""
        q, k, v = self._split(x)
        heads = attention(q, k, v, mask=mask)  # (batch, head, length, channel)
        joined = heads.transpose(1, 2).flatten(2)  # (batch, length, width)
        return joined @ self.w_o + self.b_o

    def weights(self, x: Tensor, mask: MaskLike | None = None) -> Tensor:
        """``(batch, head, query, key)``."""
        q, k, _ = self._split(x)
        return attention_weights(q, k, mask=mask)

    def shapes(self, x: Tensor) -> dict[str, tuple[int, ...]]:
        """The shape of every step, in order."""
        q, k, v = self._split(x)
        heads = attention(q, k, v)
        steps = {
            "x": x,
            "x W_q": x @ self.w_q,
            "q": q,
            "k": k,
            "v": v,
            "q kᵀ": self.weights(x),
            "softmax": self.weights(x),
            "w v": heads,
            "joined": heads.transpose(1, 2).flatten(2),
            "output": self(x),
        }
        return {name: tuple(step.shape) for name, step in steps.items()}

    @torch.no_grad()
    def take(self, other: nn.MultiheadAttention) -> None:
        """Copy the weights of PyTorch's module, which keeps them transposed and in one piece."""
        for own, rows in zip((self.w_q, self.w_k, self.w_v), other.in_proj_weight.chunk(3)):
            own.copy_(rows.T)
        for own, part in zip((self.b_q, self.b_k, self.b_v), other.in_proj_bias.chunk(3)):
            own.copy_(part)
        self.w_o.copy_(other.out_proj.weight.T)
        self.b_o.copy_(other.out_proj.bias)

    def _split(self, x: Tensor) -> tuple[Tensor, ...]:
        pairs = ((self.w_q, self.b_q), (self.w_k, self.b_k), (self.w_v, self.b_v))
        return tuple((x @ w + b).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w, b in pairs)


@dataclass(frozen=True, eq=False)
class MultiHeadComparison:
    """The bare module and PyTorch's on the same tokens."""

    shapes: dict[str, tuple[int, ...]]
    output_difference: float
    weights_difference: float
    average_shape: tuple[int, ...]  # what PyTorch returns
    heads_shape: tuple[int, ...]  # and what it returns when asked for every head
    weights: Tensor  # (head, query, key)

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        return (
            *(
                Fact("multihead.shape", {"step": step, "shape": " × ".join(map(str, shape))})
                for step, shape in self.shapes.items()
            ),
            Fact(
                "multihead.equal",
                {"output": self.output_difference, "weights": self.weights_difference},
            ),
            Fact("multihead.average", {"average": self.average_shape, "heads": self.heads_shape}),
        )


def compare_multiple(
    length: int = 10, *, batch: int = 2, width: int = 512, heads: int = 8, seed: int = 0
) -> MultiHeadComparison:
    """Both modules with PyTorch's weights, in float64.

    >>> found = compare_multiple()
    >>> found.output_difference < 1e-12, found.average_shape, found.heads_shape
    (True, (2, 10, 10), (2, 8, 10, 10))
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        bare = BareMultiHead(width, heads).double()
        theirs = nn.MultiheadAttention(width, heads, batch_first=True).double()
        nn.init.normal_(theirs.in_proj_bias)
        x = torch.randn(batch, length, width, dtype=torch.float64)
    bare.take(theirs)
    with torch.no_grad():
        output, average = theirs(x, x, x)
        _, each = theirs(x, x, x, average_attn_weights=False)
        weights = bare.weights(x)
        return MultiHeadComparison(
            bare.shapes(x),
            float((bare(x) - output).abs().max()),
            float((weights - each).abs().max()),
            tuple(average.shape),
            tuple(each.shape),
            weights[0],
        )


def draw_multiple(found: MultiHeadComparison, lang: str = "en") -> Figure:
    """A heat map for every head."""
    return grid(found.weights, title=text("demo.multihead.claim", lang), lang=lang)
