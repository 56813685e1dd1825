"""Models of torch.nn, of regard.nn, and any caller of scaled_dot_product_attention."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import regard
import regard.nn as own
from regard import edits, masks
from regard.errors import EditError

CLOSE = 1e-5
WIDTH, HEADS, SOURCE, TARGET, BATCH = 20, 4, 11, 7, 3
CHANNELS = WIDTH // HEADS


def additive(hidden):
    return torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)


def square(length, start, stop, *, causal):
    """What a query may not see: keys start … stop − 1, and with causal the later ones."""
    hidden = torch.zeros(length, length, dtype=torch.bool)
    hidden[:, start:stop] = True
    return hidden | torch.ones(length, length, dtype=torch.bool).triu(1) if causal else hidden


@pytest.fixture
def transformer():
    torch.manual_seed(1)
    return nn.Transformer(WIDTH, HEADS, 2, 3, 37, batch_first=True).eval()


@pytest.fixture
def sides():
    chance = torch.Generator().manual_seed(2)
    return (
        torch.randn(BATCH, SOURCE, WIDTH, generator=chance),
        torch.randn(BATCH, TARGET, WIDTH, generator=chance),
    )


@torch.no_grad()
def test_blocked_keys_of_each_kind_in_a_torch_transformer(transformer, sides):
    hidden = {
        "encoder": square(SOURCE, 2, 5, causal=False),
        "decoder": square(TARGET, 2, 5, causal=True),
        "cross": square(SOURCE, 2, 5, causal=False)[:TARGET],
    }
    plain_masks = {"decoder": square(TARGET, 0, 0, causal=True)}
    names = {"encoder": "src_mask", "decoder": "tgt_mask", "cross": "memory_mask"}

    def run(found):
        return transformer(*sides, **{names[kind]: additive(mask) for kind, mask in found.items()})

    for kind, mask in hidden.items():
        wanted = run({**plain_masks, kind: mask})
        with regard.edit(transformer, edits.block(masks.span(2, 5), kind=kind)) as edited:
            found = run(plain_masks)
        assert {place.kind for place in edited.calls} == {kind}
        assert (found - wanted).abs().max() < CLOSE
        assert (found - run(plain_masks)).abs().max() > 10 * CLOSE


@torch.no_grad()
def test_removed_heads_are_a_zeroed_slice_of_the_output_projection(transformer, sides):
    by_hand = copy.deepcopy(transformer)
    by_hand.encoder.layers[1].self_attn.out_proj.weight[:, 2 * CHANNELS : 3 * CHANNELS] = 0
    by_hand.decoder.layers[2].multihead_attn.out_proj.weight[:, :CHANNELS] = 0
    edit = edits.remove(kind="encoder", layers=1, heads=2) + edits.remove(kind="cross", layers=2, heads=0)
    with regard.edit(transformer, edit):
        found = transformer(*sides)
    assert (found - by_hand(*sides)).abs().max() < CLOSE


@torch.no_grad()
def test_weights_that_torch_gives_are_those_of_the_edit():
    torch.manual_seed(0)
    model = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    x = torch.randn(BATCH, SOURCE, WIDTH)
    with regard.edit(model, edits.only(masks.window(1, 1), heads=[1, 3])):
        _, weights = model(x, x, x, need_weights=True, average_attn_weights=False)
    near = masks.window(1, 1).dense(SOURCE)
    assert weights[:, [1, 3]][..., ~near].abs().max() == 0
    assert (weights[:, [0, 2]][..., ~near] > 0).all()
    assert torch.allclose(weights.sum(-1), torch.ones(BATCH, HEADS, SOURCE))


class Caller(nn.Module):
    """Calls torch's function with tensors of its own shapes."""

    def __init__(self, lead):
        super().__init__()
        self.lead = lead

    def forward(self, q, k, v, attn_mask=None):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, enable_gqa=True)


@torch.no_grad()
def test_a_mask_over_two_leading_axes():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 4, SOURCE, 6)
    hidden = torch.rand(2, 3, 1, SOURCE, SOURCE) > 0.7
    model = Caller((2, 3))
    wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=additive(hidden))
    with regard.edit(model, edits.scale(2.0, heads=1)), regard.watch(model) as seen:
        found = model(q, k, v, attn_mask=additive(hidden))
    wanted[:, :, 1] *= 2
    assert (found - wanted).abs().max() < CLOSE
    weights = seen[0].weights(0, batch=4)
    assert weights[hidden[1, 1, 0]].abs().max() == 0
    assert torch.allclose(weights.sum(-1), torch.ones(SOURCE))


