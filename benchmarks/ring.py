"""Benchmarks of one text sharded across processes: memory and time of each, for 1, 2, 4 and 8 of them.

A window keeps the time linear; what a process holds is the same under any mask, except two tiles of scores.

python benchmarks/ring.py [--length 262144]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile

import torch
from harness import WITH_MEMORY, Row, report

HEADS, CHANNELS = 8, 64

PROCESS = """
import sys
import torch.distributed as dist
rank, count, folder, length = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=count)

def work(n):
    q, k, v = (torch.randn(1, %d, n // count, %d) for _ in range(3))
    return regard.attention_statistics(q, k, v, mask=masks.window(128, 128), group=dist.group.WORLD)

work(256 * count)
dist.barrier()
took, grew, found = measured(lambda: work(length))
print(took, grew)
dist.destroy_process_group()
"""


def shares(count: int, length: int) -> tuple[float, float]:
    """Seconds, and the megabytes by which the largest process grew: inputs, results and all between."""
    code = WITH_MEMORY.format(threads=1) + PROCESS % (HEADS, CHANNELS)
    with tempfile.TemporaryDirectory() as folder:
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(rank), str(count), folder, str(length)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(count)
        ]
        found = [process.communicate()[0].split() for process in started]
    return max(float(one[0]) for one in found), max(float(one[1]) for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--length", type=int, default=262144)
    length = parser.parse_args().length
    alone_seconds, alone = shares(1, length)
    rows = []
    # Besides its own keys and values, a process holds the block that it works on and the next one:
    # so not quite 1/N of what one process needs, which waits for nothing, but 1/N from there on.
    for count in (2, 4, 8):
        took, grew = shares(count, length)
        rows.append(
            Row(
                f"n = {length} in {count} processes: memory of each, its inputs included",
                f"{grew:.0f} MB, {took:.1f} s",
                f"{alone:.0f} MB, {alone_seconds:.1f} s in one process",
                f"{grew / alone:.2f} of it",
                f"≤ {2 / count:.3g}",
                grew / alone <= 2 / count,
            )
        )
    report("ring", f"One text across processes: {HEADS} heads × {CHANNELS}, float32, one thread each", rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
