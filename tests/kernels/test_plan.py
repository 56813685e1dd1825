import re
from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import flex_attention

import regard
from fuzz.rounds import ROUNDS
from masks.strategies import expressions
from parity import assert_close, definition, tensors
from regard import masks
from regard.kernels import layout
from regard.kernels.functional import run_flex
from regard.kernels.inputs import prepare
from regard.masks.extent import Extent

plan = import_module("regard.kernels.planner")


@pytest.mark.parametrize(
    ("mask", "queries", "keys", "path"),
    [
        (None, 1000, 1000, "full"),
        (masks.everything(), 10, 20, "full"),
        (masks.causal(), 1000, 1000, "causal"),
        (masks.causal(), 1, 1000, "full"),  # the last query sees the whole cache
        (masks.causal(), 500, 1000, "banded"),
        (masks.window(4, 4), 30, 30, "masked"),
        (masks.window(4, 4), 1000, 1000, "banded"),
        (masks.window(2000, 2000), 1000, 1000, "full"),
        (masks.window(9, 0) | masks.prefix(4), 1000, 1000, "block-sparse"),
        (masks.documents(np.arange(1000) // 100), 1000, 1000, "block-sparse"),
        (masks.local_global(32), 1000, 1000, "gathered"),
        (masks.every(3), 1000, 1000, "gathered"),
        (masks.padding(lengths=[1000, 5]), 1000, 1000, "full + block-sparse"),
        (masks.nothing(), 1000, 1000, "empty"),
        (masks.causal() & masks.prefix(0), 1000, 1000, "empty"),
        (masks.causal(), 0, 10, "empty"),
        (torch.ones(600, 600, dtype=torch.bool).tril(-1), 600, 600, "block-sparse"),
        (torch.rand(600, 600) > 0.1, 600, 600, "masked"),
    ],
    ids=lambda case: "tensor" if isinstance(case, torch.Tensor) else str(case)[:30],
)
def test_the_path(mask, queries, keys, path):
    assert regard.plan(mask, queries, keys).path == path


@given(expressions(11))
def test_pairs_are_exact_and_no_allowed_pair_is_left_out(mask):
    extent = Extent(11, 11)
    dense = mask.dense(11).numpy()
    assert regard.plan(mask, 11).pairs == dense.sum()
    seen = np.zeros((11, 11), int)
    for part in layout.lay_out(mask, extent):
        q, k = part.query_positions(extent), part.key_positions()
        for row in part.rows:
            columns = np.concatenate([k[a:b] for a, b in row.runs])
            here = np.ix_(q[row.start : row.stop], columns)
            allowed = np.ones(seen[here].shape, int)
            for asked, answers in part.mask_values(row, extent):
                allowed[:, asked] = answers
            seen[here] += allowed
    assert np.array_equal(seen, dense.astype(int))  # each pair once, whatever part it is in


@settings(max_examples=10 * ROUNDS)  # FlexAttention without a compiler is slow
@given(expressions(70), st.sampled_from([8, 16, 64]))
def test_random_masks_dense_against_tiled_against_flex(mask, tile):
    q, k, v = tensors(1, heads=2, queries=70, channels=16)
    wanted = definition(q, k, v, mask=mask)
    patched = pytest.MonkeyPatch()
    patched.setattr(plan, "MAX_MASKED_PAIRS", 0)
    patched.setattr(layout, "TILE", tile)
    plan._cached_plan.cache_clear()
    try:
        assert_close(regard.attention(q, k, v, mask=mask), wanted.output, q.dtype)
    finally:
        patched.undo()
        plan._cached_plan.cache_clear()
    sees = mask.dense(70).any(-1)
    flex = flex_attention(q, k, v, block_mask=mask.block_mask(70))
    assert_close(flex[:, :, sees], wanted.output[:, :, sees.numpy()], q.dtype)


@pytest.mark.parametrize(
    "options", [{}, {"softcap": 2.0}, {"sinks": torch.zeros(4).double()}], ids=["plain", "softcap", "sinks"]
)
def test_the_flex_path_uncompiled(options):
    # On CUDA this runs compiled; here its wiring is checked with FlexAttention's own eager mode.
    q, k, v = tensors(2, heads=4, key_heads=2, queries=140, channels=16)
    for mask in (
        masks.window(20, 0),
        masks.padding(lengths=[110, 140]) & masks.causal(),
        masks.causal() & ~masks.prefix(9).T,
    ):
        inputs = prepare(q, k, v, mask=mask, **options)
        output, lse = run_flex(inputs, compiled=False)
        wanted = definition(q, k, v, mask=mask, **options)
        assert_close(output, wanted.output, q.dtype)
        assert_close(lse, wanted["lse"], q.dtype, "lse")


def test_planning_stays_small_at_a_great_length():
    n = 1 << 18
    plan = regard.plan(masks.causal() & masks.window(1024, 0), n)
    assert plan.pairs == n * 1025 - 1024 * 1025 // 2
    assert plan.computed < 1.25 * plan.pairs
    assert plan.calls < 4 * n / 64


def test_cost_grows_with_the_length_and_not_with_its_square():
    for make in (
        lambda n: masks.window(128, 128),
        lambda n: masks.causal() & masks.documents(np.arange(n) // 512),
    ):
        small, large = (regard.plan(make(n), n).computed for n in (4096, 65536))
        assert 14 < large / small < 17
    small, large = (regard.plan(masks.local_global(64), n).computed for n in (2048, 8192))
    assert large < 8192**2 / 15


def test_the_plan_explains_itself():
    text = str(regard.plan(masks.window(128, 128), 8192))
    assert text.splitlines()[0] == "window(128, 128) over 8,192 queries × 8,192 keys: banded"
    assert "allowed   2,088,832 of 67,108,864 pairs (3.11 %)" in text
    assert f"as much as {regard.plan(masks.window(128, 128), 8192).cost:,} pairs" in text
    assert "for each of (2, 1)" in str(regard.plan(masks.padding(lengths=[5, 9]), 9))
    assert "none" in str(regard.plan(masks.causal(), 0))
    assert len(str(regard.plan(masks.documents(np.arange(9000)), 9000)).splitlines()[0]) < 140


def test_plans_are_kept_unless_their_tables_are_large():
    mask = masks.window(3, 3)
    assert regard.plan(mask, 500) is regard.plan(mask, 500)
    large = torch.rand(1100, 1100) > 0.99
    assert regard.plan(large, 1100) is not regard.plan(large, 1100)


def test_a_short_mask_is_evaluated_once_and_serves_training_after_inference(monkeypatch):
    direct_call = import_module("regard.kernels.direct_call")
    direct_call._cached_dense.cache_clear()
    q, k, v = tensors(2, queries=9, dtype=torch.float32, grad=True)
    mask = masks.padding(lengths=[9, 4])
    with torch.inference_mode():
        regard.attention(q, k, v, mask=mask)
    asked = []
    monkeypatch.setattr(type(mask), "allows", lambda *_: asked.append(1))
    regard.attention(q, k, v, mask=masks.padding(lengths=[9, 4])).sum().backward()
    assert not asked
    assert q.grad is not None


@pytest.mark.parametrize("keep", [None, [[True, False, True], [True, True, True]]])
@pytest.mark.parametrize("queries", [3, 4096])
def test_a_plan_in_chinese_has_the_same_numbers(keep, queries):
    mask = masks.causal() & masks.window(2, 0)
    if keep is not None:
        mask &= masks.padding(torch.tensor(keep).repeat(1, queries // 3 + 1)[:, :queries])
    found = regard.plan(mask, queries)
    assert str(found) == found.in_words("en")
    english, chinese = found.in_words("en"), found.in_words("zh")
    numbers = [sorted(re.findall(r"\d+", text.replace("1 call", ""))) for text in (english, chinese)]
    assert numbers[0] == numbers[1]
    spoken = chinese.partition("\n")[2]
    assert not re.search("[A-Za-z]{2,}", spoken)
