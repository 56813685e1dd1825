"""The output projection of an attention module, found beside the call that was recorded."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.errors import DtypeError, RecordingError
from regard.recording import Call

NAMES = (
    "o_proj", "out_proj", "c_proj", "out_lin", "Wo", "wo", "o", "to_out.0", "to_out", "proj", "dense",
    "output", "output.dense",
)  # fmt: skip
"""What output projections are called, inside the attention module or beside it."""


def output_weight(projection: object, call: Call) -> Tensor:
    """The weight ``(width, heads · channel)`` of the output projection of a call."""
    if isinstance(projection, Tensor):
        if projection.ndim != 2 or not projection.is_floating_point():
            raise DtypeError(
                "The weight of an output projection must be a float tensor (width, heads · channel).",
                got="{dtype} of shape {shape}",
                do="Pass linear.weight.",
                dtype=projection.dtype,
                shape=tuple(projection.shape),
            )
        return projection
    if not isinstance(projection, nn.Module):
        raise DtypeError(
            "The output projection must be the watched model, a linear module or its weight.",
            got="{type}",
            do="Pass the model.",
            type=type(projection).__name__,
        )
    own = _weight_of(projection)
    return _found(projection, call) if own is None else own


def _found(model: nn.Module, call: Call) -> Tensor:
    """The projection inside the attention module, or beside it as BERT has it."""
    modules = dict(model.named_modules())
    # A model that is itself the attention module is recorded under the name of its class.
    path = call.name if call.name in modules else ""
    if not path and call.name != type(model).__name__:
        raise RecordingError(
            "The call {name!r} must come from the model that is passed.",
            got="{type}, which has no such module",
            do="Pass the model that was watched, or the output projection itself.",
            name=call.name,
            type=type(model).__name__,
        )
    parent = path.rpartition(".")[0]
    for place in dict.fromkeys((path, parent)):
        for name in NAMES:
            weight = _weight_of(modules.get(f"{place}.{name}" if place else name))
            if weight is not None:
                return weight
    raise RecordingError(
        "The output projection of {name!r} must be called {NAMES}, …, in the module or beside it.",
        got="none in {type}",
        do="Pass the projection itself: value_weighted(call, linear).",
        name=call.name,
        NAMES=", ".join(NAMES[:6]),
        type=type(model).__name__,
    )


def _weight_of(module: nn.Module | None) -> Tensor | None:
    """The weight of a linear module, outputs first; None for anything else."""
    weight = getattr(module, "weight", None)
    if module is None or not isinstance(weight, Tensor) or weight.ndim != 2:
        return None
    # GPT-2's Conv1D is a linear module that keeps its inputs first.
    turned = type(module).__name__ == "Conv1D"
    if not turned and not isinstance(module, nn.Linear):
        return None
    weight = _loaded(module, weight).detach()
    return weight.T if turned else weight


def _loaded(module: nn.Module, weight: Tensor) -> Tensor:
    """The weight itself, where accelerate has moved it out of memory and loads it for each pass."""
    if not weight.is_meta:
        return weight
    hook = getattr(module, "_hf_hook", None)
    # Several hooks of one module are held by one that runs them in turn.
    maps = (getattr(one, "weights_map", None) for one in getattr(hook, "hooks", (hook,)))
    stored = next((known for known in maps if known is not None), None)
    if stored is None:
        raise RecordingError(
            "The weight of the output projection must be in memory, or be loadable by accelerate.",
            got="{type} with a weight on the device meta",
            do="Load the whole model, or pass the weight itself: value_weighted(call, weight).",
            type=type(module).__name__,
        )
    return torch.as_tensor(stored["weight"])
