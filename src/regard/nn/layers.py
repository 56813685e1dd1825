"""One layer of an encoder or decoder: attention and feed-forward, each with a residual and a norm.

post-norm   x = norm(x + sublayer(x))          as in the paper of 2017
pre-norm    x = x + sublayer(norm(x))          trains more easily; the stack ends with a norm

In both, ``dropout`` is applied before the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from regard.checks import check_choice, check_integer, check_probability
from regard.kernels.bias import BiasLike
from regard.masks import MaskLike
from regard.nn.cache import KeyValueCache
from regard.nn.dropout import Dropout
from regard.nn.multi_head import MultiHeadAttention, RelativePositionAttention
from regard.nn.tensor_checks import check_vectors

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
NORMS = ("pre", "post")
OWN_POSITIONS = (None, "rotary", "alibi", "relative")
"""Kinds of positions that act inside self-attention; the others are added to the vectors before the stack."""


class FeedForward(nn.Module):
    """Two linear maps with an activation between them: ``activation(x W_1 + b_1) W_2 + b_2``, per token.

    Shapes: ``(batch, length, width)`` → the same; inside, ``(batch, length, hidden)``.

    >>> import torch
    >>> FeedForward(8, 32, activation="gelu")(torch.randn(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self, width: int, hidden: int, *, activation: str = "relu", dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        self.width = check_integer("width", width)
        self.activation = activation
        self.inner = nn.Linear(width, check_integer("hidden", hidden), bias=bias)
        self.outer = nn.Linear(hidden, width, bias=bias)
        self.dropout = Dropout(check_probability("dropout", dropout))
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Transform every token independently."""
        check_vectors("x", x, self.width)
        out: Tensor = self.outer(self.dropout(ACTIVATIONS[self.activation](self.inner(x))))
        return out

    def extra_repr(self) -> str:
        """The options shown in the module's repr."""
        return f"activation={self.activation!r}"


def _self_attention(width: int, heads: int, positions: str | None, **options: Any) -> MultiHeadAttention:
    check_choice("positions", positions, OWN_POSITIONS)
    if positions == "relative":
        options.pop("length")
        return RelativePositionAttention(width, heads, **options)
    return MultiHeadAttention(width, heads, positions=positions, **options)


def _residual(kind: str, norm: nn.LayerNorm, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """A sublayer with its residual sum and its norm, in pre-norm or post-norm order."""
    if kind == "pre":
        return x + sublayer(norm(x))
    out: Tensor = norm(x + sublayer(x))
    return out


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward. With ``causal=True``, it is the layer of a language model.

    Args:
        width, heads, key_heads, causal, bias: as in :class:`MultiHeadAttention`.
        hidden: channels inside the feed-forward block; four times the width by default.
        dropout: inside the feed-forward block, before each residual sum, and on the attention weights.
        attention_dropout: dropout on the weights, ``dropout`` by default; 0 makes training faster.
        norm: ``"post"`` or ``"pre"``.
        activation: ``"relu"`` or ``"gelu"``.
        positions: None, ``"rotary"``, ``"alibi"`` or ``"relative"``, inside the self-attention.
        length: the longest sequence for rotary positions.
        eps: added to the variance in the norms, to avoid division by 0.

    Shapes: ``(batch, length, width)`` → the same.

    >>> import torch
    >>> from regard import masks
    >>> layer = EncoderLayer(16, 4, norm="pre", positions="rotary")
    >>> layer(torch.randn(2, 7, 16), mask=masks.padding(lengths=[7, 3])).shape
    torch.Size([2, 7, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        hidden: int | None = None,
        key_heads: int | None = None,
        causal: bool = False,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        norm: str = "post",
        activation: str = "relu",
        positions: str | None = None,
        length: int = 4096,
        bias: bool = True,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        check_choice("norm", norm, NORMS)
        self.attention = _self_attention(
            width,
            heads,
            positions,
            key_heads=key_heads,
            causal=causal,
            bias=bias,
            dropout=dropout if attention_dropout is None else attention_dropout,
            residual_dropout=dropout,
            length=length,
        )
        self.feed_forward = FeedForward(
            width, 4 * width if hidden is None else hidden, activation=activation, dropout=dropout, bias=bias
        )
        self.attention_norm = nn.LayerNorm(width, eps=eps, bias=bias)
        self.feed_forward_norm = nn.LayerNorm(width, eps=eps, bias=bias)
        self.dropout = Dropout(dropout)
        self.norm = norm

    def forward(
        self,
        x: Tensor,
        *,
        mask: MaskLike | None = None,
        bias: BiasLike | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """``mask``, ``bias`` and ``cache`` are passed to the self-attention."""
        x = _residual(
            self.norm,
            self.attention_norm,
            x,
            lambda y: self.attention(y, mask=mask, bias=bias, cache=cache),
        )
        return _residual(self.norm, self.feed_forward_norm, x, lambda y: self.dropout(self.feed_forward(y)))


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention to the context, then feed-forward.

    The options are those of :class:`EncoderLayer`; ``causal`` is True by default.

    Shapes: x ``(batch, length, width)``, context ``(batch, key, width)`` → ``(batch, length, width)``.

    >>> import torch
    >>> DecoderLayer(16, 4)(torch.randn(2, 5, 16), torch.randn(2, 9, 16)).shape
    torch.Size([2, 5, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        hidden: int | None = None,
        key_heads: int | None = None,
        causal: bool = True,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        norm: str = "post",
        activation: str = "relu",
        positions: str | None = None,
        length: int = 4096,
        bias: bool = True,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        check_choice("norm", norm, NORMS)
        shared = {
            "key_heads": key_heads,
            "bias": bias,
            "dropout": dropout if attention_dropout is None else attention_dropout,
            "residual_dropout": dropout,
        }
        self.attention = _self_attention(width, heads, positions, causal=causal, length=length, **shared)
        self.cross = _self_attention(width, heads, None, length=length, **shared)
        self.feed_forward = FeedForward(
            width, 4 * width if hidden is None else hidden, activation=activation, dropout=dropout, bias=bias
        )
        self.attention_norm = nn.LayerNorm(width, eps=eps, bias=bias)
        self.cross_norm = nn.LayerNorm(width, eps=eps, bias=bias)
        self.feed_forward_norm = nn.LayerNorm(width, eps=eps, bias=bias)
        self.dropout = Dropout(dropout)
        self.norm = norm

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        *,
        mask: MaskLike | None = None,
        context_mask: MaskLike | None = None,
        bias: BiasLike | None = None,
        cache: KeyValueCache | None = None,
        context_cache: KeyValueCache | None = None,
    ) -> Tensor:
        """``mask``, ``bias`` and ``cache`` are for self-attention, ``context_…`` for cross-attention."""
        x = _residual(
            self.norm,
            self.attention_norm,
            x,
            lambda y: self.attention(y, mask=mask, bias=bias, cache=cache),
        )
        x = _residual(
            self.norm,
            self.cross_norm,
            x,
            lambda y: self.cross(y, context, mask=context_mask, cache=context_cache),
        )
        return _residual(self.norm, self.feed_forward_norm, x, lambda y: self.dropout(self.feed_forward(y)))
