"""Intercepts the attention calls of a model while a block runs, each part in the way that it allows.

    ModuleTracker → calls_intercepted() → the model calls hf_attention.py or torch_functions.py

Everything that is switched for a block is switched here, and switched back: the configurations of
transformers, compiled models, torch's fused encoder layer, and the beam searches of transformers and of
regard.nn. What is switched for the whole process is counted, so that blocks may end in any order.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn

from regard.interception.call_types import CallWriter
from regard.interception.hf_attention import (
    IMPLEMENTATION,
    ReplacedConfig,
    attention_function,
    mask_function,
    replaced_configs,
)
from regard.interception.pipeline import ModuleTracker, tracked, trackers_around
from regard.interception.torch_functions import AttentionFunctionMode
from regard.nn.beam_search import followed


@contextmanager
def calls_intercepted(
    tracker: ModuleTracker,
    fallback: Callable[[Any], AbstractContextManager[None]],
    *,
    each_pass: bool = False,
) -> Iterator[None]:
    """Let the tracker see every call of its model while the block runs.

    ``fallback`` is entered for a part that computes attention itself, where no call can be seen. Torch's
    function modes end in the reverse order in which they began. With ``each_pass`` ours begins and ends with
    every forward pass, so that the block may end in any order with other blocks.
    """
    model = tracker.model
    parts = list(pretrained_parts(model))
    through_torch = model not in parts
    with ExitStack() as stack:
        stack.enter_context(tracked(tracker))
        if "torch._dynamo" in sys.modules:  # otherwise nothing was compiled, and the compiler stays unloaded
            stack.enter_context(_EAGER.on())
        for part in parts:
            if uses_attention_interface(part):
                stack.enter_context(attention_replaced(part))
            elif getattr(part.config, "_attn_implementation", None) == "sdpa":
                through_torch = True  # off the registry, but it calls torch's own function
            else:
                stack.enter_context(fallback(part))
        if through_torch:
            stack.enter_context(_SLOW_PATH.on())
        if through_torch and not each_pass:
            stack.enter_context(AttentionFunctionMode())
        around = AttentionFunctionMode if through_torch else nullcontext
        stack.enter_context(tracker.hooks(leaves=through_torch, around=around, each_pass=each_pass))
        if tracker.writer is not None:  # an editor need not know of beam searches
            stack.enter_context(followed(BeamSearchHooks(tracker, tracker.writer)))
            if parts:
                stack.enter_context(_GENERATE.on())
        yield


class ProcessSwitch:
    """What holds for the whole process: the first block switches it, and the last one switches it back."""

    def __init__(self, switched: Callable[[], AbstractContextManager[object]]) -> None:
        self._switched = switched
        self._lock = threading.Lock()
        self._users = 0
        self._stack = ExitStack()

    @contextmanager
    def on(self) -> Iterator[None]:
        """Keep it switched while the block runs, in whatever order the blocks of several threads end."""
        with self._lock:
            if not self._users:
                self._stack.enter_context(self._switched())
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._stack.close()


# ---- transformers: its configurations name our attention -------------------------------------


def is_pretrained(model: nn.Module) -> bool:
    """Whether this is a transformers model, asked without importing transformers."""
    names = {(kind.__module__, kind.__name__) for kind in type(model).__mro__}
    return ("transformers.modeling_utils", "PreTrainedModel") in names


def pretrained_parts(module: nn.Module) -> Iterator[Any]:
    """The outermost transformers models in a module: itself, or those that it wraps."""
    if is_pretrained(module):
        yield module
        return
    for child in module.children():
        yield from pretrained_parts(child)


def uses_attention_interface(model: Any) -> bool:
    """Whether every part of the model hands its attention to the registry."""
    return all(part._can_set_attn_implementation() for part in model.modules() if is_pretrained(part))


_lock = threading.Lock()


@contextmanager
def attention_replaced(model: nn.Module) -> Iterator[None]:
    """Give the model our attention while it is watched."""
    _register()
    configs = list(_configs(model))
    with _lock:
        for config in configs:
            known = replaced_configs.get(id(config))
            if known is not None:
                known.users += 1
            else:
                replaced_configs[id(config)] = ReplacedConfig(config, config._attn_implementation)
                config._attn_implementation_internal = IMPLEMENTATION
    try:
        yield
    finally:
        with _lock:
            for config in configs:
                known = replaced_configs[id(config)]
                known.users -= 1
                if not known.users:
                    config._attn_implementation_internal = known.before
                    del replaced_configs[id(config)]


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


def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(IMPLEMENTATION, attention_function)
    AttentionMaskInterface.register(IMPLEMENTATION, mask_function)


# ---- torch: nothing compiled, nothing fused --------------------------------------------------


@contextmanager
def fast_path_off() -> Iterator[None]:
    """Switch off torch's fused encoder layer, which cannot be intercepted."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def compiled_runs_eagerly() -> AbstractContextManager[object]:
    """Run compiled models eagerly, because compiled attention cannot be intercepted."""
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance


# ---- beam searches, followed to the texts that they return -----------------------------------


class BeamSearchHooks:
    """Tells the writer of a tracker when a beam search of regard.nn begins and ends."""

    def __init__(self, tracker: ModuleTracker, writer: CallWriter) -> None:
        self._tracker, self._writer = tracker, writer

    def begin(self, model: nn.Module) -> None:
        """A search begins."""
        if self._tracker.is_part_of(model):
            self._writer.begin_search()

    def end(self, rows: Any) -> None:
        """A search ends; ``rows (text, step)`` led to its texts, or None if it failed."""
        self._writer.end_search(rows)


@contextmanager
def generate_replaced() -> Iterator[None]:
    """Wrap ``GenerationMixin.generate``.

    The class is wrapped, not one model: some models have their own ``generate``, which calls that of the
    class, perhaps several times. A model that is not watched in this thread goes straight through.
    """
    from transformers import GenerationMixin

    original = GenerationMixin.generate
    setattr(GenerationMixin, "generate", _following(original))  # noqa: B010 - mypy wants no assignment
    try:
        yield
    finally:
        setattr(GenerationMixin, "generate", original)  # noqa: B010


def _following(original: Any) -> Any:
    @functools.wraps(original)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        writers = [tracker.writer for tracker in trackers_around(self) if tracker.writer is not None]
        if not writers or (_option("num_beams", self, args, kwargs) or 1) < 2:
            return original(self, *args, **kwargs)
        return _followed_search(original, writers, self, args, kwargs)

    return generate


def _followed_search(
    original: Any, writers: list[CallWriter], model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The search with ``beam_indices`` in its output; the caller gets what they asked for."""
    asked = _option("return_dict_in_generate", model, args, kwargs)
    for writer in writers:
        writer.begin_search()
    rows, prompt = None, 0
    try:
        output = original(model, *args, **{**kwargs, "return_dict_in_generate": True})
        rows = getattr(output, "beam_indices", None)
        if rows is not None:
            prompt = output.sequences.shape[1] - rows.shape[1]
    finally:
        for writer in writers:
            writer.end_search(rows, prompt)
    return output if asked else output.sequences


def _option(name: str, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An option of ``generate``: passed by name, in the given configuration, or in that of the model."""
    given = kwargs.get("generation_config", args[1] if len(args) > 1 else None)
    found = [kwargs.get(name), getattr(given, name, None), getattr(model.generation_config, name, None)]
    return next((value for value in found if value is not None), None)


_EAGER = ProcessSwitch(compiled_runs_eagerly)
_SLOW_PATH = ProcessSwitch(fast_path_off)
_GENERATE = ProcessSwitch(generate_replaced)
