# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 5 · Heads
#
# One attention asks one question. Several heads ask several at once, each in its own few channels. About eight minutes.

# %%
lang = "en"

# %%
import numpy as np
import torch

import regard
from regard import figures, masks, nn
from regard.kernels import reference
from regard.lessons import demonstration
from regard.lessons.multi_head_parameters import BareMultiHead

# %% [markdown]
# ## One head, written twice
#
# A head is three matrices and the formula. Whether the matrices are bare parameters or belong to linear layers makes no difference
# once both have the same numbers; a mask does not change that.

# %%
single = demonstration("single")
found = single.show()
for fact in found.facts():
    print(fact.say(lang))
single.draw(found, lang)

# %% [markdown]
# ## n separate heads are one projection
#
# Three heads with 12 × 4 matrices do the same as one 12 × 12 matrix whose result is cut into three. The second way is one large
# product in place of many small ones, and all libraries use it.

# %%
split = demonstration("heads")
found = split.show()
for fact in found.facts():
    print(fact.say(lang))
assert found.difference < 1e-12
split.draw(found, lang)

# %% [markdown]
# Split and combine are only reshaping. In NumPy:

# %%
x = np.arange(24.0).reshape(2, 12)  # two tokens of twelve numbers
heads = reference.split_heads(x, 3)
print(x.shape, "→", heads.shape, "→", reference.combine_heads(heads).shape)
print(heads[1])  # channels 4 to 7 of both tokens
assert (reference.combine_heads(heads) == x).all()

# %% [markdown]
# ## Compared with PyTorch's own module
#
# With the weights of `torch.nn.MultiheadAttention`, the version in bare parameters gives the same output and the same weights. PyTorch
# averages its weights over the heads by default: eight different views become one grey picture.

# %%
multihead = demonstration("multihead")
found = multihead.show()
for fact in found.facts():
    print(fact.say(lang))
multihead.draw(found, lang)

# %% [markdown]
# ## The module to train with
#
# `nn.MultiHeadAttention` takes any length, queries and keys of different lengths, a causal option, dropout on the weights and on the
# output, grouped key heads, and a cache. Causal means that a longer text does not change what was computed for its beginning.

# %%
torch.manual_seed(0)
module = nn.MultiHeadAttention(32, 4, causal=True, dropout=0.1, residual_dropout=0.1).eval()
x = torch.randn(2, 9, 32)
long, short = module(x), module(x[:, :5])
torch.testing.assert_close(long[:, :5], short)
print(long.shape, module)

# %%
with regard.watch(module) as seen:
    module(x)
figures.grid(seen, layer=0, lang=lang)

# %% [markdown]
# In training mode dropout makes two runs differ; after `.eval()` they are equal.

# %%
module.train()
print("training:", torch.equal(module(x), module(x)))
module.eval()
print("evaluating:", torch.equal(module(x), module(x)))

# %% [markdown]
# Softmax is computed in at least float32, even when everything else is in half precision. In bfloat16 alone, 256 + 1 is 256, and a sum of
# many small weights stops growing.

# %%
q, k, v = torch.randn(3, 1, 1, 4096, 16, dtype=torch.float64)
exact = regard.attention(q, k, v)
half = [x.bfloat16() for x in (q, k, v)]
powers = (half[0] @ half[1].mT / 4).exp()
total = torch.zeros(4096, dtype=torch.bfloat16)
for column in powers[0, 0].T[:600]:
    total += column  # a running sum in bfloat16
print(
    f"600 columns summed in bfloat16 lose {1 - (total / powers[0, 0, :, :600].double().sum(-1)).mean():.1%}"
)
print(f"regard on bfloat16: mean error {(regard.attention(*half).double() - exact).abs().mean():.5f}")

# %% [markdown]
# Weights from PyTorch can be converted, and masks still work:

# %%
theirs = torch.nn.MultiheadAttention(32, 4, batch_first=True).eval()
ours = nn.from_torch(theirs)
forbidden = ~masks.causal().dense(9)  # torch says True where one may not look
torch.testing.assert_close(ours(x, mask=masks.causal()), theirs(x, x, x, attn_mask=forbidden)[0])
print(type(ours).__name__, BareMultiHead(32, 4)(x).shape)

# %% [markdown]
# **Try it.** `regard demo multihead`. How many parameters does `nn.MultiHeadAttention(512, 8, key_heads=2)` have, and with 8 key heads?
