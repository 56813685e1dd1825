"""Parity with torch.nn: the same weights, masks and padding give the same outputs and gradients."""

from copy import deepcopy

import pytest
import torch
from torch import nn as theirs

from parity import assert_close
from regard import masks, nn
from regard.errors import ArgumentError, DtypeError

WIDTH, HEADS, HIDDEN = 12, 3, 20
SOURCE, TARGET, BATCH = 7, 5, 2


def vectors(length, *, batch=BATCH, seed=1):
    return torch.randn(batch, length, WIDTH, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def keep_of(*lengths, longest):
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


KEEP, TARGET_KEEP = keep_of(7, 4, longest=SOURCE), keep_of(3, 5, longest=TARGET)
FUTURE = ~masks.causal().dense(TARGET)  # torch writes True for: may not attend


def random_weights(module):
    """Biases and norms too: what begins as 0 or 1 would hide a mistake."""
    chance = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=chance))
    return module


def in_our_layout(module, gradients):
    """The gradients of torch's weights by our names: convert a module whose weights *are* the gradients."""
    shadow = deepcopy(module)
    with torch.no_grad():
        for parameter, gradient in zip(shadow.parameters(), gradients):
            parameter.copy_(gradient)
    return dict(nn.from_torch(shadow).named_parameters())


def same(ours, out, module, wanted, inputs, *, real=slice(None)):
    """Outputs, the gradients of the inputs, and the gradients of every weight."""
    assert_close(out[real], wanted[real], torch.float32)
    weight = torch.randn(wanted[real].shape, generator=torch.Generator().manual_seed(3))
    mine = torch.autograd.grad((out[real] * weight).sum(), (*inputs, *ours.parameters()))
    other = torch.autograd.grad((wanted[real] * weight).sum(), (*inputs, *module.parameters()))
    count = len(inputs)
    for index in range(count):
        assert_close(mine[index], other[index], torch.float32, f"gradient of input {index}")
    named = in_our_layout(module, other[count:])
    assert len(named) == len(mine) - count
    for (name, _), gradient in zip(ours.named_parameters(), mine[count:]):
        assert_close(gradient, named[name], torch.float32, f"gradient of {name}")


@pytest.mark.parametrize("bias", [True, False])
def test_self_attention(bias):
    module = random_weights(theirs.MultiheadAttention(WIDTH, HEADS, bias=bias, batch_first=True))
    ours, x = nn.from_torch(module), vectors(SOURCE)
    wanted = module(x, x, x, key_padding_mask=~KEEP, need_weights=False)[0]
    same(ours, ours(x, mask=masks.padding(KEEP)), module, wanted, (x,))


def test_cross_attention_with_padding():
    module = random_weights(theirs.MultiheadAttention(WIDTH, HEADS))  # not batch_first
    ours, x, context = nn.from_torch(module), vectors(TARGET), vectors(SOURCE, seed=2)
    c = context.transpose(0, 1)
    wanted = module(x.transpose(0, 1), c, c, key_padding_mask=~KEEP, need_weights=False)[0].transpose(0, 1)
    same(ours, ours(x, context, mask=masks.padding(KEEP)), module, wanted, (x, context))


