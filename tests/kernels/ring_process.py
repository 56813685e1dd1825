"""The processes of the tests of the ring: each computes its share of every case and writes it down.

python ring_process.py COUNT FOLDER

torch is imported once, and so is what a TorchDispatchMode of it needs: the processes are forks of this one.
"""

import json
import sys
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path

import numpy as np
import torch
import torch._dynamo as _of_every_dispatch_mode  # noqa: F401
import torch.distributed as dist
from safetensors.torch import save_file
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from regard import biases, masks
from regard.errors import RegardError

N = 133
HEADS = 6

MASKS = {
    "full": None,
    "causal": masks.causal(),
    "window": masks.window(9, 4),
    "documents": masks.causal() & masks.documents(np.repeat([0, 1, 2, 3], [64, 3, 45, 21])),
    "padding": masks.padding(np.arange(2 * N).reshape(2, N) % 3 > 0) & masks.causal(),
    "lengths": masks.padding(lengths=[N, 50]),
    "gathered": masks.local_global(16),
    "by head": masks.dense(torch.rand(1, HEADS, N, N, generator=torch.Generator().manual_seed(1)) > 0.5),
    "nothing": masks.nothing(),
}


def options_of(name):
    chance = torch.Generator().manual_seed(3)
    return {
        "plain": {},
        "softcap": {"softcap": 1.3, "scale": 0.3},
        "sinks": {"sinks": torch.linspace(-2, 2, HEADS)},
        "alibi": {"bias": biases.alibi(HEADS)},
        "tensor": {"bias": torch.randn(2, 1, N, N, generator=chance)},
        "row": {"bias": torch.randn(HEADS, 1, N, generator=chance)},
    }[name]


CASES = (
    [(name, "plain", "float32") for name in MASKS]
    + [("causal", option, "float32") for option in ("softcap", "sinks", "alibi", "tensor", "row")]
    + [("padding", "sinks", "float64"), ("window", "tensor", "float64"), ("causal", "plain", "bfloat16")]
)


def whole(dtype, *, queries=N, keys=N):
    """q, k, v of the whole text; every axis another size, key heads shared by three."""
    chance = torch.Generator().manual_seed(0)
    shapes = [(2, HEADS, queries, 5), (2, 2, keys, 5), (2, 2, keys, 7)]
    return [torch.randn(*s, generator=chance, dtype=torch.float64).to(getattr(torch, dtype)) for s in shapes]


def cuts(total, count):
    """Shares of different lengths, the second one empty."""
    shares = [total // count + 3 * (rank - 1) for rank in range(count - 1)]
    if count > 2:
        shares[1] = 0
    edges = np.cumsum([0, *shares])
    return [*map(int, edges), total]


def own_share(tensors, rank, count):
    parts = []
    for tensor in tensors:
        edges = cuts(tensor.shape[-2], count)
        parts.append(tensor[..., edges[rank] : edges[rank + 1], :])
    return parts


class Held(TorchDispatchMode):
    """The largest tensor that any operation made, in bytes."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.size = max(self.size, tensor.untyped_storage().nbytes())
        return made


@contextmanager
def connected(rank, count, folder):
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=60),
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


def save(folder, name, rank, found):
    kept = {key: value for key, value in vars(found).items() if value is not None}
    save_file({key: value.contiguous() for key, value in kept.items()}, folder / f"{name}.{rank}")


def raised(call):
    try:
        call()
    except RegardError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def bad_input(rank, count):
    """What every process says to each kind of wrong input."""
    world = dist.group.WORLD
    q, k, v = own_share(whole("float32"), rank, count)
    statistics = regard.attention_statistics
    wide = q[..., :4] if rank == 2 else q
    return {
        "heads": raised(lambda: statistics(q[:, : 2 if rank == 1 else None], k, v, group=world)),
        "own": raised(lambda: statistics(wide, k, v, group=world)),
        "scale": raised(lambda: statistics(q, k, v, scale=0.5 if rank == 3 else None, group=world)),
        "values": raised(lambda: statistics(q, k, None if rank == 3 else v, group=world)),
        "dtype": raised(lambda: statistics(*(x.double() if rank else x for x in (q, k, v)), group=world)),
        "mask": raised(lambda: statistics(q, k, v, mask=masks.padding(np.arange(7) > 2), group=world)),
        "one mask": raised(
            lambda: statistics(q, k, v, mask=masks.padding(np.arange(7 if rank == 1 else N) > 2), group=world)
        ),
        "no group": raised(lambda: statistics(q, k, v, group="world")),
        "outside": raised(lambda: statistics(q, k, v, group=dist.new_group([0, 1]))) if rank > 1 else _two(),
    }


def _two():
    dist.new_group([0, 1])
    return "inside"


def memory_of(group, rank, count):
    """The largest tensor made while one process computes its equal share of a long text."""
    n = 4096 // count
    chance = torch.Generator().manual_seed(rank)
    q, k, v = (torch.randn(1, 4, n, 32, generator=chance) for _ in range(3))
    with Held() as held:
        regard.attention_statistics(q, k, v, mask=masks.window(20, 20), group=group)
    return held.size


def run(rank, count, folder):
    torch.set_num_threads(1)
    plan = import_module("regard.kernels.planner")
    plan.MAX_MASKED_PAIRS = 0  # as if the text were long, so that tiles are cut
    with connected(rank, count, folder):
        for mask, option, dtype in CASES:
            q, k, v = own_share(whole(dtype), rank, count)
            found = regard.attention_statistics(
                q, k, v, mask=MASKS[mask], top=3, group=dist.group.WORLD, **options_of(option)
            )
            save(folder, f"{mask}-{option}-{dtype}", rank, found)
        q, k, _ = own_share(whole("float32", queries=61, keys=N), rank, count)
        save(folder, "rectangle", rank, regard.attention_statistics(
            q, k, mask=masks.causal(), group=dist.group.WORLD))  # fmt: skip
        pair = dist.new_group([1, 3])
        if rank in (1, 3):
            q, k, v = own_share(whole("float32"), rank // 2, 2)
            save(folder, "pair", rank // 2, regard.attention_statistics(q, k, v, group=pair))
        said = {"memory": memory_of(dist.group.WORLD, rank, count), **bad_input(rank, count)}
        (folder / f"said.{rank}").write_text(json.dumps(said))
        dist.barrier()  # whoever left now would close connections that others are still making


def main():
    count, folder = int(sys.argv[1]), Path(sys.argv[2])
    start = get_context("fork" if "fork" in get_all_start_methods() else "spawn").Process
    processes = [start(target=run, args=(rank, count, folder)) for rank in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(max(abs(process.exitcode) for process in processes))


if __name__ == "__main__":
    main()
