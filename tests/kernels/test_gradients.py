"""Gradients: gradcheck on every path, parity with the dense calculation, no NaN anywhere."""

import numpy as np
import pytest
import torch

import regard
from parity import tensors
from regard import biases, masks
from regard.kernels import attention_with_lse, fused_kernel

N = 9
MASKS = {
    "full": None,
    "causal": masks.causal(),
    "banded": masks.window(2, 1),
    "prefix": masks.window(1, 0) | masks.prefix(2),
    "documents": masks.causal() & masks.documents([0, 0, 0, 0, 1, 1, 2, 2, 2]),
    "rows that see nothing": masks.window(2, 0) & ~masks.prefix(4).T,
    "by batch": masks.padding(lengths=[0, 6]) & masks.causal(),
    "by head": masks.dense(np.arange(2 * N * N).reshape(2, N, N) % 3 > 0),
}


def options_of(kind: str) -> tuple[dict, list[torch.Tensor]]:
    """Options for two heads, and the tensors among them that learn."""
    if kind == "plain":
        return {}, []
    if kind == "softcap":
        return {"softcap": 1.5}, []
    if kind == "sinks":
        sinks = torch.randn(2, dtype=torch.float64, requires_grad=True)
        return {"sinks": sinks}, [sinks]
    shape = {"relative": (2, 5), "t5": (8, 2), "tensor": (2, 1, N, N), "row": (2, 1, N)}[kind]
    table = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    make = {"relative": biases.relative, "t5": biases.t5}.get(kind, lambda x: x)
    return {"bias": make(table)}, [table]


KINDS = ["plain", "softcap", "sinks", "relative", "t5", "tensor", "row"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", [pytest.param(mask, id=name) for name, mask in MASKS.items()])
def test_gradcheck_on_tiles(mask, kind, always_tiled):
    q, k, v = tensors(2, heads=2, key_heads=1, queries=N, channels=3, values=2, grad=True)
    options, learned = options_of(kind)

    def attend(q, k, v, *tables):
        return regard.attention(q, k, v, mask=mask, **options)

    # Along random directions, which a wrong entry of the Jacobian does not survive; each entry is below.
    assert torch.autograd.gradcheck(attend, (q, k, v, *learned), fast_mode=True)


@pytest.mark.parametrize("kind", ["plain", "sinks"])
def test_gradcheck_of_every_entry(kind, always_tiled):
    q, k, v = tensors(1, heads=2, key_heads=1, queries=N, channels=3, values=2, grad=True)
    options, learned = options_of(kind)

    def attend(q, k, v, *tables):
        return regard.attention(q, k, v, mask=MASKS["prefix"], **options)

    assert torch.autograd.gradcheck(attend, (q, k, v, *learned))


def dense_attention(q, k, v, **options):
    """The same function through the dense weights and autograd's own rules."""
    weights = regard.attention_weights(q, k, **options)
    return weights @ v.repeat_interleave(q.shape[1] // v.shape[1], 1)


LONG = 150
LONG_MASKS = {
    "causal": masks.causal(),
    "banded": masks.window(20, 5),
    "prefix": masks.window(20, 0) | masks.prefix(3),
    "gathered": masks.local_global(16),
    "ragged": masks.padding(np.arange(LONG) % 3 > 0),
    "by batch": masks.padding(lengths=[0, 100]) & masks.causal(),
    "by head": masks.dense(np.arange(2).reshape(2, 1, 1) > 0) & masks.window(30, 30),
    "nothing": masks.nothing(),
}


@pytest.mark.parametrize("kernel", ["fused", "plain"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", [pytest.param(mask, id=name) for name, mask in LONG_MASKS.items()])
def test_gradients_equal_those_of_the_dense_calculation(mask, kind, kernel, always_tiled, monkeypatch):
    if kernel == "plain":
        monkeypatch.setattr(fused_kernel, "available", lambda: False)
    if kind in ("tensor", "row"):
        table = torch.randn(
            (2, 1, LONG, LONG) if kind == "tensor" else (2, 1, LONG), dtype=torch.float64, requires_grad=True
        )
        options, learned = {"bias": table}, [table]
    else:
        options, learned = options_of(kind)
    q, k, v = tensors(2, heads=2, key_heads=1, queries=LONG, values=4, grad=True)
    grad = torch.randn(2, 2, LONG, 4, dtype=torch.float64)
    found = torch.autograd.grad(regard.attention(q, k, v, mask=mask, **options), (q, k, v, *learned), grad)
    wanted = torch.autograd.grad(dense_attention(q, k, v, mask=mask, **options), (q, k, v, *learned), grad)
    for one, other in zip(found, wanted):
        assert torch.allclose(one, other, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.15), (torch.float16, 0.02)]
)
@pytest.mark.parametrize("mask", [pytest.param(mask, id=name) for name, mask in LONG_MASKS.items()])
def test_gradients_in_lower_precision(mask, dtype, tolerance, always_tiled):
    low = tensors(2, heads=2, queries=LONG, dtype=dtype, grad=True)
    high = [x.detach().double().requires_grad_() for x in low]
    grad = torch.randn(2, 2, LONG, 5).to(dtype)
    found = torch.autograd.grad(regard.attention(*low, mask=mask), low, grad)
    wanted = torch.autograd.grad(regard.attention(*high, mask=mask), high, grad.double())
    for one, other in zip(found, wanted):
        assert one.dtype == dtype
        assert (one.double() - other).abs().max() <= tolerance * max(1.0, other.abs().max().item())


@pytest.mark.parametrize("length", [9, 150])
@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}, {"dropout": 0.3}, {"bias": True}], ids=str)
def test_rows_that_see_nothing_give_zero_and_no_nan(length, options):
    mask = masks.causal() & ~masks.prefix(4).T  # the first four queries see nothing
    if "bias" in options:
        options = {"bias": torch.randn(2, length, length, requires_grad=True)}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        if "bias" in options:
            options = {"bias": options["bias"].detach().to(dtype).requires_grad_()}
        for call in (regard.attention, lambda *a, **o: attention_with_lse(*a, **o)[0]):
            for given in (
                mask,
                mask.dense(length),
                torch.zeros(length, length).masked_fill(~mask.dense(length), -torch.inf).to(dtype),
            ):
                q, k, v = tensors(heads=2, queries=length, dtype=dtype, grad=True)
                output = call(q, k, v, mask=given, **options)
                assert not output[:, :4].any()
                output.float().square().sum().backward()
                for x in (q, k, v):
                    assert torch.isfinite(x.grad).all()
                assert not q.grad[:, :4].any()


