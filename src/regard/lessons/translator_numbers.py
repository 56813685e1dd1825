"""The numbers of one sentence on its way through the built-in translator, for the page of the transformer.

What every attention and every feed-forward block adds is taken from the running model, with the weights of
all heads. The page computes the rest: waves of positions, residual sums and layer norms. ``kinds`` says how
each stack is built: where its norms are, its activation and its positions.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import TextError
from regard.nn.layers import ACTIVATIONS
from regard.nn.positions import LearnedPositions
from regard.translator import Translator, embedded, look
from regard.translator.translate_text import count_parameters
from regard.translator.vocabulary import SPECIALS, START

TRANSLATED = "The cat is sleeping on the bed."
"""The sentence that the page shows by default."""

MOST_TOKENS = 24
"""The most tokens on either side: each adds about 50 kB to the page."""

CANDIDATES = 5
"""How many next characters are shown at each step."""

WEIGHTS = {
    "encoder": "encoder.{}.attention_weights",
    "decoder": "decoder.{}.attention_weights",
    "cross": "decoder.{}.cross_weights",
}
"""The names of the weights of each kind of attention, with a place for the layer."""

LEVELS = 65535
"""Steps between the least and the greatest number inside a feed-forward block."""


@torch.no_grad()
def translator_numbers(text: str, translator: Translator | None = None) -> dict[str, Any]:
    """Tokens, sizes, and the numbers of every block for ``text`` and its translation.

    >>> found = translator_numbers("I love you.")
    >>> found["translation"], found["source"]
    ('我爱你。', ['i', 'love', 'you', '.', '[END]'])
    >>> found["sizes"]["encoder_width"] == embedded().model.source.table.weight.shape[1]
    True
    """
    one = embedded() if translator is None else translator
    seen = look(one, text)
    source = one.encode(text)
    target = [START, *one.encode_translation(text, seen.translation)]
    _check_length(max(len(source), len(target)))
    model = one.model
    with _outputs(model) as found:
        logits = model(torch.tensor([source]), torch.tensor([target]))
    for call in seen.recording.calls:
        heads = np.stack([call.weights(head) for head in range(call.heads)])
        found[WEIGHTS[call.kind].format(call.layer)] = torch.from_numpy(heads)
    assert seen.recording.source_tokens is not None
    assert seen.recording.tokens is not None
    return {
        "text": text,
        "translation": seen.translation,
        "source": list(seen.recording.source_tokens[0]),
        "target": list(seen.recording.tokens[0]),
        "sizes": _sizes(one),
        "kinds": _kinds(one),
        "parameters": {
            "all": count_parameters(model),
            "source": count_parameters(model.source),
            "target": count_parameters(model.target),
            **_layer_parameters("encoder", model.encoder.layers[0]),
            **_layer_parameters("decoder", model.decoder.layers[0]),
            **_projection_parameters(model),
        },
        "candidates": _candidates(one, logits[0]),
        "arrays": {name: _packed(name, value) for name, value in found.items()},
    }


def _check_length(tokens: int) -> None:
    if tokens > MOST_TOKENS:
        raise TextError(
            "The page of the transformer shows at most {most} tokens.",
            got="{tokens} tokens",
            do="Choose a shorter sentence.",
            most=MOST_TOKENS,
            tokens=tokens,
        )


def _layer_parameters(stack: str, layer: Any) -> dict[str, int]:
    """The parameters of the blocks of a layer; attention has as many wherever its layer has several."""
    return {
        f"{stack}_attention": count_parameters(layer.attention),
        f"{stack}_feed_forward": count_parameters(layer.feed_forward),
        f"{stack}_norm": count_parameters(layer.attention_norm),
    }


def _projection_parameters(model: Any) -> dict[str, int]:
    found = model.context_projection
    return {} if found is None else {"encoder_projection": count_parameters(found.linear)}


def _kinds(translator: Translator) -> dict[str, dict[str, Any]]:
    """How the stacks are built."""
    model = translator.model
    found: dict[str, dict[str, Any]] = {}
    for stack, embedding in (("encoder", model.source), ("decoder", model.target)):
        layer: Any = getattr(model, stack).layers[0]
        learned = isinstance(embedding.positions, LearnedPositions)
        found[stack] = {
            "norm": layer.norm,
            "eps": layer.attention_norm.eps,
            "activation": layer.feed_forward.activation,
            "positions": "learned" if learned else "sinusoidal",
            "embedding_norm": embedding.norm is not None,
            "projected": stack == "encoder" and model.context_projection is not None,
        }
    return found


def _sizes(translator: Translator) -> dict[str, int]:
    model = translator.model
    sizes: dict[str, int] = {}
    for stack, layers in (("encoder", model.encoder.layers), ("decoder", model.decoder.layers)):
        first: Any = layers[0]
        sizes |= {
            f"{stack}_width": first.attention.width,
            f"{stack}_heads": first.attention.heads,
            f"{stack}_hidden": first.feed_forward.inner.out_features,
            f"{stack}_layers": len(layers),
        }
    return {
        **sizes,
        "source_vocabulary": model.source.vocabulary,
        "target_vocabulary": model.target.vocabulary,
    }


@contextmanager
def _outputs(model: Any) -> Iterator[dict[str, Tensor]]:
    """What embeddings and sublayers give while the model runs, and the parameters of its norms, by name."""
    found: dict[str, Tensor] = {}
    hooks = []

    def keep(name: str, module: nn.Module, change: Any = lambda value: value) -> None:
        def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
            found[name] = change(output)[0]

        hooks.append(module.register_forward_hook(hook))

    def keep_norm(name: str, norm: nn.LayerNorm) -> None:
        bias = torch.zeros_like(norm.weight) if norm.bias is None else norm.bias
        found[name] = torch.stack([norm.weight, bias])

    for stack, side in (("encoder", "source"), ("decoder", "target")):
        layers, embedding = getattr(model, stack), getattr(model, side)
        keep(f"{side}.embedding", embedding.table, lambda value, scale=embedding.scale: value * scale)
        if isinstance(embedding.positions, LearnedPositions):
            found[f"{side}.positions"] = embedding.positions.table[:MOST_TOKENS]
        if embedding.norm is not None:
            keep_norm(f"{side}.norm", embedding.norm)
        for index, layer in enumerate(layers.layers):
            place = f"{stack}.{index}"
            for name in ("attention", "cross", "feed_forward"):
                if hasattr(layer, name):
                    keep(f"{place}.{name}", getattr(layer, name))
                    keep_norm(f"{place}.{name}_norm", getattr(layer, f"{name}_norm"))
            keep(f"{place}.hidden", layer.feed_forward.inner, ACTIVATIONS[layer.feed_forward.activation])
        if layers.norm is not None:
            keep_norm(f"{stack}.norm", layers.norm)
    if model.context_projection is not None:
        keep("encoder.projection", model.context_projection.linear)
        keep_norm("encoder.projection_norm", model.context_projection.norm)
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _candidates(translator: Translator, logits: Tensor) -> list[list[list[Any]]]:
    """The most probable next characters after each token, with their probabilities."""
    names = [*SPECIALS, *translator.vocabularies.chinese.characters]
    best = torch.softmax(logits.double(), -1).topk(CANDIDATES)
    return [
        [[names[index], round(share, 6)] for share, index in zip(row.tolist(), indices.tolist())]
        for row, indices in zip(best.values, best.indices)
    ]


def _packed(name: str, value: Tensor) -> dict[str, Any]:
    """An array as text: 32-bit floats, or 16 bits for the many numbers inside of feed-forward blocks."""
    numbers = value.detach().double().numpy()
    if not name.endswith(".hidden"):
        data = numbers.astype("<f4").tobytes()
        return {"shape": list(numbers.shape), "data": base64.b64encode(data).decode("ascii")}
    least, greatest = float(numbers.min()), float(numbers.max())
    span = (greatest - least) or 1.0
    data = np.rint((numbers - least) / span * LEVELS).astype("<u2").tobytes()
    return {
        "shape": list(numbers.shape),
        "least": least,
        "span": span,
        "data": base64.b64encode(data).decode("ascii"),
    }
