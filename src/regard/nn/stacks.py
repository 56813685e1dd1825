"""Stacks of layers: ``Encoder``, ``Decoder``, and both as a ``Transformer`` on vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard import masks
from regard.checks import check_integer
from regard.errors import ArgumentError
from regard.kernels.bias import BiasLike
from regard.masks import MaskLike
from regard.nn.cache import Cache, check_layers
from regard.nn.layers import DecoderLayer, EncoderLayer


class Encoder(nn.Module):
    """Encoder layers, with a final norm if they are pre-norm.

    The output of pre-norm layers is an unnormalised sum, hence the final norm; post-norm layers need
    none. ``norm=True`` or ``norm=False`` overrides this.

    Shapes: ``(batch, length, width)`` → the same.

    >>> encoder = Encoder([EncoderLayer(16, 4, norm="pre") for _ in range(2)])
    >>> encoder(torch.randn(2, 7, 16)).shape
    torch.Size([2, 7, 16])
    """

    def __init__(self, layers: Sequence[EncoderLayer], *, norm: bool | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = _last_norm(layers, norm)

    def forward(
        self,
        x: Tensor,
        *,
        mask: MaskLike | None = None,
        bias: BiasLike | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """``mask`` and ``bias`` are passed to every layer; ``cache`` has an entry for each."""
        check_layers(cache, len(self.layers))
        mask = _once(mask)
        for index, layer in enumerate(self.layers):
            x = layer(x, mask=mask, bias=bias, cache=None if cache is None else cache.own[index])
        return x if self.norm is None else self.norm(x)

    def new_cache(self) -> Cache:
        """An empty cache for one batch of texts."""
        return Cache(len(self.layers))


class Decoder(nn.Module):
    """Decoder layers, with a final norm as in :class:`Encoder`.

    Shapes: x ``(batch, length, width)``, context ``(batch, key, width)`` → ``(batch, length, width)``.

    >>> decoder = Decoder([DecoderLayer(16, 4) for _ in range(2)])
    >>> x, context = torch.randn(2, 5, 16), torch.randn(2, 9, 16)
    >>> whole = decoder.eval()(x, context)
    >>> cache = decoder.new_cache()
    >>> steps = [decoder(x[:, i : i + 1], context, cache=cache) for i in range(5)]
    >>> torch.allclose(torch.cat(steps, 1), whole, atol=1e-5)
    True
    """

    def __init__(self, layers: Sequence[DecoderLayer], *, norm: bool | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = _last_norm(layers, norm)

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        *,
        mask: MaskLike | None = None,
        context_mask: MaskLike | None = None,
        bias: BiasLike | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """``context_mask`` says which tokens of the context may be seen; the rest is for self-attention."""
        check_layers(cache, len(self.layers))
        mask, context_mask = _once(mask), _once(context_mask)
        for index, layer in enumerate(self.layers):
            x = layer(
                x,
                context,
                mask=mask,
                context_mask=context_mask,
                bias=bias,
                cache=None if cache is None else cache.own[index],
                context_cache=None if cache is None else cache.context[index],
            )
        return x if self.norm is None else self.norm(x)

    def new_cache(self) -> Cache:
        """An empty cache for one batch of texts."""
        return Cache(len(self.layers))


class Transformer(nn.Module):
    """Encoder and decoder on vectors, like ``torch.nn.Transformer``.

    ``options`` are those of :class:`EncoderLayer` and :class:`DecoderLayer`: hidden, key_heads,
    dropout, attention_dropout, norm, activation, positions, length, bias, eps. The decoder is
    causal. For tokens instead of vectors see ``Seq2Seq``.

    Shapes: source ``(batch, key, width)``, target ``(batch, length, width)`` → ``(batch, length, width)``.

    >>> model = Transformer(16, 4, encoder_layers=1, decoder_layers=2, hidden=32)
    >>> source, target = torch.randn(2, 9, 16), torch.randn(2, 5, 16)
    >>> keep = torch.arange(9) < torch.tensor([[9], [6]])
    >>> model(source, target, source_keep=keep).shape
    torch.Size([2, 5, 16])
    """

    def __init__(
        self,
        width: int = 512,
        heads: int = 8,
        *,
        encoder_layers: int = 6,
        decoder_layers: int = 6,
        **options: Any,
    ) -> None:
        super().__init__()
        check_integer("encoder_layers", encoder_layers, least=0)
        check_integer("decoder_layers", decoder_layers, least=0)
        self.encoder = Encoder([EncoderLayer(width, heads, **options) for _ in range(encoder_layers)])
        self.decoder = Decoder([DecoderLayer(width, heads, **options) for _ in range(decoder_layers)])

    @classmethod
    def of(cls, encoder: Encoder, decoder: Decoder) -> Transformer:
        """A transformer from existing stacks."""
        model = cls(1, 1, encoder_layers=0, decoder_layers=0)
        model.encoder, model.decoder = encoder, decoder
        return model

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_keep: Tensor | None = None,
        target_keep: Tensor | None = None,
        source_mask: MaskLike | None = None,
        target_mask: MaskLike | None = None,
        context_mask: MaskLike | None = None,
    ) -> Tensor:
        """The output of the decoder for every token of the target.

        ``source_keep`` and ``target_keep`` are bool ``(batch, length)``, False at padding; they apply
        to every attention over that sequence. The masks can hide further tokens.
        """
        real, real_target = _padding(source_keep), _padding(target_keep)
        context = self.encoder(source, mask=_and(real, source_mask))
        out: Tensor = self.decoder(
            target, context, mask=_and(real_target, target_mask), context_mask=_and(real, context_mask)
        )
        return out


def _last_norm(layers: Sequence[EncoderLayer | DecoderLayer], norm: bool | None) -> nn.LayerNorm | None:
    if not layers:
        return None
    first = layers[0]
    if any(layer.norm != first.norm or layer.attention.width != first.attention.width for layer in layers):
        raise ArgumentError(
            "All layers of a stack must have the same width and the same kind of norm.",
            got="{layers}",
            do="Build them with the same options.",
            layers=", ".join(f"{layer.attention.width} ({layer.norm})" for layer in layers),
        )
    if norm or (norm is None and first.norm == "pre"):
        own = first.attention_norm
        return nn.LayerNorm(own.normalized_shape, eps=own.eps, bias=own.bias is not None)
    return None


def _once(mask: MaskLike | None) -> MaskLike | None:
    """A bool tensor as a mask, so that it is read and hashed once and not in every layer."""
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        return masks.dense(mask)
    return mask


def _and(keep: masks.Mask | None, mask: MaskLike | None) -> MaskLike | None:
    """The padding mask combined with the user's mask."""
    if keep is None or mask is None:
        return keep if mask is None else mask
    if isinstance(mask, Tensor) and mask.is_floating_point():
        raise ArgumentError(
            "Together with padding, a mask must be a regard mask or a bool tensor.",
            got="an additive mask of {dtype}",
            do="Write −inf at the padding yourself, or pass a bool tensor.",
            dtype=mask.dtype,
        )
    return keep & masks.as_mask(mask)


def _padding(keep: Tensor | None) -> masks.Mask | None:
    return None if keep is None else masks.padding(keep)
