# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 7 · 看进真实的模型
#
# 记录每一个头，画出几个，测量全部，并说出它们在做什么。这里用自带的翻译模型；同样的调用也适用于 BERT、GPT-2、Llama、T5 或你自己的模型。大约九分钟。

# %%
lang = "zh"

# %%
import tempfile
from pathlib import Path

import torch

import regard
from regard import figures, heads
from regard.translator import embedded, look

# %% [markdown]
# ## 记录
#
# `look` 一边翻译一边记录。换成别的模型，就用下面这个 `with` 块：
#
# ```python
# with regard.watch(model) as seen:  # BERT、Llama、T5、Whisper、torch.nn、你自己的模型……
#     model(**inputs)
# seen.tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
# ```
#
# 保存的只有 Q、K 和每行一个数。任何权重都能由它们精确算出。

# %%
seen = look(embedded(), "The quick brown fox jumps over the lazy dog.").recording
print(seen, f"{seen.nbytes:,} 字节")
print("原文", *seen.source_tokens[0])
print("译文", *seen.tokens[0])
for call in seen:
    print(f"{call.name:28} {call.kind:8} {call.heads} 个头，{call.queries} × {call.keys}")

# %% [markdown]
# ## 看
#
# 一个头及其数值；一层的所有头；词元之间的连线。

# %%
figures.heatmap(seen, kind="encoder", layer=0, head=0, lang=lang)

# %%
figures.grid(seen, kind="encoder", layer=1, lang=lang)

# %%
figures.lines(seen, kind="encoder", layer=2, heads=[0, 1], least=0.15, lang=lang)

# %%
figures.bars(seen, kind="encoder", layer=0, head=0, query=3, lang=lang)

# %% [markdown]
# 把这一切合起来就是一个网页：一个 HTML 文件，在浏览器里由 Q 和 K 现算权重。`regard.show(seen)` 把它放进笔记本，`regard.page(seen, "fox.html")` 把它写成文件。

# %%
print(regard.estimate_page(seen).in_words(lang))
with tempfile.TemporaryDirectory() as folder:
    written = regard.page(seen, Path(folder) / "fox.html", lang=lang)
    print(written.name, f"{written.stat().st_size:,} 字节")
regard.show(seen, height=560, lang=lang)

# %% [markdown]
# ## 测
#
# 对每个头：每行的熵（0 表示只看一个词元，log n 表示平均看所有词元）、每个词元收到多少关注、对角线上留下多少。每行发出的权重之和总是 1；收到的则不然，有意思的地方就在这里。

# %%
first = seen[0].statistics()
source = seen.source_tokens[0]
print("每个头的熵    ", first.entropy[0].mean(-1).numpy().round(2))
print("每个头看自己  ", first.self_weight[0].mean(-1).numpy().round(2))
received = first.received[0].mean(0)  # 各头平均；1 表示平均的一份
for token, share in zip(source, received.tolist()):
    print(f"{token:8} 收到 {share:.2f}")
outgoing = seen[0].weights(0).sum(-1)
torch.testing.assert_close(outgoing, torch.ones_like(outgoing))

# %%
table = heads.table(seen)
print(table)
for row in table.sort("entropy")[:5]:
    print(f"{row['kind']:8} 第 {row['layer']} 层第 {row['head']} 头  熵 {row['entropy']:.2f}")

# %% [markdown]
# ## 说出它在做什么
#
# “角色”是一个带分数的判断：落在该角色所指的词元对上的权重，减去随机情况下应有的部分。每个角色都附上最能说明它的一对词元。

# %%
roles = heads.roles(seen)
for head in roles.clearest(6):
    print(f"{head.kind:8} 第 {head.layer} 层第 {head.head} 头：{head.in_words(lang)}   {head.example or ''}")

# %% [markdown]
# 哪些头彼此相像？比较它们各行之间的散度就知道了，还能把它们分组。

# %%
found = heads.divergence(seen, kind="encoder")
figures.divergence(found, clusters=3, lang=lang)

# %% [markdown]
# 贯穿所有层：rollout 把各层相乘，告诉你写出的每个汉字来自两边的哪里。大多数头都很集中：设一个阈值，只留少数几个键，就能保住大部分权重。

# %%
flow = heads.rollout(seen)
print(flow.own.shape, flow.source.shape)
together = flow.own.sum(-1) + flow.source.sum(-1)
torch.testing.assert_close(together, torch.ones_like(together))
row = seen[0].weights(0, rows=3)[0]
kept = row >= 0.1
print(f"{len(row)} 个键中的 {int(kept.sum())} 个占了 {row[kept].sum():.0%}")

# %% [markdown]
# **试一试。** `regard look "The quick brown fox." --lang zh --open` 打开网页；加上 `--model ./bert-base-uncased` 就能看 BERT。`regard heads "The cat sat on the mat." --roles` 打印各头的角色，`regard survey` 在整个语料库上测量每一个头。如果你的代码用的是 BertViz，`from regard import head_view, model_view` 接受同样的参数。
