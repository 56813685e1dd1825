"""Measures the constants by which a plan chooses its layout (``regard/kernels/mask_parts.py``).

python benchmarks/cost_constants.py    prints them next to those in use, and writes results/cost_constants.md

The unit is a pair: one query with one key in a kernel call without a mask, for all heads. On one thread, in
CPU time, for 8 heads × 64. The same work is laid out in two ways that differ in one thing only:

    a call       4,096 positions as documents of 64 and of 512: 64 calls against 8
    a mask       documents of 512 with and without a mask inside them
    a position   the same documents in order and shuffled: queries and keys must be gathered
    a key        400 keys and values copied from 20 short runs, as for a block of an image
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial
from typing import Any

import numpy as np
import torch
from harness import Row, report, seconds
from torch import Tensor

from regard import masks
from regard.kernels import mask_parts, tiled
from regard.kernels.inputs import prepare
from regard.kernels.mask_parts import MaskPart, Region, RowTile
from regard.kernels.planner import ElementPlan, Plan
from regard.kernels.sorted_layouts import by_document
from regard.kernels.tile_pass import HeadGroup, PartTensors
from regard.masks.extent import Extent

N, HEADS, CHANNELS = 4096, 8, 64
COPIES = 50
EXTENT = Extent(N, N)


def planned(mask: masks.Mask, *, length: int) -> tuple[Plan, MaskPart]:
    """The layout by documents, whether or not it would be chosen."""
    region = Region.whole(EXTENT)
    part = by_document(mask, EXTENT, region, length)
    assert part is not None
    return Plan(mask, EXTENT, region, (ElementPlan((), "block-sparse", mask, (part,)),)), part


def copy_runs(tensors: PartTensors, k: Tensor, v: Tensor) -> None:
    """What a block of 8 × 8 patches in an image of 64 × 64 needs, for a neighbourhood of 13 × 13."""
    runs = tuple((64 * line + 10, 64 * line + 30) for line in range(20))
    row = RowTile(0, 64, runs, runs)
    for _ in range(COPIES):
        tensors.take(k, row)
        tensors.take(v, row)


def measure(rounds: int) -> dict[str, float]:
    """The constants, in pairs, and the nanoseconds that a pair of one head takes."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    vars(tiled)["equal_squares"] = lambda *given: (
        None
    )  # one call for all of them, which measures nothing here
    q, k, v = (torch.randn(1, HEADS, N, CHANNELS) for _ in range(3))
    position = np.arange(N)
    shuffled = np.random.default_rng(0).permutation(N) // 512
    works: dict[str, Any] = {
        "short": planned(masks.documents(position // 64), length=64),
        "long": planned(masks.documents(position // 512), length=512),
        "masked": planned(masks.documents(position // 512) & ~masks.every(7), length=512),
        "shuffled": planned(masks.documents(shuffled), length=512),
    }
    inputs = {name: prepare(q, k, v, mask=plan.mask) for name, (plan, _) in works.items()}
    part = works["long"][1]
    tensors = PartTensors(q, k, HeadGroup(slice(0, 1), slice(0, HEADS), False, (part,)), part, EXTENT)
    took: dict[str, list[float]] = {name: [] for name in (*works, "copied")}
    with torch.no_grad():
        for _ in range(rounds + 1):
            for name, (plan, _) in works.items():
                took[name].append(seconds(partial(tiled.run, inputs[name], plan), time.process_time))
            took["copied"].append(seconds(partial(copy_runs, tensors, k, v), time.process_time))
    middle = {name: statistics.median(times[1:]) for name, times in took.items()}
    calls = {name: len(part.rows) for name, (_, part) in works.items()}
    pairs = {name: sum(row.pairs for row in part.rows) for name, (_, part) in works.items()}
    # long = calls · C + pairs · P, and the same for short: two equations for C and P.
    per_call, per_pair = np.linalg.solve(
        [[calls["long"], pairs["long"]], [calls["short"], pairs["short"]]], [middle["long"], middle["short"]]
    )
    beyond = middle["masked"] - per_call * calls["masked"] - per_pair * pairs["masked"]
    return {
        "CALL_PAIRS": per_call / per_pair,
        "MASKED_PAIR": beyond / per_pair / pairs["masked"],
        "COPIED_KEY": middle["copied"] / per_pair / (COPIES * 400),
        "GATHERED_POSITION": (middle["shuffled"] - middle["long"]) / per_pair / (2 * N),
        "nanoseconds": 1e9 * per_pair / HEADS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    found = measure(parser.parse_args().rounds)
    rows = []
    for name in ("CALL_PAIRS", "MASKED_PAIR", "GATHERED_POSITION", "COPIED_KEY"):
        used, ratio = getattr(mask_parts, name), getattr(mask_parts, name) / found[name]
        within = 1 / 3 <= ratio <= 3
        rows.append(
            Row(f"{name}, in pairs", f"{used:g}", f"{found[name]:.3g}", f"{ratio:.2f}×", "⅓ … 3×", within)
        )
    pair = f"a pair takes {found['nanoseconds']:.1f} ns per head"
    report("cost_constants", f"What plans cost: in use (regard) and measured (peer); {pair}", rows)


if __name__ == "__main__":
    main()
