"""How far a running model is, counted by its modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@contextmanager
def modules_counted(model: nn.Module, report: Callable[[int, int], None]) -> Iterator[None]:
    """Every module of the model reports, before it runs, how many have run, and of how many.

    A model that generates runs its modules many times; then all of them are reported again and again.
    """
    parts = [module for module in model.modules() if next(module.children(), None) is None]
    done = 0

    def hook(module: nn.Module, args: object) -> None:
        nonlocal done
        del module, args
        done += 1
        report(min(done, len(parts)), len(parts))

    hooks = [part.register_forward_pre_hook(hook) for part in parts]
    try:
        yield
    finally:
        for one in hooks:
            one.remove()
