"""How a sequence is sharded across processes, agreed on before anything is computed.

Each process of a group holds consecutive queries and consecutive keys, in the order of the ranks.
All processes exchange their sizes and options first, so that either all continue or all raise: none
is left waiting for one that has given up.
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

from regard.errors import ArgumentError, DtypeError, Phrase, RegardError, ShapeError
from regard.kernels.mask_parts import Region
from regard.masks.extent import Extent

MUST_MATCH = (
    "axes", "batch", "heads", "key heads", "channels", "dtype", "values", "value channels", "top",
    "scale", "softcap", "mask", "bias", "sinks",
)  # fmt: skip
"""What must be equal in all processes, in the order in which it is sent."""


@dataclass(frozen=True, eq=False)
class Ring:
    """The processes of a group in a ring, from the point of view of one of them."""

    group: Any  # dist.ProcessGroup, which type checkers do not know on every platform
    own: int
    queries: tuple[range, ...]  # of each process
    keys: tuple[range, ...]

    @property
    def count(self) -> int:
        """The number of processes."""
        return len(self.queries)

    @property
    def extent(self) -> Extent:
        """The lengths of the whole sequence."""
        return Extent(self.queries[-1].stop, self.keys[-1].stop)

    def region(self, owner: int) -> Region:
        """This process's queries against the keys of the process ``owner``."""
        return Region(self.queries[self.own], self.keys[owner])

    def blocks(self, *own: Tensor) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
        """The tensors ``(batch, head, key, ...)`` of every process in turn, its own first, with their owner.

        While one block is being used, the next one is already being received.
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
        """Send what was gathered for the keys of ``owner`` to the next process; receive from the previous."""
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
        """Send to the next process and receive from the previous one, at once; empty tensors are not sent."""
        after, before = (dist.get_global_rank(self.group, (self.own + step) % self.count) for step in (1, -1))
        moves = [dist.P2POp(dist.isend, x, after, self.group) for x in given if x.numel()]
        moves += [dist.P2POp(dist.irecv, x, before, self.group) for x in taken if x.numel()]
        return dist.batch_isend_irecv(moves) if moves else []


def _wait(under_way: list[Any]) -> None:
    for work in under_way:
        work.wait()


def check_group(group: object) -> None:
    """Raise unless this is a torch.distributed group that this process belongs to."""
    if not dist.is_available() or not dist.is_initialized():
        raise ArgumentError(
            "group= needs connected processes.",
            got="torch.distributed without init_process_group",
            do="Start with torchrun and call torch.distributed.init_process_group, or omit group=.",
        )
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        raise ArgumentError(
            "group= must be a group that this process belongs to.",
            got="a group without rank {rank}",
            do="Call it only in the processes of the group.",
            rank=dist.get_rank(),
        )
    if not isinstance(group, dist.ProcessGroup):
        raise DtypeError(
            "group must be a process group of torch.distributed.",
            got="{type}",
            do="Pass torch.distributed.group.WORLD, or the result of new_group(...).",
            type=type(group).__name__,
        )


def gather_ring(
    q: object, k: object, v: object, group: Any, failed: RegardError | None, options: dict[str, float]
) -> Ring:
    """Exchange sizes and options with all processes; raise in every one of them if anything does not fit.

    ``failed`` is the error of this process's own tensors, if there is one.
    """
    own = dist.get_rank(group)
    sent = [-1.0] * (2 + len(MUST_MATCH))
    device = q.device if isinstance(q, Tensor) else torch.device("cpu")
    if failed is None:
        assert isinstance(q, Tensor)
        assert isinstance(k, Tensor)
        assert v is None or isinstance(v, Tensor)
        sent = [q.shape[-2], k.shape[-2], *_must_match(q, k, v, options)]
    everyone = _exchange_numbers(sent, device, group)
    refuse_together([row[0] < 0 for row in everyone], failed)
    for place, name in enumerate(MUST_MATCH, start=2):
        for process, row in enumerate(everyone):
            if repr(row[place]) != repr(everyone[0][place]):  # so that NaN equals NaN
                first, other = (_described(name, x[place]) for x in (everyone[0], row))
                raise ShapeError(
                    "Every process of a group must pass the same {name} (process 0: {first}).",
                    got="{other} in process {process}",
                    do="Only the numbers of queries and of keys may differ.",
                    name=name,
                    first=first,
                    other=other,
                    process=process,
                )
    queries, keys = ([int(row[place]) for row in everyone] for place in (0, 1))
    return Ring(group, own, tuple(_ranges(queries)), tuple(_ranges(keys)))


def agree(ring: Ring, failed: RegardError | None, device: torch.device) -> None:
    """Continue if no process failed; otherwise raise in all of them."""
    everyone = _exchange_numbers([float(failed is not None)], device, ring.group)
    refuse_together([bool(row[0]) for row in everyone], failed)


def refuse_together(refused: list[bool], failed: RegardError | None) -> None:
    """Raise this process's own error, or one that names the process that failed."""
    if failed is not None:
        raise failed
    if any(refused):
        raise ArgumentError(
            "All processes of a group must compute together.",
            got="an error in process {process}",
            do="See the error message of that process.",
            process=refused.index(True),
        )


def _exchange_numbers(numbers: Sequence[float], device: torch.device, group: Any) -> list[list[float]]:
    own = torch.tensor(numbers, dtype=torch.float64, device=device)
    everyone = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(everyone, own, group=group)
    return [row.tolist() for row in everyone]


def _must_match(q: Tensor, k: Tensor, v: Tensor | None, options: dict[str, float]) -> list[float]:
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
    return [float(sizes[name]) for name in MUST_MATCH]


_KINDS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def _described(name: str, value: float) -> str | Phrase:
    if name == "dtype":
        return str(_KINDS[int(value)])
    if name in ("values", "mask", "bias", "sinks"):
        return Phrase("{name} given", name=name) if value else Phrase("no {name}", name=name)
    return Phrase("no {name}", name=name) if value == math.inf else f"{name} = {value:g}"


def _ranges(lengths: Sequence[int]) -> Iterator[range]:
    for length, stop in zip(lengths, accumulate(lengths)):
        yield range(stop - length, stop)
