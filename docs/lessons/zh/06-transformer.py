# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 6 · Transformer 与一次翻译
#
# 注意力、位置、一个小网络，以及它们之间的连线。然后来看一个训练好的翻译模型：每个汉字看的是哪个英文词。大约九分钟。

# %%
lang = "zh"

# %%
import torch

import regard
from regard import figures, masks, nn
from regard.lessons import demonstration
from regard.translator import embedded, embedded_alignment_head, look

# %% [markdown]
# ## 为什么不用循环网络
#
# 循环网络一个接一个地读词元：n 个互相等待的步骤；从最后一个词元回到第一个，要走 n − 1 步，远处的信息到这里已经淡了。注意力只走一步，每个词元之间都只隔一步。它的计算量更大，但不需要等待。下面的时间是在这台机器上实测的。

# %%
order = demonstration("order")
found = order.show((32, 128, 512))
for fact in found.facts():
    print(fact.say(lang))
order.draw(found, lang)

# %% [markdown]
# ## 词元站在哪里
#
# 上面最后一行就是代价：注意力本身不知道顺序，所以要把位置加到词元上。无论是正弦位置还是旋转位置，内积都只取决于距离。

# %%
positions = demonstration("positions")
found = positions.show()
for fact in found.facts():
    print(fact.say(lang))
positions.draw(found, lang)

# %% [markdown]
# ## 编码器、解码器，以及两者之间
#
# 编码器的一层由自注意力和前馈网络组成，各带残差连接和层归一化。解码器的一层先是因果自注意力，再是**交叉注意力**：查询来自解码器，键和值来自编码器。

# %%
torch.manual_seed(0)
model = nn.Transformer(64, 4, encoder_layers=2, decoder_layers=2).eval()
print(model.encoder.layers[0])
print(model.decoder.layers[0])

# %% [markdown]
# 读入两句话，最长 20 个词元，写出 10 个词元，4 个头。第二句只有 14 个词元，其余由 `source_keep` 挡住。交叉注意力的权重形状是
# (2, 4, 10, 20)，每行之和为 1。

# %%
source, target = torch.randn(2, 20, 64), torch.randn(2, 10, 64)
keep = torch.arange(20) < torch.tensor([[20], [14]])
with regard.watch(model) as seen:
    print(model(source, target, source_keep=keep).shape)
cross = next(call for call in seen if call.kind == "cross")
weights = torch.stack([torch.stack([cross.weights(head, batch=b) for head in range(4)]) for b in range(2)])
print(cross.name, tuple(weights.shape))
torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 10))
assert (weights[1, :, :, 14:] == 0).all()

# %% [markdown]
# 单独用一个模块，或直接用函数，也是一样；掩码就写成掩码：

# %%
print(nn.MultiHeadAttention(64, 4).weights(target, source, mask=masks.padding(keep)).shape)
q, k = torch.randn(2, 4, 10, 16), torch.randn(2, 4, 20, 16)
print(regard.attention_weights(q, k, mask=masks.padding(keep)).shape)
figures.heatmap(weights[1, 0], lang=lang)

# %% [markdown]
# ## 一个训练好的模型
#
# regard 自带一个小型英译中模型，用自己的模块训练，无需联网。`align=True` 读取交叉注意力中的一个头：在“哪个词对应哪个词”上，它是实测答对最多的那一个。

# %%
for sentence in ("I love you.", "The cat is on the table.", "She bought a new book yesterday."):
    print(sentence, "→", regard.translate(sentence))
print()
print(regard.translate("The cat is on the table.", align=True))

# %% [markdown]
# 行是写出每个汉字的步骤，列是英文片段。每一行以刚读到的内容命名，所以 `[START]` 那一行写出的是第一个汉字。顺着行往下看，可以看到翻译模型怎样在句子里移动，遇到中文语序不同的地方又怎样跳跃。

# %%
by = embedded_alignment_head()
seen = look(embedded(), "The cat is on the table.").recording
print(f"第 {by.layer} 层，第 {by.head} 头：{by.pairs} 对核对过的词中答对 {by.right} 对")
figures.heatmap(seen, kind="cross", layer=by.layer, head=by.head, lang=lang)

# %%
figures.lines(seen, kind="cross", layer=by.layer, heads=by.head, least=0.1, lang=lang)

# %% [markdown]
# 再看其中一行背后的每一个数：写出第一个汉字的那一步，此时它还没有读过自己写的任何内容。

# %%
regard.explain("The cat is on the table.", kind="cross", layer=by.layer, head=by.head, token=0, lang=lang)

# %% [markdown]
# **试一试。** `regard translate "The cat is on the table." --align`；再用 `regard look "The cat is on the table." --lang zh` 同时看所有的头。
