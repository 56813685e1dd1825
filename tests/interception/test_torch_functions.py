"""Models that know nothing of transformers: torch.nn and whatever calls torch's attention."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import regard
from recording.families import all_weights
from regard import biases, masks
from regard.errors import RecordingError

CLOSE = 1e-5
WIDE, HEADS = 24, 4


def captured(model, run):
    """The weights that torch itself gives, by module, and the output; the fast path is off for it."""
    found = {}

    def ask(module, args, kwargs):
        return args, {**kwargs, "need_weights": True, "average_attn_weights": False}

    def keep(name):
        def hook(module, args, output):
            found[name] = output[1].detach()

        return hook

    hooks = []
    for name, module in model.named_modules():
        if isinstance(module, nn.MultiheadAttention):
            hooks.append(module.register_forward_pre_hook(ask, with_kwargs=True))
            hooks.append(module.register_forward_hook(keep(name)))
    torch.backends.mha.set_fastpath_enabled(False)
    output = run()
    torch.backends.mha.set_fastpath_enabled(True)
    for hook in hooks:
        hook.remove()
    return found, output


def compare(seen, own):
    assert {call.name for call in seen} == set(own)
    for call in seen:
        wanted = own[call.name]
        assert (all_weights(call) - wanted).abs().max() < CLOSE, call


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_multi_head_attention(need_weights, average, batch_first):
    model = nn.MultiheadAttention(WIDE, HEADS, batch_first=batch_first, kdim=10, vdim=14).eval()
    q, k, v = torch.randn(2, 5, WIDE), torch.randn(2, 7, 10), torch.randn(2, 7, 14)
    if not batch_first:
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    hidden = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
    options = {"key_padding_mask": hidden, "need_weights": need_weights, "average_attn_weights": average}
    plain = model(q, k, v, **options)
    with regard.watch(model) as seen:
        watched = model(q, k, v, **options)
    assert (plain[0] - watched[0]).abs().max() < CLOSE
    assert (plain[1] is None) == (watched[1] is None)
    if need_weights:
        assert plain[1].shape == watched[1].shape
        assert (plain[1] - watched[1]).abs().max() < CLOSE
    whole = model(q, k, v, key_padding_mask=hidden, average_attn_weights=False)[1]
    assert (all_weights(seen[0]) - whole).abs().max() < CLOSE
    assert seen[0].kind == "cross"


def test_an_unbatched_sequence_and_added_keys():
    model = nn.MultiheadAttention(WIDE, HEADS, add_bias_kv=True, add_zero_attn=True)
    x = torch.randn(5, WIDE)
    bias = torch.randn(5, 5)
    plain, weights = model(x, x, x, attn_mask=bias, average_attn_weights=False)
    with regard.watch(model) as seen:
        watched, again = model(x, x, x, attn_mask=bias, average_attn_weights=False)
    assert (plain - watched).abs().max() < CLOSE
    assert weights.shape == again.shape == (HEADS, 5, 7)
    assert (all_weights(seen[0])[0] - weights).abs().max() < CLOSE


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage:UserWarning")
def test_encoder(training, grad, padded):
    """In evaluation without gradients torch runs a fused layer that shows nothing; it is switched off."""
    layer = nn.TransformerEncoderLayer(WIDE, HEADS, 32, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).train(training)
    x = torch.randn(2, 7, WIDE)
    hidden = torch.tensor([[False] * 7, [False] * 5 + [True] * 2]) if padded else None
    with torch.set_grad_enabled(grad):
        plain = model(x, src_key_padding_mask=hidden)
        with regard.watch(model) as seen:
            watched = model(x, src_key_padding_mask=hidden)
        own, _ = captured(model, lambda: model(x, src_key_padding_mask=hidden))
    assert torch.backends.mha.get_fastpath_enabled()
    real = slice(None) if hidden is None else ~hidden
    assert (plain[real] - watched[real]).abs().max() < CLOSE
    assert [(call.name, call.kind, call.layer) for call in seen] == [
        ("layers.0.self_attn", "encoder", 0),
        ("layers.1.self_attn", "encoder", 1),
    ]
    compare(seen, own)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("is_causal", [True, False])
def test_the_whole_transformer(training, is_causal):
    model = nn.Transformer(WIDE, HEADS, 1, 2, 32, dropout=0.0, batch_first=True).train(training)
    source, target = torch.randn(2, 7, WIDE), torch.randn(2, 5, WIDE)
    options = {"tgt_mask": nn.Transformer.generate_square_subsequent_mask(5), "tgt_is_causal": is_causal}

    def run():
        with torch.no_grad():
            return model(source, target, **options)

    plain = run()
    with regard.watch(model) as seen:
        watched = run()
    own, _ = captured(model, run)
    assert (plain - watched).abs().max() < CLOSE
    assert [(call.kind, call.layer, *call.extent) for call in seen] == [
        ("encoder", 0, 7, 7),
        ("decoder", 0, 5, 5),
        ("cross", 0, 5, 7),
        ("decoder", 1, 5, 5),
        ("cross", 1, 5, 7),
    ]
    compare(seen, own)


class Attention(nn.Module):
    """Attention as people write it, with a cache if they want."""

    def __init__(self, groups=1):
        super().__init__()
        self.groups = groups
        self.q = nn.Linear(WIDE, WIDE)
        self.kv = nn.Linear(WIDE, 2 * WIDE // groups)
        self.cache = None

    def forward(self, x, **options):
        q = self.q(x).unflatten(-1, (HEADS * 2, -1)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, HEADS * 2 // self.groups, -1)).permute(2, 0, 3, 1, 4)
        if self.cache is not None:
            k, v = (torch.cat([old, new], 2) for old, new in zip(self.cache, (k, v)))
        self.cache = (k, v) if self.training is False else None
        out = F.scaled_dot_product_attention(q, k, v, enable_gqa=self.groups > 1, **options)
        return out.transpose(1, 2).flatten(2)


class LayerStack(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.layers = nn.ModuleList(Attention(**options) for _ in range(2))

    def forward(self, x, **options):
        for layer in self.layers:
            x = x + layer(x, **options)
        return x


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize("what", ["full", "causal", "bool", "additive"])
def test_a_model_that_calls_sdpa(groups, scale, what):
    model = LayerStack(groups=groups).train()
    x = torch.randn(2, 7, WIDE)
    mask = {
        "full": None,
        "causal": None,
        "bool": torch.rand(7, 7) > 0.3,
        "additive": torch.randn(2, 1, 7, 7),
    }[what]
    if what == "bool":
        mask |= torch.eye(7, dtype=torch.bool)
    options = {"attn_mask": mask, "is_causal": what == "causal", "scale": scale}
    plain = model(x, **options)
    with regard.watch(model) as seen:
        watched = model(x, **options)
    assert (plain - watched).abs().max() < CLOSE
    assert [call.name for call in seen] == ["layers.0", "layers.1"]
    assert seen[0].kind == ("decoder" if what == "causal" else "encoder")
    assert seen[0].k.shape[1] == HEADS * 2 // groups
    call = seen[1]
    if what == "causal":
        mask = torch.ones(7, 7, dtype=torch.bool).tril()
    added = torch.zeros(()) if mask is None else mask
    if added.dtype == torch.bool:
        added = torch.zeros(7, 7).masked_fill(~added, -torch.inf)
    k = call.k.repeat_interleave(groups, 1)
    scores = call.q @ k.transpose(-1, -2) * (call.q.shape[-1] ** -0.5 if scale is None else scale) + added
    assert (all_weights(call) - scores.softmax(-1)).abs().max() < CLOSE


@torch.no_grad()
def test_a_cache_of_ones_own_is_followed():
    model = LayerStack().train()
    x = torch.randn(1, 9, WIDE)
    with regard.watch(model) as wanted:
        model(x, is_causal=True)
    model.eval()
    with regard.watch(model) as seen:
        model(x[:, :5], is_causal=True)
        for position in range(5, 9):
            model(x[:, position : position + 1])
    assert [(call.kind, *call.extent, repr(call.mask)) for call in seen] == [
        ("decoder", 9, 9, "causal()")
    ] * 2
    for mine, whole in zip(seen, wanted):
        assert (all_weights(mine) - all_weights(whole)).abs().max() < CLOSE


def test_torch_counts_a_causal_mask_from_the_first_key():
    class Short(nn.Module):
        def forward(self, q, k):
            return F.scaled_dot_product_attention(q, k, k, is_causal=True)

    for queries, keys in ((3, 5), (5, 3)):
        q, k = torch.randn(1, 2, queries, 8), torch.randn(1, 2, keys, 8)
        model = Short()
        plain = model(q, k)
        with regard.watch(model) as seen:
            watched = model(q, k)
        assert (plain - watched).abs().max() < CLOSE
        assert torch.equal(seen[0].weights(0) > 0, torch.ones(queries, keys, dtype=torch.bool).tril())


def test_only_the_watched_model_is_seen():
    model, other = LayerStack().train(), LayerStack().train()
    x = torch.randn(1, 4, WIDE)
    with regard.watch(model) as seen:
        model(x)
        other(x)
        F.scaled_dot_product_attention(*(torch.randn(1, 2, 3, 4),) * 3)
    assert len(seen) == 2


def test_nothing_seen_is_an_error():
    model = nn.Linear(3, 3)
    message = "Got no attention from Linear. Run the watched model itself"
    with pytest.raises(RecordingError, match=message), regard.watch(model):
        model(torch.randn(1, 3))
    with pytest.raises(ZeroDivisionError), regard.watch(model):
        raise ZeroDivisionError  # the error on its way is the one that is told


def test_nested_watches_of_torch_models_all_see():
    model = LayerStack().train()
    x = torch.randn(1, 4, WIDE)
    with regard.watch(model) as outer:
        model(x)
        with regard.watch(model.layers[1]) as inner, regard.watch(model, heads=[3]) as some:
            model(x)
    assert [call.name for call in outer] == ["layers.0", "layers.1"] * 2
    assert [call.name for call in inner] == ["Attention"]
    assert [call.head_numbers for call in some] == [(3,), (3,)]
    assert torch.equal(outer[3].weights(3), inner[0].weights(3))


@pytest.mark.parametrize("grad", [False, True])
def test_models_of_regard_are_seen_whatever_path_they_take(grad):
    mask = masks.causal() & masks.window(9, 0)  # tiled: no call of torch's own function
    model = regard.nn.MultiHeadAttention(WIDE, HEADS, key_heads=2)
    x = torch.randn(2, 300, WIDE)
    with torch.set_grad_enabled(grad):
        wanted = model(x, mask=mask)
        with regard.watch(model) as seen:
            found = model(x, mask=mask)
    assert torch.equal(found, wanted)
    (call,) = seen
    assert call.mask == mask
    assert (call.heads, call.k.shape[1]) == (HEADS, 2)
    weights = call.weights(head=1, batch=1)
    assert torch.allclose(weights.sum(-1), torch.ones(300), atol=1e-5)
    assert not weights[mask.dense(300).logical_not()].any()
    assert found.requires_grad == grad


def test_generation_with_a_model_of_regard_is_stitched():
    model = regard.nn.LanguageModel(50, width=WIDE, heads=HEADS, layers=2).eval()
    prompt = torch.randint(1, 50, (1, 5))
    with torch.no_grad():
        with regard.watch(model) as seen:
            tokens = regard.nn.generate(model, prompt, max_new_tokens=6).tokens
        read = torch.cat([prompt, tokens[:, :-1]], 1)  # the last token was never read
        with regard.watch(model) as whole:
            model(read)
    assert [call.queries for call in seen] == [read.shape[1]] * 2
    for one, other in zip(seen, whole):
        for head in range(HEADS):
            assert torch.allclose(one.weights(head), other.weights(head), atol=CLOSE)


def test_a_bias_and_softcap_of_regards_own_are_kept():
    class Biased(nn.Module):
        def forward(self, x):
            return regard.attention(x, x, x, bias=biases.alibi(2), softcap=2.0, sinks=torch.zeros(2))

    model, x = Biased(), torch.randn(1, 2, 40, 8)
    with regard.watch(model) as seen:
        model(x)
    wanted = regard.attention_weights(x, x, bias=biases.alibi(2), softcap=2.0, sinks=torch.zeros(2))
    for head in range(2):
        assert torch.allclose(seen[0].weights(head), wanted[0, head], atol=CLOSE)


def test_a_decoder_that_begins_with_one_token_is_a_decoder():
    torch.manual_seed(0)
    model = regard.nn.Seq2Seq(20, 20, width=16, heads=2, encoder_layers=2, decoder_layers=2).eval()
    with regard.watch(model) as seen:
        regard.nn.generate(model, torch.tensor([[4, 5, 6]]), start=1, max_new_tokens=6)
    kinds = [(call.kind, call.layer) for call in seen]
    assert kinds == [("encoder", 0), ("encoder", 1), *[(k, n) for n in (0, 1) for k in ("decoder", "cross")]]
