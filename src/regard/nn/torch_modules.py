"""``from_torch``: converts a module of ``torch.nn`` to the regard module that computes the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ArgumentError, DtypeError
from regard.nn.layers import DecoderLayer, EncoderLayer, FeedForward
from regard.nn.multi_head import MultiHeadAttention
from regard.nn.stacks import Decoder, Encoder, Transformer


def from_torch(module: nn.Module, *, causal: bool = False) -> Any:
    """The regard module that computes the same as ``module``, with a copy of its weights.

    | torch.nn                                           | regard.nn                      |
    |----------------------------------------------------|--------------------------------|
    | `MultiheadAttention`                               | `MultiHeadAttention`           |
    | `TransformerEncoderLayer`, `TransformerDecoderLayer` | `EncoderLayer`, `DecoderLayer` |
    | `TransformerEncoder`, `TransformerDecoder`         | `Encoder`, `Decoder`           |
    | `Transformer`                                      | `Transformer`                  |

    regard's modules take ``(batch, length, width)``, whatever ``batch_first`` was. torch's decoders are
    causal only if a mask makes them so; ``causal=True`` makes the result causal (the attention itself,
    or every decoder layer).

    >>> theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.randn(1, 3, 8)
    >>> torch.allclose(from_torch(theirs)(x), theirs(x, x, x)[0], atol=1e-6)
    True
    """
    made = _converted(module, causal)
    made.train(module.training)
    return made


def _converted(module: nn.Module, causal: bool) -> nn.Module:
    if isinstance(module, nn.MultiheadAttention):
        return _attention(module, causal)
    if isinstance(module, nn.TransformerEncoderLayer):
        return _encoder_layer(module)
    if isinstance(module, nn.TransformerDecoderLayer):
        return _decoder_layer(module, causal)
    if isinstance(module, nn.TransformerEncoder):
        return _encoder(module)
    if isinstance(module, nn.TransformerDecoder):
        return _decoder(module, causal)
    if isinstance(module, nn.Transformer):
        encoder, decoder = module.encoder, module.decoder
        if isinstance(encoder, nn.TransformerEncoder) and isinstance(decoder, nn.TransformerDecoder):
            return Transformer.of(_encoder(encoder), _decoder(decoder, causal))
        module = encoder if not isinstance(encoder, nn.TransformerEncoder) else decoder
    raise DtypeError(
        "from_torch can convert MultiheadAttention and Transformer of torch.nn, and its layers and stacks.",
        got="{type}",
        do="Build the regard module and copy the weights.",
        type=type(module).__name__,
    )


def _attention(theirs: nn.MultiheadAttention, causal: bool = False) -> MultiHeadAttention:
    if theirs.in_proj_weight is None or theirs.bias_k is not None or theirs.add_zero_attn:
        raise ArgumentError(
            "from_torch can only convert attention of one width, without added keys.",
            got="kdim, vdim, add_bias_kv or add_zero_attn",
            do="Project the context to the width of the model first.",
        )
    ours = MultiHeadAttention(
        theirs.embed_dim,
        theirs.num_heads,
        causal=causal,
        bias=theirs.in_proj_bias is not None,
        dropout=theirs.dropout,
    )
    ours.to(theirs.in_proj_weight)
    _copy(ours.projection, theirs.in_proj_weight, theirs.in_proj_bias)
    _copy(ours.output, theirs.out_proj.weight, theirs.out_proj.bias)
    return ours


def _encoder_layer(theirs: nn.TransformerEncoderLayer) -> EncoderLayer:
    ours = EncoderLayer(**_options(theirs), causal=False)
    ours.attention = _attention(theirs.self_attn)
    ours.attention.dropout.p = theirs.dropout1.p
    _fill(ours, theirs, [(ours.attention_norm, theirs.norm1), (ours.feed_forward_norm, theirs.norm2)])
    ours.dropout.p = theirs.dropout2.p
    return ours


def _decoder_layer(theirs: nn.TransformerDecoderLayer, causal: bool) -> DecoderLayer:
    ours = DecoderLayer(**_options(theirs), causal=causal)
    ours.attention = _attention(theirs.self_attn, causal)
    ours.cross = _attention(theirs.multihead_attn)
    ours.attention.dropout.p, ours.cross.dropout.p = theirs.dropout1.p, theirs.dropout2.p
    norms = [
        (ours.attention_norm, theirs.norm1),
        (ours.cross_norm, theirs.norm2),
        (ours.feed_forward_norm, theirs.norm3),
    ]
    _fill(ours, theirs, norms)
    ours.dropout.p = theirs.dropout3.p
    return ours


def _encoder(theirs: nn.TransformerEncoder) -> Encoder:
    layers = [_encoder_layer(layer) for layer in _of_kind(theirs.layers, nn.TransformerEncoderLayer)]
    ours = Encoder(layers, norm=theirs.norm is not None)
    _copy_last(ours.norm, theirs.norm)
    return ours


def _decoder(theirs: nn.TransformerDecoder, causal: bool) -> Decoder:
    layers = [_decoder_layer(layer, causal) for layer in _of_kind(theirs.layers, nn.TransformerDecoderLayer)]
    ours = Decoder(layers, norm=theirs.norm is not None)
    _copy_last(ours.norm, theirs.norm)
    return ours


def _of_kind(layers: Iterable[nn.Module], kind: type[nn.Module]) -> list[Any]:
    for layer in layers:
        if not isinstance(layer, kind):
            raise DtypeError(
                "The layers of the stack must be {kind}.",
                got="{type}",
                do="Convert the layers one by one.",
                kind=kind.__name__,
                type=type(layer).__name__,
            )
    return list(layers)


def _options(theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> dict[str, Any]:
    return {
        "width": theirs.self_attn.embed_dim,
        "heads": theirs.self_attn.num_heads,
        "hidden": theirs.linear1.out_features,
        "dropout": theirs.dropout.p,
        "norm": "pre" if theirs.norm_first else "post",
        "activation": _activation(theirs.activation),
        "bias": theirs.linear1.bias is not None,
        "eps": theirs.norm1.eps,
    }


def _activation(theirs: object) -> str:
    if theirs is F.relu or theirs is torch.relu or isinstance(theirs, nn.ReLU):
        return "relu"
    if theirs is F.gelu or (isinstance(theirs, nn.GELU) and theirs.approximate == "none"):
        return "gelu"
    raise ArgumentError(
        "from_torch can only convert layers with relu or gelu.",
        got="{name}",
        do="regard has no other activations.",
        name=getattr(theirs, "__name__", repr(theirs)),
    )


def _fill(
    ours: EncoderLayer | DecoderLayer,
    theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer,
    norms: list[tuple[nn.LayerNorm, nn.LayerNorm]],
) -> None:
    """Copy the feed-forward block and the norms."""
    ours.to(theirs.linear1.weight)
    feed_forward: FeedForward = ours.feed_forward
    _copy(feed_forward.inner, theirs.linear1.weight, theirs.linear1.bias)
    _copy(feed_forward.outer, theirs.linear2.weight, theirs.linear2.bias)
    for own, other in norms:
        _copy(own, other.weight, other.bias)


def _copy_last(ours: nn.LayerNorm | None, theirs: nn.Module | None) -> None:
    if ours is not None and isinstance(theirs, nn.LayerNorm):
        ours.to(theirs.weight)
        ours.eps = theirs.eps
        _copy(ours, theirs.weight, theirs.bias)


@torch.no_grad()
def _copy(ours: nn.Linear | nn.LayerNorm, weight: Tensor, bias: Tensor | None) -> None:
    ours.weight.copy_(weight)
    if bias is not None:
        ours.bias.copy_(bias)
