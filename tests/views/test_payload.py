"""What a page carries, read back in NumPy: no browser needed."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import regard
from masks.strategies import expressions
from parity import tensors
from regard import masks
from regard.errors import ArgumentError, RecordingError
from regard.masks.extent import Extent
from regard.recording import Recording, ScoredCall
from regard.views.page import base85, rounding_error
from regard.views.page.array_packing import ArrayStore
from regard.views.page.base85 import DIGITS, in_digits
from regard.views.page.mask_intervals import intervals
from regard.views.page.quantisation import quantise
from views import stage
from views.decoding import Decoded, array_of, bytes_of
from views.recordings import CASES, case, dense, recorded

# ---- rounding ------------------------------------------------------------------------------------


@given(
    arrays(np.float64, (3, 5), elements=st.floats(-1e6, 1e6, allow_subnormal=False)),
    st.sampled_from([8, 16, 24, 32]),
    st.booleans(),
)
def test_rounding_is_off_by_half_a_step_of_its_row_at_most(values, bits, short):
    rounded = quantise(values, bits, short_scales=short)
    found = rounded.decoded().astype(np.float64)
    greatest = np.abs(values).max(-1, keepdims=True)
    step = greatest / (2 ** (bits - 1) - 1) * (1 + 2**-7 if short else 1) if bits < 32 else 0
    # A float32 is within 2^-24 of its size, and so is the scale.
    assert (np.abs(found - values) <= 0.5 * step + 1.2e-7 * greatest + 1e-37).all()


@given(
    arrays(np.float64, (4, 3), elements=st.floats(-1e30, 1e30, allow_subnormal=False)),
    st.sampled_from([8, 16, 24]),
)
def test_short_scales_are_two_bytes_and_reach_the_greatest_number(values, bits):
    rounded = quantise(values, bits, short_scales=True)
    assert not (rounded.scales.view(np.uint32) & 0xFFFF)[rounded.scales > 1e-37].any()
    reach = rounded.scales.astype(np.float64) * (2 ** (bits - 1) - 1)
    greatest = np.abs(values).max(-1)
    assert (greatest <= reach)[rounded.scales > 1e-37].all()


def test_rows_of_zeros_and_of_next_to_nothing():
    rounded = quantise(np.array([[0.0, 0.0], [1e-60, -1e-60], [0.0, 1.0]]), 16)
    np.testing.assert_array_equal(rounded.decoded(), [[0, 0], [0, 0], [0, 1]])
    rounded = quantise(np.array([[0.0, 1e-38]]), 8)
    np.testing.assert_allclose(rounded.decoded(), [[0, 1e-38]], atol=1e-40)


# ---- packing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.arange(-300, 300, dtype=np.int16),
        np.array([], np.float32),
        np.array([0.1, -1e300], np.float64),
        np.array([1.5, -np.inf, np.nan, 3e-39], np.float32),
        np.arange(100_000, dtype=np.uint32),
        np.random.default_rng(0).integers(0, 256, 70_000).astype(np.uint8),
        np.arange(-128, 128).astype(np.int8),
    ],
    ids=lambda array: f"{array.dtype} × {array.size}",
)
def test_arrays_come_back(array):
    arrays = ArrayStore()
    place = arrays.put(array)
    assert arrays.put(array.copy()) == place
    np.testing.assert_array_equal(array_of(arrays.described[place], arrays.texts[place]), array)


@given(st.binary(max_size=40))
def test_bytes_as_digits(data):
    text = in_digits(data)
    assert len(text) == 5 * -(-len(data) // 4)
    assert bytes_of(text, DIGITS)[: len(data)] == data
    assert not re.search(r"[^!-~]|[\"&'<>\\`{}]", text)


def test_digits_go_on_after_what_is_written_at_once(monkeypatch):
    data = np.random.default_rng(0).integers(0, 256, 1001).astype(np.uint8).tobytes()
    whole = in_digits(data)
    monkeypatch.setattr(base85, "CHUNK_NUMBERS", 7)
    assert in_digits(data) == whole


def test_an_array_of_noise_is_left_whole_and_one_of_likes_is_taken_apart():
    arrays = ArrayStore()
    noise = np.random.default_rng(0).integers(-32768, 32768, 3000).astype(np.int16)
    for numbers in (noise, noise >> 12):
        arrays.put(numbers)
    assert [len(array["planes"]) for array in arrays.described] == [1, 2]


def test_three_bytes_come_back():
    numbers = np.array([0, 1, -1, 2**23 - 1, -(2**23) + 1, 12345, -54321], np.int32)
    arrays = ArrayStore()
    arrays.put(numbers, bits=24)
    np.testing.assert_array_equal(array_of(arrays.described[0], arrays.texts[0]), numbers)


def test_arrays_of_other_types_are_not_taken_for_equal():
    arrays = ArrayStore()
    assert arrays.put(np.zeros(8, np.int8)) != arrays.put(np.zeros(8, np.uint8))


# ---- masks ---------------------------------------------------------------------------------------


@given(expressions(9))
def test_intervals_are_the_mask(mask):
    found = intervals(mask, Extent(9, 9))
    wanted = mask.dense(9, 9).numpy()
    if found is None:
        assert wanted.all()
        return
    assert not wanted.all()
    shown = np.zeros((9, 9), bool)
    for query in range(9):
        for start, stop in found.bounds[found.first[query] : found.first[query + 1]].tolist():
            assert not shown[query, max(0, start - 1) : stop].any()  # apart, and in order
            shown[query, start:stop] = True
    np.testing.assert_array_equal(shown, wanted)


def test_a_mask_travels_once(tmp_path):
    q, k, _ = tensors(1, heads=4, queries=9, dtype=torch.float32)
    same = [masks.causal(), masks.window(None, 0), masks.dense(torch.ones(9, 9).tril().bool())]
    calls = [
        ScoredCall(f"m.{i}", "decoder", i, q, k, torch.zeros(q.shape[:3]), mask=mask)
        for i, mask in enumerate(same)
    ]
    page = Decoded(regard.page(Recording("Toy", calls), tmp_path / "x.html"))
    assert len(page.header["masks"]) == 1
    assert [call["masks"] for call in page.header["calls"]] == [[0]] * 3


# ---- everything ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_weights_by_the_formula(tmp_path, name):
    seen, wanted = CASES[name]()
    page = Decoded(regard.page(seen, tmp_path / "x.html", batch=1))
    error = np.abs(page.weights(0) - wanted[1]).max()
    assert error <= 2e-3
    assert error == pytest.approx(page.header["calls"][0]["error"], abs=1e-6)
    assert page.header["calls"][0]["compared"] == wanted.shape[2]


@pytest.mark.parametrize(("size", "bits"), [(1.0, 16), (100.0, 24)])
def test_more_bits_where_sixteen_are_too_few(tmp_path, size, bits):
    seen, _ = case(size=size)
    page = Decoded(regard.page(seen, tmp_path / "x.html"))
    assert page.header["arrays"][page.header["calls"][0]["q"]["codes"]]["type"] == f"int{bits}"


def test_an_infinite_bias_travels_as_it_is(tmp_path):
    from regard.kernels.bias import TensorBias

    q, k, _ = tensors(1, heads=2, queries=5, dtype=torch.float32)
    table = torch.zeros(1, 1, 5, 5)
    table[..., 2] = -torch.inf
    page = Decoded(regard.page(recorded(q, k, bias=TensorBias(table)), tmp_path / "x.html"))
    weights = page.weights(0)
    assert (weights[:, :, 2] == 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


def test_shown_rows_sum_to_one(tmp_path):
    # The lse is that of the rounded scores: with the exact one, rows would sum to 1 ± the error of a score.
    seen, _ = case(size=4.0, sizes={"channels": 31, "queries": 101, "keys": 101})
    page = Decoded(regard.page(seen, tmp_path / "x.html"))
    np.testing.assert_allclose(page.weights(0).sum(-1), 1, atol=2e-5)


def test_long_texts_are_compared_on_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(rounding_error, "EXHAUSTIVE", 6 * 101 * 20)
    seen, wanted = case(size=5.0, sizes={"queries": 101, "keys": 101})
    page = Decoded(regard.page(seen, tmp_path / "x.html"))
    call = page.header["calls"][0]
    assert 10 <= call["compared"] <= 20
    error = np.abs(page.weights(0) - wanted[0]).max()
    assert call["error"] <= error <= 2e-3
    # The longest queries are in the sample, so that it sees most of the error.
    assert call["error"] > error / 4


def test_values_have_sixteen_bits_while_they_are_few(tmp_path, monkeypatch):
    seen, _ = case()
    places = []
    for limit in (10**6, 10):
        monkeypatch.setattr("regard.views.page.page_payload.FINE_VALUES", limit)
        page = Decoded(regard.page(seen, tmp_path / "x.html"))
        described = page.header["calls"][0]["v"]
        places.append(page.header["arrays"][described["codes"]]["type"])
        error = np.abs(page.rows(described) - seen[0].v[0].numpy()).max()
        assert error < (1e-4 if limit > 10 else 2e-2)
    assert places == ["int16", "int8"]


# ---- refused -------------------------------------------------------------------------------------


def test_a_batch_that_is_not_there(tmp_path):
    seen, _ = case()
    for batch in (2, -1, True, "0"):
        with pytest.raises(ArgumentError, match=r"recorded sequences \(0 … 1\). Got batch = "):
            regard.page(seen, tmp_path / "x.html", batch=batch)
    assert not list(tmp_path.iterdir())


def test_statistics_alone_are_no_page(tmp_path):
    seen, _ = case()
    kept = Recording("Toy", [seen[0].summary(0)])
    with pytest.raises(RecordingError, match=r"layers.0 has only statistics. Record with watch"):
        regard.page(kept, tmp_path / "x.html")


def test_numbers_out_of_range(tmp_path):
    q, k, _ = tensors(1, dtype=torch.float32)
    q[0, 1, 2, 3] = torch.nan
    with pytest.raises(RecordingError, match=r"q of layers.0 has others. Got NaN or infinity. Check"):
        regard.page(recorded(q, k), tmp_path / "x.html")
    with pytest.raises(RecordingError, match=r"own_weights of layers.0"):
        regard.page(dense(torch.full((1, 1, 2, 2), torch.inf)), tmp_path / "x.html")


@pytest.mark.parametrize(("queries", "keys"), [(3, 0), (0, 3)])
def test_a_call_of_nothing(tmp_path, queries, keys):
    q, k = torch.randn(1, 2, queries, 4), torch.randn(1, 2, keys, 4)
    with pytest.raises(RecordingError, match=f"Got queries = {queries}, keys = {keys}. Give"):
        regard.page(recorded(q, k), tmp_path / "x.html")


# ---- what it opens with --------------------------------------------------------------------------


def _opened(weights, tokens, **options):
    """What the page of these dense weights ``(head, query, key)`` opens with."""
    from regard.recording import DenseCall
    from regard.views.page.page_payload import payload_of

    call = DenseCall("layer", "encoder", 0, torch.from_numpy(np.array(weights, np.float32))[None])
    recording = Recording("Toy", [call])
    recording.tokens = tokens
    return payload_of(recording, recording.calls, **options).header


def _even_with(pairs, n):
    """Even weights, with nine tenths at the given pairs."""
    weights = np.full((n, n), 1 / n)
    for query, key in pairs:
        weights[query] = 0.1 / (n - 1)
        weights[query, key] = 0.9
    return weights


TIRED = ["[CLS]", "animal", "did", "cross", "street", "because", "it", "was", "very", "tired", "[SEP]"]


def test_a_page_opens_with_the_strongest_head_that_is_not_a_sink():
    n = len(TIRED)
    resting = _even_with([(query, 0) for query in range(n)], n)
    before = _even_with([(query, query - 1) for query in range(1, n)], n)
    telling = _even_with([(6, 9), (1, 4)], n)
    header = _opened([resting, before, telling], TIRED)
    assert header["start"] == {"call": 0, "head": 2, "query": 1}  # the earlier of two as strong
    assert _opened([resting, before, telling], TIRED, start={"view": "matrix"})["start"] == {"view": "matrix"}
    assert _opened([resting, telling, before], TIRED, start={"call": 0, "head": 2})["start"]["head"] == 2


def test_what_the_last_row_of_cross_attention_writes_is_not_part_of_the_text():
    from regard.views.page.page_payload import payload_of

    seen = stage.everything().recording
    header = payload_of(seen, seen.calls).header
    rows = header["texts"][header["calls"][4]["queryText"]]
    assert rows["tokens"] == ["猫", "坐", "在", "地", "上", "</s>", "…"]
    assert rows["special"] == [5, 6]
    assert rows["spaces"][-1] == "1"


def test_a_page_without_words_opens_with_nothing_pinned():
    assert _opened([_even_with([(2, 9)], 11)], list("0123456789."))["start"] == {}


def test_cards_of_a_short_text_go_on_with_what_other_heads_seem_to_do():
    n = 12
    before = _even_with([(query, query - 1) for query in range(1, n)], n)
    first = _even_with([(query, 0) for query in range(1, n)], n)
    words = [f"w{i}" for i in range(n)]
    header = _opened([before, first, first], words)
    clear, heads = header["cards"]["clear"], header["cards"]["heads"]
    assert [(card[1], card[2]) for card in heads[:clear]] == [(0, "previous")]
    assert [(card[1], card[2]) for card in heads[clear:]] == [(1, "first"), (2, "first")]
    assert [found and found[0] for found in header["calls"][0]["roles"]] == ["previous", None, None]


def test_cards_show_each_role_once_before_any_twice():
    n = 40
    before = _even_with([(query, query - 1) for query in range(1, n)], n)
    after = _even_with([(query, query + 1) for query in range(n - 1)], n)
    header = _opened([before, before, before, after], [f"w{i}" for i in range(n)])
    assert header["cards"]["clear"] == 3
    assert [(card[1], card[2]) for card in header["cards"]["heads"]] == [
        (0, "previous"),
        (3, "next"),
        (1, "previous"),
    ]
    assert [found and found[0] for found in header["calls"][0]["roles"]] == ["previous"] * 3 + ["next"]
