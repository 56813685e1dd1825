"""What attention costs: held against torch's own counter, the masks themselves and the lesson's numbers."""

import csv
import io
import re
from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given
from rich.cells import cell_len
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

import regard
from masks.strategies import expressions
from regard import masks
from regard.errors import ArgumentError, DtypeError, MaskSyntaxError, ShapeError
from regard.kernels.cost_model import step_in_words
from regard.masks.extent import Extent
from regard.masks.tiles import count_by_distance

PRODUCTS = {"queries", "keys", "values", "scores", "sum", "output", "inside", "sums", "products"}


def counted(work):
    """What torch counts while ``work`` runs: matrix products, a multiply-add as two."""
    counter = FlopCounterMode(display=False)
    with counter:
        work()
    return counter.get_total_flops()


def products(way):
    return sum(step.operations for step in way.steps if step.name in PRODUCTS)


def test_the_lesson_at_512_2048_and_8192():
    found = regard.cost([512, 2048, 8192], width=512, heads=1)
    for n in found.lengths:
        dense = found[n, "dense"]
        assert dense["scores"].operations == 2 * n * n * 512
        assert dense["softmax"].operations == 5 * n * n
        assert dense["sum"].operations == 2 * n * n * 512
        assert dense["scores"].bytes == 4 * n * n
        assert {dense[name].bytes for name in ("queries", "keys", "values", "sum")} == {4 * n * 512}
        assert found[n, "regard"]["softmax"].bytes == 4 * n  # the lse, in place of the matrix
        assert found[n, "regard"]["scores"].bytes == 0


@pytest.mark.parametrize(("heads", "key_heads"), [(6, 6), (6, 2), (6, 1)])
@pytest.mark.parametrize(("queries", "keys"), [(13, None), (13, 7), (5, 19)])
def test_dense_attention_and_projections_as_torch_counts_them(heads, key_heads, queries, keys):
    batch, channels = 3, 5
    width = heads * channels
    x, context = torch.randn(batch, queries, width), torch.randn(batch, keys or queries, width)
    w_q, w_o = torch.randn(width, width), torch.randn(width, width)
    w_k, w_v = torch.randn(width, key_heads * channels), torch.randn(width, key_heads * channels)

    def work():
        q = (x @ w_q).unflatten(-1, (heads, channels)).transpose(1, 2)
        k, v = (
            (context @ w).unflatten(-1, (key_heads, channels)).transpose(1, 2)
            .repeat_interleave(heads // key_heads, 1)
            for w in (w_k, w_v)
        )  # fmt: skip
        weights = (q @ k.transpose(-1, -2) / channels**0.5).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2) @ w_o

    options = {"width": width, "heads": heads, "key_heads": key_heads, "batch": batch}
    dense = regard.cost(queries, keys, **options)[queries, "dense"]
    assert counted(work) == products(dense)
    bare = regard.cost(queries, keys, projections=False, **options)[queries, "dense"]
    assert products(bare) == dense["scores"].operations + dense["sum"].operations
    assert bare["keys"].bytes == dense["keys"].bytes  # whoever projected them, they are there


def test_sdpa_as_torch_counts_it():
    # The counter does not see torch's CPU kernel, but has the formula for the others.
    ours = regard.cost(64, 17, width=48, heads=3, batch=2, projections=False)[64, "regard"]
    assert sdpa_flop_count((2, 3, 64, 16), (2, 3, 17, 16), (2, 3, 17, 16)) == products(ours)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(7, None), (64, None), (1500, None), (200, 333)])
def test_linear_attention_as_torch_counts_it(causal, queries, keys):
    q, k = torch.randn(2, 6, queries, 5), torch.randn(2, 3, keys or queries, 5)
    found = regard.cost(
        queries, keys, width=30, heads=6, key_heads=3, batch=2, projections=False,
        mask="causal" if causal else None,
    )  # fmt: skip
    ran = counted(lambda: regard.linear_attention(q, k, k, causal=causal))
    assert ran == products(found[queries, "linear"])


def test_the_counter_would_notice():
    x = torch.randn(4, 4)
    assert counted(lambda: (x @ x, x @ x)) == 2 * counted(lambda: x @ x) == 4 * 4**3


