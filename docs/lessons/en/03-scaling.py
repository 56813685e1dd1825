# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 3 · Why √d, and softmax done right
#
# Two short lines that decide whether a model learns, and seven lines that tutorials often get wrong. About six minutes.

# %%
lang = "en"

# %%
import numpy as np
import torch

import regard
from regard.kernels.reference import softmax
from regard.lessons import demonstration

# %% [markdown]
# ## Dot products grow with the width
#
# Let q and k have d independent numbers of variance 1. Each product `q_c k_c` has variance 1, and a sum of d of them has variance d. At
# d = 512 scores of ±22 are ordinary. Softmax of such scores is a hard choice: one weight near 1, all others near 0.

# %%
rng = np.random.default_rng(0)
for d in (8, 64, 512):
    q, k = rng.normal(size=(2, 5_000, d))
    dots = (q * k).sum(-1)
    print(f"d = {d:3}: variance of q·k {dots.var():6.1f}, of q·k/√d {(dots / np.sqrt(d)).var():.3f}")

# %% [markdown]
# A weight w moves with its score by `w (1 − w)`. Where w is 0 or 1, that is 0: no gradient, nothing to learn from. Divided by √d, the
# variance is 1 at every width, and softmax stays soft.

# %%
scaling = demonstration("scaling")
found = scaling.show(samples=1000)
for fact in found.facts():
    print(fact.say(lang))
scaling.draw(found, lang)

# %% [markdown]
# The same, seen in the gradient itself:

# %%
for scale in (1.0, 512**-0.5):
    scores = torch.tensor([1.0, 2.0, 100.0], dtype=torch.float64, requires_grad=True)
    (scores * scale).softmax(-1)[2].backward()
    print(f"scale {scale:.3f}: gradient {scores.grad.tolist()}")

# %% [markdown]
# ## Softmax, row by row
#
# `exp(1000)` is infinite. Subtracting any number from all scores of a row does not change its softmax, so subtract the maximum of
# **each row**: with the maximum of the whole matrix, a row of low scores becomes 0/0.

# %%
scores = np.array([[1000.0, 999.0], [-1000.0, -999.0]])
with np.errstate(all="ignore"):
    bare = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    whole = np.exp(scores - scores.max())
    whole = whole / whole.sum(-1, keepdims=True)
right, lse = softmax(scores)
print("no maximum           ", bare.tolist())
print("maximum of the matrix", whole.tolist())
print("maximum of the row   ", right.round(3).tolist())

# %% [markdown]
# `lse`, the log of the sum, comes with it: `w_ij = exp(s_ij − lse_i)`. This one number per row, with Q and K, *is* the whole matrix. It
# is how regard shows any weight of a long text without storing n².

# %%
np.testing.assert_allclose(np.exp(scores - lse[:, None]), right)

# %% [markdown]
# ## Seven mistakes, with the right numbers
#
# Each line shows what a common snippet computes and what is right.

# %%
mistakes = demonstration("mistakes")
found = mistakes.show()
for fact in found.facts():
    print("•", fact.say(lang))
mistakes.draw(found, lang)

# %% [markdown]
# Two more. A relative-position bias `(1, heads, n, n)` needs scores that have heads. Added to scores `(batch, n, n)` it fails or, where
# the batch happens to be as large as the number of heads, silently gives every sentence the bias of another head. And a multi-head module that reads one length for q, k and v cannot do cross-attention. In regard both just work:

# %%
q = torch.randn(2, 4, 5, 8)  # (batch, head, query, channel)
k = v = torch.randn(2, 4, 7, 8)  # seven keys
bias = torch.randn(4, 5, 7)  # one per head, query and key
wrong = torch.randn(4, 5, 5) + torch.randn(1, 4, 5, 5)  # four sentences, four heads
print(tuple(wrong.shape), "sentences became heads")
print(regard.attention(q, k, v, bias=bias).shape)
print(regard.nn.MultiHeadAttention(32, 4)(torch.randn(2, 5, 32), torch.randn(2, 7, 32)).shape)

# %% [markdown]
# **Try it.** `regard demo scaling --figure scaling.png`. What is the variance when q and k are not independent but equal?
