# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 6 · The transformer, and a translation
#
# Attention, positions, a small network, and the connections between them. Then a trained translator, and which English word each Chinese
# character looked at. About nine minutes.

# %%
lang = "en"

# %%
import torch

import regard
from regard import figures, masks, nn
from regard.lessons import demonstration
from regard.translator import embedded, embedded_alignment_head, look

# %% [markdown]
# ## Why not a recurrent net
#
# A recurrent net reads one token after another: n steps that wait for each other, and n − 1 steps from the last token back to the
# first. What is far away arrives faded. Attention takes one step, and every token is one step away. It does more arithmetic, but
# nothing waits. The times below are measured on this machine.

# %%
order = demonstration("order")
found = order.show((32, 128, 512))
for fact in found.facts():
    print(fact.say(lang))
order.draw(found, lang)

# %% [markdown]
# ## Where a token is
#
# The last line above is the price: attention does not know order. So positions are added to the tokens. With sinusoids, and with rotations,
# the products depend only on the distance.

# %%
positions = demonstration("positions")
found = positions.show()
for fact in found.facts():
    print(fact.say(lang))
positions.draw(found, lang)

# %% [markdown]
# ## Encoder, decoder, and between them
#
# An encoder layer is self-attention and a feed-forward net, each with a residual connection and layer norm. A decoder layer has causal
# self-attention, then **cross-attention**, whose queries come from the decoder and whose keys and values come from the encoder.

# %%
torch.manual_seed(0)
model = nn.Transformer(64, 4, encoder_layers=2, decoder_layers=2).eval()
print(model.encoder.layers[0])
print(model.decoder.layers[0])

# %% [markdown]
# Two sentences of up to 20 tokens are read, 10 tokens are written, 4 heads. The second sentence has only 14 tokens: `source_keep` hides
# the rest. The weights of the cross-attention are (2, 4, 10, 20), and rows sum to 1.

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
# The same with one module, or with the function alone; the mask is written as a mask:

# %%
print(nn.MultiHeadAttention(64, 4).weights(target, source, mask=masks.padding(keep)).shape)
q, k = torch.randn(2, 4, 10, 16), torch.randn(2, 4, 20, 16)
print(regard.attention_weights(q, k, mask=masks.padding(keep)).shape)
figures.heatmap(weights[1, 0], lang=lang)

# %% [markdown]
# ## A trained one
#
# regard comes with a small translator from English to Chinese, trained on its own modules. Nothing is fetched. `align=True` reads one
# head of the cross-attention: the one that, when measured, most often matched the right words.

# %%
for sentence in ("I love you.", "The cat is on the table.", "She bought a new book yesterday."):
    print(sentence, "→", regard.translate(sentence))
print()
print(regard.translate("The cat is on the table.", align=True))

# %% [markdown]
# Rows are the steps that write a character, columns the English pieces. A row is named after what was read last, so `[START]` is the
# step that writes the first character. Reading down the rows, you see the translator move through
# the sentence, and jump where the Chinese order differs.

# %%
by = embedded_alignment_head()
seen = look(embedded(), "The cat is on the table.").recording
print(f"layer {by.layer}, head {by.head}: right in {by.right} of {by.pairs} checked pairs")
figures.heatmap(seen, kind="cross", layer=by.layer, head=by.head, lang=lang)

# %%
figures.lines(seen, kind="cross", layer=by.layer, heads=by.head, least=0.1, lang=lang)

# %% [markdown]
# And every number behind one row: the step that writes the first character, before it has read anything that it wrote.

# %%
regard.explain("The cat is on the table.", kind="cross", layer=by.layer, head=by.head, token=0, lang=lang)

# %% [markdown]
# **Try it.** `regard translate "The cat is on the table." --align`, and `regard look "The cat is on the table."` for all heads at once.
