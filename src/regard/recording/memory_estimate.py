"""How large a recording will be, before it is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from regard.checks import check_integer
from regard.errors import RecordingError
from regard.interception.call_types import Kind


@dataclass(frozen=True)
class Estimate:
    """The memory of a recording, and that of the matrices it replaces (float32).

    >>> import torch, regard
    >>> regard.recording.estimate(torch.nn.MultiheadAttention(8, 2), 1000).calls
    1
    """

    calls: int
    nbytes: int
    matrix_nbytes: int

    def __str__(self) -> str:
        calls = f"{self.calls} call{'' if self.calls == 1 else 's'}"
        return f"{calls}, {_readable(self.nbytes)} (the matrices: {_readable(self.matrix_nbytes)})"


@dataclass(frozen=True)
class LayerStack:
    """Layers of one kind and shape."""

    kind: Kind
    layers: int
    heads: int
    key_heads: int
    channels: int


def estimate(
    model: nn.Module,
    queries: int,
    keys: int | None = None,
    *,
    batch: int = 1,
    layers: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    statistics: bool = False,
    top: int = 0,
    values: bool = False,
    gradients: bool = False,
) -> Estimate:
    """The size of ``watch(model, …)`` over a text of ``queries`` tokens.

    ``keys`` is the length of the source of an encoder-decoder, by default as long as the text.

    >>> model = torch.nn.TransformerEncoderLayer(512, 8)
    >>> print(estimate(model, 4096))
    1 call, 16.9 MB (the matrices: 537 MB)
    """
    for name, number in (("queries", queries), ("keys", keys), ("batch", batch)):
        if number is not None:
            check_integer(name, number)
    stacks = list(stacks_of(model))
    if not stacks:
        raise RecordingError(
            "The size can be estimated for transformers models and for torch.nn layers.",
            got="{model}",
            do="Make a short recording and look at seen.nbytes.",
            model=type(model).__name__,
        )
    wide = dtype or next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    source = queries if keys is None else keys
    calls = size = matrix = 0
    for stack in stacks:
        count = stack.layers if layers is None else sum(layer < stack.layers for layer in layers)
        rows = source if stack.kind == "encoder" else queries
        columns = queries if stack.kind == "decoder" else source
        per_head = rows * (44 + 12 * top) + columns * 4 if statistics else rows * 4
        # Q and, of the same shape, dO for each query; K and V for each key.
        numbers = stack.heads * rows * (2 if gradients else 1)
        numbers += stack.key_heads * columns * (2 if values or gradients else 1)
        own = 0 if statistics else numbers * stack.channels * wide.itemsize
        calls += count
        size += count * batch * (stack.heads * per_head + own)
        matrix += count * batch * stack.heads * rows * columns * 4
    return Estimate(calls, size, matrix)


def known_layers(model: nn.Module) -> int | None:
    """The largest number of layers of one kind, if the model's configuration has it."""
    config = getattr(model, "config", None)
    if config is None:
        return None
    layers = [stack.layers for stack in _of_config(config)]
    if not layers:
        return None
    # The layers of several towers of one kind are numbered consecutively.
    return sum(layers) if getattr(config, "sub_configs", None) else max(layers)


def stacks_of(model: nn.Module) -> Iterator[LayerStack]:
    """The stacks of a model, from its configuration or from its torch.nn layers."""
    config = getattr(model, "config", None)
    found = [] if config is None else list(_of_config(config))
    if found:
        yield from found
        return
    for name, module in model.named_modules():
        if isinstance(module, nn.MultiheadAttention):
            kind: Kind = (
                "cross" if "multihead_attn" in name else "decoder" if "decoder" in name else "encoder"
            )
            yield LayerStack(kind, 1, module.num_heads, module.num_heads, module.head_dim)


def _of_config(config: Any) -> Iterator[LayerStack]:
    parts = [getattr(config, name, None) for name in getattr(config, "sub_configs", None) or {}]
    parts = [part for part in parts if part is not None and _first(part, "num_hidden_layers")]
    if parts:
        for part in parts:
            yield from _of_config(part)
    elif getattr(config, "is_encoder_decoder", False):
        encoder = _stack(config, "encoder", "encoder_layers", "num_layers", side="encoder")
        decoder = _stack(config, "decoder", "decoder_layers", "num_decoder_layers", side="decoder")
        cross = _stack(config, "cross", "decoder_layers", "num_decoder_layers", side="decoder")
        yield from (stack for stack in (encoder, decoder, cross) if stack is not None)
    else:
        stack = _stack(config, "decoder" if _looks_back(config) else "encoder")
        if stack is not None:
            yield stack


def _stack(config: Any, kind: Kind, *names: str, side: str = "") -> LayerStack | None:
    layers = _first(config, *names, "num_hidden_layers", "n_layer", "num_layers")
    heads = _first(config, f"{side}_attention_heads", "num_attention_heads", "num_heads", "n_head")
    width = _first(config, "hidden_size", "d_model", "n_embd")
    if not layers or not heads or not width:
        return None
    channels = _first(config, "head_dim", "d_kv") or width // heads
    return LayerStack(kind, layers, heads, _first(config, "num_key_value_heads") or heads, channels)


def _looks_back(config: Any) -> bool:
    names = getattr(config, "architectures", None) or []
    return getattr(config, "is_decoder", False) or any("Causal" in name or "LMHead" in name for name in names)


def _first(config: Any, *names: str) -> int:
    """The first of these settings that the configuration has."""
    return next((value for name in names if isinstance(value := getattr(config, name, None), int)), 0)


def _readable(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.3g} {unit}"
        size /= 1000
    raise AssertionError("the loop ends with GB")
