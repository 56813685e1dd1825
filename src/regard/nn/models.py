"""Models on tokens: ``Seq2Seq`` (encoder-decoder) and ``LanguageModel`` (decoder only)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard import masks
from regard.checks import check_choice, check_integer
from regard.errors import ArgumentError, ShapeError
from regard.nn.cache import Cache
from regard.nn.embedding import MODEL_POSITIONS, TokenEmbedding
from regard.nn.layers import DecoderLayer, EncoderLayer
from regard.nn.positions import Offset
from regard.nn.stacks import Decoder, Encoder
from regard.nn.tensor_checks import check_in_vocabulary, check_keep, check_tokens

ENCODER_OPTIONS = (
    "width", "heads", "hidden", "norm", "activation", "positions", "dropout", "eps", "embedding_norm",
)  # fmt: skip
"""In which options the source side of a ``Seq2Seq`` can differ."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoded source: vectors ``(batch, key, width)``, and which of them are not padding.

    >>> import torch
    >>> model = Seq2Seq(20, 20, width=8, heads=2, encoder_layers=1, decoder_layers=1).eval()
    >>> model.encode(torch.tensor([[5, 6, 0]])).keep  # 0 is padding
    tensor([[ True,  True, False]])
    """

    context: Tensor
    mask: masks.Mask | None
    keep: Tensor  # (batch, key)

    def select(self, rows: Tensor) -> Encoded:
        """These batch elements, in this order."""
        keep = self.keep.index_select(0, rows)
        return Encoded(self.context.index_select(0, rows), _padding(keep), keep)


class Seq2Seq(nn.Module):
    """Source tokens in, logits of target tokens out: embeddings, encoder, decoder, projection.

    Args:
        source_vocabulary, target_vocabulary: the number of tokens on each side.
        width, heads, hidden, key_heads, norm, activation, bias: as in :class:`EncoderLayer`.
        dropout, attention_dropout: as there; ``dropout`` also applies to the embeddings.
        encoder_layers, decoder_layers: the number of layers.
        positions: ``"sinusoidal"``, ``"learned"``, ``"rotary"``, ``"alibi"``, ``"relative"`` or ``"none"``.
        length: the longest sequence on either side.
        padding: the id of the padding token, which is never seen.
        tied: whether the target's embedding is also the output projection.
        shared: whether source and target share one embedding; their vocabularies must be equal.
        encoder: options in which the source side differs from the target side, such as those of a trained
            encoder: width, heads, hidden, norm, activation, positions, dropout, eps, and ``embedding_norm``
            for embeddings as in BERT. Vectors of another width are projected to that of the decoder.

    Shapes: source ``(batch, key)``, target ``(batch, length)`` → logits ``(batch, length, target
    vocabulary)``. Sources may be padded anywhere, targets at the end.

    >>> model = Seq2Seq(100, 120, width=16, heads=4, hidden=32, encoder_layers=1, decoder_layers=1)
    >>> source = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])  # 0 is padding
    >>> model(source, torch.tensor([[1, 5, 6], [1, 7, 0]])).shape
    torch.Size([2, 3, 120])
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        *,
        width: int = 256,
        heads: int = 4,
        encoder_layers: int = 3,
        decoder_layers: int = 3,
        hidden: int | None = None,
        key_heads: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        norm: str = "pre",
        activation: str = "relu",
        positions: str = "sinusoidal",
        length: int = 512,
        padding: int = 0,
        tied: bool = True,
        shared: bool = False,
        bias: bool = True,
        encoder: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.padding, self.length = padding, check_integer("length", length)
        _check_encoder(encoder or {}, shared)
        if shared and source_vocabulary != target_vocabulary:
            raise ArgumentError(
                "A shared embedding needs vocabularies of one size (source = {source_vocabulary}).",
                got="target = {target_vocabulary}",
                do="Use one tokenizer for both sides, or shared=False.",
                source_vocabulary=source_vocabulary,
                target_vocabulary=target_vocabulary,
            )
        options: dict[str, Any] = {
            "width": width,
            "heads": heads,
            "hidden": hidden,
            "key_heads": key_heads,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "norm": norm,
            "activation": activation,
            "bias": bias,
            "positions": positions,
            "length": length,
        }
        differing = dict(encoder or {})
        embedding_norm = differing.pop("embedding_norm", False)
        source_options = {**options, **differing}
        layers = _layer_options(**source_options)
        self.encoder = Encoder([EncoderLayer(**layers) for _ in range(encoder_layers)])
        layers = _layer_options(**options)
        self.decoder = Decoder([DecoderLayer(**layers) for _ in range(decoder_layers)])
        self.target = TokenEmbedding(target_vocabulary, **_embedding_options(options))
        # A shared embedding is registered once, so that a file of weights holds every tensor once.
        self.own_source = (
            None
            if shared
            else TokenEmbedding(source_vocabulary, **_embedding_options(source_options), norm=embedding_norm)
        )
        own_width = source_options["width"]
        self.context_projection = None if own_width == width else ContextProjection(own_width, width)
        self.output = None if tied else nn.Linear(width, target_vocabulary)

    @property
    def source(self) -> TokenEmbedding:
        """The embedding of source tokens."""
        return self.target if self.own_source is None else self.own_source

    @property
    def vocabulary(self) -> int:
        """The number of target tokens."""
        return self.target.vocabulary

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """The logits of the token after each target token."""
        return self.decode(target, self.encode(source))

    def encode(self, source: Tensor) -> Encoded:
        """Encode the source once, for any number of targets."""
        _check_text("source", source, self.source.vocabulary, self.length)
        keep = source != self.padding
        mask = _padding(keep)
        context = self.encoder(self.source(source), mask=mask)
        if self.context_projection is not None:
            context = self.context_projection(context)
        return Encoded(context, mask, keep)

    def decode(self, target: Tensor, encoded: Encoded, *, cache: Cache | None = None) -> Tensor:
        """The logits for ``target``; with a cache, ``target`` is what follows the tokens in it."""
        offset = 0 if cache is None else cache.length
        _check_text("target", target, self.target.vocabulary, self.length, offset)
        # Padding comes after the real tokens, where causal attention does not look.
        x = self.decoder(self.target(target, offset), encoded.context, context_mask=encoded.mask, cache=cache)
        return self.logits(x)

    def logits(self, x: Tensor) -> Tensor:
        """``(…, width)`` → ``(…, target vocabulary)``."""
        out: Tensor = self.target.logits(x) if self.output is None else self.output(x)
        return out

    def new_cache(self) -> Cache:
        """An empty cache for one batch of targets."""
        return self.decoder.new_cache()