@pytest.mark.parametrize("lead", [(), (5,), (2, 3)], ids=str)
@torch.no_grad()
def test_any_caller_of_torch_attention(lead):
    torch.manual_seed(0)
    q, k, v = (torch.randn(*lead, heads, SOURCE, 6) for heads in (4, 2, 2))
    model = Caller(lead)
    hidden = torch.zeros(4, 1, SOURCE, dtype=torch.bool)
    hidden[1, :, 3:7] = True
    wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=additive(hidden), enable_gqa=True)
    wanted[..., 2, :, :] = 0
    with regard.edit(model, edits.block(masks.span(3, 7), heads=1) + edits.remove(heads=2)):
        found = model(q, k, v)
    assert (found - wanted).abs().max() < CLOSE


# ---- regard.nn ---------------------------------------------------------------------------------


@torch.no_grad()
def test_modules_of_regard():
    torch.manual_seed(0)
    model = own.MultiHeadAttention(WIDTH, HEADS, key_heads=2, causal=True, positions="alibi")
    x = torch.randn(BATCH, SOURCE, WIDTH)
    by_hand = copy.deepcopy(model)
    by_hand.output.weight[:, 3 * CHANNELS :] = 0
    seen = masks.causal() & ~(masks.span(2, 4) & masks.span(6, 9).T)
    with regard.edit(model, edits.block(masks.span(2, 4), rows=slice(6, 9)) + edits.remove(heads=3)):
        found = model(x)
    assert (found - by_hand(x, mask=seen)).abs().max() < CLOSE


@pytest.mark.parametrize("edit", [edits.uniform(), edits.uniform(heads=[0, 2]), edits.uniform(rows=[4, 5])])
@torch.no_grad()
def test_uniform_leaves_no_position_bias(edit):
    torch.manual_seed(0)
    model = own.MultiHeadAttention(WIDTH, HEADS, causal=True, positions="alibi")
    x = torch.randn(BATCH, SOURCE, WIDTH)
    with regard.edit(model, edit), regard.watch(model) as seen:
        model(x)
    scope = edit.scope
    heads = scope.heads or range(HEADS)
    rows = range(SOURCE) if scope.rows is None else range(scope.rows[0].start, scope.rows[0].stop)
    for head in range(HEADS):
        weights = seen[0].weights(head)
        for row in range(1, SOURCE):
            even = torch.full((row + 1,), 1 / (row + 1))
            assert torch.allclose(weights[row, : row + 1], even, atol=1e-6) == (head in heads and row in rows)


GENERATED = {
    "block": edits.block(masks.span(2, 6), heads=[0, 3]),
    "rows": edits.block(masks.span(1, 4), rows=[5, 8]) + edits.remove(rows=9, heads=1),
    "only": edits.only(masks.window(2, 0) | masks.prefix(1)),
}


@pytest.mark.parametrize("case", GENERATED)
@pytest.mark.parametrize("two_sided", [False, True], ids=["decoder", "two-sided"])
@torch.no_grad()
def test_generation_with_a_cache_is_the_same_as_without(two_sided, case):
    torch.manual_seed(0)
    if two_sided:
        model = own.Seq2Seq(29, 31, width=WIDTH, heads=HEADS, encoder_layers=2, decoder_layers=2)
        options = {"start": 1}
    else:
        model = own.LanguageModel(29, width=WIDTH, heads=HEADS, layers=2)
        options = {}
    prompt = torch.randint(3, 29, (BATCH, TARGET))
    with regard.edit(model.eval(), GENERATED[case]):
        with_cache = own.generate(model, prompt, max_new_tokens=12, **options)
        without = own.generate(model, prompt, max_new_tokens=12, cache=False, **options)
    plain = own.generate(model, prompt, max_new_tokens=12, **options)
    assert torch.equal(with_cache.tokens, without.tokens)
    assert (with_cache.log_probabilities - without.log_probabilities).abs().max() < CLOSE
    assert (with_cache.log_probabilities - plain.log_probabilities).abs().max() > 10 * CLOSE


def test_a_model_without_attention_is_an_error():
    model = nn.Linear(3, 3)
    says = "An edited model must call attention inside the with block. Got no attention from Linear"
    with pytest.raises(EditError, match=says), regard.edit(model, edits.remove()):
        model(torch.randn(2, 3))


@torch.no_grad()
def test_a_compiled_model_is_edited(transformer, sides):
    compiled = torch.compile(transformer, backend="eager")
    with regard.edit(transformer, edits.remove(kind="cross")):
        wanted = transformer(*sides)
    with regard.edit(compiled, edits.remove(kind="cross")):
        found = compiled(*sides)
    assert torch.allclose(found, wanted, atol=CLOSE)
