# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 3 · 为什么要除以 √d，以及正确的 softmax
#
# 两行决定模型能否学习的小代码，以及教程里常写错的七行。大约六分钟。

# %%
lang = "zh"

# %%
import numpy as np
import torch

import regard
from regard.kernels.reference import softmax
from regard.lessons import demonstration

# %% [markdown]
# ## 内积随宽度增大
#
# 设 q 与 k 各有 d 个方差为 1 的独立分量。每个乘积 `q_c k_c` 的方差是 1，d 个相加，方差就是 d。d = 512 时，±22 的得分很平常。对这样的得分做 softmax，相当于硬性选择：一个权重接近 1，其余接近 0。

# %%
rng = np.random.default_rng(0)
for d in (8, 64, 512):
    q, k = rng.normal(size=(2, 5_000, d))
    dots = (q * k).sum(-1)
    print(f"d = {d:3}: q·k 的方差为 {dots.var():6.1f}，q·k/√d 的方差为 {(dots / np.sqrt(d)).var():.3f}")

# %% [markdown]
# 权重 w 随得分变化的斜率是 `w (1 − w)`。当 w 为 0 或 1 时斜率为 0：没有梯度，也就学不到东西。除以 √d 之后，无论宽度多少，方差都是 1，softmax 仍然“软”。

# %%
scaling = demonstration("scaling")
found = scaling.show(samples=1000)
for fact in found.facts():
    print(fact.say(lang))
scaling.draw(found, lang)

# %% [markdown]
# 同一件事，直接看梯度：

# %%
for scale in (1.0, 512**-0.5):
    scores = torch.tensor([1.0, 2.0, 100.0], dtype=torch.float64, requires_grad=True)
    (scores * scale).softmax(-1)[2].backward()
    print(f"缩放 {scale:.3f}：梯度 {scores.grad.tolist()}")

# %% [markdown]
# ## 逐行做 softmax
#
# `exp(1000)` 是无穷大。给一行的所有得分减去同一个数，softmax 不变，所以先减去最大值，而且是**每一行自己的**最大值：如果减去整个矩阵的最大值，得分低的那一行就会变成 0/0。

# %%
scores = np.array([[1000.0, 999.0], [-1000.0, -999.0]])
with np.errstate(all="ignore"):
    bare = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    whole = np.exp(scores - scores.max())
    whole = whole / whole.sum(-1, keepdims=True)
right, lse = softmax(scores)
print("不减最大值        ", bare.tolist())
print("减整个矩阵的最大值", whole.tolist())
print("减每行自己的最大值", right.round(3).tolist())

# %% [markdown]
# 同时得到 `lse`，即和的对数：`w_ij = exp(s_ij − lse_i)`。每行这一个数，再加上 Q 与 K，*就是*整个矩阵。regard 正是靠它，不用存下 n²
# 个数，就能给出长文本中的任意一个权重。

# %%
np.testing.assert_allclose(np.exp(scores - lse[:, None]), right)

# %% [markdown]
# ## 七个常见错误与正确的数
#
# 每一行先给出常见代码的结果，再给出正确的结果。

# %%
mistakes = demonstration("mistakes")
found = mistakes.show()
for fact in found.facts():
    print("•", fact.say(lang))
mistakes.draw(found, lang)

# %% [markdown]
# 还有两个。相对位置偏置的形状是 `(1, heads, n, n)`，得分也必须有“头”这一维。若加到 `(batch, n, n)` 上，要么报错，要么（批大小恰好等于头数时）不声不响地给每句话加上不同头的偏置。另外，多头模块如果对 q、k、v 只读一个长度，就做不了交叉注意力。在 regard 里两者都没有问题：

# %%
q = torch.randn(2, 4, 5, 8)  # （批, 头, 查询, 通道）
k = v = torch.randn(2, 4, 7, 8)  # 七个键
bias = torch.randn(4, 5, 7)  # 每个头、查询、键各一个
wrong = torch.randn(4, 5, 5) + torch.randn(1, 4, 5, 5)  # 四句话，四个头
print(tuple(wrong.shape), "句子被当成了头")
print(regard.attention(q, k, v, bias=bias).shape)
print(regard.nn.MultiHeadAttention(32, 4)(torch.randn(2, 5, 32), torch.randn(2, 7, 32)).shape)

# %% [markdown]
# **试一试。** `regard demo scaling --lang zh --figure scaling.png`。如果 q 与 k 并不独立，而是相等，结果会怎样？
