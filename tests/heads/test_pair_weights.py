"""Weights at pairs are those of the matrix, with every mask, bias, cap and group of heads."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from recording.families import FAMILIES, all_weights, inputs_of
from regard import masks, nn
from regard.errors import RecordingError
from regard.heads import pair_weights
from regard.heads.pair_weights import allowed_at, same_token, weights_at
from regard.interception.function_mask import FunctionMask
from regard.recording import DenseCall, ScoredCall


def assert_pairs(call):
    query, key = (x.ravel() for x in np.indices((call.queries, call.keys)))
    whole = all_weights(call)
    for batch in range(call.batch):
        found = weights_at(call, batch, query, key)
        assert found.dtype == torch.promote_types(whole.dtype, torch.float32)
        torch.testing.assert_close(found, whole[batch].flatten(1), atol=1e-6, rtol=1e-5)
        if isinstance(call, ScoredCall):
            allowed = np.broadcast_to(allowed_at(call, batch, query, key), found.shape)
            assert (found.numpy()[~allowed] == 0).all()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["bert", "llama", "mistral", "gemma2", "gpt_oss", "t5", "bart"])
def test_in_models(name, side, monkeypatch):
    monkeypatch.setattr(pair_weights, "MAX_SCORES", 500)  # several stretches
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, side)
    with torch.no_grad(), regard.watch(model) as seen:
        model(**inputs)
    for call in seen:
        assert_pairs(call)


def test_with_biases_of_every_kind_in_bfloat16_and_beside_a_cache():
    x = torch.randn(2, 7, 16)
    for positions in ("alibi", "rotary"):
        model = nn.MultiHeadAttention(16, 4, key_heads=2, causal=True, positions=positions)
        with torch.no_grad(), regard.watch(model, dtype=torch.bfloat16) as seen:
            model(x, bias=torch.randn(2, 1, 7, 7), mask=masks.padding(lengths=[7, 5]))
        assert_pairs(seen[0])
    q, k = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 11, 4)
    call = ScoredCall("x", "decoder", 0, q, k, torch.full((2, 3, 5), 9.0), mask=masks.causal())
    assert_pairs(call)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_function_of_transformers_and_a_mask_that_differs_by_head(one_by_one):
    q = k = torch.randn(2, 3, 7, 5)
    lse = torch.full((2, 3, 7), 9.0)
    table = torch.arange(14).reshape(2, 7) % 3 > 0
    function = FunctionMask(lambda b, h, i, j: ((i + j + b) % 3 > 0) & table[b, j], 2, 0, 0, one_by_one)
    by_head = masks.dense(torch.rand(2, 3, 7, 7) > 0.4)
    for mask in (function, function & by_head, by_head | masks.window(1, 0)):
        assert_pairs(ScoredCall("x", "encoder", 0, q, k, lse, mask=mask))


def test_dense_weights_and_none():
    weights = torch.rand(2, 3, 5, 7).half()
    assert_pairs(DenseCall("x", "encoder", 0, weights))
    q, k = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)
    call = ScoredCall("x", "encoder", 0, q, k, torch.zeros(1, 2, 3))
    none = np.array([], np.int64)
    assert weights_at(call, 0, none, none).shape == (2, 0)
    with pytest.raises(RecordingError, match=r"Weights need Q and K, but x kept only its statistics. Record"):
        weights_at(call.summary(0), 0, none, none)


@given(
    st.lists(st.integers(0, 4), max_size=9),
    st.lists(st.integers(0, 4), max_size=9),
    st.integers(1, 12),
    st.data(),
)
def test_equal_tokens_are_found_once_each_and_rows_stay_whole(queries, keys, most, data):
    wanted = data.draw(st.lists(st.sampled_from(range(len(queries))), unique=True)) if queries else []
    parts = list(same_token(*(np.array(x, np.int64) for x in (queries, keys, sorted(wanted))), most))
    found = [(i, j) for rows, columns in parts for i, j in zip(rows.tolist(), columns.tolist())]
    assert sorted(found) == [
        (i, j) for i in sorted(wanted) for j, key in enumerate(keys) if key == queries[i]
    ]
    rows = [set(part[0].tolist()) for part in parts]
    assert sum(map(len, rows)) == len(set().union(*rows)), "a row was cut"
    assert all(len(part[0]) <= most or len(set(part[0].tolist())) == 1 for part in parts)
