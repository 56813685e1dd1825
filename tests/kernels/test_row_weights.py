"""Rows of scores to weights by the compiled pass, against float64; and who uses it, with it and without."""

import math
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard import biases, masks
from regard.kernels.compiled_pass import SWITCH, compiled_pass
from regard.kernels.row_weights import weigh_rows
from regard.recording import ScoredCall
from regard.views.map.head_matrix import HeadMatrix
from regard.views.map.levels import build

BITS = math.log2(math.e)

needs_the_pass = pytest.mark.skipif(compiled_pass() is None, reason="the compiled pass is not built")


@needs_the_pass
@given(
    st.integers(0, 2**31),
    st.sampled_from([(1, 1), (2, 1), (1, 3), (2, 3)]),
    st.integers(1, 19),
    st.integers(1, 1100),
    st.sampled_from([1.0, 30.0]),
    st.sampled_from([None, "shared", "for each", "by −inf"]),
)
def test_weights_and_sums(seed, lead, rows, width, size, masked):
    chance = torch.Generator().manual_seed(seed)
    scores = size * torch.randn(2, 3, rows, width, generator=chance)
    allowed = None
    exact = scores.double()
    if masked is not None:
        allowed = torch.rand(*(lead if masked == "for each" else (1, 1)), rows, width, generator=chance) < 0.4
        exact = exact.masked_fill(~allowed, -torch.inf)
    lse = torch.logsumexp(exact, -1)
    weights = torch.where(
        exact == -torch.inf, 0.0, (exact - torch.where(lse.isinf(), 0.0, lse)[..., None]).exp()
    )
    logs = torch.where(weights > 0, exact - lse[..., None], 0.0).nan_to_num()
    given_scores = exact.float() if masked == "by −inf" else scores.clone()
    found = (given_scores * BITS).contiguous()
    table = None if allowed is None or masked == "by −inf" else allowed.numpy()
    sums = weigh_rows(found, lse, table, can_forbid=masked == "by −inf")
    # A score of 100 in float32 is rounded by 4e-6, and so is the logarithm of its weight.
    close = {"rtol": 2e-5 * max(1.0, size), "atol": 1e-6}
    torch.testing.assert_close(found.double(), weights, **close)
    assert ((found == 0) | (weights > 0)).all()
    torch.testing.assert_close(sums.entropy.double(), -(weights * logs).sum(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(sums.peak.double(), weights.amax(-1), **close)
    torch.testing.assert_close(sums.received.double(), weights.sum(2), rtol=1e-4 * size, atol=1e-5)


@needs_the_pass
def test_what_it_cannot_do_stays_as_it_is():
    for scores in (
        torch.ones(1, 1, 2, 3).double(),
        torch.ones(1, 1, 3, 2).transpose(2, 3),
        torch.ones(1, 1, 0, 3),
    ):
        assert weigh_rows(scores, torch.ones(scores.shape[:3])) is None
        assert (scores == 1).all()


def test_without_the_pass(monkeypatch):
    monkeypatch.setenv(SWITCH, "0")
    assert weigh_rows(torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2)) is None


MASKS = [
    masks.everything(),
    masks.causal(),
    masks.window(30, 9) & ~masks.prefix(7).T,
    masks.documents(np.arange(613) // 100) & masks.causal(),
]
OPTIONS = [{}, {"softcap": 2.0}, {"bias": biases.alibi(1)}, {"sinks": torch.ones(1)}]


def plane_of(mask, options, hidden):
    torch.manual_seed(2)
    q, k = torch.randn(1, 1, 601, 16), torch.randn(1, 1, 613, 16)
    _, lse = regard.kernels.attention_with_lse(q, k, k, mask=mask, scale=0.5, **options)
    call = ScoredCall("layer", "decoder", 0, q, k, lse, mask=mask, scale=0.5, **options)
    return HeadMatrix(call, 0, hidden=np.arange(613) % 5 == 0 if hidden else None)


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "softcap", "bias", "sinks"])
@pytest.mark.parametrize("hidden", [False, True])
def test_levels_of_a_map_are_the_same_without_it(monkeypatch, mask, options, hidden):
    with_pass = build(plane_of(mask, options, hidden))
    monkeypatch.setenv(SWITCH, "0")
    plane = plane_of(mask, options, hidden)
    without = build(plane)
    for field in fields(without):
        one, other = getattr(with_pass, field.name), getattr(without, field.name)
        for mine, theirs in zip(one, other) if isinstance(one, tuple) else [(one, other)]:
            torch.testing.assert_close(torch.as_tensor(mine), torch.as_tensor(theirs), rtol=1e-4, atol=1e-5)
    weights = plane.weights(slice(0, 601), slice(0, 613)).double()
    torch.testing.assert_close(with_pass.received.double(), weights.sum(0), rtol=1e-4, atol=1e-5)