@given(expressions(11))
def test_pairs_are_those_of_the_mask(mask):
    found = regard.cost(
        11, width=6, heads=3, layers=2, batch=5, mask=mask, ways=["dense", "allowed", "regard"]
    )
    assert found[11, "allowed"].pairs == 30 * int(mask.dense(11).sum())
    assert found[11, "allowed"].pairs <= found[11, "regard"].pairs <= found[11, "dense"].pairs == 30 * 121


@pytest.mark.parametrize(
    "text", ["causal", "window(3, 2)", "~window(3, 2) & causal", "window(1, None) | ~causal"]
)
@pytest.mark.parametrize("extent", [(13, 13), (1, 17), (5, 17), (17, 5), (1, 1)])
def test_pairs_by_distance_are_the_pairs(text, extent):
    mask = masks.parse(text)
    assert mask.shifts
    assert count_by_distance(mask, Extent(*extent)) == int(mask.dense(*extent).sum())


def test_distances_are_asked_in_stretches(monkeypatch):
    from regard.masks import tiles

    monkeypatch.setattr(tiles, "DISTANCES", 7)
    assert count_by_distance(masks.window(4, 1), Extent(23, 29)) == int(
        masks.window(4, 1).dense(23, 29).sum()
    )


def test_great_lengths_cost_nothing_to_compute():
    n = 1 << 22
    found = regard.cost(n, width=64, heads=1, mask="causal")
    assert found[n, "allowed"].pairs == n * (n + 1) // 2 == found[n, "regard"].pairs
    assert found[n, "dense"]["scores"].bytes == 4 * n * n


def test_any_length_without_a_mask_and_none_too_long_to_plan():
    n = 10**15
    assert regard.cost(n, width=64, heads=1)[n, "regard"].pairs == n * n
    n = 10**9
    for call in (lambda: regard.cost(n, mask="causal"), lambda: regard.plan(masks.causal(), 5, n)):
        with pytest.raises(
            ArgumentError, match=r"at most 134,217,728 queries and keys. Got queries = .*keys = 10"
        ):
            call()


def test_a_mask_that_differs_over_the_batch():
    mask = masks.padding(lengths=[7, 3])
    found = regard.cost(7, width=6, heads=3, batch=2, mask=mask)
    assert found[7, "allowed"].pairs == 3 * 7 * (7 + 3)
    with pytest.raises(ShapeError, match=r"must broadcast to \(batch, head\) = \(3, 3\). Got \(2, 1\)"):
        regard.cost(7, width=6, heads=3, batch=3, mask=mask)


def test_a_cache_holds_keys_and_values_and_answers_one_query():
    found = regard.cost(100, width=32, heads=4, key_heads=2, layers=3, batch=5, dtype=torch.bfloat16)
    cache = found[100, "cache"]
    assert (cache.queries, cache.keys, cache.pairs) == (1, 100, 3 * 5 * 4 * 100)
    memory = regard.nn.KeyValueCache()
    k, v = memory.append(*(torch.zeros(5, 2, 100, 8, dtype=torch.bfloat16) for _ in range(2)))
    assert cache["keys"].bytes + cache["values"].bytes == 3 * sum(
        x.numel() * x.element_size() for x in (k, v)
    )
    assert cache["keys"].operations == 2 * 3 * 5 * 32 * 16  # the new token alone is projected


def test_bytes_are_those_of_the_tensors():
    found = regard.cost(
        13, 19, width=30, heads=6, key_heads=2, batch=3, dtype="float16", ways=["dense", "regard"]
    )
    dense, ours = found[13, "dense"], found[13, "regard"]
    shapes = {"queries": (3, 6, 13, 5), "keys": (3, 2, 19, 5), "values": (3, 2, 19, 5), "sum": (3, 6, 13, 5)}
    for name, shape in shapes.items():
        assert dense[name].bytes == ours[name].bytes == 2 * prod(shape)
    assert dense["scores"].bytes == 2 * prod((3, 6, 13, 19))
    assert ours["softmax"].bytes == 4 * prod((3, 6, 13))  # lse in at least float32
    sums = regard.kernels.linear_attention_with_state(*(torch.zeros(3, 6, 13, 5).half() for _ in range(3)))[
        1
    ].sums
    linear = regard.cost(13, width=30, heads=6, batch=3, dtype="float16")[13, "linear"]
    assert linear["sums"].bytes == sums.numel() * sums.element_size()


