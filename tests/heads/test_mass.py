"""The mass of a region against the sum of dense weights, and the output without a region."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from heads.test_head_table import call_of
from masks.strategies import expressions
from parity import tensors
from recording.families import FAMILIES, all_weights, inputs_of, region_of
from regard import biases, heads, masks
from regard.errors import ArgumentError, MaskError, RecordingError, ShapeError
from regard.kernels import attention, attention_weights
from regard.recording import Recording

REGIONS = {
    "first": masks.prefix(2),
    "near": masks.window(2, 0),
    "edges": masks.span(4, 6).T & masks.span(1, 4),
    "all": masks.everything(),
    "scattered": masks.every(3),
}


def watched(name, side="right", **options):
    model, inputs = FAMILIES[name].build(), inputs_of(FAMILIES[name], side)
    model = model if name == "gpt_oss" else model.double()  # its experts know no float64
    with torch.no_grad(), regard.watch(model, **options) as seen:
        model(**inputs)
    return seen


# Softcap, learned sinks, relative bias, sliding windows, grouped heads, cross-attention, padding.
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["bert", "gemma2", "gpt_oss", "t5", "mistral", "bart"])
def test_mass_is_the_sum_of_the_weights(name, side):
    for call in watched(name, side):
        dense = all_weights(call)
        for region in REGIONS.values():
            wanted = (dense * region_of(region, call)).sum(-1)
            assert torch.allclose(call.mass(region), wanted, atol=1e-6, rtol=0)


N = 9


@given(expressions(N), expressions(N))
def test_mass_of_any_region_under_any_mask(mask, region):
    q, k = (torch.randn(1, 2, N, 4, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    call = call_of(q, k, mask=mask)
    wanted = (attention_weights(q, k, mask=mask) * region.dense(N)).sum(-1)
    assert torch.allclose(call.mass(region), wanted, atol=1e-6, rtol=0)


@pytest.mark.usefixtures("always_tiled")
def test_mass_in_tiles_with_sinks_softcap_bias_and_grouped_heads():
    q, k, _ = tensors(2, heads=6, key_heads=2, queries=131, channels=7)
    options = {
        "mask": masks.causal(),
        "bias": biases.alibi(6),
        "softcap": 3.0,
        "sinks": torch.randn(6),
        "scale": 0.5,
    }
    call = call_of(q, k, **options)
    dense = attention_weights(q, k, **options)
    for region in (masks.span(17, 33), masks.window(40, 0), masks.every(7)):
        assert torch.allclose(call.mass(region), (dense * region.dense(131)).sum(-1), atol=1e-6, rtol=0)
    assert (call.mass(masks.everything()) < 1).all()  # the sinks take the rest


def test_mass_of_dense_calls_and_of_generated_text():
    from transformers import BloomConfig, BloomForCausalLM

    model = BloomForCausalLM(BloomConfig(vocab_size=31, hidden_size=12, n_layer=1, n_head=3)).eval()
    with torch.no_grad(), regard.watch(model) as seen:
        model(torch.arange(7)[None])
    assert seen[0].dense
    weights = seen[0].weights(None)
    assert torch.allclose(seen[0].mass(masks.span(2, 5))[0], weights[..., 2:5].sum(-1), atol=1e-6)
    generated = FAMILIES["gpt2"].build()
    with regard.watch(generated) as seen:
        generated.generate(torch.arange(3, 8)[None], max_new_tokens=4, do_sample=False)
    for call in seen:
        assert torch.allclose(call.mass(masks.prefix(3))[0], call.weights(None)[..., :3].sum(-1), atol=1e-6)


def test_the_output_without_a_region_is_the_identity():
    q, k, v = tensors(2, heads=6, key_heads=3, queries=13, channels=5)
    mask, sinks = masks.causal(), torch.randn(6)
    call = call_of(q, k, mask=mask, sinks=sinks)
    call = replace(call, v=v)
    region = masks.span(2, 6)
    weights = attention_weights(q, k, mask=mask, sinks=sinks)
    values = v.repeat_interleave(2, 1)
    taken = (weights * region.dense(13)) @ values
    mass = call.mass(region)
    whole = attention(q, k, v, mask=mask, sinks=sinks)
    wanted = (whole - taken) / (1 - mass)[..., None]
    assert torch.allclose(call.without(region), wanted, atol=1e-5)
    assert torch.allclose(call.without(masks.nothing()), whole, atol=1e-6)
    assert (call.without(masks.everything()) == 0).all()  # a query that sees nothing else


# ---- the table -----------------------------------------------------------------------------------


def test_the_table_averages_over_queries_that_are_text():
    seen = watched("llama", "right")
    found = heads.mass(seen, {"first": masks.prefix(1), "near": masks.window(1, 0)})
    assert found.columns == ("call", "name", "kind", "layer", "head", "run", "queries", "first", "near")
    assert len(found) == 8
    weights = all_weights(seen[1])  # (batch, head, query, key); the last three queries of row 1 are padding
    real = torch.ones(2, 11, dtype=torch.bool)
    real[1, -3:] = False
    for row in found.filter(layer=1):
        own = weights[:, row["head"]]
        assert row["queries"] == 19
        assert row["first"] == pytest.approx(own[real][:, 0].mean().item(), abs=1e-6)
    alone = heads.mass(seen, {"first": masks.prefix(1)}, batch=0, rows=slice(5, 8), layers=1, heads=[2])
    assert alone.column("queries") == [3]
    assert alone[0]["first"] == pytest.approx(weights[0, 2, 5:8, 0].mean().item(), abs=1e-6)
    assert heads.mass(seen, {"x": masks.prefix(1)}, rows=-1)[0]["queries"] == 1  # padded in the second text


def test_rows_that_see_nothing_do_not_count():
    q, k, _ = tensors(1, heads=2, channels=4)
    call = call_of(q, k, mask=masks.causal() & ~masks.prefix(3).T)
    found = heads.mass(Recording("made", [call]), {"all": masks.everything()})
    assert found.column("queries") == [4, 4]
    assert found.column("all") == pytest.approx([1.0, 1.0])


@given(st.integers(0, 6), st.integers(0, 6))
def test_regions_add_up(start, stop):
    start, stop = sorted((start, stop))
    q, k, _ = tensors(1, heads=2, channels=4)
    call = call_of(q, k, mask=masks.causal())
    region = masks.span(start, stop)
    assert torch.allclose(call.mass(region) + call.mass(~region), torch.ones(1, 2, 7).double())


def test_what_is_refused():
    seen = watched("gpt2", "none")
    first = {"first": masks.prefix(1)}
    for wrong in ({}, None, masks.prefix(3)):
        with pytest.raises(
            ArgumentError, match=r"masks by name. Got .*Pass, for example, \{\"sinks\": masks"
        ):
            heads.mass(seen, wrong)
    with pytest.raises(
        ArgumentError,
        match=r"so it must not be one of call, name, kind, layer, head, run, queries. Got 'head'",
    ):
        heads.mass(seen, {"head": masks.prefix(1)})
    with pytest.raises(MaskError, match=r"queries = 11, keys = 11\). Got needle = span\(900, 912\)"):
        heads.mass(seen, {"needle": masks.span(900, 912)})
    with pytest.raises(ShapeError, match=r"keys = 11\). Got 3 values"):
        heads.mass(seen, {"x": masks.padding([True, True, False])})
    with pytest.raises(MaskError, match="A mask must be a regard mask"):
        heads.mass(seen, {"x": "prefix(3)"})
    for rows in (11, [3, 20], "all", slice(5, 5)):
        with pytest.raises(ArgumentError, match=r"positions of queries \(0 … 10\). Got rows = "):
            heads.mass(seen, first, rows=rows)
    with pytest.raises(ArgumentError, match="layers must be among"):
        heads.mass(seen, first, layers=9)
    short = watched("gpt2", "none", statistics=True)
    with pytest.raises(RecordingError, match="kept only its statistics"):
        heads.mass(short, first)
    with pytest.raises(RecordingError, match=r"This needs V, but .* was recorded without it"):
        seen[0].without(masks.prefix(1))
