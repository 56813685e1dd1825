"""Pictures and statistics of all heads, call by call, against exact weights and the pages of all calls."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regard import heads, masks, nn, watch
from regard.recording import DenseCall, Recording
from regard.views.page.head_summaries import call_summaries, picture_side, role_summary, summaries_bytes
from regard.views.page.page_payload import payload_of, payload_of_call
from views.exact_weights import blocks, exact, made


def named(call, layer):
    return replace(call, name=f"layers.{layer}", layer=layer)


@pytest.fixture(scope="module")
def seen():
    """Three layers over one text, each with its own mask."""
    layers = (masks.causal(), masks.window(40, 3), masks.everything())
    calls = [
        named(made(197, 197, mask=mask, heads=3, channels=5, size=1.7, seed=at), at)
        for at, mask in enumerate(layers)
    ]
    found = Recording("Toy", calls)
    found.tokens = ["the", "cat", "sat", "."] * 49 + ["end"]
    return found


def assert_greatest_of_blocks(pictures, weights, side):
    """Each byte is the greatest weight of its block, of whole blocks of equal size."""
    step = -(-weights.shape[-1] // side)
    wanted = np.stack([blocks(one, step, "max") for one in weights])
    assert pictures.shape == wanted.shape
    np.testing.assert_allclose(pictures / 255, wanted, atol=0.5 / 255 + 1e-6)


def test_pictures_are_the_greatest_weights_of_blocks(seen):
    for found, call in zip(call_summaries(seen), seen.calls):
        assert_greatest_of_blocks(found.pictures, exact(call)[0], 64)


def test_heads_that_share_keys_and_have_their_own_masks():
    pattern = torch.rand(1, 4, 90, 90, generator=torch.Generator().manual_seed(5)) < 0.3
    call = made(90, 90, mask=masks.dense(pattern), heads=4, channels=5, seed=1)
    (found,) = call_summaries(Recording("Toy", [call]))
    assert_greatest_of_blocks(found.pictures, exact(call)[0], 64)
    model = nn.MultiHeadAttention(24, 4, key_heads=2, causal=True).eval()
    with watch(model) as shared:
        model(torch.randn(1, 83, 24))
    (found,) = call_summaries(shared)
    weights = np.stack([shared[0].weights(head).numpy() for head in range(4)])
    assert_greatest_of_blocks(found.pictures, weights, 64)


def test_dense_weights_have_pictures_too():
    weights = torch.rand(1, 2, 70, 70, generator=torch.Generator().manual_seed(2)).softmax(-1)
    (found,) = call_summaries(Recording("Toy", [DenseCall("a", "encoder", 0, weights)]))
    assert_greatest_of_blocks(found.pictures, weights[0].numpy(), 64)


def test_statistics_alone_have_no_picture(seen):
    (found,) = call_summaries(Recording("Toy", [seen.calls[0].summary(0)]))
    assert found.pictures is None
    assert found.described()["thumbnails"] is None
    assert found.statistics["visible"] == [
        row["visible"] for row in heads.table(Recording("Toy", seen.calls[:1]))
    ]


def test_statistics_roles_and_cards_are_those_of_a_page_of_all_calls(seen):
    whole = payload_of(seen, seen.calls).header
    names = whole["statistics"]
    table = heads.table(seen)
    at = 0
    for found in call_summaries(seen):
        assert list(found.statistics) == names
        for head in range(3):
            row = table[at]
            assert [found.statistics[name][head] for name in names] == [row[name] for name in names]
            at += 1
    roles = role_summary(seen)
    assert roles.roles == [call["roles"] for call in whole["calls"]]
    assert roles.cards == whole["cards"]


def test_places_choose_calls_and_their_order(seen):
    assert [found.call for found in call_summaries(seen, places=[2, 0])] == [2, 0]


def test_a_sequence_of_a_batch_is_summarised_alone():
    model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    with watch(model) as both:
        model(*[torch.randn(2, 40, 8)] * 3)
    (found,) = call_summaries(both, 1)
    weights = np.stack([both[0].weights(head, batch=1).numpy() for head in range(2)])
    assert_greatest_of_blocks(found.pictures, weights, 64)


@pytest.mark.parametrize("count", [1, 270, 977, 2000, 50_000])
def test_pictures_of_all_heads_stay_within_a_few_megabytes(count):
    side = picture_side(count)
    assert side == 16 or count * side * side <= 4_000_000
    assert side == 64 or count * 64 * 64 > 4_000_000


def test_memory_of_summaries_is_estimated_from_above(seen):
    made_ones = list(call_summaries(seen))
    assert summaries_bytes(seen.calls) >= sum(one.pictures.nbytes for one in made_ones)


def test_progress_of_roles_counts_calls(seen):
    told = []
    role_summary(seen, progress=lambda done, calls: told.append((done, calls)))
    assert told == [(1, 3), (2, 3), (3, 3)]


# ---- the page of one call ------------------------------------------------------------------------


def test_a_page_of_one_call_names_all_others(seen):
    payload = payload_of_call(seen, 1, title="A text")
    header = payload.header
    assert [call["layer"] for call in header["calls"]] == [0, 1, 2]
    assert [sorted({"q", "lse", "thumbnails"} & set(call)) for call in header["calls"]] == [
        [], ["lse", "q", "thumbnails"], []
    ]  # fmt: skip
    assert header["start"]["call"] == 1
    assert {card[0] for card in header["cards"]["heads"]} <= {1}
    alone = payload_of(seen, [seen.calls[1]], title="A text").header["calls"][0]
    assert header["calls"][1]["heads"] == alone["heads"]
    # Texts are there once; every call has its own mask.
    assert len(header["texts"]) == 1
    whole = payload_of(seen, seen.calls)
    own = [_intervals(payload, call) for call in header["calls"]]
    assert own == [_intervals(whole, call) for call in whole.header["calls"]]


def _intervals(payload, call):
    """The text of the arrays of a call's masks."""
    return [
        None
        if place is None
        else tuple(payload.arrays.texts[one] for one in payload.header["masks"][place].values())
        for place in call["masks"]
    ]
