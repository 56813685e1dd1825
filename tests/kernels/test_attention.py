"""Every path × mask × option × dtype against the float64 definition."""

import numpy as np
import pytest
import torch

import regard
from parity import assert_close, definition, tensors
from regard import biases, masks
from regard.kernels import attention_with_lse, fused_kernel
from regard.masks.grid_patterns import Neighbourhood

N = 133  # no multiple of a tile, and several tiles long

MASKS = {
    "full": None,
    "causal": masks.causal(),
    "banded": masks.window(9, 4),
    "banded, far": masks.window(100, 0) & masks.window(None, 0),
    "strictly past": masks.causal() & ~masks.window(0, 0),
    "prefix": masks.window(20, 0) | masks.prefix(3),
    "documents": masks.causal() & masks.documents(np.repeat([0, 1, 2, 3], [64, 3, 45, 21])),
    "mixed documents": masks.documents(np.arange(N) % 5),
    "gathered": masks.local_global(16),
    "gathered keys": masks.causal() & masks.every(7),
    "gathered queries": masks.every(9).T & masks.window(40, 40),
    "ragged padding": masks.padding(np.arange(N) % 3 > 0) & masks.causal(),
    "complement": ~masks.window(30, 30),
    "batch lengths": masks.padding(lengths=[N, 50]) & masks.causal(),
    "an empty batch element": masks.padding(lengths=[0, 80]),
    "by head": masks.dense(torch.rand(1, 6, N, N, generator=torch.Generator().manual_seed(1)) > 0.5)
    & masks.causal(),
    "by head and batch": masks.dense(np.arange(12).reshape(2, 6, 1, 1) % 5 > 0) & masks.window(20, 20),
    "image": masks.neighbourhood((7, 19), (2, 3)),
    "shifted image": masks.neighbourhood((19, 7), 2, shifted=True) & ~masks.every(5).T,
    "nothing": masks.nothing(),
}

OPTIONS = {
    "plain": lambda: {},
    "scale": lambda: {"scale": 0.11},
    "softcap": lambda: {"softcap": 1.3},
    "sinks": lambda: {"sinks": torch.linspace(-2, 2, 6).double()},
    "alibi": lambda: {"bias": biases.alibi(6)},
    "relative": lambda: {"bias": biases.relative(torch.randn(6, 21).double())},
    "t5": lambda: {"bias": biases.t5(torch.randn(8, 6).double(), max_distance=40)},
    "tensor": lambda: {"bias": torch.randn(2, 1, N, N).double()},
    "row": lambda: {"bias": torch.randn(6, 1, N).double()},
    "sum": lambda: {"bias": biases.alibi(6) + biases.relative(torch.randn(1, 3).double())},
    "all": lambda: {"bias": biases.alibi(6), "softcap": 2.0, "sinks": torch.zeros(6).double(), "scale": 0.5},
}

EVERY_CASE = [
    pytest.param(mask, option, id=f"{name} · {label}")
    for name, mask in MASKS.items()
    for label, option in OPTIONS.items()
]


@pytest.mark.usefixtures("always_tiled")  # these lengths would otherwise be computed densely
@pytest.mark.parametrize(("mask", "option"), EVERY_CASE)
def test_output_and_lse_are_those_of_the_definition(mask, option):
    q, k, v = tensors(2, heads=6, key_heads=2, queries=N, channels=5, values=7)
    options = option()
    wanted = definition(q, k, v, mask=mask, **options)
    assert_close(regard.attention(q, k, v, mask=mask, **options), wanted.output, q.dtype)
    output, lse = attention_with_lse(q, k, v, mask=mask, **options)
    assert_close(output, wanted.output, q.dtype)
    assert_close(lse, wanted["lse"], q.dtype, "lse")
    weights = regard.attention_weights(q, k, mask=mask, **options)
    assert_close(weights, wanted["weights"], q.dtype, "weights")


