"""The parts of a decoder-only language model that add up to its logits, for the families where they do.

x = embedding + Σ_layers (attention + feed-forward)        logits = norm(x) W_U + b_U
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RecordingError
from regard.nn import LanguageModel


@dataclass(frozen=True, eq=False)
class LanguageStack:
    """Layers, final norm and unembedding of a model."""

    layers: tuple[nn.Module, ...]
    attentions: tuple[nn.Module, ...]
    feed_forwards: tuple[nn.Module, ...]
    norm: nn.Module
    unembedding: Tensor  # (token, width)
    unembedding_bias: Tensor | None  # (token,)

    @property
    def vocabulary(self) -> int:
        """The number of tokens."""
        return len(self.unembedding)


def stack_of(model: nn.Module) -> LanguageStack:
    """The parts of a Llama-like, a GPT-2-like or a regard.nn language model; other models are refused."""
    named = type(model).__name__
    if isinstance(model, LanguageModel):
        head: Any = model.embedding.table if model.output is None else model.output
        parts = (model.decoder.layers, "attention", "feed_forward", model.decoder.norm)
        return _built(named, head, *parts)
    head = _language_head(model)
    if head is None and hasattr(model, "encoder") and hasattr(model, "decoder"):
        raise unknown_family(named)
    if head is None:
        raise _no_language_head(model)
    inner: Any = getattr(model, "model", None)
    if all(hasattr(inner, name) for name in ("layers", "norm", "embed_tokens")):
        return _built(named, head, inner.layers, "self_attn", "mlp", inner.norm)
    inner = getattr(model, "transformer", None)
    if all(hasattr(inner, name) for name in ("h", "ln_f", "wte")):
        return _built(named, head, inner.h, "attn", "mlp", inner.ln_f)
    raise unknown_family(named)


def unknown_family(model: str) -> RecordingError:
    """The error for a model whose parts do not add up, or are not known."""
    return RecordingError(
        "Attribution needs a model of the Llama or GPT-2 family, or a regard.nn.LanguageModel, with norms "
        "before the sublayers.",
        got="{model}",
        do="Use regard.relevance or gradients, which work for any model.",
        model=model,
    )


def _no_language_head(model: nn.Module) -> RecordingError:
    """The error for a model without logits of tokens, with what its user can do instead."""
    classifies = any("Classification" in one.__name__ for one in type(model).__mro__)
    return RecordingError(
        "Attribution needs the logits of a language model.",
        got="{model}, a classifier" if classifies else "{model}, which has no language head",
        do="For a classifier, use relevance or gradients: regard why --method relevance or gradient, "
        "regard.relevance, weights_times_gradient."
        if classifies
        else "Load a language model with AutoModelForCausalLM. For any other model, use regard.relevance "
        "or gradients.",
        model=type(model).__name__,
    )


def _language_head(model: nn.Module) -> Any:
    find: Callable[[], Any] | None = getattr(model, "get_output_embeddings", None)
    return None if find is None else find()


def _built(
    named: str, head: Any, layers: nn.ModuleList, attention: str, feed_forward: str, norm: nn.Module | None
) -> LanguageStack:
    if norm is None or not all(
        hasattr(layer, attention) and hasattr(layer, feed_forward) for layer in layers
    ):
        raise unknown_family(named)
    return LanguageStack(
        tuple(layers),
        tuple(getattr(layer, attention) for layer in layers),
        tuple(getattr(layer, feed_forward) for layer in layers),
        norm,
        head.weight.detach(),
        None if getattr(head, "bias", None) is None else head.bias.detach(),
    )


@dataclass(frozen=True, eq=False)
class FrozenNorm:
    """A norm with its denominator frozen, which makes it linear: ``(x − centre · mean(x)) γ / σ + β``."""

    gain: Tensor  # γ / σ
    shift: Tensor | None  # β
    centred: bool

    def back(self, direction: Tensor) -> Tensor:
        """The direction before the norm that corresponds to one behind it."""
        found = direction * self.gain
        return found - found.mean() if self.centred else found

    def constant(self, direction: Tensor) -> float:
        """What β gives to a direction behind the norm."""
        return 0.0 if self.shift is None else float(self.shift @ direction)

    def __call__(self, x: Tensor) -> Tensor:
        found = (x - x.mean() if self.centred else x) * self.gain
        return found if self.shift is None else found + self.shift


def frozen_norm(norm: Any, before: Tensor, after: Tensor) -> FrozenNorm | None:
    """The norm as it acted on one vector; None if it is neither LayerNorm nor RMSNorm."""
    weight = getattr(norm, "weight", None)
    if not isinstance(weight, Tensor) or weight.shape != before.shape:
        return None
    x, gain = before.double(), weight.detach().double()
    bias = getattr(norm, "bias", None)
    shift = None if bias is None else bias.detach().double()
    eps = (
        next((getattr(norm, name) for name in ("eps", "variance_epsilon") if hasattr(norm, name)), 0.0) or 0.0
    )
    for centred in (True, False):
        size = ((x - x.mean() if centred else x).square().mean() + eps).sqrt()
        for scale in (gain, 1 + gain):  # Gemma's weights are counted from 1
            found = FrozenNorm(scale / size, shift, centred)
            if torch.allclose(found(x), after.double(), rtol=1e-3, atol=1e-4 * float(after.abs().max())):
                return found
    return None
