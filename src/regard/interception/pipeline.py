"""From an attention call of a model to what it computes: the one place that computes it.

    InterceptedCall → edit the inputs → compute → edit the output → AttentionStep, written down

Each watch or edit has a ModuleTracker, which knows the modules of its model and gives every call its place.
Editors come in the order in which their blocks were entered, so an inner edit changes what an outer one
left. Writers come last: what they write is what was computed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.interception.call_types import (
    AttentionStep,
    CallEditor,
    CallListener,
    CallPlace,
    CallWriter,
    InterceptedCall,
    Kind,
)
from regard.kernels import Statistics, attention_statistics
from regard.kernels.bias import Bias
from regard.kernels.head_masks import output_and_lse
from regard.kernels.inputs import Inputs
from regard.masks.pair_patterns import looks_back

CROSS_WORDS = ("cross", "encoder_attn", "encdec", "multihead_attn")
"""Names of modules that attend to another sequence; the last is the one in torch.nn."""


class ModuleTracker:
    """Follows one model for one listener: the names of its modules, and which of them runs.

    It sees the thread that created it and ignores all others.
    """

    def __init__(self, model: nn.Module, listener: CallListener) -> None:
        self.listener = listener
        self.writer = listener if isinstance(listener, CallWriter) else None
        self.editor = listener if isinstance(listener, CallEditor) else None
        self.model = model
        self.numbering = CallNumbering()
        self.lazy_biases: dict[int, tuple[Tensor, Bias]] = {}
        self._names = {
            id(module): name.replace("_orig_mod.", "").removesuffix("_orig_mod").removesuffix(".")
            for name, module in model.named_modules(remove_duplicate=True)
        }
        self._thread = threading.get_ident()
        self._running: list[nn.Module] = []
        self._around: Callable[[], AbstractContextManager[object]] = nullcontext
        self._each_pass = False
        self._pass = ExitStack()

    @property
    def in_own_thread(self) -> bool:
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

    def place(self, module: nn.Module | None, kind: Kind) -> CallPlace:
        """The place of the next call; without a module, it is that of the module that is running."""
        return self.numbering.place(self.name_of(module or self.running), kind)

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
        cached = queries < keys and self.numbering.kind_before(name) in ("encoder", "decoder")
        return "decoder" if cached or looks_back(inputs.mask) else "cross"

    @contextmanager
    def hooks(
        self,
        *,
        leaves: bool,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
        each_pass: bool = False,
    ) -> Iterator[None]:
        """Follow which module is running.

        ``around`` is entered around what checkpointing runs again in a backward pass, where torch has
        left every function mode; with ``each_pass``, around every forward pass.

        Modules without children run most often and never pass themselves to an attention function;
        they matter only for functions that are called without their module (``leaves``).
        """
        self._around, self._each_pass = around, each_pass
        with ExitStack() as stack:
            for module in self.model.modules():
                if not leaves and module is not self.model and not any(True for _ in module.children()):
                    continue
                before = module.register_forward_pre_hook(self._enter, prepend=True)
                after = module.register_forward_hook(self._leave, always_call=True)
                stack.callback(before.remove)
                stack.callback(after.remove)
            stack.callback(self._pass.close)
            yield

    def _enter(self, module: nn.Module, args: Any) -> None:
        del args
        if self.in_own_thread:
            if not self._running:
                self.numbering.begin()
                self.listener.begin()
                if self._each_pass or recomputing():
                    self._pass.enter_context(self._around())
            self._running.append(module)

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        del args, output
        # An error may have skipped some hooks; every module above this one has ended too.
        if self.in_own_thread and any(module is running for running in self._running):
            while self._running.pop() is not module:
                pass
            if not self._running:
                self._pass.close()


def uncompiled(model: nn.Module) -> nn.Module:
    """The model inside the result of ``torch.compile(model)``."""
    inner = getattr(model, "_orig_mod", None)
    return uncompiled(inner) if isinstance(inner, nn.Module) else model


# ---- layers ----------------------------------------------------------------------------------


class CallNumbering:
    """The places of the calls of a model: layers are numbered by kind, in the order of a forward pass.

    >>> numbering = CallNumbering()
    >>> numbering.place("layers.0.attention", "encoder").layer, numbering.place("layers.1", "encoder").layer
    (0, 1)
    >>> numbering.begin()
    >>> numbering.place("layers.0.attention", "encoder").layer
    0
    """

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._places: dict[tuple[str, int], CallPlace] = {}
        self.begin()

    def begin(self) -> None:
        """A forward pass begins."""
        self._layers: Counter[Kind] = Counter()
        self._occurrences: Counter[str] = Counter()

    def place(self, name: str, kind: Kind) -> CallPlace:
        """The place of the next call."""
        occurrence = self._occurrences[name]
        self._occurrences[name] += 1
        known = self._places.get((name, occurrence))
        if known is not None and recomputing():
            return known  # a part of a pass runs again, so it cannot be numbered by counting
        layer = self._layers[kind]
        self._layers[kind] += 1
        self._kinds[name] = kind
        place = self._places[name, occurrence] = CallPlace(name, kind, layer, occurrence)
        return place

    def kind_before(self, name: str) -> Kind | None:
        """The kind of the last call of a module; None if it was not called yet."""
        return self._kinds.get(name)


def recomputing() -> bool:
    """Whether a backward pass is running: a forward pass inside it is one that checkpointing repeats."""
    return bool(torch._C._current_graph_task_id() != -1)


# ---- the list of trackers -------------------------------------------------------------------

_trackers: list[ModuleTracker] = []
_lock = threading.Lock()
_own_calls = threading.local()


@contextmanager
def tracked(tracker: ModuleTracker) -> Iterator[None]:
    """Keep the tracker on the list while the block runs."""
    with _lock:
        _trackers.append(tracker)
    try:
        yield
    finally:
        with _lock:
            _trackers.remove(tracker)


def trackers_of(module: nn.Module) -> list[ModuleTracker]:
    """Every tracker of this module in this thread."""
    return [tracker for tracker in tuple(_trackers) if tracker.in_own_thread and tracker.knows(module)]


def trackers_around(model: nn.Module) -> list[ModuleTracker]:
    """Every tracker in this thread of this model, of a part of it, or of a model that contains it."""
    return [tracker for tracker in tuple(_trackers) if tracker.in_own_thread and tracker.is_part_of(model)]


def running_trackers() -> list[ModuleTracker]:
    """Every tracker in this thread whose model is running, unless regard itself is computing."""
    if getattr(_own_calls, "busy", False):
        return []
    return [tracker for tracker in tuple(_trackers) if tracker.in_own_thread and tracker.running is not None]


@contextmanager
def untracked() -> Iterator[None]:
    """Hide the attention that regard itself calls in this block from the trackers."""
    _own_calls.busy = True
    try:
        yield
    finally:
        _own_calls.busy = False


# ---- one call --------------------------------------------------------------------------------


def attend(call: InterceptedCall, trackers: list[ModuleTracker]) -> tuple[Tensor, Inputs]:
    """The output of attention ``(batch, head, query, channel)``, and the inputs it was computed from."""
    editors: list[tuple[CallEditor, CallPlace]] = []
    writers: list[tuple[CallWriter, CallPlace]] = []
    for tracker in trackers:
        place = tracker.place(call.module, call.kind)
        if tracker.editor is not None:
            editors.append((tracker.editor, place))
        if tracker.writer is not None:
            writers.append((tracker.writer, place))
    # Scores are computed in at least float32, whatever autocast would make of the products.
    with untracked(), torch.autocast(call.inputs.q.device.type, enabled=False):
        for editor, place in editors:
            call = editor.edit_inputs(place, call)
        # For cross-attention, the position of a row among the keys is known only once all rows are there.
        output, lse, statistics = _computed(call.inputs, writers, at_once=call.kind != "cross")
        own = output = _with_gradient(output, writers)
        for editor, place in editors:
            output = editor.edit_output(place, call, output)
    if writers:
        _write(call, writers, own, lse, statistics)
    return output, call.inputs


def _with_gradient(output: Tensor, writers: list[tuple[CallWriter, CallPlace]]) -> Tensor:
    """The output with a gradient, if a writer waits for it and all parameters are frozen."""
    wanted = any(writer.gradients and writer.records(place) for writer, place in writers)
    if wanted and torch.is_grad_enabled() and not output.requires_grad:
        output.requires_grad_()
    return output


def _write(
    call: InterceptedCall,
    writers: list[tuple[CallWriter, CallPlace]],
    output: Tensor,
    lse: Tensor | None,
    statistics: Statistics | None,
) -> None:
    inputs = call.inputs
    step = AttentionStep(
        inputs.q.detach(),
        inputs.k.detach(),
        inputs.v.detach(),
        lse,
        statistics,
        call.mask_view,
        None if inputs.bias is None else inputs.bias.detach(),
        inputs.scale,
        inputs.softcap,
        None if inputs.sinks is None else inputs.sinks.detach().clone(),
        call.past,
        call.first_key,
        output,
        inputs.dropout,
    )
    bare = step if statistics is None else replace(step, statistics=None)
    for writer, place in writers:
        writer.add(place, step if writer.statistics else bare)


def _computed(
    inputs: Inputs, writers: list[tuple[CallWriter, CallPlace]], *, at_once: bool
) -> tuple[Tensor, Tensor | None, Statistics | None]:
    """Output, lse and statistics, as far as any writer needs them, in as few passes as possible."""
    needed = [writer for writer, place in writers if writer.records(place)]
    statistics = None
    if at_once and any(writer.statistics for writer in needed):
        statistics = _statistics(inputs, max(writer.top for writer in needed))
        if statistics.output is not None:
            return statistics.output, statistics.lse, replace(statistics, output=None)
    return *output_and_lse(inputs, with_lse=bool(needed)), statistics


def _statistics(inputs: Inputs, top: int) -> Statistics:
    """The statistics, with the output of the same pass unless there is a gradient or dropout."""
    tensors = (inputs.q, inputs.k, inputs.v)
    learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    given: Any = tensors[:2] if learns or inputs.dropout else tensors
    return attention_statistics(
        *given,
        mask=inputs.mask,
        bias=inputs.bias,
        scale=inputs.scale,
        softcap=inputs.softcap,
        sinks=inputs.sinks,
        top=top,
    )


def to_autocast_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Q, K and V in the dtype that torch's own attention would give them here."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(x if x.dtype == torch.float64 else x.to(dtype) for x in tensors)
