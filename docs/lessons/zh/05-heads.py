# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 5 · 多个头
#
# 一次注意力只问一个问题。多个头可以同时问多个问题，每个头用自己的几个通道。大约八分钟。

# %%
lang = "zh"

# %%
import numpy as np
import torch

import regard
from regard import figures, masks, nn
from regard.kernels import reference
from regard.lessons import demonstration
from regard.lessons.multi_head_parameters import BareMultiHead

# %% [markdown]
# ## 同一个头的两种写法
#
# 一个头就是三个矩阵加上那条公式。矩阵是裸参数，还是放在线性层里，都没有区别，只要两边的数相同；加上掩码也一样。

# %%
single = demonstration("single")
found = single.show()
for fact in found.facts():
    print(fact.say(lang))
single.draw(found, lang)

# %% [markdown]
# ## n 个分开的头，等于一次投影
#
# 三个头各用一个 12 × 4 的矩阵，等同于一个 12 × 12 的矩阵，再把结果切成三份。后一种写法用一次大乘法代替许多次小乘法，所有库都这么做。

# %%
split = demonstration("heads")
found = split.show()
for fact in found.facts():
    print(fact.say(lang))
assert found.difference < 1e-12
split.draw(found, lang)

# %% [markdown]
# 拆分与合并只是改变形状。用 NumPy 写：

# %%
x = np.arange(24.0).reshape(2, 12)  # 两个词元，各十二个数
heads = reference.split_heads(x, 3)
print(x.shape, "→", heads.shape, "→", reference.combine_heads(heads).shape)
print(heads[1])  # 两个词元的第 4 到 7 个通道
assert (reference.combine_heads(heads) == x).all()

# %% [markdown]
# ## 与 PyTorch 自带的模块对照
#
# 用上 `torch.nn.MultiheadAttention` 的权重之后，裸参数版本的输出和注意力权重都与它相同。PyTorch 默认把各头的权重取平均：八种不同的视角变成了一张灰蒙蒙的图，除非你明确要求逐头返回。

# %%
multihead = demonstration("multihead")
found = multihead.show()
for fact in found.facts():
    print(fact.say(lang))
multihead.draw(found, lang)

# %% [markdown]
# ## 用来训练的模块
#
# `nn.MultiHeadAttention` 支持任意长度、查询与键长度不同、因果选项、权重和输出上的 dropout、分组的键头，以及缓存。所谓因果，就是文本变长不会改变已经算好的开头部分。

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
# 训练模式下，dropout 使两次运行的结果不同；调用 `.eval()` 之后则完全相同。

# %%
module.train()
print("训练模式：", torch.equal(module(x), module(x)))
module.eval()
print("评估模式：", torch.equal(module(x), module(x)))

# %% [markdown]
# 即使其余部分都用半精度，softmax 也至少用 float32 计算。若全用 bfloat16，256 + 1 还是 256，许多小权重累加起来就不再增长。

# %%
q, k, v = torch.randn(3, 1, 1, 4096, 16, dtype=torch.float64)
exact = regard.attention(q, k, v)
half = [x.bfloat16() for x in (q, k, v)]
powers = (half[0] @ half[1].mT / 4).exp()
total = torch.zeros(4096, dtype=torch.bfloat16)
for column in powers[0, 0].T[:600]:
    total += column  # 用 bfloat16 逐个累加
print(f"用 bfloat16 累加 600 列，丢失 {1 - (total / powers[0, 0, :, :600].double().sum(-1)).mean():.1%}")
print(f"regard 在 bfloat16 上的平均误差：{(regard.attention(*half).double() - exact).abs().mean():.5f}")

# %% [markdown]
# PyTorch 的权重可以直接转换过来，掩码照常可用：

# %%
theirs = torch.nn.MultiheadAttention(32, 4, batch_first=True).eval()
ours = nn.from_torch(theirs)
forbidden = ~masks.causal().dense(9)  # torch 用 True 表示不可以看
torch.testing.assert_close(ours(x, mask=masks.causal()), theirs(x, x, x, attn_mask=forbidden)[0])
print(type(ours).__name__, BareMultiHead(32, 4)(x).shape)

# %% [markdown]
# **试一试。** `regard demo multihead --lang zh`。`nn.MultiHeadAttention(512, 8, key_heads=2)` 有多少个参数？换成 8 个键头呢？
