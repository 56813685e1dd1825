"""Scales of every sign and size: torch's causal kernels multiply −inf by the scale, regard must not."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from parity import assert_close, definition, tensors
from regard import masks
from regard.errors import ArgumentError
from regard.kernels import attention_with_lse
from regard.kernels.functional import run_flex
from regard.kernels.inputs import prepare
from turns import by_turns

SCALES = [0.0, -0.0, -1.0, -0.3, 1e-300, -1e-300, 1e-40, -1e-40, 1e5, -1e5, 1e8, -1e8]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
MASKS = {
    "full": None,
    "causal": masks.causal(),
    "window": masks.window(9, 4),
    "gathered": masks.local_global(16),
    "empty rows": masks.causal() & ~masks.window(0, 0),
    "by batch": masks.padding(lengths=[70, 50]) & masks.causal(),
}


def check_everything(q, k, v, dtype, **options):
    """Output, lse, weights and statistics against the definition."""
    wanted = definition(q, k, v, **options)
    asked = torch.promote_types(dtype, torch.float32)
    if abs(options["scale"]) > 8:  # each score is off by its last digit, and that is what is exponentiated
        dtype = torch.float32 if dtype == torch.float64 else dtype
    assert_close(regard.attention(q, k, v, **options), wanted.output, dtype)
    output, lse = attention_with_lse(q, k, v, **options)
    assert_close(output, wanted.output, dtype)
    assert_close(lse, wanted["lse"], dtype, "lse")
    assert_close(
        regard.attention_weights(q, k, **{n: x for n, x in options.items() if n != "dropout"}),
        wanted["weights"],
        dtype,
        "weights",
    )
    found = regard.attention_statistics(q, k, v, top=2, **options)
    assert_close(found.output, wanted.output, dtype)
    assert_close(found.lse, wanted["lse"], dtype, "lse")
    weights = wanted["weights"]
    logs = np.log(np.where(weights > 0, weights, 1))
    # Each of many summands is off by its own rounding.
    near = torch.bfloat16 if dtype in (torch.float16, torch.bfloat16) else torch.float16
    assert_close(found.entropy, -(weights * logs).sum(-1), near, "entropy")
    assert_close(found.received, weights.sum(-2), near, "received")
    assert_close(found.peak, weights.max(-1), near, "peak")
    assert_close(found.top_weights[..., 0], weights.max(-1), near, "top weights")
    assert found.lse.dtype == asked


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_gives_what_the_definition_gives(mask, scale, always_tiled):
    q, k, v = tensors(2, heads=4, key_heads=2, queries=70, dtype=torch.float32)
    check_everything(q, k, v, q.dtype, mask=mask, scale=scale)


@pytest.mark.parametrize(("dtype", "scale", "length"), by_turns(DTYPES, SCALES, [3, 40, 300]), ids=str)
def test_causal_in_every_dtype(dtype, scale, length):
    q, k, v = tensors(1, heads=2, queries=length, channels=16, dtype=dtype)
    check_everything(q, k, v, dtype, mask=masks.causal(), scale=scale)


@pytest.mark.parametrize("options", [{"softcap": 2.0}, {"sinks": torch.tensor([0.5, -1.0])}, {}], ids=str)
@pytest.mark.parametrize("scale", [0.0, -0.7, -1e5])
def test_with_softcap_and_sinks(options, scale):
    q, k, v = tensors(1, heads=2, queries=40, dtype=torch.float32)
    check_everything(q, k, v, q.dtype, mask=masks.causal(), scale=scale, **options)


def gradients(q, k, v, mask, scale):
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    upstream = torch.linspace(-1, 1, v.shape[-1], dtype=q.dtype)
    output = regard.attention(*leaves, mask=mask, scale=scale)
    return torch.autograd.grad((output * upstream).sum(), leaves)


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.window(9, 4)], ids=str)
@pytest.mark.parametrize("scale", [0.0, -0.0, -0.3, 1e-300, -1e-40, -2.0])
@pytest.mark.parametrize("length", [7, 300])
def test_gradients(mask, scale, length):
    q, k, v = tensors(1, heads=2, queries=length, dtype=torch.float64)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    scores = leaves[0] @ leaves[1].transpose(-1, -2) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask.dense(length), -torch.inf)
    output = scores.softmax(-1) @ leaves[2]
    upstream = torch.linspace(-1, 1, v.shape[-1], dtype=q.dtype)
    wanted = torch.autograd.grad((output * upstream).sum(), leaves)
    for dtype in (torch.float64, torch.float32):
        found = gradients(q.to(dtype), k.to(dtype), v.to(dtype), mask, scale)
        for name, mine, its in zip("qkv", found, wanted):
            assert_close(mine, its, dtype if dtype == torch.float64 else torch.float16, name)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scale", [5e3, -5e3, 1e8, -1e8])
@pytest.mark.parametrize("mask", [None, masks.causal(), masks.window(40, 4)], ids=str)
def test_gradients_of_a_huge_scale_are_finite_where_the_weights_are_settled(dtype, scale, mask):
    q, k, v = tensors(1, heads=2, queries=300, dtype=dtype)
    for name, found in zip("qkv", gradients(q, k, v, mask, scale)):
        assert not found.isnan().any(), name
    assert torch.isfinite(gradients(q, k, v, mask, scale)[2]).all()


@given(
    st.one_of(
        st.sampled_from(SCALES),
        st.floats(-8, 8, allow_nan=False),
        st.floats(-1e8, 1e8, allow_nan=False),
    ),
    st.integers(1, 90),
    st.sampled_from(sorted(MASKS)),
)
def test_any_scale_any_length(scale, length, name):
    mask = masks.padding(lengths=[length, length // 2]) if name == "by batch" else MASKS[name]
    q, k, v = tensors(2, heads=2, queries=length, dtype=torch.float64)
    check_everything(q, k, v, q.dtype, mask=mask, scale=scale)


@pytest.mark.parametrize("scale", [0.0, -0.7, 1e-300])
def test_flex(scale):
    q, k, v = tensors(1, heads=2, queries=40, channels=16, dtype=torch.float32)
    output, lse = run_flex(prepare(q, k, v, mask=masks.causal(), scale=scale), compiled=False)
    wanted = definition(q, k, v, mask=masks.causal(), scale=scale)
    assert_close(output, wanted.output, q.dtype)
    assert_close(lse, wanted["lse"], q.dtype, "lse")


@pytest.mark.parametrize("scale", [1.1e8, -1e300, float("nan"), float("inf")])
def test_a_scale_that_no_score_survives_is_refused(scale):
    q, k, v = tensors(queries=4)
    with pytest.raises(ArgumentError, match=r"scale must be a number from -1e\+08 to 1e\+08. Got scale = "):
        regard.attention(q, k, v, scale=scale)


class Scaled(torch.nn.Module):
    """Torch's own function with a scale of the user's."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True, scale=self.scale)


@pytest.mark.parametrize("statistics", [False, True])
@pytest.mark.parametrize("scale", [0.0, -0.4])
def test_a_watched_model(scale, statistics):
    x = tensors(1, heads=2, queries=20, dtype=torch.float32)[0]
    model = Scaled(scale)
    with regard.watch(model, statistics=statistics) as seen:
        output = model(x)
    wanted = definition(x, x, x, mask=masks.causal(), scale=scale)
    assert_close(output, wanted.output, x.dtype)
    if not statistics:
        assert_close(seen[0].weights(1), wanted["weights"][0, 1], x.dtype, "weights")
    assert_close(seen[0].statistics().lse, wanted["lse"], x.dtype, "lse")
