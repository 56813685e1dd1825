"""The attention modules against the NumPy definition, against each other, and against themselves."""

import pytest
import torch

from parity import as_numbers, assert_close
from regard import biases, masks, nn
from regard.kernels import reference

WIDTH, HEADS, BATCH, LENGTH = 12, 6, 2, 7
KEEP = torch.arange(LENGTH) < torch.tensor([[LENGTH], [4]])


def vectors(length=LENGTH, *, batch=BATCH, seed=1):
    chance = torch.Generator().manual_seed(seed)
    return torch.randn(batch, length, WIDTH, generator=chance, dtype=torch.float64).requires_grad_()


def module(kind=nn.MultiHeadAttention, **options):
    """A module whose biases and tables are not 0, in float64."""
    made = kind(WIDTH, HEADS, **options).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def parts(attend):
    """W_q, W_k, W_v and W_o as the definition wants them, (width in, width out)."""
    key_width = attend.key_heads * attend.channels
    weights = attend.projection.weight.split([WIDTH, key_width, key_width])
    return [as_numbers(weight.T) for weight in (*weights, attend.output.weight)]


@pytest.mark.parametrize("key_heads", [6, 3, 2, 1])
@pytest.mark.parametrize("causal", [True, False])
def test_the_definition(key_heads, causal):
    attend, x = module(key_heads=key_heads, causal=causal, bias=False), vectors()
    mask = masks.padding(KEEP)
    allowed = mask & masks.causal() if causal else mask
    wanted = reference.multi_head(as_numbers(x), *parts(attend), heads=HEADS, mask=allowed)
    assert_close(attend(x, mask=mask), wanted.output, torch.float64)
    assert_close(attend.weights(x, mask=mask), wanted["weights"], torch.float64)


def test_cross_attention_of_another_length():
    attend, x, context = module(bias=False, key_heads=2), vectors(5), vectors(11, seed=2)
    wanted = reference.multi_head(as_numbers(x), *parts(attend), heads=HEADS, context=as_numbers(context))
    assert_close(attend(x, context), wanted.output, torch.float64)


def test_separate_heads_equal_one_joint_projection():
    attend, x = module(causal=True), vectors()
    weights, shifts = attend.projection.weight.chunk(3), attend.projection.bias.chunk(3)
    outputs = []
    for head in range(HEADS):
        rows = slice(head * attend.channels, (head + 1) * attend.channels)
        q, k, v = (x @ weight[rows].T + shift[rows] for weight, shift in zip(weights, shifts))
        scores = (q @ k.transpose(1, 2)) / attend.channels**0.5
        scores = scores.masked_fill(~masks.causal().dense(LENGTH), -torch.inf)
        outputs.append(scores.softmax(-1) @ v)
    wanted = torch.cat(outputs, -1) @ attend.output.weight.T + attend.output.bias
    assert_close(attend(x), wanted, torch.float64)