class ContextProjection(nn.Module):
    """From the encoder's width to the decoder's: a linear map and a norm.

    Shapes: ``(batch, key, from)`` → ``(batch, key, to)``.
    """

    def __init__(self, width: int, to: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, to)
        self.norm = nn.LayerNorm(to)

    def forward(self, context: Tensor) -> Tensor:
        """The context in the width of the decoder."""
        out: Tensor = self.norm(self.linear(context))
        return out


class LanguageModel(nn.Module):
    """Tokens in, logits of the next tokens out: embedding, causal layers, projection.

    The options are those of :class:`Seq2Seq`. If ``padding`` is None, every token counts unless
    ``keep`` says otherwise. Texts may be padded on either side; positions count only real tokens.

    Shapes: ``(batch, length)`` → logits ``(batch, length, vocabulary)``.

    >>> model = LanguageModel(100, width=16, heads=4, layers=2).eval()
    >>> right, left = torch.tensor([[5, 6, 7, 0, 0]]), torch.tensor([[0, 0, 5, 6, 7]])
    >>> torch.allclose(model(right)[:, :3], model(left)[:, 2:], atol=1e-5)
    True
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        width: int = 256,
        heads: int = 4,
        layers: int = 3,
        hidden: int | None = None,
        key_heads: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        norm: str = "pre",
        activation: str = "gelu",
        positions: str = "sinusoidal",
        length: int = 512,
        padding: int | None = 0,
        tied: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.padding, self.length = padding, check_integer("length", length)
        options = _layer_options(
            hidden=hidden,
            key_heads=key_heads,
            dropout=dropout,
            attention_dropout=attention_dropout,
            norm=norm,
            activation=activation,
            bias=bias,
            positions=positions,
            length=length,
        )
        self.decoder = Encoder([EncoderLayer(width, heads, causal=True, **options) for _ in range(layers)])
        self.embedding = TokenEmbedding(
            vocabulary, width, positions=positions, length=length, dropout=dropout
        )
        self.output = None if tied else nn.Linear(width, vocabulary)

    @property
    def vocabulary(self) -> int:
        """The number of tokens."""
        return self.embedding.vocabulary

    def forward(self, tokens: Tensor, *, keep: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """The logits of the token after each of ``tokens``.

        ``keep`` is a bool tensor of the shape of ``tokens``, False at padding; without it, all tokens
        except ``padding`` count. A cache remembers it for the tokens that it holds.
        """
        past = 0 if cache is None else cache.length
        _check_text("tokens", tokens, self.vocabulary, self.length, past)
        keep = self._keep(tokens, keep, cache)
        mask = _padding(keep)
        offset: Offset = past if mask is None else (keep.cumsum(1) - 1).clamp(min=0)[:, past:]
        x = self.decoder(self.embedding(tokens, offset), mask=mask, cache=cache)
        if cache is not None:
            cache.keep = keep
        out: Tensor = self.embedding.logits(x) if self.output is None else self.output(x)
        return out

    def _keep(self, tokens: Tensor, keep: Tensor | None, cache: Cache | None) -> Tensor:
        """Which tokens are real, those in the cache first."""
        keep = self.real(tokens) if keep is None else keep
        check_keep(keep, tokens)
        if cache is None or cache.keep is None:
            return keep
        if len(cache.keep) != len(keep):
            raise ShapeError(
                "A cache must continue with the batch that it was filled with (batch = {batch}).",
                got="batch = {new_batch}",
                do="Start a new cache for another batch.",
                batch=len(cache.keep),
                new_batch=len(keep),
            )
        return torch.cat([cache.keep, keep], 1)

    def real(self, tokens: Tensor) -> Tensor:
        """Which tokens are not padding, ``(batch, length)``."""
        return torch.ones_like(tokens, dtype=torch.bool) if self.padding is None else tokens != self.padding

    def new_cache(self) -> Cache:
        """An empty cache for one batch of texts."""
        return self.decoder.new_cache()


def _check_encoder(options: Mapping[str, Any], shared: bool) -> None:
    for name in options:
        check_choice("encoder", name, ENCODER_OPTIONS)
    if options and shared:
        raise ArgumentError(
            "An encoder with its own options needs its own embedding.",
            got="shared=True, and encoder = {options}",
            do="Use shared=False.",
            options=", ".join(options),
        )


def _embedding_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a side's options that its embedding takes."""
    return {
        name: options[name] for name in ("width", "positions", "length", "dropout", "eps") if name in options
    }


def _layer_options(*, positions: str, **options: Any) -> dict[str, Any]:
    """The options of the layers, without positions that are added to the embeddings."""
    check_choice("positions", positions, MODEL_POSITIONS)
    inside = positions if positions in ("rotary", "alibi", "relative") else None
    return {**options, "positions": inside}


def _padding(keep: Tensor) -> masks.Mask | None:
    """The padding mask, or None without padding: attention is fastest without a mask."""
    return None if bool(keep.all()) else masks.padding(keep)


def _check_text(name: str, tokens: object, vocabulary: int, longest: int, past: int = 0) -> None:
    checked = check_tokens(name, tokens)
    check_in_vocabulary(name, checked, vocabulary)
    if past + checked.shape[1] > longest:
        raise ShapeError(
            "A text must fit the positions of the model (longest = {longest}).",
            got="{name} of {count} tokens",
            do="Shorten the text, or build the model with a larger length.",
            longest=longest,
            name=name,
            count=past + checked.shape[1],
        )
