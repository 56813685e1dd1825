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
from regard.kernels import reference
from regard.lessons import demonstration
from regard.lessons.multi_head_parameters import BareMultiHead
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
# `regard.explain` shows each step with its formula, its shape and its numbers. Read it from top to bottom once; it is all there is.

# %%
regard.explain("I love AI", lang=lang)

# %% [markdown]
# The same with matrices of your own. The reference in NumPy writes down every step; `trace["weights"]` is the value of one.

# %%
tokens = ["I", "love", "AI"]
rng = np.random.default_rng(42)
x = rng.normal(size=(3, 4))
w_q, w_k, w_v, w_o = rng.normal(size=(4, 4, 4)) / 2

trace = reference.multi_head(x, w_q, w_k, w_v, w_o, heads=1)
for number, step in enumerate(trace, 1):
    print(f"{number:2}  {step.name:8} {step.value.shape!s:10} {step.formula}")
print(trace["output"].round(3))

# %%
weights = trace["weights"][0]
for word, row in zip(tokens, weights):
    print(word, "  ".join(f"{other} {share:.0%}" for other, share in zip(tokens, row)))
assert np.allclose(weights.sum(-1), 1)
figures.heatmap(weights, queries=tokens, keys=tokens, lang=lang)

# %% [markdown]
# ## Shapes of a real layer
#
# Batch 2, length 10, width 512, 8 heads of 64. Width becomes heads × channels, the only matrix that grows with length squared is
# `q kᵀ`, and the output has the shape of the input, so that layers can be stacked.

# %%
torch.manual_seed(0)
layer = BareMultiHead(512, 8)
for name, shape in layer.shapes(torch.randn(2, 10, 512)).items():
    print(f"{name:8} {shape}")

# %% [markdown]
# ## From scratch, with a seed to check
#
# `np.random.seed(42)`, then x, W_q, W_k and W_v in this order. Whoever runs it gets these rows; a tutorial that prints others did not
# run its own code.

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
    attend_words("我 喜欢 编程")
except TextError as error:
    print(error)

# %% [markdown]
# **Try it.** In the terminal, `regard explain "I love AI" --mask causal` prints the same steps; take a sentence of your own, or
# `regard explain "我 喜欢 学习 AI 技术" --vectors example` with the table above.
