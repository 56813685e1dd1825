"""Which observer watches which module, and the one place where a watched attention is computed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.interception.steps import (
    AttentionStep,
    CallPlace,
    CallWriter,
    FixedMaskView,
    Kind,
    MaskView,
)
from regard.kernels import Statistics, attention_statistics, attention_with_lse
from regard.kernels.attention import attention
from regard.kernels.biases import Bias
from regard.kernels.inputs import Inputs
from regard.kernels.single_row import single_query
from regard.masks.mask import Both, Either, Mask
from regard.masks.pair_patterns import Dense
from regard.masks.patterns import Window

CROSS_WORDS = ("cross", "encoder_attn", "encdec", "multihead_attn")
"""Names of modules that attend to another sequence; the last is the one in torch.nn."""


class Observer:
    """One watch over one model: the writer of its calls, the names of its modules, and which of them runs.

    It sees the thread that created it and ignores all others.
    """

    def __init__(self, model: nn.Module, writer: CallWriter) -> None:
        self.writer = writer
        self.model = model
        self.lazy_biases: dict[int, tuple[Tensor, Bias]] = {}
        self._names = {
            id(module): name.replace("_orig_mod.", "").removesuffix("_orig_mod").removesuffix(".")
            for name, module in model.named_modules(remove_duplicate=True)
        }
        self._thread = threading.get_ident()
        self._running: list[nn.Module] = []

    @property
    def listens(self) -> bool:
        """Whether this is the thread that watches."""
        return threading.get_ident() == self._thread

    def knows(self, module: nn.Module) -> bool:
        """Whether the module is a part of the watched model."""
        return id(module) in self._names

    def is_part_of(self, model: nn.Module) -> bool:
        """Whether what is watched and this model share modules."""
        return self.knows(model) or any(module is self.model for module in model.modules())

    def name_of(self, module: nn.Module | None) -> str:
        """The path of a module in the model; the class name of the model for the model itself."""
        name = self._names.get(id(module), "")
        return name or type(uncompiled(self.model)).__name__

    @property
    def running(self) -> nn.Module | None:
        """The innermost module that is running."""
        return self._running[-1] if self._running else None

    def kind_of(self, inputs: Inputs, module: nn.Module | None) -> Kind:
        """The kind of a call by its name, mask and lengths: a decoder looks back, a cross elsewhere."""
        name = self.name_of(module)
        if any(word in f"{name} {type(module).__name__}".lower() for word in CROSS_WORDS):
            return "cross"
        queries, keys = inputs.extent
        if queries == keys or not queries:
            return "decoder" if looks_back(inputs.mask) else "encoder"
        # A module that attended to its own text before still does: there is a cache.
        cached = queries < keys and self.writer.kind_before(name) in ("encoder", "decoder")
        return "decoder" if cached or looks_back(inputs.mask) else "cross"

    @contextmanager
    def hooks(self, *, leaves: bool) -> Iterator[None]:
        """Follow which module is running.

        Modules without children run most often and never pass themselves to an attention function;
        they matter only for functions that are called without their module (``leaves``).
        """
        with ExitStack() as stack:
            for module in self.model.modules():
                if not leaves and module is not self.model and not any(True for _ in module.children()):
                    continue
                before = module.register_forward_pre_hook(self._enter, prepend=True)
                after = module.register_forward_hook(self._leave, always_call=True)
                stack.callback(before.remove)
                stack.callback(after.remove)
            yield

    def _enter(self, module: nn.Module, args: Any) -> None:
        del args
        if self.listens:
            if not self._running:
                self.writer.begin()
            self._running.append(module)

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        del args, output
        # An error may have skipped some hooks; every module above this one has ended too.
        if self.listens and any(module is running for running in self._running):
            while self._running.pop() is not module:
                pass


def uncompiled(model: nn.Module) -> nn.Module:
    """The model inside the result of ``torch.compile(model)``."""
    inner = getattr(model, "_orig_mod", None)
    return uncompiled(inner) if isinstance(inner, nn.Module) else model


def looks_back(mask: Mask) -> bool:
    """Whether no query sees a later key, as far as the mask itself shows."""
    if isinstance(mask, Window):
        return mask.after == 0
    if isinstance(mask, Dense):
        table = torch.from_numpy(mask.table.values.copy())
        queries, keys = table.shape[-2:]
        return queries > 1 and not bool(table.triu(keys - queries + 1).any())
    if isinstance(mask, Both):
        return any(looks_back(part) for part in mask.parts)
    return isinstance(mask, Either) and all(looks_back(part) for part in mask.parts)


# ---- the list of observers -------------------------------------------------------------------

_observers: list[Observer] = []
_lock = threading.Lock()
_inside = threading.local()


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Keep the observer on the list while the block runs."""
    with _lock:
        _observers.append(observer)
    try:
        yield
    finally:
        with _lock:
            _observers.remove(observer)