@pytest.mark.parametrize("mask", [pytest.param(mask, id=name) for name, mask in MASKS.items()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_in_every_dtype(mask, dtype):
    q, k, v = tensors(2, heads=6, key_heads=3, queries=N, channels=8, dtype=dtype)
    sinks = torch.zeros(6, dtype=dtype)
    for options in ({}, {"softcap": 2.0}, {"sinks": sinks, "bias": biases.alibi(6)}):
        wanted = definition(q, k, v, mask=mask, **options)
        output, lse = attention_with_lse(q, k, v, mask=mask, **options)
        assert output.dtype == dtype
        assert lse.dtype == torch.float32
        assert_close(output, wanted.output, dtype)
        assert_close(lse, wanted["lse"], dtype, "lse")
        assert_close(regard.attention(q, k, v, mask=mask, **options), wanted.output, dtype)


# Masks without a table or an image of a fixed size can be asked about any rectangle.
ANY_LENGTH = {
    name: mask
    for name, mask in MASKS.items()
    if mask is None or not any(p.table_lengths() or isinstance(p, Neighbourhood) for p in mask.patterns())
}


@pytest.mark.parametrize("mask", [pytest.param(mask, id=name) for name, mask in ANY_LENGTH.items()])
@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (1, 130), (65, 130), (130, 65), (63, 64), (64, 63), (129, 128)]
)
def test_rectangles(mask, queries, keys, always_tiled):
    q, k, v = tensors(2, heads=6, key_heads=2, queries=queries, keys=keys)
    wanted = definition(q, k, v, mask=mask)
    output, lse = attention_with_lse(q, k, v, mask=mask)
    assert_close(output, wanted.output, q.dtype)
    assert_close(lse, wanted["lse"], q.dtype, "lse")
    assert_close(
        regard.attention(q, k, v, mask=mask, softcap=3.0),
        definition(q, k, v, mask=mask, softcap=3.0).output,
        q.dtype,
    )


@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (1, 2, 1, 2)])
def test_any_number_of_leading_axes(lead, always_tiled):
    q, k, v = tensors(*lead, heads=4, key_heads=2, queries=70)
    keep = torch.rand(*lead, 70) > 0.2
    for mask in (None, masks.causal(), masks.window(3, 3), masks.padding(keep) & masks.causal()):
        wanted = definition(q, k, v, mask=mask)
        assert_close(regard.attention(q, k, v, mask=mask), wanted.output, q.dtype)
        assert_close(attention_with_lse(q, k, v, mask=mask)[1], wanted["lse"], q.dtype, "lse")
    bias = torch.randn(*lead[:-1], *((1,) if lead else ()), 1, 70, 70).double()
    assert_close(regard.attention(q, k, v, bias=bias), definition(q, k, v, bias=bias).output, q.dtype)


def test_without_a_head_axis():
    q, k, v = (x[0] for x in tensors(heads=1, queries=70, keys=90))
    assert_close(regard.attention(q, k, v), definition(q, k, v).output, q.dtype)
    wanted = definition(q, k, v, mask=masks.window(2, 2))
    output, lse = attention_with_lse(q, k, v, mask=masks.window(2, 2))
    assert output.shape == (70, 5)
    assert_close(output, wanted.output, q.dtype)
    assert_close(lse, wanted["lse"], q.dtype, "lse")


def test_leading_axes_of_keys_may_broadcast():
    q, _, _ = tensors(3, 2, queries=9)
    _, k, v = tensors(1, 2, queries=9)
    assert_close(regard.attention(q, k, v), definition(q, k, v).output, q.dtype)


@pytest.mark.parametrize(
    "shape", [(N, N), (1, N), (N, 1), (6, N, N), (1, 1, N), (2, 1, N, N), (2, 6, 1, N), (2, 6, N, N)]
)
@pytest.mark.parametrize("kind", ["bool", "additive", "additive with a bias"])
def test_tensors_are_taken_as_masks(shape, kind):
    q, k, v = tensors(2, heads=6, key_heads=2, queries=N)
    allowed = torch.rand(shape) > 0.4
    mask = allowed if kind == "bool" else torch.zeros(shape).double().masked_fill(~allowed, -torch.inf)
    if kind == "additive with a bias":
        mask = mask + torch.randn(shape)
    wanted = definition(q, k, v, mask=mask)
    assert_close(regard.attention(q, k, v, mask=mask), wanted.output, q.dtype)
    assert_close(attention_with_lse(q, k, v, mask=mask)[1], wanted["lse"], q.dtype, "lse")
    assert_close(regard.attention_weights(q, k, mask=mask), wanted["weights"], q.dtype, "weights")


def test_a_mostly_empty_dense_tensor_is_planned_by_its_tiles():
    mask = torch.zeros(600, 600, dtype=torch.bool)
    mask[:300, :10] = True
    assert regard.plan(mask, 600, 600).path == "block-sparse"
    q, k, v = tensors(2, queries=600)
    assert_close(regard.attention(q, k, v, mask=mask), definition(q, k, v, mask=mask).output, q.dtype)


