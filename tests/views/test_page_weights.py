"""Weights read off the page in Chromium, against the definition in NumPy."""

import numpy as np
import pytest
import torch

import regard
from parity import definition, tensors
from regard import biases, masks
from regard.recording import Recording, ScoredCall
from views.recordings import CASES, KEEP, case, dense, recorded

BOUND = 2e-3


def shown(opened, tmp_path, seen, **options):
    return opened(regard.page(seen, tmp_path / "x.html", **options)).read()


def assert_shows(page, wanted, call=0):
    found = page.weights(call)
    assert found.shape == wanted.shape
    assert np.isfinite(found).all()
    worst = np.abs(found - wanted).max(initial=0)
    assert worst <= BOUND
    # What the page says of itself is true, up to the last bits of a float32.
    assert abs(worst - page.ask(f"opened.calls[{call}].error")) < 1e-6
    assert (found[wanted == 0] == 0).all()


@pytest.mark.parametrize("name", CASES)
def test_every_option(opened, tmp_path, name):
    seen, wanted = CASES[name]()
    page = shown(opened, tmp_path, seen, batch=1)
    assert_shows(page, wanted[1])
    # Parts of the matrix are parts of the matrix.
    queries, keys = wanted.shape[2:]
    part = page.ask(f"Array.from(opened.calls[0].weights(1, 1, {queries - 1}, 1, {keys - 1}))")
    np.testing.assert_allclose(part, wanted[1, 1, 1:-1, 1:-1].ravel(), atol=BOUND)
    row = page.ask(f"Array.from(opened.calls[0].row(2, {queries - 1}))")
    np.testing.assert_allclose(row, wanted[1, 2, -1], atol=BOUND)


def test_the_comparison_would_notice(opened, tmp_path):
    seen, wanted = case()
    page = shown(opened, tmp_path, seen)
    with pytest.raises(AssertionError):
        assert_shows(page, np.roll(wanted[0], 1, axis=1))


def test_dense_weights(opened, tmp_path):
    q, k, v = tensors(2, heads=3, queries=7, keys=11, channels=5)
    wanted = definition(q, k, v)["weights"]
    wanted[1, 2, 3] = 0  # a row that sees nothing
    page = shown(opened, tmp_path, dense(torch.from_numpy(wanted)), batch=1)
    assert_shows(page, wanted[1])
    assert page.ask("opened.calls[0].dense") is True
    assert page.ask("opened.calls[0].steps(0, 0)") is None
    assert page.ask("opened.calls[0].allowed(0, 0)") == [[0, 11]]
    part = page.ask("Array.from(opened.calls[0].weights(1, 2, 5, 3, 9))")
    np.testing.assert_allclose(part, wanted[1, 1, 2:5, 3:9].ravel(), atol=BOUND)


# ---- the mask ------------------------------------------------------------------------------------


def test_allowed_keys_as_intervals(opened, tmp_path):
    mask = masks.padding(KEEP) & (masks.causal() | masks.every(6))
    seen, wanted = case(mask=mask)
    page = shown(opened, tmp_path, seen, batch=0)
    found = page.ask("Array.from({length: 13}, (_, i) => opened.calls[0].allowed(0, i))")
    as_bools = np.zeros((13, 13), bool)
    for query, intervals in enumerate(found):
        for start, stop in intervals:
            assert start < stop
            as_bools[query, start:stop] = True
    np.testing.assert_array_equal(as_bools, wanted[0, 0] > 0)


