"""Intercepts the attention calls of a model for one tracker, each part in the way that it allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from regard.interception import hf_registry
from regard.interception.generation_hooks import searches_followed
from regard.interception.module_tracker import ModuleTracker, tracked
from regard.interception.torch_functions import AttentionFunctionMode, compiled_runs_eagerly, fast_path_off


@contextmanager
def calls_intercepted(
    tracker: ModuleTracker, hidden: Callable[[Any], AbstractContextManager[None]], *, each_pass: bool = False
) -> Iterator[None]:
    """Let the tracker see every call of its model while the block runs.

    ``hidden`` is entered for a part that computes attention itself, where no call can be seen. Torch's
    function modes end in the reverse order in which they began. With ``each_pass`` ours begins and ends with
    every forward pass, so that the block may end in any order with other blocks.
    """
    model = tracker.model
    parts = list(hf_registry.pretrained_parts(model))
    through_torch = model not in parts
    with ExitStack() as stack:
        stack.enter_context(tracked(tracker))
        stack.enter_context(compiled_runs_eagerly())
        for part in parts:
            if hf_registry.uses_attention_interface(part):
                stack.enter_context(hf_registry.attention_replaced(part))
            elif getattr(part.config, "_attn_implementation", None) == "sdpa":
                through_torch = True  # off the registry, but it calls torch's own function
            else:
                stack.enter_context(hidden(part))
        if through_torch:
            stack.enter_context(fast_path_off())
        if through_torch and not each_pass:
            stack.enter_context(AttentionFunctionMode())
        around = AttentionFunctionMode if through_torch else nullcontext
        stack.enter_context(tracker.hooks(leaves=through_torch, around=around, each_pass=each_pass))
        stack.enter_context(searches_followed(tracker, transformers=bool(parts)))
        yield
