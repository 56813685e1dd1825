"""Neighbourhoods on a grid, block by block, against the definition: output, gradients, statistics."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from kernels.test_statistics import assert_statistics
from kernels.test_statistics import by_definition as statistics_by_definition
from parity import assert_close, definition, tensors
from regard import biases, masks
from regard.kernels import attention_with_lse, mask_parts
from regard.kernels.planner import plan_extent
from regard.masks.extent import Extent

SHAPES = [(7, 11), (13, 5), (3, 5, 4), (1, 61), (67,), (2, 3, 2, 5)]
RESTS = [masks.everything(), masks.causal(), ~masks.every(3), masks.window(20, 9), masks.prefix(9).T]


@pytest.fixture(autouse=True)
def cheap_calls(always_tiled, monkeypatch):
    """Blocks even in small images."""
    monkeypatch.setattr(mask_parts, "CALL_PAIRS", 16)
    monkeypatch.setattr(mask_parts, "GATHERED_POSITION", 0)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(SHAPES),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from(RESTS),
    st.sampled_from([torch.float64, torch.float32]),
    st.integers(0, 30),
)
def test_output_lse_gradients_and_statistics(shape, radius, shifted, rest, dtype, earlier):
    mask = masks.neighbourhood(shape, radius, shifted=shifted) & rest
    keys = int(np.prod(shape))
    queries = keys - min(earlier, keys - 1)
    q, k, v = tensors(2, heads=4, key_heads=2, queries=queries, keys=keys, channels=8, dtype=dtype, grad=True)
    wanted = definition(q, k, v, mask=mask)
    output, lse = attention_with_lse(q, k, v, mask=mask)
    assert_close(output, wanted.output, dtype)
    assert_close(lse, wanted["lse"], dtype, "lse")
    found = torch.autograd.grad(output.square().sum(), (q, k, v))
    dense = regard.attention_weights(q, k, mask=mask) @ v.repeat_interleave(2, 1)
    for own, other in zip(found, torch.autograd.grad(dense.square().sum(), (q, k, v))):
        assert_close(own, other, torch.float32)
    assert plan_extent(mask, Extent(queries, keys)).pairs == int(mask.dense(queries, keys).sum())
    statistics = regard.attention_statistics(q.detach(), k.detach(), v.detach(), mask=mask, top=2)
    by_definition = statistics_by_definition(q, k, v, mask=mask)
    assert_statistics(statistics, by_definition, 1e-5, top=2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision(dtype):
    mask = masks.neighbourhood((9, 13), 2)
    q, k, v = tensors(1, heads=2, queries=117, channels=8, dtype=dtype)
    assert_close(regard.attention(q, k, v, mask=mask), definition(q, k, v, mask=mask).output, dtype)


@pytest.mark.parametrize(
    "options",
    [{"softcap": 2.0}, {"bias": biases.alibi(4)}, {"sinks": torch.zeros(4).double()}, {"scale": -1.0}],
)
def test_with_options(options):
    mask = masks.neighbourhood((11, 17), (2, 3))
    q, k, v = tensors(2, heads=4, queries=187, channels=8)
    found = regard.attention(q, k, v, mask=mask, **options)
    assert_close(found, definition(q, k, v, mask=mask, **options).output, q.dtype)


def test_blocks_that_look_alike_share_a_mask(monkeypatch):
    monkeypatch.setattr(mask_parts, "CALL_PAIRS", 2048)  # blocks wider than the radius
    asked = []
    evaluate = masks.Mask.evaluate
    monkeypatch.setattr(masks.Mask, "evaluate", lambda *given: asked.append(1) or evaluate(*given))
    mask = masks.neighbourhood((32, 32), 2)
    q, k, v = tensors(1, heads=1, queries=1024, channels=8)
    plan = regard.plan(mask, 1024)
    assert plan.calls > 9
    regard.attention(q, k, v, mask=mask)
    assert len(asked) <= 9  # inside, four sides, four corners