# ---- steps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "grouped", "softcap and bias", "padding", "sinks", "bfloat16"])
def test_steps_of_one_query(opened, tmp_path, name):
    seen, wanted = CASES[name]()
    call = seen[0]
    page = shown(opened, tmp_path, seen, batch=1)
    head, query = 4, 11
    steps = page.ask(
        f"""(() => {{
          const steps = opened.calls[0].steps({head}, {query});
          const keys = steps.keys.map((key) => ({{...key, k: Array.from(key.k), v: Array.from(key.v)}}));
          return {{...steps, q: Array.from(steps.q), keys, output: Array.from(steps.output)}};
        }})()"""
    )
    group = call.heads // call.k.shape[1]
    q, k, v = (
        call.q[1, head, query].float(),
        call.k[1, head // group].float(),
        call.v[1, head // group].float(),
    )
    np.testing.assert_allclose(steps["q"], q, atol=2e-4 * float(q.abs().max()))
    np.testing.assert_allclose([key["k"] for key in steps["keys"]], k, atol=2e-4 * float(k.abs().max()))
    np.testing.assert_allclose([key["v"] for key in steps["keys"]], v, atol=2e-4 * float(v.abs().max()))
    np.testing.assert_allclose([key["dot"] for key in steps["keys"]], k @ q, atol=2e-2)
    assert steps["scale"] == pytest.approx(call.scale)
    assert steps["softcap"] == call.softcap
    assert steps["sink"] == (None if call.sinks is None else pytest.approx(float(call.sinks[head])))
    weights = wanted[1, head, query]
    np.testing.assert_allclose([key["weight"] for key in steps["keys"]], weights, atol=BOUND)
    np.testing.assert_allclose(steps["output"], weights @ v.double().numpy(), atol=0.02)
    for key, weight in zip(steps["keys"], weights):
        assert key["allowed"] == (weight > 0)
        assert key["scaled"] == pytest.approx(key["dot"] * call.scale)
        if key["allowed"]:
            assert key["score"] == pytest.approx(key["capped"] + key["bias"])
            assert key["weight"] == pytest.approx(np.exp(key["score"] - steps["lse"]), rel=1e-5)


def test_steps_without_values(opened, tmp_path):
    q, k, _ = tensors(1, dtype=torch.float32)
    page = shown(opened, tmp_path, recorded(q, k))
    assert page.ask("opened.calls[0].valueChannels") == 0
    assert page.ask("opened.calls[0].steps(0, 0).output") is None
    assert page.ask("opened.calls[0].steps(0, 0).keys[0].v") is None


def test_a_query_that_sees_nothing_has_steps_of_nothing(opened, tmp_path):
    seen, _ = case(mask=masks.nothing())
    page = shown(opened, tmp_path, seen)
    assert page.ask("opened.calls[0].steps(0, 0).keys.every((key) => key.weight === 0 && !key.allowed)")
    assert page.ask("Array.from(opened.calls[0].steps(0, 0).output)") == [0] * 7


# ---- several calls -----------------------------------------------------------------------------


def test_calls_of_an_encoder_decoder(opened, tmp_path):
    texts = {"encoder": (11, 11), "decoder": (5, 5), "cross": (5, 11)}
    calls, wanted = [], []
    for number, (kind, (queries, keys)) in enumerate(texts.items()):
        q, k, v = tensors(1, heads=2, queries=queries, keys=keys, dtype=torch.float32, seed=number)
        mask = masks.causal() if kind == "decoder" else masks.everything()
        calls.append(
            ScoredCall(f"m.{kind}", kind, number, q, k, torch.zeros(q.shape[:3]), mask=mask, scale=0.7)
        )
        wanted.append(definition(q, k, v, mask=mask, scale=0.7)["weights"][0])
    seen = Recording("Two", calls)
    seen.tokens, seen.source_tokens = list("abcde"), list("ABCDEFGHIJK")
    page = shown(opened, tmp_path, seen)
    for number, weights in enumerate(wanted):
        assert_shows(page, weights, number)
    facts = page.ask(
        "opened.calls.map((c) => [c.index, c.name, c.kind, c.layer,"
        " c.queryTokens.join(''), c.keyTokens.join('')])"
    )
    assert facts == [
        [0, "m.encoder", "encoder", 0, "ABCDEFGHIJK", "ABCDEFGHIJK"],
        [1, "m.decoder", "decoder", 1, "abcde", "abcde"],
        [2, "m.cross", "cross", 2, "bcde…", "ABCDEFGHIJK"],
    ]
    assert page.ask("opened.calls.map((call) => call.offset)") == [0, 0, 6]


def test_chosen_heads_keep_their_numbers(opened, tmp_path):
    q, k, v = tensors(1, heads=2, dtype=torch.float32)
    page = shown(opened, tmp_path, recorded(q, k, numbers=(3, 7)), head=7)
    assert page.ask("opened.calls[0].heads") == [3, 7]
    assert page.ask("opened.start.head") == 1
    assert_shows(page, definition(q, k, v)["weights"][0])


def test_queries_and_keys_are_read_when_they_are_looked_at(opened, tmp_path):
    made = [tensors(1, heads=2, queries=101, channels=32, dtype=torch.float32, seed=i) for i in range(2)]
    calls = [
        ScoredCall(f"m.{i}", "encoder", i, q, k, torch.zeros(q.shape[:3])) for i, (q, k, _) in enumerate(made)
    ]
    page = shown(opened, tmp_path, Recording("Two", calls))
    was_read = "opened.calls.map(({ q, k }) => [q, k].map((rows) => rows.place in rows.arrays.found))"
    assert page.ask(was_read) == [[False, False], [False, False]]
    assert page.ask("opened.calls[1].row(0, 0).length") == 101
    assert page.ask(was_read) == [[False, False], [True, True]]


# ---- per head ------------------------------------------------------------------------------------


def test_statistics_are_means_over_queries_that_see_something(opened, tmp_path):
    seen, _ = case(mask=masks.padding(KEEP) & masks.causal())
    page = shown(opened, tmp_path, seen, batch=0)
    found = seen[0].statistics()
    names = page.ask("opened.statistics")
    assert {"entropy", "distance"} <= set(names)
    sees = found.visible[0] > 0
    for name in ("entropy", "distance"):
        wanted = [float(row[ok].mean()) for row, ok in zip(getattr(found, name)[0], sees)]
        np.testing.assert_allclose(page.ask(f"Array.from(opened.calls[0].statistic('{name}'))"), wanted, 1e-5)


@pytest.mark.parametrize(("queries", "keys"), [(7, 5), (33, 67), (101, 31)])
def test_thumbnails_are_the_greatest_weights_of_blocks(opened, tmp_path, queries, keys):
    made = {"queries": queries, "keys": keys}
    seen, wanted = case(sizes=made, mask=masks.causal() & masks.window(20, 0), bias=biases.alibi(6))
    page = shown(opened, tmp_path, seen, batch=1)
    height, width = -(-queries // 32), -(-keys // 32)
    for head in (0, 5):
        picture = page.ask(
            f"(({{rows, columns, values}}) => [rows, columns, ...values])(opened.calls[0].thumbnail({head}))"
        )
        rows, columns, *values = picture
        assert (rows, columns) == (-(-queries // height), -(-keys // width))
        assert max(rows, columns) <= 32
        for place, value in enumerate(values):
            i, j = divmod(place, columns)
            block = wanted[1, head, i * height : (i + 1) * height, j * width : (j + 1) * width]
            assert abs(value - 255 * block.max()) < 0.51
