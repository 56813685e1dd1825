"""Hugging Face models, intercepted through the two public registries of transformers.

During a watch the configurations of a model name ``regard_watch`` as their attention. transformers then
asks the mask function registered under that name for a mask, and gets a lazy one; it also passes Q, K and
V of every attention to the function registered under that name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from regard.errors import RecordingError
from regard.interception.hf_masks import TransformersMask
from regard.interception.module_tracker import ModuleTracker, autocast, trackers_of
from regard.interception.pipeline import attend
from regard.interception.steps import InterceptedCall, Kind
from regard.kernels import attention_weights
from regard.kernels.biases import Bias, t5
from regard.kernels.inputs import Inputs, prepare
from regard.masks import MaskLike, causal

IMPLEMENTATION = "regard_watch"


def is_pretrained(model: nn.Module) -> bool:
    """Whether this is a model of transformers, asked without importing transformers."""
    names = {(kind.__module__, kind.__name__) for kind in type(model).__mro__}
    return ("transformers.modeling_utils", "PreTrainedModel") in names


def pretrained_parts(module: nn.Module) -> Iterator[Any]:
    """The outermost models of transformers in a module: itself, or those that it wraps."""
    if is_pretrained(module):
        yield module
        return
    for child in module.children():
        yield from pretrained_parts(child)


def uses_attention_interface(model: Any) -> bool:
    """Whether every part of the model hands its attention to the registry."""
    return all(part._can_set_attn_implementation() for part in model.modules() if is_pretrained(part))


# ---- switching a model over, and back --------------------------------------------------------


@dataclass
class _ReplacedConfig:
    """A configuration that now names our attention, and what it named before."""

    config: Any
    before: str | None
    users: int = 1


_replaced_configs: dict[int, _ReplacedConfig] = {}
_lock = threading.Lock()


@contextmanager
def attention_replaced(model: nn.Module) -> Iterator[None]:
    """Give the model our attention while it is watched."""
    _register()
    configs = list(_configs(model))
    with _lock:
        for config in configs:
            known = _replaced_configs.get(id(config))
            if known is not None:
                known.users += 1
            else:
                _replaced_configs[id(config)] = _ReplacedConfig(config, config._attn_implementation)
                config._attn_implementation_internal = IMPLEMENTATION
    try:
        yield
    finally:
        with _lock:
            for config in configs:
                known = _replaced_configs[id(config)]
                known.users -= 1
                if not known.users:
                    config._attn_implementation_internal = known.before
                    del _replaced_configs[id(config)]


def _configs(model: nn.Module) -> Iterator[Any]:
    """Every configuration that any part of the model reads, once."""
    found: dict[int, Any] = {}
    waiting: list[Any] = [part.config for part in model.modules() if hasattr(part, "config")]
    while waiting:
        config = waiting.pop()
        if id(config) in found or not hasattr(config, "_attn_implementation_internal"):
            continue
        found[id(config)] = config
        waiting += [getattr(config, name, None) for name in getattr(config, "sub_configs", {})]
    yield from found.values()


def _before(config: Any) -> str | None:
    known = _replaced_configs.get(id(config))
    return None if known is None else known.before


def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(IMPLEMENTATION, attention_function)
    AttentionMaskInterface.register(IMPLEMENTATION, mask_function)


# ---- what transformers calls -----------------------------------------------------------------


def mask_function(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] | None = None,
    attention_mask: Tensor | TransformersMask | None = None,
    use_vmap: bool = False,
    config: Any = None,
    **options: Any,
) -> TransformersMask:
    """The mask of one forward pass, lazily; never None, so that causal models stay causal."""
    if isinstance(attention_mask, TransformersMask):
        return attention_mask  # made earlier, and passed through the model
    from transformers import masking_utils

    function = mask_function or masking_utils.causal_mask_function
    past = int(q_offset)

    def make_tensor() -> Tensor | None:
        kind = "eager" if _before(config) == "eager" else "sdpa"
        make: Any = masking_utils.AttentionMaskInterface._global_mapping[kind]
        return make(  # type: ignore[no-any-return]
            batch_size=batch_size,
            q_length=q_length,
            kv_length=kv_length,
            q_offset=past,
            kv_offset=kv_offset,
            mask_function=function,
            attention_mask=attention_mask,
            use_vmap=use_vmap,
            **{**options, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False},
        )

    keep = None if attention_mask is None else attention_mask.bool()
    return TransformersMask(
        function, keep, batch_size, q_length, kv_length, past, int(kv_offset), use_vmap, make_tensor
    )


def attention_function(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    is_causal: bool | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention of one module, through the pipeline of every tracker of it."""
    _check_softcap(module, softcap)
    given, view = attention_mask, None
    if isinstance(given, TransformersMask):
        given, key, value = _fitted(given, key, value)
        view = given
        mask: MaskLike | None = given.here()
    elif given is None and _relies_on_causal(module, query, is_causal):
        mask = causal()
        key, value = key[:, :, : query.shape[2]], value[:, :, : query.shape[2]]
    else:
        mask = given
    if position_bias is not None and position_bias.shape[-1] != key.shape[2]:
        position_bias = position_bias[..., : key.shape[2]]
    query, key, value = autocast(query, key, value)
    inputs = prepare(
        query,
        key,
        value,
        mask=mask,
        bias=_bias_of(module, position_bias),
        scale=scaling,
        softcap=softcap,
        sinks=s_aux,
        dropout=dropout,
    )
    seen_by = trackers_of(module)
    kind = _kind(module, seen_by, inputs, view)
    call = InterceptedCall(inputs, module, kind, **_placing(view, inputs))
    output, computed = attend(call, seen_by)
    weights = None
    if _wants_weights(options):
        weights = attention_weights(
            computed.q,
            computed.k,
            mask=computed.mask,
            bias=computed.bias,
            scale=computed.scale,
            softcap=computed.softcap,
            sinks=computed.sinks,
        )
    return output.transpose(1, 2).contiguous(), weights


