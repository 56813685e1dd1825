# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 8 · 代价与变体
#
# 注意力要花多少代价；为什么不建 n×n 矩阵也能精确；以及为了更省，要放弃什么。大约九分钟。

# %%
lang = "zh"

# %%
import torch

import regard
from regard import biases, figures, masks, nn
from regard.lessons import demonstration
from regard.lessons.timing import Variant, measure

# %% [markdown]
# ## 数一数
#
# 长度变成四倍，词元对就变成十六倍。`regard.cost` 不用运行，就能数出每一步的运算量和字节数。8,192 个词元、8 个头时，float32 的矩阵要
# 2 GB；Q、K、V 和输出合起来只要 64 MB。

# %%
found = regard.cost([512, 2048, 8192], width=512, heads=8, projections=False)
print(found.in_words(lang), "\n")
for length in found.lengths:
    dense = found[length, "dense"]
    print(f"{length:,} 个词元")
    for step in dense.steps:
        print(f"  {step.name:8} {step.operations:>18,} 次运算 {step.bytes:>15,} 字节")

# %%
lengths = [512, 2048, 8192]
ways = ("dense", "regard", "linear")
figures.cost(
    lengths,
    operations={way: [found[length, way].operations for length in lengths] for way in ways},
    bytes={way: [found[length, way].bytes for length in lengths] for way in ways},
    lang=lang,
)

# %% [markdown]
# ## 不建矩阵，也能精确
#
# 用十几行代码讲清 FlashAttention 的想法。键一块一块地来。每一行只记住到目前为止的最大值、总和与输出；出现更大的最大值时，把之前累计的部分按相应比例缩小。没有任何近似。


# %%
def attend_in_tiles(q, k, v, tile=64):
    highest = torch.full(q.shape[:-1], -torch.inf, dtype=q.dtype)
    total, output = torch.zeros_like(highest), torch.zeros_like(q)
    for start in range(0, k.shape[-2], tile):
        scores = q @ k[..., start : start + tile, :].mT / q.shape[-1] ** 0.5
        higher = torch.maximum(highest, scores.amax(-1))
        shrink, powers = (highest - higher).exp(), (scores - higher[..., None]).exp()
        total = total * shrink + powers.sum(-1)
        output = output * shrink[..., None] + powers @ v[..., start : start + tile, :]
        highest = higher
    return output / total[..., None]


torch.manual_seed(0)
q, k, v = torch.randn(3, 2, 4, 500, 16, dtype=torch.float64)
torch.testing.assert_close(attend_in_tiles(q, k, v), regard.attention(q, k, v))

# %% [markdown]
# ## 稀疏，而且是真的稀疏
#
# 一个窗口，加上每隔 64 个的词元。先建稠密掩码再遮住大部分，一点也没省，仍然是 n²。按块规划只计算 5 %。

# %%
sparse = masks.local_global(64)
print(regard.plan(sparse, 8192).in_words(lang))
print(regard.cost(8192, mask=sparse, projections=False).in_words(lang))
figures.mask(masks.local_global(8), 48, lang=lang)

# %% [markdown]
# ## 用偏置表示位置
#
# 相对位置偏置：每个头、每个距离一个可学习的数，在 ±32 处截断，加到得分上。每个头只有 65 个数的表，绝不是 n×n 的张量。ALiBi 则没有要学的数：每个头一个斜率。

# %%
table = torch.randn(4, 65, dtype=torch.float64, requires_grad=True)  # （头, 从 −32 到 32 的距离）
output = regard.attention(q, k, v, bias=biases.relative(table))
output.square().sum().backward()
print(output.shape, "表的梯度", tuple(table.grad.shape))
print(nn.RelativePositionAttention(64, 4, clip=32)(torch.randn(2, 10, 64)).shape)
figures.heatmap(biases.alibi(4).dense(24, 24)[1], lang=lang)

# %% [markdown]
# ## 线性注意力
#
# 把 `exp(q · k)` 换成 `φ(q) · φ(k)`，其中 φ = elu + 1，对键的求和就可以只做一次：`φ(q) Σ φ(k) vᵀ`。代价随 n 增长。它是另一个函数，不是算同一个函数的更快方法：原本尖锐的行会变钝。