def observers_here(module: nn.Module) -> list[Observer]:
    """Every observer of this module in this thread."""
    return [observer for observer in tuple(_observers) if observer.listens and observer.knows(module)]


def observers_around(model: nn.Module) -> list[Observer]:
    """Every observer in this thread of this model, of a part of it, or of a model that contains it."""
    return [observer for observer in tuple(_observers) if observer.listens and observer.is_part_of(model)]


def observers_running() -> list[Observer]:
    """Every observer in this thread whose model is running, unless regard itself is computing."""
    if getattr(_inside, "busy", False):
        return []
    return [observer for observer in tuple(_observers) if observer.listens and observer.running is not None]


def autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Q, K and V in the dtype that torch's own attention would give them here."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(x if x.dtype == torch.float64 else x.to(dtype) for x in tensors)


# ---- computing ---------------------------------------------------------------------------------


def attend(
    inputs: Inputs,
    observers: list[Observer],
    module: nn.Module | None,
    kind: Kind,
    *,
    view: MaskView | None,
    past: int,
    first_key: int = 0,
) -> Tensor:
    """The output of attention ``(batch, head, query, channel)``, after every observer has written it down.

    Without a module, each observer names the call after the module that is running.
    """
    options: dict[str, Any] = {
        "mask": inputs.mask,
        "bias": inputs.bias,
        "scale": inputs.scale,
        "softcap": inputs.softcap,
        "sinks": inputs.sinks,
    }
    places = [
        (observer.writer, observer.writer.place(observer.name_of(module or observer.running), kind))
        for observer in observers
    ]
    # For cross-attention, the position of a row among the keys is known only once all rows are there.
    _inside.busy = True
    try:
        # Scores are computed in at least float32, whatever autocast would make of the products.
        with torch.autocast(inputs.q.device.type, enabled=False):
            output, lse, statistics = _computed(inputs, places, options, at_once=kind != "cross")
    finally:
        _inside.busy = False
    step = AttentionStep(
        inputs.q.detach(),
        inputs.k.detach(),
        inputs.v.detach(),
        lse,
        statistics,
        view or FixedMaskView(inputs.mask, inputs.extent.queries),
        None if inputs.bias is None else inputs.bias.detach(),
        inputs.scale,
        inputs.softcap,
        None if inputs.sinks is None else inputs.sinks.detach().clone(),
        past,
        first_key,
    )
    bare = step if statistics is None else replace(step, statistics=None)
    for writer, place in places:
        writer.add(place, step if writer.statistics else bare)
    return output


def _computed(
    inputs: Inputs, places: list[tuple[CallWriter, CallPlace]], options: dict[str, Any], *, at_once: bool
) -> tuple[Tensor, Tensor | None, Statistics | None]:
    """Output, lse and statistics, as far as any writer needs them, in as few passes as possible."""
    writers = [writer for writer, place in places if place.recorded]
    tensors = (inputs.q, inputs.k, inputs.v)
    if not writers:
        return attention(*tensors, **options, dropout=inputs.dropout), None, None
    statistics = None
    if at_once and any(writer.statistics for writer in writers):
        # Statistics give the output of the same pass, but no gradient and no dropout.
        learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        alone = not learns and not inputs.dropout
        top = max(writer.top for writer in writers)
        statistics = attention_statistics(*(tensors if alone else tensors[:2]), **options, top=top)
        if statistics.output is not None:
            return statistics.output, statistics.lse, replace(statistics, output=None)
    single = single_query(inputs)
    if single is not None:
        return *single, statistics
    output, lse = attention_with_lse(*tensors, **options, dropout=inputs.dropout)
    return output, lse, statistics
