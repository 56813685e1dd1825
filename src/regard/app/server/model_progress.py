"""A model that runs for a job: one job at a time, and its modules report the progress."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from regard.app.server.jobs import ProgressReporter

if TYPE_CHECKING:
    from torch import nn


@contextmanager
def held(lock: threading.Lock, report: ProgressReporter) -> Iterator[None]:
    """Hold the lock of a model; waiting for it can be stopped."""
    while not lock.acquire(timeout=0.2):
        report(0.0, "waiting")
    try:
        yield
    finally:
        lock.release()


@contextmanager
def heard(model: nn.Module, report: ProgressReporter) -> Iterator[None]:
    """Every module of the model reports the progress before it runs, which can also stop the reading."""
    parts = [module for module in model.modules() if next(module.children(), None) is None]
    done = 0

    def hook(module: nn.Module, args: Any) -> None:
        nonlocal done
        del module, args
        done += 1
        # A model that generates runs its modules many times; then only stopping matters.
        report(min(1.0, done / len(parts)), "reading")

    hooks = [part.register_forward_pre_hook(hook) for part in parts]
    try:
        yield
    finally:
        for one in hooks:
            one.remove()
