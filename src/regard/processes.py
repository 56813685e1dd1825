"""The processes that ``torchrun`` started, from the point of view of one of them; or a single process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from regard.errors import ProcessError

TIMEOUT = timedelta(minutes=30)
"""How long a process waits for the others."""


@dataclass(frozen=True)
class Processes:
    """The number of processes, and the rank of this one. The first one merges, writes files and prints.

    >>> Processes().first, Processes(count=4, own=1).first
    (True, False)
    """

    count: int = 1
    own: int = 0
    device: str = "cpu"  # where tensors must be to be exchanged

    @property
    def first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.own == 0

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        if self.count > 1:
            with self._together():
                dist.barrier()

    def total(self, own: Tensor) -> Tensor:
        """The sum over all processes."""
        return self._reduced(own, dist.ReduceOp.SUM) if self.count > 1 else own

    def least(self, own: Tensor) -> Tensor:
        """The elementwise minimum over all processes."""
        return self._reduced(own, dist.ReduceOp.MIN) if self.count > 1 else own

    def all(self, own: Tensor) -> list[Tensor]:
        """The tensors of all processes, in the order of their ranks; all have the same shape."""
        if self.count == 1:
            return [own]
        sent = own.to(self.device).contiguous()
        taken = [torch.empty_like(sent) for _ in range(self.count)]
        with self._together():
            dist.all_gather(taken, sent)
        return [one.cpu() for one in taken]

    def _reduced(self, own: Tensor, how: dist.ReduceOp.RedOpType) -> Tensor:
        shared = own.to(self.device, copy=True).contiguous()
        with self._together():
            dist.all_reduce(shared, how)
        return shared.cpu()

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Turn torch's error about a lost process into a ProcessError."""
        try:
            yield
        except RuntimeError as error:  # torch raises these for lost connections and timeouts
            raise ProcessError(
                "Processes that work together must start and end together (processes = {processes}).",
                got="a lost process, noticed by process {own}: {error}",
                do="Finished work is kept, so start again: a survey continues automatically, "
                "a training run with --resume.",
                processes=self.count,
                own=self.own,
                error=str(error).splitlines()[0],
            ) from error


@contextmanager
def joined() -> Iterator[Processes]:
    """The processes that ``torchrun`` started, connected; without it, only this one.

    Results are exchanged by gloo on the CPU, or by nccl if ``REGARD_BACKEND=nccl`` is set.
    """
    count, own = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if count == 1:
        yield Processes()
        return
    backend = os.environ.get("REGARD_BACKEND", "gloo")
    device = "cpu"
    if backend == "nccl":
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(device)
    processes = Processes(count, own, device)
    with processes._together():
        dist.init_process_group(backend, timeout=TIMEOUT)
    try:
        yield processes
    finally:
        dist.destroy_process_group()
