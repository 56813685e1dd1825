"""Which modules of a running model are followed, to record their attention calls or to edit them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from regard.interception.call_numbering import recomputing
from regard.interception.steps import CallEditor, CallListener, CallPlace, CallWriter, Kind
from regard.kernels.biases import Bias
from regard.kernels.inputs import Inputs
from regard.masks.mask import Both, Either, Mask
from regard.masks.pair_patterns import Dense
from regard.masks.patterns import Window

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

    def place(self, module: nn.Module | None, kind: Kind) -> CallPlace:
        """The place of the next call; without a module, it is that of the module that is running."""
        return self.listener.place(self.name_of(module or self.running), kind)

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
        cached = queries < keys and self.listener.kind_before(name) in ("encoder", "decoder")
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
        if self.listens:
            if not self._running:
                self.listener.begin()
                if self._each_pass or recomputing():
                    self._pass.enter_context(self._around())
            self._running.append(module)

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        del args, output
        # An error may have skipped some hooks; every module above this one has ended too.
        if self.listens and any(module is running for running in self._running):
            while self._running.pop() is not module:
                pass
            if not self._running:
                self._pass.close()


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
    return [tracker for tracker in tuple(_trackers) if tracker.listens and tracker.knows(module)]


def trackers_around(model: nn.Module) -> list[ModuleTracker]:
    """Every tracker in this thread of this model, of a part of it, or of a model that contains it."""
    return [tracker for tracker in tuple(_trackers) if tracker.listens and tracker.is_part_of(model)]


def running_trackers() -> list[ModuleTracker]:
    """Every tracker in this thread whose model is running, unless regard itself is computing."""
    if getattr(_own_calls, "busy", False):
        return []
    return [tracker for tracker in tuple(_trackers) if tracker.listens and tracker.running is not None]


@contextmanager
def computing() -> Iterator[None]:
    """Hide the attention that regard itself calls in this block from the trackers."""
    _own_calls.busy = True
    try:
        yield
    finally:
        _own_calls.busy = False


def autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Q, K and V in the dtype that torch's own attention would give them here."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(x if x.dtype == torch.float64 else x.to(dtype) for x in tensors)
