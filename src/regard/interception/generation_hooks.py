"""Follow beam searches, of transformers and of regard.nn, to the texts that they return.

Both report at the end which row of the batch chose each token: transformers as ``beam_indices`` of its
output, regard.nn to a follower of the search.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from regard.interception.module_tracker import ModuleTracker, trackers_around
from regard.interception.steps import CallWriter
from regard.nn.beam_search import followed


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
def searches_followed(tracker: ModuleTracker, *, transformers: bool) -> Iterator[None]:
    """Follow the beam searches of the watched model while the block runs; an editor need not know of them."""
    if tracker.writer is None:
        yield
        return
    with followed(BeamSearchHooks(tracker, tracker.writer)):
        if transformers:
            with _generate_replaced():
                yield
        else:
            yield


# ---- transformers ----------------------------------------------------------------------------

_users = 0
_original: Any = None
_lock = threading.Lock()


@contextmanager
def _generate_replaced() -> Iterator[None]:
    """Wrap ``GenerationMixin.generate`` for as long as any model is watched.

    The class is wrapped, not one model: some models have their own ``generate``, which calls that of the
    class, perhaps several times. A model that is not watched in this thread goes straight through.
    """
    from transformers import GenerationMixin

    global _users, _original
    with _lock:
        if not _users:
            _original = GenerationMixin.generate
            setattr(GenerationMixin, "generate", _following(_original))  # noqa: B010 - mypy wants no assignment
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                setattr(GenerationMixin, "generate", _original)  # noqa: B010


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
