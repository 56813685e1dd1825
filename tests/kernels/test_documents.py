"""Documents as squares of their own, sorted or in order, against the definition."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from parity import assert_close, definition, tensors
from regard import biases, masks
from regard.kernels import attention_with_lse, mask_parts
from regard.kernels.planner import plan_extent
from regard.masks.extent import Extent

N = 83
RESTS = [masks.everything(), masks.causal(), masks.window(9, 4), masks.causal() & masks.every(3)]


@pytest.fixture(autouse=True)
def cheap_calls(always_tiled, monkeypatch):
    """Squares even for short documents."""
    monkeypatch.setattr(mask_parts, "CALL_PAIRS", 64)
    monkeypatch.setattr(mask_parts, "GATHERED_POSITION", 0)


@given(
    st.lists(st.integers(0, 5), min_size=N, max_size=N),
    st.booleans(),
    st.sampled_from(RESTS),
    st.sampled_from([torch.float64, torch.float32]),
    st.integers(N - 40, N),
)
def test_output_lse_and_gradients(ids, in_order, rest, dtype, queries):
    mask = rest & masks.documents(sorted(ids) if in_order else ids)
    q, k, v = tensors(2, heads=4, key_heads=2, queries=queries, keys=N, channels=8, dtype=dtype, grad=True)
    wanted = definition(q, k, v, mask=mask)
    output, lse = attention_with_lse(q, k, v, mask=mask)
    assert_close(output, wanted.output, dtype)
    assert_close(lse, wanted["lse"], dtype, "lse")
    found = torch.autograd.grad(output.square().sum(), (q, k, v))
    weights = regard.attention_weights(q, k, mask=mask)
    dense = weights @ v.repeat_interleave(2, 1)
    for own, other in zip(found, torch.autograd.grad(dense.square().sum(), (q, k, v))):
        assert_close(own, other, torch.float32)
    assert plan_extent(mask, Extent(queries, N)).pairs == int(mask.dense(queries, N).sum())


@pytest.mark.parametrize(
    "options", [{"softcap": 2.0}, {"bias": biases.alibi(4)}, {"sinks": torch.zeros(4).double()}]
)
@pytest.mark.parametrize("shuffled", [False, True])
def test_with_options(options, shuffled):
    ids = np.arange(N) % 5 if shuffled else np.arange(N) // 20
    mask = masks.causal() & masks.documents(ids)
    q, k, v = tensors(2, heads=4, queries=N, channels=8)
    assert_close(
        regard.attention(q, k, v, mask=mask, **options),
        definition(q, k, v, mask=mask, **options).output,
        q.dtype,
    )
    wanted = definition(q, k, v, mask=mask, **options)
    found = regard.attention_statistics(q, k, v, mask=mask, **options)
    assert_close(found.lse, wanted["lse"], q.dtype, "lse")


@pytest.mark.parametrize("length", [100, 65, 299])
@pytest.mark.parametrize("shuffled", [False, True])
def test_causal_documents_that_are_longer_than_a_tile(length, shuffled):
    """Every row of a long causal square is computed; once those after the 64th were not."""
    ids = np.arange(1000) // length
    ids = np.random.default_rng(0).permutation(ids) if shuffled else ids
    mask = masks.causal() & masks.documents(ids)
    q, k, v = tensors(1, heads=2, queries=1000, channels=8, grad=True)
    wanted = definition(q, k, v, mask=mask)
    output, lse = attention_with_lse(q, k, v, mask=mask)
    assert_close(output, wanted.output, q.dtype)
    assert_close(lse, wanted["lse"], q.dtype, "lse")


def test_every_document_is_one_call():
    mask = masks.causal() & masks.documents(np.arange(4096) // 256)
    found = regard.plan(mask, 4096)
    assert found.calls == 16
    assert found.computed == found.pairs == 16 * 256 * 257 // 2
    shuffled = np.random.default_rng(0).integers(0, 40, 4096)
    found = regard.plan(masks.documents(shuffled), 4096)
    assert found.calls == 40
    assert found.computed == found.pairs
    assert found.path == "gathered"


def test_tiny_documents_share_a_call(monkeypatch):
    monkeypatch.setattr(mask_parts, "CALL_PAIRS", 2048)
    assert regard.plan(masks.documents(np.arange(4096) // 4), 4096).calls < 150
