"""One process or several: what ``torchrun`` started, seen from one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Processes:
    """How many processes train together, and which of them this is. Only the first one writes.

    >>> Processes().first, Processes(count=2, own=1).first
    (True, False)
    """

    count: int = 1
    own: int = 0

    @property
    def first(self) -> bool:
        """Whether this one writes files and shows progress."""
        return self.own == 0

    def wait(self) -> None:
        """Go on when all have come here."""
        if self.count > 1:
            dist.barrier()

    def total(self, numbers: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.count > 1:
            dist.all_reduce(numbers)
        return numbers

    def gather(self, own: Tensor) -> list[Tensor]:
        """What each process has, in their order."""
        if self.count == 1:
            return [own]
        all_of_them = [torch.empty_like(own) for _ in range(self.count)]
        dist.all_gather(all_of_them, own)
        return all_of_them


def ranks_from_environment() -> Processes:
    """Which process ``torchrun`` says this is; one alone without it."""
    return Processes(int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0")))


@contextmanager
def joined() -> Iterator[Processes]:
    """The processes that ``torchrun`` started, connected; without it, this one alone."""
    processes = ranks_from_environment()
    if processes.count == 1:
        yield processes
        return
    dist.init_process_group("gloo")
    try:
        yield processes
    finally:
        dist.destroy_process_group()
