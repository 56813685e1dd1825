"""Tiles that gather their own queries and keys, tiles that are slices, and equal squares in one call."""

from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from parity import assert_close, definition, tensors
from regard import biases, masks
from regard.kernels import attention_with_lse, mask_parts, tile_pass
from regard.kernels.equal_squares import equal_squares
from regard.kernels.mask_parts import slice_of

tiled = import_module("regard.kernels.tiled")

OPTIONS = [{}, {"softcap": 3.0}, {"sinks": torch.zeros(4)}, {"bias": biases.alibi(4)}, {"scale": -0.3}]


@pytest.fixture(autouse=True)
def cheap_calls(always_tiled, monkeypatch):
    """Squares even for short documents."""
    monkeypatch.setattr(mask_parts, "CALL_PAIRS", 64)
    monkeypatch.setattr(mask_parts, "GATHERED_POSITION", 0)


def check(mask, options, dtype, *, queries, keys, key_heads=2, batch=2):
    """Output, lse, gradients and statistics against the definition in float64."""
    q, k, v = tensors(
        batch, heads=4, key_heads=key_heads, queries=queries, keys=keys, channels=8, dtype=dtype, grad=True
    )
    wanted = definition(q, k, v, mask=mask, **options)
    output, lse = attention_with_lse(q, k, v, mask=mask, **options)
    assert_close(output, wanted.output, dtype)
    assert_close(lse, wanted["lse"], dtype, "lse")
    if dtype == torch.bfloat16:
        return
    found = torch.autograd.grad(output.square().sum(), (q, k, v))
    weights = regard.attention_weights(q, k, mask=mask, **options)
    dense = weights @ v.repeat_interleave(4 // key_heads, 1)
    for own, other in zip(found, torch.autograd.grad(dense.square().sum(), (q, k, v))):
        assert_close(own, other, torch.float32)
    statistics = regard.attention_statistics(q, k, v, mask=mask, **options)
    assert_close(statistics.output, wanted.output, dtype)
    assert_close(statistics.lse, wanted["lse"], dtype, "lse")


@given(
    st.sampled_from([2, 3, 4, 7]),
    st.sampled_from([masks.everything(), masks.window(13, 9), masks.causal(), ~masks.window(2, 0)]),
    st.sampled_from(OPTIONS),
    st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
    st.integers(60, 97),
)
def test_residue_classes(stride, rest, options, dtype, queries):
    mask = rest & masks.documents(np.arange(97) % stride)
    check(mask, options, dtype, queries=queries, keys=97)


@given(
    st.lists(st.integers(0, 4), min_size=71, max_size=71),
    st.sampled_from([masks.everything(), masks.window(9, 4), masks.causal(), ~masks.every(5)]),
    st.sampled_from(OPTIONS),
    st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
    st.sampled_from([0, 2, 100]),
    st.sampled_from([8, 64]),
)
def test_scattered_documents(ids, rest, options, dtype, copies, height):
    """However often keys may be copied, and in however many tiles a document is computed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tile_pass, "MAX_COPIES", copies)
        patch.setattr(tile_pass, "MIN_TILE_ROWS", height)
        check(rest & masks.documents(ids), options, dtype, queries=71, keys=71)


@given(
    st.sampled_from([(9, 11), (6, 17)]),
    st.integers(1, 4),
    st.sampled_from(OPTIONS),
    st.sampled_from([torch.float64, torch.float32]),
)
def test_blocks_of_an_image(shape, radius, options, dtype):
    size = shape[0] * shape[1]
    check(masks.neighbourhood(shape, radius), options, dtype, queries=size, keys=size, batch=1)


# ---- equal squares --------------------------------------------------------------------------------


@pytest.fixture
def stacked(monkeypatch):
    """How many calls were computed as one stack of squares."""
    found = []

    def counted(*given):
        result = equal_squares(*given)
        found.append(result is not None)
        return result

    monkeypatch.setattr(tiled, "equal_squares", counted)
    return found


@pytest.mark.parametrize("rest", [masks.everything(), masks.causal()])
@pytest.mark.parametrize("options", [{}, {"sinks": torch.zeros(4).double()}, {"scale": -0.3}])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_equal_documents_are_one_call(stacked, rest, options, dtype):
    mask = rest & masks.documents(np.arange(96) // 24)
    check(mask, options, dtype, queries=96, keys=96, key_heads=4, batch=1)
    assert stacked[0]


def in_order_of_positions(x):
    """The same numbers, in memory as (batch, position, head, channel), as most models have them."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def test_several_sequences_are_stacked_where_that_is_a_view(stacked):
    mask = masks.causal() & masks.documents(np.arange(96) // 24)
    q, k, v = tensors(3, heads=4, queries=96, channels=8)
    wanted = definition(q, k, v, mask=mask).output
    assert_close(regard.attention(q, k, v, mask=mask), wanted, q.dtype)
    moved = map(in_order_of_positions, (q, k, v))
    assert_close(regard.attention(*moved, mask=mask), wanted, q.dtype)
    assert stacked == [False, True]


@pytest.mark.parametrize(
    "mask",
    [
        masks.causal() & masks.documents([0] * 24 + [1] * 30 + [2] * 42),
        masks.causal() & masks.documents(np.arange(96) // 28),
        masks.window(9, 4) & masks.documents(np.arange(96) // 24),
        masks.documents(np.arange(96) % 4),
    ],
    ids=["other lengths", "a shorter last one", "another mask inside", "not in order"],
)
def test_everything_else_is_not_stacked(stacked, mask):
    check(mask, {}, torch.float64, queries=96, keys=96, key_heads=4, batch=1)
    assert not any(stacked)


def test_grouped_heads_and_biases_are_not_stacked(stacked):
    mask = masks.causal() & masks.documents(np.arange(96) // 24)
    check(mask, {}, torch.float64, queries=96, keys=96, key_heads=2, batch=1)
    check(mask, {"bias": biases.alibi(4)}, torch.float64, queries=96, keys=96, key_heads=4, batch=1)
    assert not any(stacked)


def test_the_output_of_a_stack_is_one_tensor(stacked):
    mask = masks.causal() & masks.documents(np.arange(96) // 24)
    q, k, v = tensors(1, heads=4, queries=96, channels=8)
    assert regard.attention(q, k, v, mask=mask).is_contiguous()
    assert stacked == [True]


@pytest.mark.parametrize(
    ("positions", "wanted"),
    [
        ([3], slice(3, 4, 1)),
        ([3, 4], slice(3, 5, 1)),
        ([1, 5, 9], slice(1, 10, 4)),
        ([1, 5, 8], None),
        ([5, 3, 1], None),
        ([2, 2], None),
    ],
)
def test_positions_as_slices(positions, wanted):
    assert slice_of(np.array(positions)) == wanted
