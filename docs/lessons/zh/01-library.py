# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 1 · 一个查询与一座图书馆
#
# 注意力用一份“混合物”来回答问题。这一课只讲**一个**查询：先讲成故事，再写成四行 NumPy，最后画成图。大约七分钟。
#
# 第一个单元格选择图中文字的语言。

# %%
lang = "zh"

# %%
import numpy as np
import torch

import regard
from regard import figures
from regard.kernels import reference
from regard.lessons import demonstration
from regard.lessons.facts import words

# %% [markdown]
# ## 查询、键、值
#
# 你走进图书馆，想学编程。这个愿望就是**查询**（query）；书脊上写的是**键**（key）；书里的内容是**值**（value）。搜索会拿你的愿望与每一条书脊比较，然后取来最合适的一本。注意力同样逐一比较，但会从*每一本*书里各取一些，合适多少就取多少。
#
# 图的后半部分问：句子里的“她”指的是谁？“她”是查询，前面的词都是键。

# %%
library = demonstration("library")
found = library.show()
for fact in found.facts():
    print(fact.say(lang))
library.draw(found, lang)

# %% [markdown]
# ## 同样的事，四行代码
#
# 每本书有四个主题：数学、编程、历史、烹饪。一本书的得分是愿望与书脊的内积，再除以 √4（原因见第 3 课）。softmax 把得分变成权重：都是正数，总和为 1。输出就是各个值按权重求得的平均。

# %%
wish = np.array([1.0, 2.0, 0.0, 0.0])
spines = np.array([[3.0, 1.0, 0.0, 0.0], [1.0, 3.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.5], [0.0, 0.0, 0.5, 3.0]])
pages = np.array([[300.0], [450.0], [700.0], [200.0]])

scores = spines @ wish / np.sqrt(4)
powers = np.exp(scores - scores.max())  # 先减去最大值，就不会溢出
weights = powers / powers.sum()
print("得分", scores.round(2))
print("权重", weights.round(3), "总和", weights.sum().round(6))
print("输出", (weights @ pages).round(1))

# %% [markdown]
# `regard.kernels.reference` 是同一个定义的 NumPy 实现，适用于任意形状，并记下每一步。`regard.attention` 是 PyTorch 里的快速实现。三者结果一致；有许多查询时，每一行就是一个独立的查询。

# %%
trace = reference.attention(wish[None], spines, pages)
for step in trace:
    print(f"{step.name:8} {step.value.shape!s:8} {step.formula}")

wishes = np.stack([wish, [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])  # 三位读者
in_numpy = reference.attention(wishes, spines, pages).output
in_torch = regard.attention(*(torch.from_numpy(x) for x in (wishes, spines, pages)))
np.testing.assert_allclose(in_numpy, in_torch, rtol=1e-12)
np.testing.assert_allclose(in_numpy[0], weights @ pages, rtol=1e-12)
print(in_numpy.round(1).T)

# %% [markdown]
# ## 条形图与相似度
#
# 权重与值并列，标题就是输出。哪些书*彼此*相像则是另一个问题：那是键与键之间的余弦，与谁来提问无关。（有些教程把得分的外积叫作相似度，那并不对，见第 3 课。）

# %%
figures.bars(weights, words("library.books", lang), values=pages[:, 0], lang=lang)

# %%
unit = spines / np.linalg.norm(spines, axis=1, keepdims=True)
books = words("library.books", lang)
figures.heatmap(unit @ unit.T, queries=books, keys=books, lang=lang)

# %% [markdown]
# ## 几何
#
# `q · k = |q| |k| cos`。查询关注与自己同方向的键；键越长，得到的关注越多。箭头越宽，权重越大。

# %%
geometry = demonstration("geometry")
found = geometry.show()
for fact in found.facts():
    print(fact.say(lang))
geometry.draw(found, lang)

# %% [markdown]
# ## 过滤器
#
# 大部分权重落在少数几个键上。只保留高于阈值的键，再除以余下的总和：输出的变化不会超过“丢掉的权重 × 值的范围”。

# %%
keep = demonstration("filter")
for threshold in (0.02, 0.1, 0.5):
    found = keep.show(threshold)
    print(threshold, found.kept, f"占比 {found.share:.3f}", f"{found.output:.2f} → {found.filtered:.2f}")
    assert abs(found.output - found.filtered) <= found.bound
keep.draw(keep.show(0.1), lang)

# %% [markdown]
# **试一试。** 把 `wish` 改成 `[0, 0, 0, 5]`。把它乘以 10，权重会怎样？乘以 0 呢？
#
# 在终端里：`regard demo library --lang zh`、`regard demo geometry --figure arrows.png`。
