"""Calls that go straight to SDPA, and those that must not."""

import sys
from types import ModuleType
from unittest import TestCase

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from masks.strategies import expressions
from parity import assert_close, definition, tensors
from regard import masks
from regard.kernels import attention_with_lse
from regard.kernels.direct_call import direct_call, may_skip_tiles
from regard.kernels.inputs import prepare
from regard.kernels.single_row import single_query
from regard.masks.patterns import upper_left_causal

DTYPES = st.sampled_from([torch.float64, torch.float32, torch.bfloat16])


@given(expressions(23), st.integers(1, 23), DTYPES, st.sampled_from([None, 0.3]))
def test_short_masked_calls_over_fewer_keys(mask, queries, dtype, scale):
    q, k, v = tensors(2, heads=6, key_heads=2, queries=queries, keys=23, channels=8, dtype=dtype)
    try:
        mask.check(masks.mask.extent_of(queries, 23))
    except regard.errors.RegardError:
        return  # dense() has its own number of rows
    wanted = definition(q, k, v, mask=mask, scale=scale)
    assert_close(regard.attention(q, k, v, mask=mask, scale=scale), wanted.output, dtype)
    output, lse = attention_with_lse(q, k, v, mask=mask, scale=scale)
    assert_close(output, wanted.output, dtype)
    assert_close(lse, wanted["lse"], dtype, "lse")


@pytest.mark.parametrize("keys", [300, 4096])
@pytest.mark.parametrize("mask", [masks.window(256, 0), masks.window(9, 3) & ~masks.window(2, 0)])
def test_a_window_over_a_cache_touches_only_its_keys(mask, keys):
    found = regard.plan(mask, 1, keys)
    assert found.single is not None
    assert found.single[0] >= keys - 257
    assert found.computed == found.single[1] - found.single[0]
    q, k, v = tensors(2, heads=4, key_heads=2, queries=1, keys=keys, channels=8)
    k[:, :, : found.single[0]] = v[:, :, : found.single[0]] = torch.nan  # never read
    wanted = definition(q, *(x.nan_to_num() for x in (k, v)), mask=mask)
    assert_close(regard.attention(q, k, v, mask=mask), wanted.output, q.dtype)
    output, lse = single_query(prepare(q, k, v, mask=mask))
    assert_close(output, wanted.output, q.dtype)
    assert_close(lse, wanted["lse"], q.dtype, "lse")


def test_gradients_of_narrowed_keys_are_zero_outside():
    q, k, v = tensors(1, queries=1, keys=50, grad=True)
    mask = masks.window(6, 0)
    regard.attention(q, k, v, mask=mask).square().sum().backward()
    found = [x.grad.clone() for x in (q, k, v)]
    for x in (q, k, v):
        x.grad = None
    regard.attention_weights(q, k, mask=mask).matmul(v).square().sum().backward()
    for own, x in zip(found, (q, k, v)):
        assert_close(own, x.grad, q.dtype)
    assert not found[1][:, :, :43].any()


@pytest.mark.parametrize(
    "shape", [(9, 9), (1, 9), (9, 1), (3, 9, 9), (2, 1, 1, 9), (2, 3, 9, 9), (1, 1, 9, 9)]
)
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_mask_tensors_of_every_shape(shape, additive, dtype):
    q, k, v = tensors(2, queries=9, dtype=dtype)
    keep = torch.rand(shape) > 0.4
    keep[..., 0] = True
    mask = torch.where(keep, torch.randn(shape, dtype=dtype), -torch.inf) if additive else keep
    assert direct_call(q, k, v, mask, None) is not None
    assert_close(regard.attention(q, k, v, mask=mask), definition(q, k, v, mask=mask).output, dtype)


@pytest.mark.parametrize("lowest", [-torch.inf, torch.finfo(torch.float32).min])
def test_a_row_of_lowest_numbers_sees_nothing(lowest):
    q, k, v = tensors(2, queries=9, dtype=torch.float32)
    mask = torch.zeros(9, 9)
    mask[4] = lowest
    mask[3, 2] = lowest
    wanted = definition(q, k, v, mask=mask.masked_fill(mask < 0, -torch.inf))
    assert direct_call(q, k, v, mask, None) is None
    assert_close(regard.attention(q, k, v, mask=mask), wanted.output, q.dtype)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_numbers_that_no_mask_has_are_still_refused(wrong):
    q, k, v = tensors(2, queries=9, dtype=torch.float32)
    mask = torch.zeros(9, 9)
    mask[8, 8] = wrong
    with pytest.raises(regard.errors.MaskError, match="A mask must not contain"):
        regard.attention(q, k, v, mask=mask)


