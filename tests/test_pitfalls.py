"""The mistakes that tutorials make, and that regard does not: each with the numbers that show it."""

import numpy as np
import pytest
import torch

import regard
from regard import biases, masks
from regard.errors import ShapeError
from regard.kernels import reference


def test_a_padding_mask_of_a_batch_broadcasts_over_the_heads():
    # The tutorial unsqueezes (2, 5) twice and adds it to (2, 5, 5), which does not broadcast as meant.
    keep = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    x = torch.randn(2, 3, 5, 4)
    weights = regard.attention_weights(x, x, mask=masks.padding(keep))
    assert weights.shape == (2, 3, 5, 5)
    assert not weights[0, ..., 3:].any()
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3, 5))
    with pytest.raises(ShapeError, match=r"mask\[:, None\]"):
        regard.attention(x, x, x, mask=keep.bool()[:, None, :].expand(2, 5, 5))


def test_a_relative_bias_has_heads_as_the_scores_have():
    table = torch.randn(3, 65)  # one scalar per head and distance, clipped at ±32
    x = torch.randn(2, 3, 50, 4)
    weights = regard.attention_weights(x, x, bias=biases.relative(table))
    assert weights.shape == (2, 3, 50, 50)
    with pytest.raises(ShapeError, match="heads = 4"):
        regard.attention(*(torch.randn(2, 4, 50, 4) for _ in range(3)), bias=biases.relative(table))


def test_a_fully_masked_row_is_zero_and_not_nan():
    x = torch.randn(1, 1, 4, 8)
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    naive = (x @ x.transpose(-1, -2)).masked_fill(~mask, -torch.inf).softmax(-1)
    assert naive[0, 0, 1].isnan().all()  # what the tutorial computes
    weights = regard.attention_weights(x, x, mask=mask)
    assert not weights[0, 0, 1].any()
    assert not regard.attention(x, x, x, mask=mask)[0, 0, 1].any()


def test_sparse_attention_really_computes_less():
    n = 8192
    plan = regard.plan(masks.local_global(64), n)
    assert plan.computed < n * n / 15  # a dense n×n mask would compute every pair


def test_cross_attention_takes_lengths_that_differ():
    q, k, v = torch.randn(2, 4, 10, 8), torch.randn(2, 4, 20, 8), torch.randn(2, 4, 20, 8)
    keep = torch.arange(20) < torch.tensor([[20], [13]])
    weights = regard.attention_weights(q, k, mask=masks.padding(keep))
    assert weights.shape == (2, 4, 10, 20)
    assert not weights[1, ..., 13:].any()
    assert regard.attention(q, k, v, mask=masks.padding(keep)).shape == (2, 4, 10, 8)


def test_softmax_of_large_scores_does_not_overflow():
    x = torch.full((1, 2, 1), 100.0)
    assert torch.isfinite(regard.attention(x, x, x, scale=1.0)).all()
    with np.errstate(over="ignore", invalid="ignore"):
        naive = np.exp([10000.0]) / np.exp([10000.0])
    assert np.isnan(naive).all()


def test_a_row_of_low_scores_beside_a_high_one_keeps_its_softmax():
    scores = np.array([[1000.0, 1000.0], [0.0, 1.0]])
    with np.errstate(invalid="ignore"):
        shifted = np.exp(scores - scores.max())  # the maximum of the whole matrix
        wrong = shifted / shifted.sum(-1, keepdims=True)
    assert np.isnan(wrong[1]).all()
    assert reference.softmax(scores)[0][1].round(3).tolist() == [0.269, 0.731]


def test_the_square_root_of_the_width_keeps_scores_at_variance_one():
    torch.manual_seed(0)
    q, k = torch.randn(1, 2000, 512), torch.randn(1, 2000, 512)
    dots = (q @ k.transpose(-1, -2)).flatten()
    assert 480 < dots.var() < 545
    assert 0.94 < (dots / 512**0.5).var() < 1.06
    saturated = torch.tensor([1.0, 2.0, 100.0])
    assert saturated.softmax(-1)[2] > 0.9999
    assert (saturated / 512**0.5).softmax(-1).max() < 0.99