def test_weights_have_gradients_without_nan():
    q, k, _ = tensors(heads=2, queries=6, grad=True)
    mask = masks.causal() & ~masks.prefix(2).T
    weights = regard.attention_weights(q, k, mask=mask, sinks=torch.zeros(2).double())
    weights.square().sum().backward()
    assert torch.isfinite(q.grad).all()
    assert not q.grad[:, :2].any()
    assert torch.autograd.gradcheck(lambda q, k: regard.attention_weights(q, k, mask=mask), (q, k))


def test_only_what_learns_gets_a_gradient():
    q, k, v = tensors(queries=80)
    table = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    regard.attention(q, k, v, mask=masks.window(3, 3), bias=biases.relative(table)).sum().backward()
    assert table.grad is not None
    assert q.grad is None


@pytest.mark.parametrize("length", [9, 300])
def test_an_additive_mask_that_learns_gets_its_gradient(length):
    q, k, v = tensors(queries=length)
    mask = torch.randn(3, length, length, dtype=torch.float64)
    mask[:, :, 0] = -torch.inf
    mask = mask.requires_grad_()
    regard.attention(q, k, v, mask=mask).square().sum().backward()
    bias = mask.detach().clone().requires_grad_()
    scores = q @ k.transpose(-1, -2) * 5**-0.5 + bias
    (scores.softmax(-1) @ v).square().sum().backward()
    assert torch.allclose(mask.grad, bias.grad, atol=1e-12)
    assert not mask.grad[:, :, 0].any()


def test_the_lse_carries_no_gradient():
    q, k, v = tensors(queries=80, grad=True)
    assert not attention_with_lse(q, k, v, mask=masks.window(3, 3))[1].requires_grad