def test_what_is_unusual_takes_the_longer_way():
    q, k, v = tensors(2, queries=9, dtype=torch.float32)
    half = torch.zeros(9, 9, dtype=torch.float16)
    learned = torch.zeros(9, 9, requires_grad=True)
    for mask in (half, learned, masks.window(600, 0).dense(9)[0], np.ones((9, 9), bool)):
        assert direct_call(q, k, v, mask, None) is None
    for scale in (-1.0, 0.0, 1e7, 1):
        assert direct_call(q, k, v, None, scale) is None
    assert direct_call(q[0], k[0], v[0], None, None) is None
    assert direct_call(q, k, v[..., :2], None, None) is None
    with torch.autocast("cpu"):
        assert direct_call(q, k, v, None, None) is None


@pytest.mark.parametrize("lead", [(), (1, 1)])
@pytest.mark.parametrize("additive", [False, True])
def test_a_sparse_tensor_is_still_planned(lead, additive):
    n = 1024
    q, k, v = tensors(1, heads=1, queries=n, channels=4, dtype=torch.float32)
    keep = masks.window(40, 0).dense(n).reshape(*lead, n, n)
    mask = torch.zeros(keep.shape).masked_fill(~keep, -torch.inf) if additive else keep
    assert may_skip_tiles(mask)
    assert direct_call(q, k, v, mask, None) is None
    assert_close(regard.attention(q, k, v, mask=mask), definition(q, k, v, mask=keep).output, q.dtype)


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.window(2, 0), masks.every(3)], ids=str)
def test_leading_axes_broadcast_as_in_sdpa(mask):
    q, k, v = tensors(2, queries=9)
    added = None if mask is None else mask.dense(9)
    for some in ((q[0], k, v), (q, k[0], v[0]), (q[None], k, v[0])):
        wanted = torch.nn.functional.scaled_dot_product_attention(*some, attn_mask=added)
        found = regard.attention(*some, mask=mask)
        assert_close(found, wanted, q.dtype)


@pytest.mark.parametrize("mask", [None, masks.window(2, 0)], ids=str)
def test_mixed_dtypes_under_autocast_as_in_sdpa(mask):
    q, k, v = tensors(2, queries=9, dtype=torch.float32)
    added = None if mask is None else mask.dense(9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        wanted = torch.nn.functional.scaled_dot_product_attention(q, k.bfloat16(), v, attn_mask=added)
        found = regard.attention(q, k.bfloat16(), v, mask=mask)
    assert found.dtype == wanted.dtype == torch.bfloat16
    assert_close(found, wanted, torch.bfloat16)
    with pytest.raises(regard.errors.DtypeError, match="same dtype"):
        regard.attention(q, k.bfloat16(), v)


def test_pytorch_samples_of_sdpa(monkeypatch):
    """The inputs with which torch tests SDPA itself."""
    # Torch's tests need expecttest for outputs that they compare as text; these samples do not.
    stand_in = ModuleType("expecttest")
    stand_in.TestCase = TestCase
    monkeypatch.setitem(sys.modules, "expecttest", stand_in)
    methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    (info,) = [op for op in methods.op_db if op.name == "nn.functional.scaled_dot_product_attention"]
    tried = 0
    for sample in info.sample_inputs("cpu", torch.float64, requires_grad=False):
        options = dict(sample.kwargs)
        if options.pop("dropout_p", 0.0):
            continue  # random
        q, (k, v) = sample.input, sample.args
        wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)
        options.pop("enable_gqa", None)
        mask = options.pop("attn_mask", None)
        if options.pop("is_causal", False):
            mask = upper_left_causal(q.shape[-2], k.shape[-2])
        found = regard.attention(q, k, v, mask=mask, **options)
        assert_close(found, wanted, torch.float64)
        tried += 1
    assert tried > 10