def test_scores_of_four_hundred():
    q, k, v = tensors(2, queries=N, channels=8, dtype=torch.float32)
    q = q * 150
    for mask in (None, masks.causal(), masks.window(30, 30), masks.local_global(16)):
        wanted = definition(q, k, v, mask=mask)
        assert np.abs(wanted["scores"]).max() > 400
        output, lse = attention_with_lse(q, k, v, mask=mask)
        # float32 keeps about 7 digits of a score of 400, and a weight is its exponential.
        assert np.abs(output.numpy() - wanted.output).max() < 5e-4
        assert_close(lse, wanted["lse"], torch.float32, "lse")


@pytest.mark.parametrize("mask", [pytest.param(mask, id=name) for name, mask in MASKS.items()])
def test_the_plain_kernel_stands_in_for_the_fused_one(mask, monkeypatch):
    q, k, v = tensors(2, heads=6, key_heads=2, queries=N)
    with_fused = attention_with_lse(q, k, v, mask=mask)
    assert fused_kernel.available()
    monkeypatch.setattr(fused_kernel, "available", lambda: False)
    without = attention_with_lse(q, k, v, mask=mask)
    assert_close(without[0], with_fused[0], q.dtype)
    assert_close(without[1], with_fused[1], q.dtype, "lse")


def test_a_schema_that_differs_is_noticed(monkeypatch):
    monkeypatch.setattr(
        fused_kernel, "_FORWARD", fused_kernel._FORWARD.replace("float? scale", "float scale")
    )
    fused_kernel.available.cache_clear()
    assert not fused_kernel.available()
    monkeypatch.undo()
    fused_kernel.available.cache_clear()
    assert fused_kernel.available()


def test_autocast_does_not_reach_the_scores():
    q, k, v = tensors(2, queries=N, channels=16, dtype=torch.float32, grad=True)
    for options in (
        {"mask": masks.window(20, 0)},
        {"softcap": 3.0},
        {"mask": masks.local_global(16), "softcap": 3.0},
    ):
        wanted = definition(q, k, v, **options)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = regard.attention(q, k, v, **options)
            weights = regard.attention_weights(q, k, **options)
            entropy = regard.attention_statistics(q, k, **options).entropy
            found = torch.autograd.grad(output.sum(), q)[0]
        assert_close(output, wanted.output, torch.float32)
        assert_close(weights, wanted["weights"], torch.float32, "weights")
        assert_close(entropy, regard.attention_statistics(q, k, **options).entropy, torch.float32, "entropy")
        again = torch.autograd.grad(regard.attention(q, k, v, **options).sum(), q)[0]
        assert_close(found, again, torch.float32, "gradient")


@pytest.mark.parametrize(("queries", "keys", "batch"), [(0, 5, 2), (5, 0, 2), (0, 0, 2), (5, 5, 0)])
def test_empty_sequences_and_batches_give_empty_results(queries, keys, batch):
    for mask in (
        None,
        masks.causal(),
        masks.window(1, 1),
        masks.padding(lengths=[keys] * batch) if batch else None,
    ):
        q, k, v = tensors(batch, heads=3, queries=queries, keys=keys, values=4, grad=True)
        output, lse = attention_with_lse(q, k, v, mask=mask)
        assert output.shape == (batch, 3, queries, 4)
        assert not output.any()
        assert (lse == -torch.inf).all()
        assert regard.attention(q, k, v, mask=mask).shape == output.shape
        assert regard.attention_weights(q, k, mask=mask).shape == (batch, 3, queries, keys)
        output.sum().backward()
        assert not q.grad.any()


def test_the_parity_helper_fails_when_one_weight_is_perturbed():
    q, k, v = tensors(2, queries=7, dtype=torch.float32)
    trace = definition(q, k, v)
    weights = regard.attention_weights(q, k)
    assert_close(weights, trace["weights"], torch.float32)
    weights[1, 2, 3, 4] += 2e-5
    with pytest.raises(AssertionError, match=r"error 2\.0"):
        assert_close(weights, trace["weights"], torch.float32)
    output = regard.attention(q, k, v)
    output[0, 0, 0, 0] = float("nan")
    with pytest.raises(AssertionError, match="NaN"):
        assert_close(output, trace.output, torch.float32)
    with pytest.raises(AssertionError, match="≠"):
        assert_close(output[0], trace.output, torch.float32)


@pytest.mark.usefixtures("always_tiled")
@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_channels_need_not_be_neighbours_in_memory(which):
    q, k, v = (x.detach() for x in tensors(2, queries=150))
    inputs = [
        x.transpose(-1, -2).contiguous().transpose(-1, -2).requires_grad_() if i in which else x
        for i, x in enumerate((q, k, v))
    ]
    mask = masks.window(9, 0) | masks.prefix(3)
    wanted = definition(q, k, v, mask=mask).output
    assert_close(regard.attention(*inputs, mask=mask), wanted, torch.float64)
