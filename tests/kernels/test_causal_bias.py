"""Torch's own causal biases, ``torch.nn.attention.bias``, whose tensor holds nothing but its sizes."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

import regard
from parity import assert_close, definition, tensors
from regard import masks
from regard.errors import DtypeError, MaskError
from regard.kernels import attention_with_lse, reference

SIZES = [(1, 1), (1, 7), (7, 1), (5, 9), (9, 5), (70, 70), (70, 200), (200, 70), (300, 300), (2, 3)]


def both(queries, keys):
    """Each bias and the matrix that it stands for."""
    ones = torch.ones(queries, keys, dtype=torch.bool)
    with warnings.catch_warnings():  # torch warns of rows that see nothing; here they are 0
        warnings.simplefilter("ignore")
        lower = causal_lower_right(queries, keys)
    return [(causal_upper_left(queries, keys), ones.tril()), (lower, ones.tril(keys - queries))]


@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_they_are_the_masks_that_they_say(queries, keys):
    q, k, v = tensors(2, heads=2, queries=queries, keys=keys)
    for bias, dense in both(queries, keys):
        wanted = definition(q, k, v, mask=dense)
        assert_close(regard.attention(q, k, v, mask=bias), wanted.output, q.dtype)
        output, lse = attention_with_lse(q, k, v, mask=bias)
        assert_close(output, wanted.output, q.dtype)
        assert_close(lse, wanted["lse"], q.dtype, "lse")
        assert_close(regard.attention_weights(q, k, mask=bias), wanted["weights"], q.dtype, "weights")
        found = regard.attention_statistics(q, k, v, mask=bias)
        assert_close(found.output, wanted.output, q.dtype)
        assert (found.visible == dense.sum(-1)).all()
        assert regard.plan(bias, queries, keys).pairs == int(dense.sum())
        assert torch.equal(masks.as_mask(bias).dense(queries, keys), dense)
        assert torch.equal(masks.dense(bias).dense(queries, keys), dense)
        seen = masks.window(3, None) & bias
        assert torch.equal(seen.dense(queries, keys), masks.window(3, None).dense(queries, keys) & dense)
        numbers = reference.attention(q.numpy(), k.numpy(), v.numpy(), mask=bias)
        assert np.array_equal(numbers["weights"], wanted["weights"])


def test_a_long_one_stays_lazy():
    assert masks.as_mask(causal_upper_left(1 << 12, 1 << 12)) == masks.causal()
    plan = regard.plan(causal_upper_left(1 << 12, 1 << 13), 1 << 12, 1 << 13)
    assert plan.pairs == (1 << 12) * ((1 << 12) + 1) // 2


@pytest.mark.parametrize("bias", [causal_upper_left(5, 9), causal_lower_right(5, 9)], ids=["upper", "lower"])
def test_other_sizes_are_refused(bias):
    q, k, v = tensors(queries=5, keys=8)
    with pytest.raises(MaskError, match=r"queries = 5, keys = 9"):
        regard.attention(q, k, v, mask=bias)
    with pytest.raises(MaskError, match=r"queries = 5, keys = 9"):
        regard.plan(bias, 9, 5)


def test_as_a_bias_it_is_refused():
    q, k, v = tensors(queries=5)
    with pytest.raises(DtypeError, match="pass mask="):
        regard.attention(q, k, v, bias=causal_upper_left(5, 5))


class Biased(torch.nn.Module):
    """A model that calls torch's function with one of torch's biases."""

    def __init__(self, bias):
        super().__init__()
        self.bias = bias

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias)


@pytest.mark.parametrize(("queries", "keys"), [(5, 9), (9, 5), (7, 7)])
def test_a_watched_model(queries, keys):
    q, k, v = tensors(2, heads=2, queries=queries, keys=keys, dtype=torch.float32)
    for bias, dense in both(queries, keys):
        model = Biased(bias)
        with regard.watch(model) as seen:
            output = model(q, k, v)
        wanted = definition(q, k, v, mask=dense)
        assert_close(output, wanted.output, q.dtype)
        if dense.any(-1).all():  # torch gives NaN where a row sees nothing
            assert_close(model(q, k, v), wanted.output, q.dtype)
        assert_close(seen[0].weights(1), wanted["weights"][0, 1], q.dtype, "weights")


def test_a_watched_model_with_a_bias_of_another_size_does_what_torch_does():
    """Torch looks at the sizes of q and k; those of an upper-left bias count for nothing."""
    q, k, v = tensors(2, heads=2, queries=6, keys=9, dtype=torch.float32)
    for bias in (causal_upper_left(3, 4), causal_lower_right(4, 4)):
        model = Biased(bias)
        with regard.watch(model) as seen:
            output = model(q, k, v)
        assert_close(output, model(q, k, v), q.dtype)
        dense = torch.ones(6, 9, dtype=torch.bool).tril()
        assert_close(seen[0].weights(0), definition(q, k, v, mask=dense)["weights"][0, 0], q.dtype, "weights")