def test_grouped_heads_equal_repeated_ones():
    grouped, x = module(key_heads=2), vectors()
    full = module(key_heads=HEADS)
    with torch.no_grad():
        for name in ("weight", "bias"):
            own = getattr(grouped.projection, name)
            q, k, v = own.split([WIDTH, WIDTH // 3, WIDTH // 3])
            k, v = (
                each.unflatten(0, (2, grouped.channels)).repeat_interleave(3, 0).flatten(0, 1)
                for each in (k, v)
            )
            getattr(full.projection, name).copy_(torch.cat([q, k, v]))
        full.output.load_state_dict(grouped.output.state_dict())
    assert_close(grouped(x), full(x), torch.float64)


@pytest.mark.parametrize(
    "options", [{}, {"positions": "rotary"}, {"positions": "alibi"}, {"kind": nn.RelativePositionAttention}]
)
def test_a_padded_batch_equals_its_texts_alone(options):
    attend, x = module(**options), vectors()
    together = attend(x, mask=masks.padding(KEEP))
    assert_close(together[:1], attend(x[:1]), torch.float64)
    assert_close(together[1:, :4], attend(x[1:, :4]), torch.float64)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("positions", [None, "alibi"])
def test_a_text_of_padding_alone_gives_no_nan(dropout, positions):
    attend = module(dropout=dropout, positions=positions)
    x = vectors()
    nothing = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
    nothing[0] = True
    out = attend(x, mask=masks.padding(nothing))
    assert_close(out[1], attend.output.bias.expand(LENGTH, WIDTH), torch.float64)
    for gradient in torch.autograd.grad(out.sum(), (x, *attend.parameters())):
        assert torch.isfinite(gradient).all()


KINDS = [
    {"causal": True},
    {"causal": True, "key_heads": 2},
    {"causal": True, "positions": "rotary"},
    {"causal": True, "positions": "alibi"},
    {"causal": True, "kind": nn.RelativePositionAttention, "clip": 2},
]


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("steps", [(1,) * LENGTH, (4, 1, 2)], ids=str)
def test_a_cache_gives_the_numbers_of_the_whole(options, steps):
    attend, x = module(**options), vectors()
    whole, cache = attend(x), nn.KeyValueCache()
    with torch.no_grad():
        outputs = [attend(part, cache=cache) for part in x.split(steps, 1)]
    assert cache.length == LENGTH
    assert_close(torch.cat(outputs, 1), whole, torch.float64)


def test_a_cache_lets_gradients_through():
    attend, x = module(causal=True), vectors()
    cache = nn.KeyValueCache()
    found = torch.cat([attend(part, cache=cache) for part in x.split((3, 1, 3), 1)], 1)
    mine, wanted = (torch.autograd.grad(out.square().sum(), x)[0] for out in (found, attend(x)))
    assert_close(mine, wanted, torch.float64)


def test_cached_padding_covers_every_key():
    attend, x = module(causal=True), vectors()
    keep = torch.ones(BATCH, LENGTH, dtype=torch.bool)
    keep[1, :3] = False  # at the front, as prompts of different lengths are padded
    cache, whole = nn.KeyValueCache(), attend(x, mask=masks.padding(keep))
    first = attend(x[:, :5], mask=masks.padding(keep[:, :5]), cache=cache)
    second = attend(x[:, 5:], mask=masks.padding(keep), cache=cache)
    assert_close(torch.cat([first, second], 1), whole, torch.float64)


def test_a_cached_context_is_projected_once():
    attend, x, context = module(), vectors(5), vectors(9, seed=2)
    whole, cache = attend(x, context), nn.KeyValueCache()
    first = attend(x[:, :2], context, cache=cache)
    # Later steps do not look at the context any more.
    rest = attend(x[:, 2:], torch.full_like(context, torch.nan), cache=cache)
    assert cache.length == 9
    assert_close(torch.cat([first, rest], 1), whole, torch.float64)


def test_rows_of_a_cache_can_be_chosen():
    attend, x = module(causal=True), vectors(batch=3)
    cache, rows = nn.KeyValueCache(), torch.tensor([2, 0, 2])
    with torch.no_grad():
        attend(x[:, :4], cache=cache)
        attend(x[:, 4:5], cache=cache)
        cache.select(rows)
        found = attend(x[rows][:, 5:], cache=cache)
    assert_close(found, attend(x)[rows][:, 5:], torch.float64)


def test_alibi_and_relative_are_biases_of_the_distance():
    x, extra = vectors(), torch.randn(HEADS, LENGTH, LENGTH, dtype=torch.float64)
    with_alibi, plain = module(positions="alibi"), module()
    plain.load_state_dict(with_alibi.state_dict())
    slopes = biases.alibi(HEADS).dense(LENGTH, LENGTH)
    assert_close(with_alibi(x), plain(x, bias=slopes.double()), torch.float64)
    assert_close(with_alibi(x, bias=extra), plain(x, bias=slopes + extra), torch.float64)

    relative = module(nn.RelativePositionAttention, clip=2)
    plain.load_state_dict({k: v for k, v in relative.state_dict().items() if k != "table"})
    distance = (torch.arange(LENGTH) - torch.arange(LENGTH)[:, None]).clamp(-2, 2) + 2
    assert_close(relative(x), plain(x, bias=relative.table[:, distance]), torch.float64)
    assert torch.autograd.grad(relative(x).square().sum(), relative.table)[0].abs().min() > 0


def test_rotary_is_that_of_hugging_face():
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    q, k = (torch.randn(BATCH, HEADS, LENGTH, 8) for _ in range(2))
    config = llama.LlamaConfig(hidden_size=8 * HEADS, num_attention_heads=HEADS, head_dim=8)
    places = torch.arange(3, 3 + LENGTH)[None]
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, places)
    turn = nn.RotaryPositions(8)
    for found, wanted in zip((turn(q, 3), turn(k, 3)), llama.apply_rotary_pos_emb(q, k, cos, sin)):
        assert_close(found, wanted, torch.float32)
    assert_close(turn(q, places.expand(BATCH, -1)), turn(q, 3), torch.float32)


@pytest.mark.parametrize("key_heads", [6, 2])
@pytest.mark.parametrize("causal", [True, False])
def test_linear_attention_is_its_definition(key_heads, causal):
    attend, x = module(nn.LinearAttention, key_heads=key_heads, causal=causal), vectors()
    q, k, v = attend.project(x, None)
    group = HEADS // key_heads
    q, k = (torch.nn.functional.elu(each) + 1 for each in (q, k))
    weights = q @ k.repeat_interleave(group, 1).transpose(-1, -2) * KEEP[:, None, None]
    weights = weights.tril() if causal else weights
    heads = (weights / weights.sum(-1, keepdim=True)) @ v.repeat_interleave(group, 1)
    assert_close(attend(x, keep=KEEP), attend.join(heads), torch.float64)


def test_linear_attention_carries_its_state():
    attend, x = module(nn.LinearAttention, causal=True, key_heads=2), vectors(batch=3)
    cache, rows = nn.LinearCache(), torch.tensor([1, 1, 0])
    whole = attend(x)
    first = attend(x[:, :4], cache=cache)
    size = cache.state.sums.shape
    cache.select(rows)
    second = attend(x[rows][:, 4:], cache=cache)
    assert (cache.length, cache.state.sums.shape) == (LENGTH, size)
    assert_close(first, whole[:, :4], torch.float64)
    assert_close(second, whole[rows][:, 4:], torch.float64)


@pytest.mark.usefixtures("always_tiled")
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_long_texts_take_the_tiled_paths_to_the_same_numbers(options):
    attend, x = module(**options), vectors(150)
    mask = masks.window(20, 0) | masks.prefix(3)
    # A bool tensor per batch element is used as it is.
    dense = mask.dense(150).expand(BATCH, 1, -1, -1).contiguous()
    lazy, wanted = attend(x, mask=mask), attend(x, mask=dense)
    assert_close(lazy, wanted, torch.float64)
    mine, other = (torch.autograd.grad(out.square().sum(), x)[0] for out in (lazy, wanted))
    assert_close(mine, other, torch.float64)
    cache = nn.KeyValueCache()
    with torch.no_grad():
        parts = [attend(x[:, :149], mask=mask, cache=cache), attend(x[:, 149:], mask=mask, cache=cache)]
    assert_close(torch.cat(parts, 1), wanted, torch.float64)


@pytest.mark.parametrize("kind", [nn.MultiHeadAttention, nn.RelativePositionAttention, nn.LinearAttention])
@pytest.mark.parametrize(("batch", "length"), [(0, 3), (2, 0), (1, 1)])
def test_empty_batches_and_texts(kind, batch, length):
    x = torch.zeros(batch, length, WIDTH)
    assert kind(WIDTH, HEADS, causal=True)(x).shape == x.shape
    assert kind(WIDTH, HEADS)(x).shape == x.shape


def test_dropout_acts_in_training_alone():
    attend, x = module(dropout=0.5, residual_dropout=0.5), vectors()
    assert not torch.equal(attend(x), attend(x))
    attend.eval()
    assert torch.equal(attend(x), attend(x))


def test_half_precision_keeps_its_dtype():
    attend = nn.MultiHeadAttention(WIDTH, HEADS, causal=True, positions="rotary").bfloat16()
    x = vectors().detach()
    out = attend(x.bfloat16())
    assert out.dtype == torch.bfloat16
    assert_close(out, attend.double()(x), torch.bfloat16)
