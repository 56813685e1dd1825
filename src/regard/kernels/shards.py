"""Who holds what of one text that lies in several processes, agreed before anything is computed.

Each process of a group holds some neighbouring queries and some neighbouring keys; the shares follow
each other in the order of the ranks. Every process tells all others its sizes and options, so that
either all go on or all raise: nobody is left waiting for somebody who has given up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError
from regard.kernels.layout import Region
from regard.masks.extent import Extent

ALIKE = (
    "axes", "batch", "heads", "key heads", "channels", "dtype", "values", "value channels", "top",
    "scale", "softcap", "mask", "bias", "sinks",
)  # fmt: skip
"""What every process must give alike, in the order in which it is told."""


@dataclass(frozen=True, eq=False)
class Ring:
    """The processes of a group in a circle, seen from one of them."""

    group: Any  # dist.ProcessGroup, which type checkers do not know on every platform
    own: int
    queries: tuple[range, ...]  # of each process
    keys: tuple[range, ...]

    @property
    def count(self) -> int:
        """How many processes."""
        return len(self.queries)

    @property
    def extent(self) -> Extent:
        """The lengths of the whole text."""
        return Extent(self.queries[-1].stop, self.keys[-1].stop)

    def region(self, owner: int) -> Region:
        """Our queries against the keys of a process."""
        return Region(self.queries[self.own], self.keys[owner])

    def blocks(self, *own: Tensor) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
        """The keys of every process in turn, ours first, as ``(batch, head, key, ...)`` with their owner.

        While one block is worked on, the next is already on its way.
        """
        held = tuple(tensor.contiguous() for tensor in own)
        for step in range(self.count):
            owner = (self.own - step) % self.count
            waiting = None
            if step + 1 < self.count:
                coming = self._room(held, (owner - 1) % self.count)
                waiting = self._exchange(held, coming)
            yield owner, held
            if waiting is not None:
                _wait(waiting)
                held = coming

    def hand_on(self, gathered: Tensor, owner: int) -> Tensor:
        """Give what was gathered for the keys of ``owner`` to the next, and take from the one before."""
        if self.count == 1:
            return gathered
        given = (gathered.contiguous(),)  # (batch, head, key)
        taken = self._room(given, (owner - 1) % self.count)
        _wait(self._exchange(given, taken))
        return taken[0]

    def _room(self, like: Sequence[Tensor], owner: int) -> tuple[Tensor, ...]:
        length = len(self.keys[owner])
        return tuple(x.new_empty((*x.shape[:2], length, *x.shape[3:])) for x in like)

    def _exchange(self, given: Sequence[Tensor], taken: Sequence[Tensor]) -> list[Any]:
        """Send to the next and receive from the one before, all at once; empty shares stay at home."""
        after, before = (dist.get_global_rank(self.group, (self.own + step) % self.count) for step in (1, -1))
        moves = [dist.P2POp(dist.isend, x, after, self.group) for x in given if x.numel()]
        moves += [dist.P2POp(dist.irecv, x, before, self.group) for x in taken if x.numel()]
        return dist.batch_isend_irecv(moves) if moves else []


def _wait(under_way: list[Any]) -> None:
    for work in under_way:
        work.wait()


def check_group(group: object) -> None:
    """Raise unless this is a group of torch.distributed that this process is in."""
    if not dist.is_available() or not dist.is_initialized():
        raise ArgumentError(
            "group= needs processes that are connected.",
            got="torch.distributed without init_process_group",
            do="Start with torchrun, call torch.distributed.init_process_group, or leave group= out.",
        )
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        raise ArgumentError(
            "group= is a group that this process is in.",
            got=f"a group without rank {dist.get_rank()}",
            do="Call it in the processes of the group alone.",
        )
    if not isinstance(group, dist.ProcessGroup):
        raise DtypeError(
            "group is a process group of torch.distributed.",
            got=type(group).__name__,
            do="Pass torch.distributed.group.WORLD, or what new_group(...) gave.",
        )


def gather_ring(
    q: object, k: object, v: object, group: Any, failed: RegardError | None, options: dict[str, float]
) -> Ring:
    """Tell everybody our sizes, hear theirs, and raise in every process if anything does not fit.

    ``failed`` is what is wrong with our own tensors, if anything is.
    """
    own = dist.get_rank(group)
    told = [-1.0] * (2 + len(ALIKE))
    device = q.device if isinstance(q, Tensor) else torch.device("cpu")
    if failed is None:
        assert isinstance(q, Tensor)
        assert isinstance(k, Tensor)
        assert v is None or isinstance(v, Tensor)
        told = [q.shape[-2], k.shape[-2], *_alike(q, k, v, options)]
    everybody = _tell(told, device, group)
    refuse_together([row[0] < 0 for row in everybody], failed)
    for place, name in enumerate(ALIKE, start=2):
        for process, row in enumerate(everybody):
            if repr(row[place]) != repr(everybody[0][place]):  # so that NaN equals NaN
                first, other = (_said(name, x[place]) for x in (everybody[0], row))
                raise ShapeError(
                    f"Every process of a group gives the same {name} (process 0: {first}).",
                    got=f"{other} in process {process}",
                    do="Only the numbers of queries and of keys may differ.",
                )
    queries, keys = ([int(row[place]) for row in everybody] for place in (0, 1))
    return Ring(group, own, tuple(_ranges(queries)), tuple(_ranges(keys)))


def agree(ring: Ring, failed: RegardError | None, device: torch.device) -> None:
    """Go on if no process failed; otherwise raise in all of them."""
    everybody = _tell([float(failed is not None)], device, ring.group)
    refuse_together([bool(row[0]) for row in everybody], failed)


def refuse_together(refused: list[bool], failed: RegardError | None) -> None:
    """Raise our own error, or say whose it was."""
    if failed is not None:
        raise failed
    if any(refused):
        raise ArgumentError(
            "All processes of a group compute together.",
            got=f"an error in process {refused.index(True)}",
            do="Its own message says what is wrong there.",
        )


def _tell(numbers: Sequence[float], device: torch.device, group: Any) -> list[list[float]]:
    own = torch.tensor(numbers, dtype=torch.float64, device=device)
    everybody = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(everybody, own, group=group)
    return [row.tolist() for row in everybody]


def _alike(q: Tensor, k: Tensor, v: Tensor | None, options: dict[str, float]) -> list[float]:
    lead = q.shape[:-3].numel() if q.ndim > 2 else 1
    heads, key_heads = (x.shape[-3] if x.ndim > 2 else 1 for x in (q, k))
    width = 0 if v is None else v.shape[-1]
    sizes = {
        "axes": q.ndim,
        "batch": lead,
        "heads": heads,
        "key heads": key_heads,
        "channels": q.shape[-1],
        "value channels": width,
        "dtype": _KINDS.index(q.dtype),
        "values": v is not None,
        **options,
    }
    return [float(sizes[name]) for name in ALIKE]


_KINDS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def _said(name: str, value: float) -> str:
    if name == "dtype":
        return str(_KINDS[int(value)])
    if name in ("values", "mask", "bias", "sinks"):
        return f"{name} given" if value else f"no {name}"
    return f"no {name}" if value == math.inf else f"{name} = {value:g}"


def _ranges(lengths: Sequence[int]) -> Iterator[range]:
    for length, stop in zip(lengths, accumulate(lengths)):
        yield range(stop - length, stop)
