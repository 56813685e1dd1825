# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 1 · One query and a library
#
# Attention answers a question with a mixture. This lesson builds it for **one** query: first as a story, then as four lines of
# NumPy, then as a picture. About seven minutes.
#
# The first cell chooses the language of the figures.

# %%
lang = "en"

# %%
import numpy as np
import torch

import regard
from regard import figures
from regard.kernels import reference
from regard.lessons import demonstration
from regard.lessons.facts import words

# %% [markdown]
# ## Query, key, value
#
# You enter a library and want to learn programming. That wish is the **query**. What is printed on the spine of a book is its **key**.
# What is inside is its **value**. A search compares your wish with every spine and brings the best book. Attention compares too,
# but then takes something from *every* book, in proportion to how well it fits.
#
# The second half of the picture asks whom "she" means in a sentence. The word "she" is the query; the words before it are the keys.

# %%
library = demonstration("library")
found = library.show()
for fact in found.facts():
    print(fact.say(lang))
library.draw(found, lang)

# %% [markdown]
# ## The same in four lines
#
# Each book has four topics: mathematics, programming, history, cooking. The score of a book is the dot product of wish and spine,
# divided by √4 (lesson 3 says why). Softmax turns scores into weights that are positive and sum to 1. The output is the weighted
# mean of the values.

# %%
wish = np.array([1.0, 2.0, 0.0, 0.0])
spines = np.array([[3.0, 1.0, 0.0, 0.0], [1.0, 3.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.5], [0.0, 0.0, 0.5, 3.0]])
pages = np.array([[300.0], [450.0], [700.0], [200.0]])

scores = spines @ wish / np.sqrt(4)
powers = np.exp(scores - scores.max())  # the maximum goes first, so that nothing overflows
weights = powers / powers.sum()
print("scores ", scores.round(2))
print("weights", weights.round(3), "sum", weights.sum().round(6))
print("output ", (weights @ pages).round(1))

# %% [markdown]
# `regard.kernels.reference` is the same definition in NumPy, for any shape, and it records every step. `regard.attention` is the
# fast version in PyTorch. All three agree; with many queries, each row is one query by itself.

# %%
trace = reference.attention(wish[None], spines, pages)
for step in trace:
    print(f"{step.name:8} {step.value.shape!s:8} {step.formula}")

wishes = np.stack([wish, [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])  # three readers
in_numpy = reference.attention(wishes, spines, pages).output
in_torch = regard.attention(*(torch.from_numpy(x) for x in (wishes, spines, pages)))
np.testing.assert_allclose(in_numpy, in_torch, rtol=1e-12)
np.testing.assert_allclose(in_numpy[0], weights @ pages, rtol=1e-12)
print(in_numpy.round(1).T)

# %% [markdown]
# ## Bars and similarities
#
# Weights next to values; the title shows the result. Which books resemble *each other* is another question, answered by the
# cosine between keys, whatever the query. (An outer product of scores, which some tutorials call a similarity, is not: lesson 3.)

# %%
figures.bars(weights, words("library.books", lang), values=pages[:, 0], lang=lang)

# %%
unit = spines / np.linalg.norm(spines, axis=1, keepdims=True)
books = words("library.books", lang)
figures.heatmap(unit @ unit.T, queries=books, keys=books, lang=lang)

# %% [markdown]
# ## Geometry
#
# `q · k = |q| |k| cos`. A query attends to keys that point its way, and more to longer keys. The arrows are as wide as their
# weights.

# %%
geometry = demonstration("geometry")
found = geometry.show()
for fact in found.facts():
    print(fact.say(lang))
geometry.draw(found, lang)

# %% [markdown]
# ## A filter
#
# Most of the weight is on a few keys. Keep those above a threshold and divide by what is left: the output moves by at most the weight that
# was dropped times the range of the values.

# %%
keep = demonstration("filter")
for threshold in (0.02, 0.1, 0.5):
    found = keep.show(threshold)
    print(threshold, found.kept, f"share {found.share:.3f}", f"{found.output:.2f} → {found.filtered:.2f}")
    assert abs(found.output - found.filtered) <= found.bound
keep.draw(keep.show(0.1), lang)

# %% [markdown]
# **Try it.** Change `wish` to `[0, 0, 0, 5]`. What happens to the weights when you multiply it by 10? By 0?
#
# In the terminal: `regard demo library`, `regard demo geometry --figure arrows.png`.