def test_layers_multiply_everything():
    one, three = (regard.cost(9, layers=layers, mask="causal") for layers in (1, 3))
    for a, b in zip(one.ways, three.ways):
        assert (3 * a.operations, 3 * a.bytes, 3 * a.pairs) == (b.operations, b.bytes, b.pairs)


def test_records_csv_and_text():
    found = regard.cost([3, 5], mask="causal & window(1, 0)")
    records = found.records()
    numbers = ("length", "queries", "keys", "pairs", "operations", "bytes")
    assert set(records[0]) == {*numbers, "way", "step", "formula"}
    read = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [{**row, **{name: int(row[name]) for name in numbers}} for row in read] == records
    assert "linear" not in found.names
    text = str(found)
    assert text.splitlines()[0].endswith("mask causal() & window(1, 0)")
    assert f"{found[5, 'dense'].operations:,}" in text
    assert len(text.splitlines()) == 2 + len(found.ways)


def test_what_is_not_there():
    found = regard.cost(4)
    with pytest.raises(KeyError, match="no length and way"):
        found[5, "dense"]
    with pytest.raises(KeyError, match="no step 'mask'; there are queries"):
        found[4, "dense"]["mask"]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((0,), {}, ArgumentError, "at least one query and one key. Got queries = 0"),
        (([],), {}, ArgumentError, "at least one length. Got none"),
        ((-1,), {}, ArgumentError, "whole number, 0 or more. Got queries = -1"),
        ((4,), {"width": 10, "heads": 3}, ArgumentError, "heads must divide width.*width = 10, heads = 3"),
        ((4,), {"key_heads": 3}, ArgumentError, "key_heads must divide heads.*key_heads = 3"),
        ((4,), {"layers": 0}, ArgumentError, "layers must be a whole number, 1 or more. Got layers = 0"),
        ((4,), {"dtype": torch.int8}, DtypeError, "dtype must be one of float64.*Got dtype = torch.int8"),
        ((4,), {"ways": ["flash"]}, ArgumentError, "Each of ways= must be one of dense, .*Got 'flash'"),
        ((4,), {"ways": []}, ArgumentError, "at least one way"),
        ((4,), {"ways": ["allowed"]}, ArgumentError, "counts the pairs of a mask, without a mask"),
        ((4,), {"ways": ["linear"], "mask": "window(1, 1)"}, ArgumentError, "no mask but causal"),
        ((4, 3), {"ways": ["linear"], "mask": "causal"}, ArgumentError, "a key per query, and keys = 3"),
        ((4, 5), {"ways": ["cache"]}, ArgumentError, "cache, which holds the sequence itself"),
        ((4,), {"mask": "causal & widow(1)"}, MaskSyntaxError, "Did you mean window"),
    ],
)  # fmt: skip
def test_bad_input_is_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        regard.cost(*arguments, **options)


def test_numbers_of_numpy_serve_as_well():
    assert regard.cost(np.int64(4)).ways == regard.cost([4]).ways


@pytest.mark.parametrize("mask", [None, "causal", "window(3, 3)"])
def test_the_table_says_the_same_in_both_languages(mask):
    found = regard.cost([64, 4096], key_heads=2, mask=mask)
    assert str(found) == found.in_words("en")
    english, chinese = found.in_words("en").splitlines(), found.in_words("zh").splitlines()
    assert len(english) == len(chinese) == 2 + len(found.ways)
    assert english[2:] == chinese[2:]
    assert {cell_len(line) for line in chinese[1:]} == {len(english[1])}
    words = re.findall("[a-z]{2,}", chinese[0].replace(found.mask or "", "") + chinese[1])
    assert words == ["float"]
    for step in {step.name for way in found.ways for step in way.steps}:
        assert step_in_words(step) == step
        assert step == "softmax" or not step_in_words(step, "zh").isascii()
