# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 8 · Cost and variants
#
# What attention costs, why it can be exact without the n×n matrix, and what you give up to pay less. About nine minutes.

# %%
lang = "en"

# %%
import torch

import regard
from regard import biases, figures, masks, nn
from regard.lessons import demonstration
from regard.lessons.timing import Variant, measure

# %% [markdown]
# ## Count
#
# Four times the length is sixteen times the pairs. `regard.cost` counts operations and bytes of every step, without running anything.
# The matrix at 8,192 tokens and 8 heads takes 2 GB in float32; Q, K, V and the output take 64 MB.

# %%
found = regard.cost([512, 2048, 8192], width=512, heads=8, projections=False)
print(found.in_words(lang), "\n")
for length in found.lengths:
    dense = found[length, "dense"]
    print(f"{length:,} tokens")
    for step in dense.steps:
        print(f"  {step.name:8} {step.operations:>18,} operations {step.bytes:>15,} bytes")

# %%
lengths = [512, 2048, 8192]
ways = ("dense", "regard", "linear")
figures.cost(
    lengths,
    operations={way: [found[length, way].operations for length in lengths] for way in ways},
    bytes={way: [found[length, way].bytes for length in lengths] for way in ways},
    lang=lang,
)

# %% [markdown]
# ## Exact without the matrix
#
# FlashAttention's idea in a dozen lines. Keys come in tiles. For each row keep the maximum so far, the sum so far and the output so far;
# when a greater maximum arrives, the earlier sums shrink by the right factor. Nothing is approximated.


# %%
def attend_in_tiles(q, k, v, tile=64):
    highest = torch.full(q.shape[:-1], -torch.inf, dtype=q.dtype)
    total, output = torch.zeros_like(highest), torch.zeros_like(q)
    for start in range(0, k.shape[-2], tile):
        scores = q @ k[..., start : start + tile, :].mT / q.shape[-1] ** 0.5
        higher = torch.maximum(highest, scores.amax(-1))
        shrink, powers = (highest - higher).exp(), (scores - higher[..., None]).exp()
        total = total * shrink + powers.sum(-1)
        output = output * shrink[..., None] + powers @ v[..., start : start + tile, :]
        highest = higher
    return output / total[..., None]


torch.manual_seed(0)
q, k, v = torch.randn(3, 2, 4, 500, 16, dtype=torch.float64)
torch.testing.assert_close(attend_in_tiles(q, k, v), regard.attention(q, k, v))

# %% [markdown]
# ## Truly sparse
#
# A window plus every 64th token. Building a dense mask and hiding most of it saves nothing: it is still n². A plan made from tiles
# computes 5 %.

# %%
sparse = masks.local_global(64)
print(regard.plan(sparse, 8192).in_words(lang))
print(regard.cost(8192, mask=sparse, projections=False).in_words(lang))
figures.mask(masks.local_global(8), 48, lang=lang)

# %% [markdown]
# ## Positions as a bias
#
# A relative-position bias is one learned number per head and distance, clipped at ±32, added to the scores. It is a table of 65 numbers
# per head, never an n×n tensor. ALiBi has no numbers to learn: a slope per head.

# %%
table = torch.randn(4, 65, dtype=torch.float64, requires_grad=True)  # (head, distance from −32 to 32)
output = regard.attention(q, k, v, bias=biases.relative(table))
output.square().sum().backward()
print(output.shape, "gradient of the table", tuple(table.grad.shape))
print(nn.RelativePositionAttention(64, 4, clip=32)(torch.randn(2, 10, 64)).shape)
figures.heatmap(biases.alibi(4).dense(24, 24)[1], lang=lang)

# %% [markdown]
# ## Linear attention
#
# Replace `exp(q · k)` with `φ(q) · φ(k)` with φ = elu + 1, and the sum over keys can be taken once: `φ(q) Σ φ(k) vᵀ`. The cost grows linearly.
# It is a different function, not a faster way to compute the same one: sharp rows become blunt.


# %%
def features(x):
    return torch.nn.functional.elu(x) + 1


weights = features(q) @ features(k).mT
by_hand = weights / weights.sum(-1, keepdim=True) @ v
torch.testing.assert_close(regard.linear_attention(q, k, v), by_hand)
sharp = regard.attention_weights(4 * q, k)
blunt = features(4 * q) @ features(k).mT
blunt = blunt / blunt.sum(-1, keepdim=True)
for name, rows in (("softmax", sharp), ("linear", blunt)):
    print(f"{name}: the greatest weight of a row is {rows.amax(-1).mean():.3f} on average")

# %% [markdown]
# ## Time them
#
# The exercise: batch 8, length 1,024, 64 channels. Ten rounds here; `regard bench` does a hundred, with memory and longer texts.

# %%
threads = torch.get_num_threads()
for variant in ("textbook", "standard", "causal", "window", "linear"):
    seconds, _ = measure(Variant(variant, 1024, 8, 1, 64, 10, threads))
    print(f"{variant:9} {1000 * seconds:7.2f} ms")

# %% [markdown]
# ## Two exercises
#
# Padding and causal in one function, and a heat map of one head on a known sentence. In regard the first is one line; check it against
# the definition. The second on BERT is
# `regard look "The quick brown fox jumps over the lazy dog." --model ./bert-base-uncased --layer 5 --head 0 --figure fox.png`.


# %%
def padded_causal(q, k, v, keep):
    return regard.attention(q, k, v, mask=masks.padding(keep) & masks.causal())


keep = torch.arange(500) < torch.tensor([[500], [437]])
allowed = keep[:, None, None, :] & torch.ones(500, 500).tril().bool()
scores = (q @ k.mT / 4).masked_fill(~allowed, -torch.inf)
torch.testing.assert_close(padded_causal(q, k, v, keep), scores.softmax(-1) @ v)

# %% [markdown]
# ## Three misunderstandings
#
# *Attention is averaging.* It is, but the weights are learned and depend on the query. It is a plain mean only where all scores of a row
# are equal, for example with W_q = 0 or W_k = 0.
#
# *Heads are for speed.* The matrix products of eight heads cost as much as those of one wide head, and eight heads take eight softmaxes: a
# little more work, not less. They are there because they are eight different queries.
#
# *It is for language.* Nothing above knows what a token is. The demonstration learns on plain numbers: a plain mean fails, one head
# finds one of two marks, two heads find both. Patches of an image work too: of 8 × 8 patches, each attends to those of similar colour,
# wherever they are.

# %%
for queries, keys in ((0 * q, k), (q, 0 * k)):
    torch.testing.assert_close(regard.attention(queries, keys, v), v.mean(-2, keepdim=True).expand_as(v))
one, eight = (regard.cost(1024, width=512, heads=heads)[1024, "dense"] for heads in (1, 8))
for step in ("scores", "softmax"):
    print(f"{step}, 1 head and 8 heads:", one[step].operations, eight[step].operations)

averaging = demonstration("averaging")
found = averaging.show()
for fact in found.facts():
    print(fact.say(lang))
averaging.draw(found, lang)

# %%
row, column = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
disc = ((row - 3.5) ** 2 + (column - 3.5) ** 2 < 9).float()  # a bright disc on a dark ground
patches = torch.stack([disc, 1 - disc], -1).flatten(0, 1) * 3  # (patch, channel)
weights = regard.attention_weights(patches, patches)
figures.heatmap(weights[27].reshape(8, 8), title="27", lang=lang)

# %% [markdown]
# **Try it.** `regard cost --length 512 2048 8192 --width 512 --heads 8`, `regard bench --length 1024 4096`. At what length does linear
# attention become faster on your machine?
