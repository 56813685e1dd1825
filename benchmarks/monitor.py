"""Benchmarks of monitor(): training steps with and without it, in one run.

python benchmarks/monitor.py [--steps 100]

All rows are CPU time on one thread, so that other busy processes do not change them. The model has the shape
of the built-in translator.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import torch
from harness import Row, medians, report

import regard

Training = Callable[[int], object]


def training() -> tuple[regard.nn.Seq2Seq, Training]:
    """A model, and a number of its training steps."""
    torch.manual_seed(0)
    model = regard.nn.Seq2Seq(4000, 3000, width=160, heads=4, encoder_layers=4, decoder_layers=3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    source, target = torch.randint(4, 3000, (2, 32, 12))

    def steps(count: int) -> None:
        for _ in range(count):
            logits = model(source, target)
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()

    return model, steps


def row(every: int, steps: int, rounds: int, *, most: float = math.inf) -> Row:
    model, run = training()

    def monitored() -> object:
        with regard.monitor(model, every=every):
            return run(steps)

    mine, theirs = medians(monitored, lambda: run(steps), rounds=rounds, clock=time.process_time)
    name = f"the translator's shape, 32 sentences of 12 tokens, {steps} steps: every={every}"
    times, ratio = (f"{1000 * mine:.0f} ms", f"{1000 * theirs:.0f} ms"), mine / theirs
    wanted = "—" if math.isinf(most) else f"≤ {most:g}"
    return Row(name, *times, f"{ratio:.3f} of its time", wanted, ratio <= most)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [
        row(100, options.steps, options.rounds, most=1.05),
        row(10, options.steps // 5, options.rounds),
        row(1, options.steps // 10, options.rounds),
    ]
    report("monitor", "Training with a monitor, against the same without: CPU time on one thread", rows)


if __name__ == "__main__":
    main()
