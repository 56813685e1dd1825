from importlib import import_module

import numpy as np
import pytest
import torch

import regard
from parity import assert_close, tensors
from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError
from regard.kernels import LinearState, linear_attention_with_state


def by_hand(
    q, k, v, *, causal, feature=lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))), keep=None
):
    """The dense n×n formula in NumPy."""
    q, k, v = (x.detach().double().numpy() for x in (q, k, v))
    group = q.shape[-3] // k.shape[-3]
    k, v = (np.repeat(x, group, -3) for x in (k, v))
    weights = feature(q) @ np.swapaxes(feature(k), -1, -2)
    if causal:
        weights = np.tril(weights, k.shape[-2] - q.shape[-2])
    if keep is not None:
        weights = weights * keep.numpy()[..., None, None, :]
    total = weights.sum(-1, keepdims=True)
    return weights @ v / np.where(total == 0, 1, total)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 63, 64, 65, 203, 1024, 1100])
def test_equals_the_dense_formula(length, causal):
    q, k, v = tensors(2, heads=4, key_heads=2, queries=length, values=3)
    assert_close(regard.linear_attention(q, k, v, causal=causal), by_hand(q, k, v, causal=causal), q.dtype)


@pytest.mark.parametrize(
    ("queries", "keys", "causal"), [(5, 90, True), (1, 1500, True), (90, 5, False), (5, 90, False)]
)
def test_rectangles_align_the_last_query_with_the_last_key(queries, keys, causal):
    q, k, v = tensors(2, queries=queries, keys=keys)
    assert_close(regard.linear_attention(q, k, v, causal=causal), by_hand(q, k, v, causal=causal), q.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_lower_precision_accumulates_in_float32(dtype):
    q, k, v = tensors(2, queries=1500, dtype=dtype)
    output = regard.linear_attention(q, k, v, causal=True)
    assert output.dtype == dtype
    assert_close(output, by_hand(q, k, v, causal=True), dtype)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_any_number_of_leading_axes(lead):
    q, k, v = tensors(*lead, queries=70)
    keep = torch.rand(*lead, 70) > 0.3
    for causal in (False, True):
        found = regard.linear_attention(q, k, v, causal=causal, keep=keep)
        assert_close(found, by_hand(q, k, v, causal=causal, keep=keep), q.dtype)


def test_without_a_head_axis():
    q, k, v = tensors(heads=1, queries=70)
    assert torch.equal(
        regard.linear_attention(q[0], k[0], v[0], causal=True),
        regard.linear_attention(q, k, v, causal=True)[0],
    )


def test_any_feature_map():
    q, k, v = tensors(2, queries=90)

    def both_sides(x):
        return torch.cat([x.relu(), (-x).relu()], -1)

    def in_numpy(x):
        return np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], -1)

    for causal in (False, True):
        found = regard.linear_attention(q, k, v, causal=causal, feature_map=both_sides)
        assert_close(found, by_hand(q, k, v, causal=causal, feature=in_numpy), q.dtype)
    nothing = regard.linear_attention(q, k, v, causal=True, feature_map=torch.zeros_like)
    assert not nothing.any()


@pytest.mark.parametrize("sizes", [[70], [1] * 70, [64, 1, 5], [30, 40], [1030, 1, 70]])
def test_a_carried_state_goes_on_where_it_stopped(sizes):
    q, k, v = tensors(2, heads=4, key_heads=2, queries=sum(sizes), values=3)
    whole = regard.linear_attention(q, k, v, causal=True)
    state, outputs = None, []
    for part in zip(*(x.split(sizes, -2) for x in (q, k, v))):
        output, state = linear_attention_with_state(*part, state)
        outputs.append(output)
    assert torch.allclose(torch.cat(outputs, -2), whole, atol=1e-12)
    assert state.sums.shape == (2, 4, 5, 4)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal, monkeypatch):
    module = import_module("regard.kernels.linear_kernel")
    monkeypatch.setattr(module, "CHUNK", 4)
    monkeypatch.setattr(module, "SEGMENT", 8)
    q, k, v = tensors(2, heads=2, key_heads=1, queries=11, channels=3, values=2, grad=True)
    assert torch.autograd.gradcheck(lambda *x: regard.linear_attention(*x, causal=causal), (q, k, v))


def test_gradients_flow_through_the_state():
    q, k, v = tensors(queries=4, grad=True)
    _, state = linear_attention_with_state(q[:, :3], k[:, :3], v[:, :3])
    output, _ = linear_attention_with_state(q[:, 3:], k[:, 3:], v[:, 3:], state)
    found = torch.autograd.grad(output.sum(), v)[0]
    wanted = torch.autograd.grad(regard.linear_attention(q, k, v, causal=True)[:, 3:].sum(), v)[0]
    assert torch.allclose(found, wanted)


@pytest.mark.parametrize(("queries", "keys", "batch"), [(0, 5, 2), (5, 0, 2), (0, 0, 2), (5, 5, 0)])
def test_empty_sequences(queries, keys, batch):
    q, k, v = tensors(batch, queries=queries, keys=keys, values=4)
    output = regard.linear_attention(q, k, v)
    assert output.shape == (batch, 3, queries, 4)
    assert not output.any() or keys


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"feature_map": "relu"}, ArgumentError, "Got 'relu'"),
        ({"feature_map": lambda x: x.sum(-2)}, ShapeError, "only the last axis"),
        ({"keep": torch.ones(4, dtype=torch.bool)}, ShapeError, "one value per key"),
        ({"keep": torch.ones(9)}, DtypeError, "bool tensor"),
        ({"q": torch.randn(3, 11, 5).double(), "causal": True}, ShapeError, "at least as many keys"),
        ({"v": torch.randn(3, 8, 5).double()}, ShapeError, "as many values as keys"),
    ],
)
def test_bad_input_is_named(change, error, says):
    q, k, v = tensors(queries=9)
    arguments = {"q": q, "k": k, "v": v, **change}
    with pytest.raises(error, match=says):
        regard.linear_attention(arguments.pop("q"), arguments.pop("k"), arguments.pop("v"), **arguments)


def test_a_foreign_state_is_refused():
    q, k, v = tensors(queries=9)
    with pytest.raises(RegardError, match="The state must have shape"):
        linear_attention_with_state(q, k, v, LinearState(torch.zeros(3, 4, 6)))
    with pytest.raises(ShapeError, match="same new tokens"):
        linear_attention_with_state(q, k[:, :5], v[:, :5])
