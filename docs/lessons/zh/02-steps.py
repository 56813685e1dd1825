# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 2 · 一步一步地算
#
# 自注意力的每一个数：从纸上的二维向量，到真实一层的形状。大约八分钟。

# %%
lang = "zh"

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
# ## 手算
#
# 我 = (1.0, 0.5)，喜欢 = (0.8, 0.6)，AI = (0.5, 1.0)。以“我”为查询：三个内积，除以 √2，一次 softmax，一次加权平均。

# %%
hand = demonstration("hand")
found = hand.show()
for fact in found.facts():
    print(fact.say(lang))
hand.draw(found, lang)

# %% [markdown]
# ## “I love AI”：三个词元，每个四个数
#
# 现在查询、键、值不再是词向量本身，而是它们的三个投影：`x W_q`、`x W_k`、`x W_v`。`regard.explain` 给出每一步的公式、形状和数值。从上到下读一遍，注意力的全部就在这里。

# %%
regard.explain("I love AI", lang=lang)

# %% [markdown]
# 自己动手算一遍。这里用的正是 `regard.explain` 的那些矩阵，所以下面的每个乘积都能在上面的表里找到：十行 NumPy 就是全部计算。

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
# ## 真实一层的形状
#
# 批大小 2，长度 10，宽度 512，8 个头，每头 64 个通道。宽度被拆成“头 × 通道”；唯一随长度平方增长的矩阵是 `q kᵀ`；输出与输入形状相同，所以层可以叠起来。

# %%
torch.manual_seed(0)
layer = BareMultiHead(512, 8)
for name, shape in layer.shapes(torch.randn(2, 10, 512)).items():
    print(f"{name:8} {shape}")

# %% [markdown]
# ## 从零实现，用随机种子核对
#
# `np.random.seed(42)`，然后依次生成 x、W_q、W_k、W_v。谁来运行都会得到下面这几行；如果教程里印的是别的数，说明它没有运行过自己的代码。

# %%
scratch = demonstration("scratch")
found = scratch.show()
for fact in found.facts():
    print(fact.say(lang))
assert found.weights[0].round(3).tolist() == [0.82, 0.026, 0.154]

# %% [markdown]
# ## 一句话与一张词向量表
#
# 向量方向相近的词互相关注：AI 与技术。每张图里的中文都能正常显示，`figures.save(figure, "words.png")` 可以保存成文件。

# %%
found = attend_words("我 喜欢 学习 AI 技术")
for word, top in zip(found.words, found.strongest(3)):
    print(word)
    for other, weight in top:
        print(f"    {bar(weight):8} {weight:5.1%} {other}")
figures.heatmap(found.weights, queries=found.words, keys=found.words, lang=lang)

# %% [markdown]
# 表里没有的词会报错并指出是哪个词，绝不会悄悄当作零。

# %%
try:
    attend_words("我 喜欢 的 编程")
except TextError as error:
    print(error)

# %% [markdown]
# （在 Python 里错误信息是英文；命令行加上 `--lang zh` 就给出中文。）
#
# **试一试。** 在终端里运行 `regard explain "I love AI" --mask causal --lang zh`，会打印同样的步骤；换成你自己的句子，或者用上面的词向量表：`regard explain "我 喜欢 学习 AI 技术" --vectors example --lang zh`。