# %%
def features(x):
    return torch.nn.functional.elu(x) + 1


weights = features(q) @ features(k).mT
by_hand = weights / weights.sum(-1, keepdim=True) @ v
torch.testing.assert_close(regard.linear_attention(q, k, v), by_hand)
sharp = regard.attention_weights(4 * q, k)
blunt = features(4 * q) @ features(k).mT
blunt = blunt / blunt.sum(-1, keepdim=True)
for name, rows in (("softmax", sharp), ("linear", blunt)):
    print(f"{name}：每行最大的权重平均为 {rows.amax(-1).mean():.3f}")

# %% [markdown]
# ## 计时
#
# 练习：批大小 8，长度 1,024，64 个通道。这里跑十轮；`regard bench` 跑一百轮，还会测内存和更长的文本。

# %%
threads = torch.get_num_threads()
for variant in ("textbook", "standard", "causal", "window", "linear"):
    seconds, _ = measure(Variant(variant, 1024, 8, 1, 64, 10, threads))
    print(f"{variant:9} {1000 * seconds:7.2f} 毫秒")

# %% [markdown]
# ## 两个练习
#
# 一是在一个函数里同时处理填充与因果；二是对一句名句画出某个头的热图。在 regard 里，第一个只要一行，可以对照定义检查。第二个在 BERT 上是
# `regard look "The quick brown fox jumps over the lazy dog." --model ./bert-base-uncased --layer 5 --head 0 --figure fox.png`。


# %%
def padded_causal(q, k, v, keep):
    return regard.attention(q, k, v, mask=masks.padding(keep) & masks.causal())


keep = torch.arange(500) < torch.tensor([[500], [437]])
allowed = keep[:, None, None, :] & torch.ones(500, 500).tril().bool()
scores = (q @ k.mT / 4).masked_fill(~allowed, -torch.inf)
torch.testing.assert_close(padded_causal(q, k, v, keep), scores.softmax(-1) @ v)

# %% [markdown]
# ## 三个误解
#
# *注意力就是求平均。* 是的，但权重是学来的，并且取决于查询。只有一行的分数全都相等时，它才是普通平均，例如 W_q = 0 或 W_k = 0 的时候。
#
# *多头是为了快。* 八个头的矩阵乘法与一个宽头一样多，softmax 却要算八份：工作量略多，而不是更少。要多个头，是因为它们是八个不同的查询。
#
# *它只用于语言。* 上面的一切都不知道词元是什么。下面的演示在纯数字上学习：普通平均做不到；一个头只能找到两个标记中的一个；两个头两个都能找到。图像块同样可以：8 × 8 个图像块中，每一块都看向颜色相近的块，不论它们在哪里。

# %%
for queries, keys in ((0 * q, k), (q, 0 * k)):
    torch.testing.assert_close(regard.attention(queries, keys, v), v.mean(-2, keepdim=True).expand_as(v))
one, eight = (regard.cost(1024, width=512, heads=heads)[1024, "dense"] for heads in (1, 8))
for step in ("scores", "softmax"):
    print(f"{step}，1 个头与 8 个头：", one[step].operations, eight[step].operations)

averaging = demonstration("averaging")
found = averaging.show()
for fact in found.facts():
    print(fact.say(lang))
averaging.draw(found, lang)

# %%
row, column = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
disc = ((row - 3.5) ** 2 + (column - 3.5) ** 2 < 9).float()  # 暗底上的亮圆
patches = torch.stack([disc, 1 - disc], -1).flatten(0, 1) * 3  # （图像块, 通道）
weights = regard.attention_weights(patches, patches)
figures.heatmap(weights[27].reshape(8, 8), title="27", lang=lang)

# %% [markdown]
# **试一试。** `regard cost --length 512 2048 8192 --width 512 --heads 8 --lang zh`、`regard bench --length 1024 4096 --lang zh`。在你的机器上，从多长的文本开始线性注意力更快？
