# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 2 · Step by step
#
# Every number of self-attention, from two-dimensional vectors on paper to the shapes of a real layer. About eight minutes.

# %%
lang = "en"

# %%
import numpy as np
import torch

import regard
from regard import figures
from regard.errors import TextError
from regard.lessons import demonstration
from regard.lessons.multi_head_parameters import BareMultiHead
from regard.lessons.sentence_explanation import attend_sentence
from regard.lessons.word_attention import attend_words
from regard.views.terminal_weights import bar

# %% [markdown]
# ## By hand
#
# 我 = (1.0, 0.5), 喜欢 = (0.8, 0.6), AI = (0.5, 1.0): "I", "like", "AI". Take 我 as the query. Three dot products, a division by √2, a
# softmax, a mean.

# %%
hand = demonstration("hand")
found = hand.show()
for fact in found.facts():
    print(fact.say(lang))
hand.draw(found, lang)

# %% [markdown]
# ## "I love AI", three tokens of four numbers
#
# Now queries, keys and values are no longer the vectors themselves, but three projections of them: `x W_q`, `x W_k`, `x W_v`.
# `regard.explain` shows each step with its formula, its shape and its numbers. Read it from top to bottom once; this is the entire computation.

# %%
regard.explain("I love AI", lang=lang)

# %% [markdown]
# The same computation by hand. These are the matrices that `regard.explain` used, so every product below is in the tables above: ten lines of NumPy are
# the entire computation.

# %%
lesson = attend_sentence("I love AI")
x, (w_q, w_k, w_v, w_o) = lesson.x, lesson.projections
q, k, v = x @ w_q, x @ w_k, x @ w_v
scores = q @ k.T / np.sqrt(4)
powers = np.exp(scores - scores.max(axis=1, keepdims=True))
weights = powers / powers.sum(axis=1, keepdims=True)
output = weights @ v @ w_o
assert np.allclose(output, lesson.trace["output"])
print(output.round(2))

# %%
for word, row in zip(lesson.words, weights):
    print(word, "  ".join(f"{other} {share:.0%}" for other, share in zip(lesson.words, row)))
assert np.allclose(weights.sum(-1), 1)
figures.heatmap(weights, queries=lesson.words, keys=lesson.words, lang=lang)

# %% [markdown]
# ## Shapes of a real layer
#
# Batch 2, length 10, width 512, 8 heads of 64. The width becomes heads × channels, the only matrix that grows with length squared is
# `q kᵀ`, and the output has the shape of the input, so that layers can be stacked.

# %%
torch.manual_seed(0)
layer = BareMultiHead(512, 8)
for name, shape in layer.shapes(torch.randn(2, 10, 512)).items():
    print(f"{name:8} {shape}")

# %% [markdown]
# ## From scratch, with a seed to check
#
# `np.random.seed(42)`, then x, W_q, W_k and W_v in this order. Anyone who runs it gets these rows; a tutorial that prints other
# numbers did not run its own code.

# %%
scratch = demonstration("scratch")
found = scratch.show()
for fact in found.facts():
    print(fact.say(lang))
assert found.weights[0].round(3).tolist() == [0.82, 0.026, 0.154]

# %% [markdown]
# ## A sentence and a table of word vectors
#
# Words whose vectors point the same way look at each other: AI and 技术 ("technology"). Chinese labels are readable in every figure,
# and `figures.save(figure, "words.png")` writes a file.

# %%
found = attend_words("我 喜欢 学习 AI 技术")
for word, top in zip(found.words, found.strongest(3)):
    print(word)
    for other, weight in top:
        print(f"    {bar(weight):8} {weight:5.1%} {other}")
figures.heatmap(found.weights, queries=found.words, keys=found.words, lang=lang)

# %% [markdown]
# A word that is not in the table is an error that names it, never a silent zero.

# %%
try:
    attend_words("我 喜欢 的 编程")
except TextError as error:
    print(error)

# %% [markdown]
# **Try it.** In the terminal, `regard explain "I love AI" --mask causal` prints the same steps; try your own sentence, or
# `regard explain "我 喜欢 学习 AI 技术" --vectors example` with the table above.
