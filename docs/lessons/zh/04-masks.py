# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 4 · 掩码：谁能看见谁
#
# 掩码是一条规则。规则可以组合，也说明了哪些地方不必计算。大约七分钟。

# %%
lang = "zh"

# %%
import torch

import regard
from regard import figures, masks
from regard.errors import MaskError
from regard.lessons import demonstration

# %% [markdown]
# ## 加掩码之前与之后
#
# 没有掩码时，每个词元都能看见所有词元。而写文章的模型不该看见还没写出来的内容：对角线以上的得分变成 −∞，经过 softmax 正好是 0。

# %%
torch.manual_seed(0)
tokens = ["the", "cat", "sat", "down"]
q, k, v = torch.randn(3, 4, 8)  # 各为（查询或键, 通道）
before = regard.attention_weights(q, k)
after = regard.attention_weights(q, k, mask=masks.causal())
for name, weights in (("之前", before), ("之后", after)):
    print(name)
    for token, row in zip(tokens, weights):
        print(f"  {token:5}", "  ".join(f"{w:.2f}" if w else " –  " for w in row))

# %%
figures.heatmap(after, queries=tokens, keys=tokens, lang=lang)

# %% [markdown]
# 加法掩码说的是同一件事：能看的地方加 0，不能看的地方加 −∞。手写只要四行：

# %%
added = torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -torch.inf)
scores = q @ k.T / 8**0.5 + added
output = scores.softmax(-1) @ v
torch.testing.assert_close(output, regard.attention(q, k, v, mask=masks.causal()))
print(added)

# %% [markdown]
# ## 五种掩码
#
# 填充掩码挡住仅用来补齐批次的位置。窗口只看邻居。“局部 + 全局”既看邻居，也看每隔 s 个的词元。`&` 留下两者都允许的，`|` 留下其中之一允许的。

# %%
shown = demonstration("masks")
found = shown.show()
for fact in found.facts():
    print(fact.say(lang))
shown.draw(found, lang)

# %% [markdown]
# ## 掩码是值
#
# 掩码怎么写就怎么打印，可以比较，也可以从文本读入。文本有错时，错误信息会指出位置。

# %%
mask = masks.parse("causal & (window(3, 0) | prefix(2))")
print(mask, mask == masks.causal() & (masks.window(3, 0) | masks.prefix(2)))
try:
    masks.parse("causal & windo(3, 0)")
except MaskError as error:
    print(error)
figures.mask(mask, 14, lang=lang)

# %% [markdown]
# ## 一次调用，同时处理填充与因果
#
# 一个批里有两句话，第二句较短。`padding` 每句一行；与 `causal` 组合，同时适用于两句。末尾的填充词元仍能看见前面的词；被挡住的是别人去看*填充*。

# %%
keep = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])  # （批, 键）
q, k, v = torch.randn(3, 2, 4, 5, 8)  # 各为（批, 头, 词元, 通道）
both = masks.padding(keep) & masks.causal()
weights = regard.attention_weights(q, k, mask=both)
print(weights.shape)
print(weights[1, 0].numpy().round(2))
assert (weights[1, :, :, 3:] == 0).all()

# %% [markdown]
# ## 什么也看不见的行
#
# 填充在左边，又加上因果：最前面的词元什么也看不见。普通 softmax 会算 0/0，一个 NaN 就能毁掉整个训练。regard 的回答是 0，梯度也保持有限。

# %%
left = masks.padding(torch.tensor([False, False, True, True, True])) & masks.causal()
naive = (q @ k.mT).masked_fill(~left.dense(5), -torch.inf).softmax(-1)
print("普通 softmax 的结果：", naive[0, 0, 0].tolist())
q.requires_grad_()
output = regard.attention(q, k, v, mask=left)
output.sum().backward()
print("regard 的结果：      ", output[0, 0, 0].tolist()[:3], "梯度有限：", q.grad.isfinite().all().item())

# %% [markdown]
# ## 随机丢弃（dropout）
#
# 训练时随机把一些权重置 0，其余放大 1/(1−p) 倍，平均起来不变。

# %%
with torch.no_grad():
    plain = regard.attention(q, k, v)
    many = torch.stack([regard.attention(q, k, v, dropout=0.2) for _ in range(500)]).mean(0)
print(f"500 次的平均与不丢弃时的最大差：{(many - plain).abs().max():.3f}")

# %% [markdown]
# ## 掩码省下了什么
#
# `plan` 会在计算之前说明 regard 将怎样处理一个掩码。8,192 × 8,192 的矩阵从来不会建立。

# %%
print(regard.plan(masks.causal() & masks.window(127, 0), 8192).in_words(lang))
figures.mask("causal & (window(4000, 0) | every(8192))", 100_000, size=2.6, lang=lang)

# %% [markdown]
# **试一试。** `regard mask "causal & window(4, 0)" -n 16` 可以在终端里画出任何掩码。把几篇文档首尾相接地打包在一起，哪种掩码能让每篇只看自己？（`masks.documents`）