def test_weights_are_those_of_every_head():
    module = random_weights(theirs.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    x, context = vectors(TARGET), vectors(SOURCE, seed=2)
    wanted = module(x, context, context, key_padding_mask=~KEEP, average_attn_weights=False)[1]
    found = nn.from_torch(module).weights(x, context, mask=masks.padding(KEEP))
    assert found.shape == (BATCH, HEADS, TARGET, SOURCE)
    assert_close(found, wanted, torch.float32)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kind", ["module", "bool", "additive"])
def test_masks_of_every_kind(causal, kind):
    module = random_weights(theirs.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    x = vectors(TARGET)
    seen = torch.rand(TARGET, TARGET, generator=torch.Generator().manual_seed(4)) < 0.6
    seen.fill_diagonal_(True)
    allowed = seen & ~FUTURE if causal else seen
    given = {
        "module": masks.dense(seen),
        "bool": seen,
        "additive": torch.where(seen, 0.0, -torch.inf),
    }[kind]
    ours = nn.from_torch(module, causal=causal)
    wanted = module(x, x, x, attn_mask=~allowed, need_weights=False)[0]
    same(ours, ours(x, mask=given), module, wanted, (x,))


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [True, False])
def test_encoder_layer(norm_first, activation, bias):
    module = random_weights(
        theirs.TransformerEncoderLayer(
            WIDTH, HEADS, HIDDEN, 0.0, activation, 1e-4, True, norm_first, bias=bias
        )
    )
    ours, x = nn.from_torch(module), vectors(SOURCE)
    wanted = module(x, src_key_padding_mask=~KEEP)
    same(ours, ours(x, mask=masks.padding(KEEP)), module, wanted, (x,), real=KEEP)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_decoder_layer(norm_first, activation):
    module = random_weights(
        theirs.TransformerDecoderLayer(
            WIDTH, HEADS, HIDDEN, 0.0, activation, batch_first=True, norm_first=norm_first
        )
    )
    ours = nn.from_torch(module, causal=True)
    x, context = vectors(TARGET), vectors(SOURCE, seed=2)
    wanted = module(
        x, context, tgt_mask=FUTURE, tgt_key_padding_mask=~TARGET_KEEP, memory_key_padding_mask=~KEEP
    )
    found = ours(x, context, mask=masks.padding(TARGET_KEEP), context_mask=masks.padding(KEEP))
    same(ours, found, module, wanted, (x, context), real=TARGET_KEEP)


def test_decoder_layer_is_as_torch_has_it_unless_told():
    module = random_weights(theirs.TransformerDecoderLayer(WIDTH, HEADS, HIDDEN, 0.0, batch_first=True))
    x, context = vectors(TARGET), vectors(SOURCE, seed=2)
    assert_close(nn.from_torch(module)(x, context), module(x, context), torch.float32)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer(norm_first):
    module = random_weights(
        theirs.Transformer(WIDTH, HEADS, 2, 3, HIDDEN, 0.0, batch_first=True, norm_first=norm_first)
    )
    ours = nn.from_torch(module, causal=True)
    source, target = vectors(SOURCE), vectors(TARGET, seed=2)
    wanted = module(
        source,
        target,
        tgt_mask=FUTURE,
        src_key_padding_mask=~KEEP,
        tgt_key_padding_mask=~TARGET_KEEP,
        memory_key_padding_mask=~KEEP,
    )
    found = ours(source, target, source_keep=KEEP, target_keep=TARGET_KEEP)
    same(ours, found, module, wanted, (source, target), real=TARGET_KEEP)


def test_stacks_without_a_last_norm():
    layer = theirs.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=True)
    module = random_weights(theirs.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    ours, x = nn.from_torch(module), vectors(SOURCE)
    assert ours.norm is None
    assert_close(ours(x), module(x), torch.float32)


def test_the_copy_is_a_copy_and_keeps_mode_dtype_and_dropout():
    module = theirs.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, 0.25, batch_first=True).double().eval()
    ours = nn.from_torch(module)
    assert not ours.training
    assert ours.feed_forward.inner.weight.dtype == torch.float64
    assert ours.feed_forward.inner.weight.data_ptr() != module.linear1.weight.data_ptr()
    assert (ours.dropout.p, ours.attention.weight_dropout, ours.attention.dropout.p) == (0.25, 0.25, 0.25)


def test_the_comparison_would_notice():
    module = random_weights(theirs.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    ours, x = nn.from_torch(module), vectors(SOURCE)
    with torch.no_grad():
        ours.projection.weight[-1, -1] += 0.01
    wanted = module(x, x, x, need_weights=False)[0]
    with pytest.raises(AssertionError, match="above"):
        same(ours, ours(x), module, wanted, (x,))


@pytest.mark.parametrize(
    ("module", "error", "says"),
    [
        (theirs.Linear(2, 2), DtypeError, "Got Linear"),
        (theirs.MultiheadAttention(4, 2, kdim=6), ArgumentError, "kdim, vdim"),
        (theirs.MultiheadAttention(4, 2, add_bias_kv=True), ArgumentError, "add_bias_kv"),
        (
            theirs.TransformerEncoderLayer(4, 2, activation=torch.tanh),
            ArgumentError,
            "relu or gelu. Got tanh",
        ),
        (
            theirs.Transformer(4, 2, 1, 1, batch_first=True, custom_decoder=theirs.Identity()),
            DtypeError,
            "Got Identity",
        ),
    ],
)
def test_what_cannot_be_converted(module, error, says):
    with pytest.raises(error, match=says):
        nn.from_torch(module)
