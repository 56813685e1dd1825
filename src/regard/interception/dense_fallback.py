"""Models that hide their Q and K but return dense weights, which are recorded and marked as dense.

Some models in transformers (Bloom, MPT, DeBERTa …) compute attention themselves, off the registry.
With ``output_attentions`` they return their n×n weights, which is better than nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from regard.errors import RecordingError
from regard.interception.call_types import Kind
from regard.interception.pipeline import ModuleTracker

FIELDS: dict[str, Kind | None] = {
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
    "attentions": None,  # encoder or decoder; the weights decide
}


@contextmanager
def dense_weights_recorded(model: Any, tracker: ModuleTracker) -> Iterator[None]:
    """Ask the model for its weights in every forward pass; the user gets the output they asked for."""
    asked: list[tuple[dict[str, Any], int]] = []

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        del module
        cache = kwargs.get("past_key_values")
        asked.append((kwargs, 0 if cache is None else int(cache.get_seq_length())))
        return args, {**kwargs, "output_attentions": True, "return_dict": True}

    def after(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        del args, kwargs
        wanted, past = asked.pop()
        _keep(tracker, module, output, past)
        return _as_wanted(module, output, wanted)

    hooks = (
        model.register_forward_pre_hook(before, with_kwargs=True),
        model.register_forward_hook(after, with_kwargs=True),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _keep(tracker: ModuleTracker, model: nn.Module, output: Any, past: int) -> None:
    found = {name: output.get(name) for name in FIELDS if output.get(name) is not None}
    if not any(found.values()):
        raise RecordingError(
            "{type} computes attention off transformers' registry, so it must give its weights itself.",
            got="no weights with output_attentions=True",
            do="Watch another model of its kind, or let it call F.scaled_dot_product_attention.",
            type=type(model).__name__,
        )
    for name, layers in found.items():
        for number, weights in enumerate(layers):
            _check(type(model).__name__, f"{name}[{number}]", weights, past, cross=FIELDS[name] == "cross")
            place = tracker.numbering.place(f"{name}.{number}", FIELDS[name] or _kind(model, weights))
            if tracker.writer is not None:
                tracker.writer.add_weights(place, weights.detach(), past)


def _check(model: str, where: str, weights: Tensor | None, past: int, *, cross: bool) -> None:
    """Raise unless this is a whole matrix: models with local attention return bands and blocks."""
    if weights is not None and weights.ndim == 4 and (cross or weights.shape[3] == weights.shape[2] + past):
        return
    raise RecordingError(
        "{model} computes attention off transformers' registry, so it must give the whole matrix "
        "(batch, head, query, key) itself.",
        got="{where} of shape {shape}",
        do="Watch another model of its kind.",
        model=model,
        where=where,
        shape=None if weights is None else tuple(weights.shape),
    )


def _kind(model: Any, weights: Tensor) -> Kind:
    """A decoder generates, and its weights above the diagonal are 0 except at padding."""
    queries, keys = weights.shape[2:]
    ahead = weights.triu(keys - queries + 1).flatten(1).any(1)  # (batch,)
    return "encoder" if bool(ahead.all()) and not model.can_generate() else "decoder"


def _as_wanted(module: nn.Module, output: Any, wanted: dict[str, Any]) -> Any:
    """The output without what only regard asked for."""
    config: Any = module.config
    keep = wanted.get("output_attentions")
    if not (config.output_attentions if keep is None else keep):
        output = type(output)(**{name: value for name, value in output.items() if name not in FIELDS})
    as_dict = wanted.get("return_dict")
    return output if (config.return_dict if as_dict is None else as_dict) else output.to_tuple()
