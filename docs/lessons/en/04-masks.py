# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 4 · Masks: who may look at whom
#
# A mask is a rule. Rules combine, and they say what need not be computed. About seven minutes.

# %%
lang = "en"

# %%
import torch

import regard
from regard import figures, masks
from regard.errors import MaskError
from regard.lessons import demonstration

# %% [markdown]
# ## Before and after
#
# Without a mask every token sees every token. A model that writes text must not see what it has not written yet: above the diagonal
# the score becomes −∞, and softmax makes it exactly 0.

# %%
torch.manual_seed(0)
tokens = ["the", "cat", "sat", "down"]
q, k, v = torch.randn(3, 4, 8)  # (query or key, channel) each
before = regard.attention_weights(q, k)
after = regard.attention_weights(q, k, mask=masks.causal())
for name, weights in (("before", before), ("after", after)):
    print(name)
    for token, row in zip(tokens, weights):
        print(f"  {token:5}", "  ".join(f"{w:.2f}" if w else " –  " for w in row))

# %%
figures.heatmap(after, queries=tokens, keys=tokens, lang=lang)

# %% [markdown]
# An additive mask says the same: 0 where a query may look and −∞ where it may not, added to the scores. By hand, in four lines:

# %%
added = torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -torch.inf)
scores = q @ k.T / 8**0.5 + added
output = scores.softmax(-1) @ v
torch.testing.assert_close(output, regard.attention(q, k, v, mask=masks.causal()))
print(added)

# %% [markdown]
# ## Five masks
#
# Padding hides what only fills up a batch. A window sees neighbours. Local and global together see neighbours and every s-th token.
# `&` keeps what both allow, `|` what at least one of them allows.

# %%
shown = demonstration("masks")
found = shown.show()
for fact in found.facts():
    print(fact.say(lang))
shown.draw(found, lang)

# %% [markdown]
# ## Masks are values
#
# They print the way they are written, can be compared, and can be parsed from text. An error points at the character.

# %%
mask = masks.parse("causal & (window(3, 0) | prefix(2))")
print(mask, mask == masks.causal() & (masks.window(3, 0) | masks.prefix(2)))
try:
    masks.parse("causal & windo(3, 0)")
except MaskError as error:
    print(error)
figures.mask(mask, 14, lang=lang)

# %% [markdown]
# ## Padding and causal in one call
#
# Two sentences in one batch, the second one shorter. `padding` has one row per sentence; combined with `causal` it serves both.
# The padding tokens at the end still see the words before them. What is ruled out is looking *at* padding.

# %%
keep = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])  # (batch, key)
q, k, v = torch.randn(3, 2, 4, 5, 8)  # (batch, head, token, channel) each
both = masks.padding(keep) & masks.causal()
weights = regard.attention_weights(q, k, mask=both)
print(weights.shape)
print(weights[1, 0].numpy().round(2))
assert (weights[1, :, :, 3:] == 0).all()

# %% [markdown]
# ## Rows that see nothing
#
# With padding on the left and a causal mask, the first tokens see nothing at all. Plain softmax divides 0 by 0, and one NaN ruins a whole
# training run. regard returns 0, and gradients stay finite.

# %%
left = masks.padding(torch.tensor([False, False, True, True, True])) & masks.causal()
naive = (q @ k.mT).masked_fill(~left.dense(5), -torch.inf).softmax(-1)
print("plain softmax:", naive[0, 0, 0].tolist())
q.requires_grad_()
output = regard.attention(q, k, v, mask=left)
output.sum().backward()
print("regard:       ", output[0, 0, 0].tolist()[:3], "gradient finite:", q.grad.isfinite().all().item())

# %% [markdown]
# ## Dropout
#
# During training, some weights are set to 0 at random and the rest grow by 1/(1−p), so that nothing changes on average.

# %%
with torch.no_grad():
    plain = regard.attention(q, k, v)
    many = torch.stack([regard.attention(q, k, v, dropout=0.2) for _ in range(500)]).mean(0)
print(f"greatest difference of the mean of 500: {(many - plain).abs().max():.3f}")

# %% [markdown]
# ## What a mask saves
#
# `plan` says how regard will compute attention under a mask, before it does. Nothing of size 8,192 × 8,192 is ever built.

# %%
print(regard.plan(masks.causal() & masks.window(127, 0), 8192).in_words(lang))
figures.mask("causal & (window(4000, 0) | every(8192))", 100_000, size=2.6, lang=lang)

# %% [markdown]
# **Try it.** `regard mask "causal & window(4, 0)" -n 16` draws any mask in the terminal. Which mask lets each of several documents, packed
# one after the other, see only itself? (`masks.documents`)
