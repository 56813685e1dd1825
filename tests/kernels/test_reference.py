"""The definition itself, against hand calculation and against torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from parity import tensors
from regard import masks
from regard.kernels import reference


def test_by_hand_the_sentence_of_lesson_e():
    # 我 喜欢 AI with two channels: scores 1.25, 1.10, 1.00, scaled by √2.
    trace = reference.attention([[1.0, 0.5]], [[1.0, 0.5], [0.8, 0.6], [0.6, 0.8]], np.eye(3))
    assert trace["dots"].round(2).tolist() == [[1.25, 1.10, 1.00]]
    assert trace["scores"].round(2).tolist() == [[0.88, 0.78, 0.71]]
    powers = np.exp(np.array([1.25, 1.10, 1.00]) / np.sqrt(2))
    assert np.allclose(trace["weights"], powers / powers.sum())
    assert np.allclose(trace.output, trace["weights"])


def test_agrees_with_torch():
    q, k, v = tensors(2, heads=3, queries=5, keys=7, values=4)
    mask = torch.rand(2, 1, 5, 7) > 0.3
    mask[..., 0] = True
    wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.7)
    found = reference.attention(q.numpy(), k.numpy(), v.numpy(), mask=mask.numpy(), scale=0.7)
    assert np.abs(found.output - wanted.numpy()).max() < 1e-12


def test_a_weight_is_the_exponential_of_score_minus_lse():
    q, k, v = (x.numpy() for x in tensors(queries=5, keys=7))
    trace = reference.attention(q, k, v, mask=masks.causal(), softcap=1.5, bias=np.arange(7.0) / 7)
    assert np.allclose(trace["weights"], np.exp(trace["masked"] - trace["lse"][..., None]))


def test_rows_that_see_nothing_are_zero_and_rows_of_low_scores_are_not():
    # The maximum must be the row's own: with that of the whole matrix, row 0 would be 0 / 0.
    weights, lse = reference.softmax(np.array([[-2000.0, -2001.0], [0.0, 0.0], [-np.inf, -np.inf]]))
    assert weights[0].round(4).tolist() == [0.7311, 0.2689]
    assert weights[1].tolist() == [0.5, 0.5]
    assert weights[2].tolist() == [0.0, 0.0]
    assert lse[2] == -np.inf


def test_large_scores_do_not_overflow():
    weights, lse = reference.softmax(np.array([[1000.0, 1000.0]]))
    assert weights.tolist() == [[0.5, 0.5]]
    assert lse[0] == pytest.approx(1000 + np.log(2))


def test_a_sink_takes_weight_and_gives_nothing():
    q, k, v = (np.zeros((1, 1, 2)), np.zeros((1, 3, 2)), np.ones((1, 3, 2)))
    trace = reference.attention(q, k, v, sinks=[0.0])
    assert np.allclose(trace["weights"], 0.25)
    assert np.allclose(trace.output, 0.75)


def test_multi_head_agrees_with_torch():
    width, heads = 12, 3
    module = torch.nn.MultiheadAttention(width, heads, bias=False, batch_first=True, dtype=torch.float64)
    x, context = torch.randn(2, 5, width, dtype=torch.float64), torch.randn(2, 7, width, dtype=torch.float64)
    w_q, w_k, w_v = (w.detach().numpy().T for w in module.in_proj_weight.chunk(3))
    w_o = module.out_proj.weight.detach().numpy().T
    wanted, weights = module(x, context, context, average_attn_weights=False)
    trace = reference.multi_head(x.numpy(), w_q, w_k, w_v, w_o, heads=heads, context=context.numpy())
    assert np.abs(trace.output - wanted.detach().numpy()).max() < 1e-12
    assert np.abs(trace["weights"] - weights.detach().numpy()).max() < 1e-12
    assert trace["weights"].shape == (2, 3, 5, 7)
    # What torch hands out unless asked is the average over heads.
    averaged = module(x, context, context)[1]
    assert averaged.shape == (2, 5, 7)
    assert np.abs(trace["weights"].mean(1) - averaged.detach().numpy()).max() < 1e-12


def test_heads_split_and_combine_back():
    x = np.random.default_rng(0).normal(size=(2, 5, 12))
    split = reference.split_heads(x, 3)
    assert split.shape == (2, 3, 5, 4)
    assert np.array_equal(split[1, 2, 3], x[1, 3, 8:12])
    assert np.array_equal(reference.combine_heads(split), x)


def test_separate_heads_equal_one_joint_projection():
    rng = np.random.default_rng(0)
    x, w_q, w_k, w_v, w_o = rng.normal(size=(5, 12)), *rng.normal(size=(4, 12, 12))
    joint = reference.multi_head(x, w_q, w_k, w_v, w_o, heads=3)
    separate = [
        reference.attention(x @ w_q[:, part], x @ w_k[:, part], x @ w_v[:, part]).output
        for part in (slice(0, 4), slice(4, 8), slice(8, 12))
    ]
    assert np.allclose(np.concatenate(separate, -1) @ w_o, joint.output)


def test_the_trace_names_its_steps():
    trace = reference.attention(
        np.ones((1, 2)), np.ones((3, 2)), np.ones((3, 2)), mask=masks.causal(), softcap=5.0
    )
    assert [step.name for step in trace] == [
        "q",
        "k",
        "v",
        "dots",
        "scores",
        "capped",
        "masked",
        "lse",
        "weights",
        "output",
    ]
    with pytest.raises(KeyError, match="there are q, k, v"):
        trace["nothing"]
