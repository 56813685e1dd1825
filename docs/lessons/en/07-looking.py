# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 7 · Looking into a real model
#
# Record every head, draw some, measure all, and say what they do. Here it is the embedded translator; the same calls work for BERT, GPT-2,
# Llama, T5 or your own model. About nine minutes.

# %%
lang = "en"

# %%
import tempfile
from pathlib import Path

import torch

import regard
from regard import figures, heads
from regard.translator import embedded, look

# %% [markdown]
# ## Record
#
# `look` translates and records. For any other model, use a `with` block:
#
# ```python
# with regard.watch(model) as seen:  # BERT, Llama, T5, Whisper, torch.nn, your own …
#     model(**inputs)
# seen.tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
# ```
#
# What is kept is Q, K and one number per row. Any weight follows from them, exactly.

# %%
seen = look(embedded(), "The quick brown fox jumps over the lazy dog.").recording
print(seen, f"{seen.nbytes:,} bytes")
print("source", *seen.source_tokens[0])
print("target", *seen.tokens[0])
for call in seen:
    print(f"{call.name:28} {call.kind:8} heads {call.heads}, {call.queries} × {call.keys}")

# %% [markdown]
# ## See
#
# One head with its numbers, all heads of a layer, and lines from token to token.

# %%
figures.heatmap(seen, kind="encoder", layer=0, head=0, lang=lang)

# %%
figures.grid(seen, kind="encoder", layer=1, lang=lang)

# %%
figures.lines(seen, kind="encoder", layer=2, heads=[0, 1], least=0.15, lang=lang)

# %%
figures.bars(seen, kind="encoder", layer=0, head=0, query=3, lang=lang)

# %% [markdown]
# All of it together is a page: one HTML file that computes the weights in the browser, from Q and K. `regard.show(seen)` shows it in a
# notebook, `regard.page(seen, "fox.html")` writes it.

# %%
print(regard.estimate_page(seen).in_words(lang))
with tempfile.TemporaryDirectory() as folder:
    written = regard.page(seen, Path(folder) / "fox.html", lang=lang)
    print(written.name, f"{written.stat().st_size:,} bytes")
regard.show(seen, height=560, lang=lang)

# %% [markdown]
# ## Measure
#
# For every head: the entropy of its rows (0 is a single token, log n is all alike), how much each token receives, and what stays on the
# diagonal.
# Outgoing weights always sum to 1; incoming ones do not, and that is where it gets interesting.

# %%
first = seen[0].statistics()
source = seen.source_tokens[0]
print("entropy per head    ", first.entropy[0].mean(-1).numpy().round(2))
print("on itself, per head ", first.self_weight[0].mean(-1).numpy().round(2))
received = first.received[0].mean(0)  # over the heads; 1 is an even share
for token, share in zip(source, received.tolist()):
    print(f"{token:8} receives {share:.2f}")
outgoing = seen[0].weights(0).sum(-1)
torch.testing.assert_close(outgoing, torch.ones_like(outgoing))

# %%
table = heads.table(seen)
print(table)
for row in table.sort("entropy")[:5]:
    print(f"{row['kind']:8} layer {row['layer']} head {row['head']}  entropy {row['entropy']:.2f}")

# %% [markdown]
# ## Say what it does
#
# A role is a claim with a score: the weight on the pairs that the role names, above what chance would give. Each comes with the pair of
# tokens that shows it best.

# %%
roles = heads.roles(seen)
for head in roles.clearest(6):
    print(f"{head.kind:8} layer {head.layer} head {head.head}: {head.in_words(lang)}   {head.example or ''}")

# %% [markdown]
# Which heads resemble each other? The divergence between their rows says so, and groups them.

# %%
found = heads.divergence(seen, kind="encoder")
figures.divergence(found, clusters=3, lang=lang)

# %% [markdown]
# Through all layers: rollout multiplies the layers and says where a written character came from, on both sides. And most heads
# concentrate: a threshold keeps a few keys and most of the weight.

# %%
flow = heads.rollout(seen)
print(flow.own.shape, flow.source.shape)
together = flow.own.sum(-1) + flow.source.sum(-1)
torch.testing.assert_close(together, torch.ones_like(together))
row = seen[0].weights(0, rows=3)[0]
kept = row >= 0.1
print(f"{int(kept.sum())} of {len(row)} keys hold {row[kept].sum():.0%}")

# %% [markdown]
# **Try it.** `regard look "The quick brown fox." --open` opens the page; `--model ./bert-base-uncased` looks into BERT.
# `regard heads "The cat sat on the mat." --roles` prints the roles, and `regard survey` measures every head over a whole corpus. If your
# code uses BertViz, `from regard import head_view, model_view` takes the same arguments.