def _check_softcap(module: nn.Module, softcap: float | None) -> None:
    """Under ``sdpa`` transformers drops a softcap (before 5.22) or refuses; neither is the model."""
    if softcap is not None and _before(getattr(module, "config", None)) == "sdpa":
        raise RecordingError(
            "A model with a softcap ({softcap:g}) needs an attention implementation that applies it.",
            got="sdpa, which does not",
            do='Load the model with attn_implementation="eager".',
            softcap=softcap,
        )


def _fitted(placed: TransformersMask, key: Tensor, value: Tensor) -> tuple[TransformersMask, Tensor, Tensor]:
    """Cut keys and mask to one length: a static cache has room for keys that are yet to come."""
    keys = min(key.shape[2], placed.keys)
    if placed.causal:
        keys = min(keys, placed.past + placed.queries - placed.first_key)
    if keys == key.shape[2] == placed.keys:
        return placed, key, value
    return replace(placed, keys=keys), key[:, :, :keys], value[:, :, :keys]


def _relies_on_causal(module: nn.Module, query: Tensor, is_causal: bool | None) -> bool:
    """Whether no mask means causal, as for the ``sdpa`` attention, or nothing at all, as for ``eager``."""
    if _before(getattr(module, "config", None)) == "eager" or query.shape[2] == 1:
        return False
    return bool(getattr(module, "is_causal", True)) if is_causal is None else bool(is_causal)


def _bias_of(module: nn.Module, given: Tensor | None) -> Bias | Tensor | None:
    """The position bias; for T5, the small table that it comes from."""
    if given is None:
        return None
    for tracker in trackers_of(module):
        lazy = tracker.lazy_biases.get(id(given))
        if lazy is not None and lazy[0] is given:
            return lazy[1]
    bias: Bias | None = None
    if not getattr(module, "has_relative_attention_bias", True) and not given.any():
        return None  # T5 adds zeros where it has no bias
    table = getattr(getattr(module, "relative_attention_bias", None), "weight", None)
    if isinstance(table, Tensor) and hasattr(module, "relative_attention_max_distance"):
        bias = t5(
            table,
            not getattr(module, "is_decoder", False),
            max_distance=int(module.relative_attention_max_distance),  # type: ignore[arg-type]
        )
    if bias is None:
        return given
    for tracker in trackers_of(module):
        # The first layer makes the bias and passes the same tensor to all others.
        tracker.lazy_biases.clear()
        tracker.lazy_biases[id(given)] = (given, bias)
    return bias


def _kind(
    module: nn.Module, trackers: list[ModuleTracker], inputs: Inputs, view: TransformersMask | None
) -> Kind:
    if not trackers:
        return "encoder"
    if view is not None and view.of_decoder:
        return "decoder"
    if getattr(module, "is_cross_attention", False):
        return "cross"
    return trackers[0].kind_of(inputs, module)


def _placing(view: TransformersMask | None, inputs: Inputs) -> dict[str, Any]:
    if view is None or not view.aligned:
        return {"view": None, "past": max(0, inputs.extent.offset)}
    return {"view": view, "past": view.past, "first_key": view.first_key}


def _wants_weights(options: dict[str, Any]) -> bool:
    """Whether the user also asked the model for its weights; then n×n is what they want."""
    if options.get("output_attentions"):
        return True
    from transformers.utils import output_capturing

    active: Any = output_capturing._active_collector
    collector = active.get()
    return collector is not None and any("attentions" in name for name in collector)
