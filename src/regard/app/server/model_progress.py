"""A model that runs for a job: one job at a time, and its modules report the progress."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from regard.app.counted_modules import modules_counted
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
    with modules_counted(model, lambda done, total: report(done / total, "reading")):
        yield
