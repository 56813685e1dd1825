"""The output projection of an attention module, found beside the call that was recorded."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.errors import DtypeError, RecordingError
from regard.recording.call import Call

NAMES = (
    "o_proj", "out_proj", "c_proj", "out_lin", "Wo", "wo", "o", "to_out.0", "to_out", "proj", "dense",
    "output", "output.dense",
)  # fmt: skip
"""What output projections are called, inside the attention module or beside it."""


class OutputProjections:
    """The output projections of a model by attention module, each split into the parts of its heads.

    >>> model = nn.MultiheadAttention(6, 2)
    >>> OutputProjections(model).by_head("MultiheadAttention", (0, 1), 3).shape
    torch.Size([2, 3, 6])
    """

    def __init__(self, model: nn.Module, given: Mapping[str, nn.Module | Tensor] | None = None) -> None:
        self._model = model
        self._given = {} if given is None else dict(given)
        self._given_weights = {name: given_weight(one) for name, one in self._given.items()}
        self._check_names()
        self._found: dict[tuple[str, tuple[int, ...], int], Tensor | None] = {}
        self._biases: dict[str, Tensor | None] = {}

    def _check_names(self) -> None:
        known = {*_modules(self._model), type(self._model).__name__}
        for name in self._given:
            if name not in known:
                raise RecordingError(
                    "Output projections must be given by the names of attention modules of the model.",
                    got="{name!r}, which {type} does not have",
                    do="Use the name of a recorded call: seen[0].name.",
                    name=name,
                    type=type(self._model).__name__,
                )

    def by_head(self, name: str, heads: tuple[int, ...], channels: int) -> Tensor | None:
        """W_O of these heads of a module, ``(head, channel, width)``; None if it is not known.

        Every call of the module gets the same tensor.
        """
        key = (name, heads, channels)
        if key not in self._found:
            weight = self._given_weights.get(name)
            weight = find_weight(self._model, name) if weight is None else weight
            self._found[key] = None if weight is None else split_heads(weight, heads, channels)
        return self._found[key]

    def bias(self, name: str) -> Tensor | None:
        """What the projection of a module adds to all heads together, ``(width,)``; None if nothing is known.

        Every call of the module gets the same tensor.
        """
        if name not in self._biases:
            self._biases[name] = _bias_of(self._projection(name))
        return self._biases[name]

    def module(self, name: str) -> nn.Module | None:
        """The module that returns the projected heads; None if it is not found or only a weight is known."""
        modules = _modules(self._model)
        own = modules.get(name) if name in modules else self._model
        # Torch computes with the projection inside of this one without calling it.
        inside = isinstance(own, nn.MultiheadAttention) and name not in self._given
        return own if inside else self._projection(name)

    def _projection(self, name: str) -> nn.Module | None:
        given = self._given.get(name)
        if given is None:
            return find_projection(self._model, name)
        return given if isinstance(given, nn.Module) else None


def split_heads(weight: Tensor, heads: tuple[int, ...], channels: int) -> Tensor | None:
    """Each head's part ``(head, channel, width)`` of a weight; None if it does not fit these heads."""
    if weight.shape[1] % channels or weight.shape[1] // channels <= max(heads):
        return None
    parts: Tensor = weight.detach().unflatten(1, (-1, channels))[:, list(heads)]  # (width, head, channel)
    return parts.permute(1, 2, 0).contiguous()


def output_weight(projection: object, call: Call) -> Tensor:
    """The weight ``(width, heads · channel)`` of the output projection of a call."""
    if isinstance(projection, nn.Module) and _weight_of(projection) is None:
        return _found(projection, call)
    return given_weight(projection)


def given_weight(projection: object) -> Tensor:
    """The weight ``(width, heads · channel)`` of a linear module, or the given tensor."""
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
    weight = _weight_of(projection)
    if weight is None:
        raise DtypeError(
            "An output projection must be a linear module or its weight.",
            got="{type}",
            do="Pass model.layers[0].attention.out_proj, say.",
            type=type(projection).__name__,
        )
    return weight


def _found(model: nn.Module, call: Call) -> Tensor:
    weight = find_weight(model, call.name)
    if weight is not None:
        return weight
    if call.name not in _modules(model) and call.name != type(model).__name__:
        raise RecordingError(
            "The call {name!r} must come from the model that is passed.",
            got="{type}, which has no such module",
            do="Pass the model that was watched, or the output projection itself.",
            name=call.name,
            type=type(model).__name__,
        )
    raise RecordingError(
        "The output projection of {name!r} must be called {NAMES}, …, in the module or beside it.",
        got="none in {type}",
        do="Pass the projection itself: value_weighted(call, linear).",
        name=call.name,
        NAMES=", ".join(NAMES[:6]),
        type=type(model).__name__,
    )


def find_weight(model: nn.Module, path: str) -> Tensor | None:
    """The weight of the output projection of an attention module; None if it is not found."""
    return _weight_of(find_projection(model, path))


def find_projection(model: nn.Module, path: str) -> nn.Module | None:
    """The projection inside the attention module, or beside it as BERT has it; None if there is none."""
    modules = _modules(model)
    # A model that is itself the attention module is recorded under the name of its class.
    path = path if path in modules else ""
    for place in dict.fromkeys((path, path.rpartition(".")[0])):
        for name in NAMES:
            module = modules.get(f"{place}.{name}" if place else name)
            if _weight_of(module) is not None:
                return module
    return None


def _modules(model: nn.Module) -> dict[str, nn.Module]:
    """The modules by the names that calls have, which leave out what torch.compile wraps."""
    return {name.replace("_orig_mod.", ""): module for name, module in model.named_modules()}


def _weight_of(module: nn.Module | None) -> Tensor | None:
    """The weight of a linear module, outputs first; None for anything else."""
    weight = getattr(module, "weight", None)
    if module is None or not is_linear(module) or not isinstance(weight, Tensor) or weight.ndim != 2:
        return None
    turned = _is_turned(module)
    weight = _loaded(module, "weight", weight).detach()
    return weight.T if turned else weight


def is_linear(module: nn.Module) -> bool:
    """Whether this is a linear module of torch or of transformers."""
    return isinstance(module, nn.Linear) or _is_turned(module)


def _is_turned(module: nn.Module) -> bool:
    """Whether this is GPT-2's linear module, which keeps its inputs first."""
    return type(module).__name__ == "Conv1D"


def _bias_of(module: nn.Module | None) -> Tensor | None:
    """A copy of the bias of a linear module, which training may change; None if it has none."""
    bias = getattr(module, "bias", None)
    if module is None or not isinstance(bias, Tensor):
        return None
    return _loaded(module, "bias", bias).detach().clone()


def _loaded(module: nn.Module, name: str, tensor: Tensor) -> Tensor:
    """A parameter itself, where accelerate has moved it out of memory and loads it for each pass."""
    if not tensor.is_meta:
        return tensor
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
    return torch.as_tensor(stored[name])
