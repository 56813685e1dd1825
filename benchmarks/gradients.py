"""Gradients of attention from V and dO, against the model's own dense weights with retained gradients.

python benchmarks/gradients.py                 # 512 and 2,048 tokens, with the dense way beside them
python benchmarks/gradients.py --long 8192     # also a long text; a model of the shape of SmolLM2-135M
"""

from __future__ import annotations

import argparse

from harness import Row, in_new_process, report

MODEL = """
import os
os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=576, intermediate_size=1536, num_hidden_layers={layers}, num_attention_heads=9,
    num_key_value_heads=3, vocab_size=49152, max_position_embeddings=8192, tie_word_embeddings=True,
)
model = LlamaForCausalLM(config).requires_grad_(False)
model.model.embed_tokens.register_forward_hook(lambda module, args, output: output.requires_grad_())
ids = torch.randint(1000, (1, {n}))
def score():
    return model(ids, logits_to_keep=1, use_cache=False).logits[0, -1].max()
"""

PLAIN = """
took, _, _ = measured(lambda: score().backward())
print(took, megabytes("VmHWM") / 1024)
"""

OURS = """
def work():
    with regard.watch(model, gradients=True) as seen:
        score().backward()
    return seen
took, _, seen = measured(work)
heads, _, found = measured(lambda: regard.heads.importance(seen))
tokens, _, relevance = measured(lambda: regard.relevance(seen, row=-1))
assert len(found) == 9 * {layers} and len(relevance.own) == {n}
print(took, heads, tokens, megabytes("VmHWM") / 1024)
"""

CHECKPOINTING = """
model.gradient_checkpointing_enable({{"use_reentrant": False}})
model.train()
"""

DENSE = """
model.set_attn_implementation("eager")
def work():
    output = model(ids, use_cache=False, output_attentions=True)
    for weights in output.attentions:
        weights.retain_grad()
    output.logits[0, -1].max().backward()
    x = torch.eye({n})[-1]
    for weights in reversed(output.attentions):
        x = x + x @ (weights * weights.grad)[0].clamp(min=0).mean(0)
    return x
took, _, _ = measured(work)
print(took, megabytes("VmHWM") / 1024)
"""


def row(n: int, layers: int, *, checkpointing: bool, dense: bool) -> Row:
    """Recording, importance of all heads and relevance of the last row, each as a ratio to a plain pass."""
    sizes = {"n": n, "layers": layers}
    start = (MODEL + (CHECKPOINTING if checkpointing else "")).format(**sizes)
    plain, _ = in_new_process(start + PLAIN)
    took, heads, tokens, peak = in_new_process(start + OURS.format(**sizes))
    peer = "not run"
    if dense:
        dense_took, dense_peak = in_new_process(start + DENSE.format(**sizes))
        peer = f"{dense_took:.1f} s, {dense_peak:.2f} GB (eager, retained gradients)"
    return Row(
        f"{layers} layers × 9 heads, {n} tokens: gradients, importance, relevance of the last row",
        f"{took + heads + tokens:.1f} s, {peak:.2f} GB in all",
        peer,
        f"{took / plain:.2f} + {heads / plain:.2f} + {tokens / plain:.2f} of a plain forward + backward",
        "< 8 GB",
        peak < 8,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--long", type=int, default=0, help="also this many tokens, with checkpointing")
    parser.add_argument("--short", type=int, nargs="*", default=[512, 2048])
    chosen = parser.parse_args()
    rows = [row(n, chosen.layers, checkpointing=False, dense=True) for n in chosen.short]
    if chosen.long:
        rows.append(row(chosen.long, chosen.layers, checkpointing=True, dense=False))
    report("gradients", "Gradients of attention", rows)


if __name__ == "__main__":
    main()
