"""What roles cost on a long text: recording, statistics and roles against the plain forward pass of SmolLM2.

python benchmarks/roles.py [--tokens 8192]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib import import_module
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from harness import THREADS, Row, report

import regard

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "real"))


def rows(tokens: int) -> list[Row]:
    """One run of each: at this length a run takes long enough to be told from noise."""
    smollm2 = import_module("smollm2")
    model, tokenizer = smollm2.load()
    ids = smollm2.long_text(tokenizer, tokens)
    took: dict[str, float] = {}
    with torch.no_grad():
        model(ids[:, :1024], logits_to_keep=1)  # weights that were just loaded are slow the first time
        took["forward"] = _seconds(lambda: model(ids, logits_to_keep=1))
        with regard.watch(model, statistics=True):
            took["with statistics"] = _seconds(lambda: model(ids, logits_to_keep=1))
        start = time.perf_counter()
        with regard.watch(model, values=True) as seen:
            model(ids, logits_to_keep=1)
        took["recording"] = time.perf_counter() - start
    seen.tokens = tokenizer.convert_ids_to_tokens(ids[0].tolist())
    some = [call for call in seen if call.layer % 5 == 0]
    took["statistics"] = _seconds(lambda: [call.statistics() for call in some]) * len(seen) / len(some)
    took["roles"] = _seconds(lambda: regard.heads.roles(seen))
    plain = took["forward"]
    whole = took["recording"] + took["roles"]
    name = f"SmolLM2-135M, {tokens:,} tokens: "
    parts = [
        Row(
            name + part,
            f"{took[key]:.1f} s",
            f"{plain:.1f} s",
            f"{took[key] / plain:.2f} of its time",
            "–",
            True,
        )
        for part, key in (
            ("recording", "recording"),
            ("statistics of all heads", "statistics"),
            ("roles, with their statistics", "roles"),
        )
    ]
    bar = Row(
        name + "look without page: recording and roles",
        f"{whole:.1f} s",
        f"{plain:.1f} s",
        f"{whole / plain:.2f} of its time",
        "≤ 3",
        whole <= 3 * plain,
    )
    watched = Row(
        name + "the forward pass with all statistics, watch(statistics=True)",
        f"{took['with statistics']:.1f} s",
        f"{plain:.1f} s",
        f"{took['with statistics'] / plain:.2f} of its time",
        "≤ 1.4",
        took["with statistics"] <= 1.4 * plain,
    )
    return [*parts, watched, bar]


def _seconds(work: object) -> float:
    assert callable(work)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=8192)
    asked = parser.parse_args()
    torch.set_num_threads(THREADS)
    report("roles", "Roles: what they cost on a long text", rows(asked.tokens))


if __name__ == "__main__":
    main()
