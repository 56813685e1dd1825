"""One test per message: what must hold, what was given, what to do."""

import pytest
import torch

from regard import masks, nn
from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError

X, CONTEXT = torch.randn(2, 5, 8), torch.randn(2, 9, 8)
ATTEND, CAUSAL = nn.MultiHeadAttention(8, 2), nn.MultiHeadAttention(8, 2, causal=True)
LINEAR, LINEAR_CAUSAL = nn.LinearAttention(8, 2), nn.LinearAttention(8, 2, causal=True)
SMALL = {"width": 8, "heads": 2, "hidden": 8, "length": 6}
MODEL = nn.Seq2Seq(10, 12, encoder_layers=1, decoder_layers=1, **SMALL)
SPEAKER = nn.LanguageModel(10, layers=1, **SMALL)
TOKENS = torch.tensor([[3, 4, 5]])


def filled(module, *inputs, kind=nn.KeyValueCache):
    cache = kind()
    module(*inputs, cache=cache)
    return cache


def filled_model_cache():
    cache = SPEAKER.new_cache()
    SPEAKER(TOKENS, cache=cache)
    return cache


CASES = [
    # building
    (
        lambda: nn.MultiHeadAttention(8, 3),
        ArgumentError,
        r"\(width = 8\). Got heads = 3",
    ),
    (
        lambda: nn.MultiHeadAttention(0, 1),
        ArgumentError,
        "width must be a whole number, 1 or more. Got width = 0",
    ),
    (lambda: nn.MultiHeadAttention(8, True), ArgumentError, "heads = True"),
    (lambda: nn.MultiHeadAttention(8, 4, key_heads=3), ArgumentError, r"\(heads = 4\). Got key_heads = 3"),
    (lambda: nn.MultiHeadAttention(8, 2, dropout=1.0), ArgumentError, "dropout must be a probability"),
    (lambda: nn.MultiHeadAttention(8, 2, residual_dropout=-1), ArgumentError, "residual_dropout = -1"),
    (
        lambda: nn.MultiHeadAttention(8, 2, positions="sinusoidal"),
        ArgumentError,
        "one of None, rotary, alibi. Got positions = 'sinusoidal'",
    ),
    (
        lambda: nn.MultiHeadAttention(6, 2, positions="rotary"),
        ArgumentError,
        "number of channels must be even.*Got 3 channels",
    ),
    (lambda: nn.RelativePositionAttention(8, 2, clip=0), ArgumentError, "clip = 0"),
    (
        lambda: nn.EncoderLayer(8, 2, norm="middle"),
        ArgumentError,
        "one of pre, post. Got norm = 'middle'",
    ),
    (lambda: nn.DecoderLayer(8, 2, norm="none"), ArgumentError, "Got norm = 'none'"),
    (lambda: nn.EncoderLayer(8, 2, activation="tanh"), ArgumentError, "relu, gelu. Got activation = 'tanh'"),
    (lambda: nn.EncoderLayer(8, 2, positions="learned"), ArgumentError, "Got positions = 'learned'"),
    (lambda: nn.FeedForward(8, 0), ArgumentError, "hidden = 0"),
    (lambda: nn.EncoderLayer(8, 2, hidden=0), ArgumentError, "hidden = 0"),
    (lambda: nn.Encoder([nn.EncoderLayer(8, 2), nn.EncoderLayer(4, 2)]), ArgumentError, r"8 \(post\), 4"),
    (lambda: nn.Transformer(8, 2, encoder_layers=-1), ArgumentError, "encoder_layers = -1"),
    (lambda: nn.Seq2Seq(10, 10, positions="magic"), ArgumentError, "Got positions = 'magic'"),
    (lambda: nn.Seq2Seq(10, 12, shared=True), ArgumentError, r"\(source = 10\). Got target = 12"),
    # vectors
    (lambda: ATTEND(X[..., :7]), ShapeError, r"\(width = 8\). Got shape \(2, 5, 7\)"),
    (lambda: ATTEND(X[0]), ShapeError, r"Got shape \(5, 8\). Add the batch axis"),
    (lambda: ATTEND(X.numpy()), DtypeError, "x must be a torch tensor.*Got ndarray"),
    (lambda: ATTEND(X, CONTEXT[..., :4]), ShapeError, r"context must have shape.*Got shape \(2, 9, 4\)"),
    (lambda: ATTEND(X, CONTEXT[:1]), ShapeError, r"same batch size \(x = 2\). Got context = 1"),
    (lambda: nn.FeedForward(8, 4)(X[..., :3]), ShapeError, r"Got shape \(2, 5, 3\)"),
    (lambda: nn.RotaryPositions(4)(X), ShapeError, r"need shape \(batch, head, length, channel\)"),
    # contexts and caches
    (lambda: CAUSAL(X, CONTEXT), ArgumentError, "a context, and causal=True"),
    (
        lambda: nn.MultiHeadAttention(8, 2, positions="alibi")(X, CONTEXT),
        ArgumentError,
        "a context, and positions within attention",
    ),
    (lambda: nn.RelativePositionAttention(8, 2)(X, CONTEXT), ArgumentError, "positions within attention"),
    (lambda: LINEAR_CAUSAL(X, CONTEXT), ArgumentError, "a context, and causal=True"),
    (lambda: LINEAR(X, cache=nn.LinearCache()), ArgumentError, "a cache, and causal=False"),
    (
        lambda: LINEAR_CAUSAL(X[:1], cache=filled(LINEAR_CAUSAL, X, kind=nn.LinearCache)),
        ShapeError,
        r"\(batch = 2\). Got batch = 1",
    ),
    (
        lambda: CAUSAL(X[:1], cache=filled(CAUSAL, X)),
        ShapeError,
        r"\(batch = 2, key heads = 2, channels = 4\). Got batch = 1",
    ),
    (
        lambda: ATTEND(X, CONTEXT[:, :3], cache=filled(ATTEND, X, CONTEXT)),
        ShapeError,
        r"\(batch = 2, keys = 9\). Got batch = 2, keys = 3",
    ),
    (
        lambda: nn.Encoder([nn.EncoderLayer(8, 2)])(X, cache=nn.Cache(2)),
        ShapeError,
        r"\(layers = 1\). Got 2 entries",
    ),
    (
        lambda: nn.Transformer(8, 2, encoder_layers=1, decoder_layers=1)(
            X, X, source_keep=torch.ones(2, 5, dtype=torch.bool), source_mask=torch.zeros(5, 5)
        ),
        ArgumentError,
        "Got an additive mask of torch.float32",
    ),
    (lambda: CAUSAL(X, mask=masks.padding(lengths=[1, 2, 3])), ShapeError, "must broadcast to"),
    # tokens
    (lambda: MODEL(X, TOKENS), DtypeError, "source must be an integer tensor.*Got torch.float32"),
    (
        lambda: MODEL(TOKENS, TOKENS[0]),
        ShapeError,
        r"target must have shape \(batch, length\).*Got shape \(3,\)",
    ),
    (
        lambda: MODEL(TOKENS + 6, TOKENS),
        ArgumentError,
        r"\(vocabulary = 10\). Got ids from 9 to 11",
    ),
    (lambda: MODEL(TOKENS.repeat(1, 3), TOKENS), ShapeError, r"\(longest = 6\). Got source of 9 tokens"),
    (lambda: MODEL(TOKENS, TOKENS.repeat(1, 3)), ShapeError, "Got target of 9 tokens"),
    (lambda: SPEAKER(TOKENS.repeat(1, 3)), ShapeError, "Got tokens of 9 tokens"),
    (lambda: SPEAKER(TOKENS, keep=torch.ones(1, 2)), ShapeError, r"\(shape \(1, 3\)\). Got shape \(1, 2\)"),
    (lambda: SPEAKER(TOKENS.repeat(2, 1), cache=filled_model_cache()), ShapeError, "Got batch = 2"),
    # generation
    (lambda: nn.generate(ATTEND, TOKENS), DtypeError, "Got MultiHeadAttention"),
    (lambda: nn.generate(SPEAKER, TOKENS[:, :0]), ShapeError, "prompt must have shape.*at least one token"),
    (
        lambda: nn.generate(SPEAKER, TOKENS * 0, max_new_tokens=2),
        ShapeError,
        "Got 1 empty prompts. Begin an empty",
    ),
    (lambda: nn.generate(SPEAKER, TOKENS, max_new_tokens=4), ShapeError, r"\(longest = 6\). Got 7 tokens"),
    (
        lambda: nn.generate(MODEL, TOKENS, max_new_tokens=6, start=1),
        ShapeError,
        "Got 7 tokens.*lower max_new_tokens",
    ),
    (lambda: nn.generate(MODEL, TOKENS, max_new_tokens=2), ArgumentError, "start = None"),
    (
        lambda: nn.generate(SPEAKER, TOKENS, max_new_tokens=2, start=1),
        ArgumentError,
        "Put the start token into",
    ),
    (lambda: nn.generate(SPEAKER, TOKENS, max_new_tokens=0), ArgumentError, "max_new_tokens = 0"),
    (lambda: nn.generate(SPEAKER, TOKENS, max_new_tokens=2, num_beams=0), ArgumentError, "num_beams = 0"),
    (
        lambda: nn.generate(SPEAKER, TOKENS, max_new_tokens=2, temperature=0.0),
        ArgumentError,
        "temperature = 0.0",
    ),
    (lambda: nn.generate(SPEAKER, TOKENS, max_new_tokens=2, top_p=1.5), ArgumentError, "top_p = 1.5"),
    (
        lambda: nn.generate(SPEAKER, TOKENS, max_new_tokens=2, num_beams=2, temperature=1.0),
        ArgumentError,
        "Beam search does not sample",
    ),
    (
        lambda: nn.generate(SPEAKER, TOKENS, max_new_tokens=2, keep=torch.ones(1, 2, dtype=torch.bool)),
        ShapeError,
        "one value per token",
    ),
]


@pytest.mark.parametrize(("call", "error", "says"), CASES, ids=[case[2][:40] for case in CASES])
def test_each_message(call, error, says):
    with pytest.raises(error, match=says) as caught:
        call()
    assert isinstance(caught.value, RegardError)


def test_positions_too_short_inside_a_layer():
    layer = nn.EncoderLayer(8, 2, positions="rotary", length=4)
    with pytest.raises(ShapeError, match=r"\(longest = 4\). Got 5 tokens"):
        layer(X)
