"""The map of gradients, products and contributions: tiles, levels, the server and the page, against NumPy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from app.served import BASE, served, serving
from regard import masks
from regard.errors import ArgumentError
from regard.recording import Recording
from regard.views.map import HeadMatrix, build, peak, tile
from views.exact_weights import exact, made
from views.test_map_browser import place_of
from views.visiting import Visitor

LENGTH = 700
QUANTITIES = ["gradient", "product", "contribution"]


def with_gradient(call, seed=9):
    """The call with V, dO and W_O."""
    chance = torch.Generator().manual_seed(seed)
    v = torch.randn(*call.k.shape[:3], 4, generator=chance)
    gradient = torch.randn(*call.q.shape[:3], 4, generator=chance)
    return replace(
        call, v=v, output_gradient=gradient, projection=torch.randn(call.heads, 4, 7, generator=chance)
    )


def wanted(call, what, head):
    """The quantity ``(query, key)`` by its definition; NaN where it is masked."""
    weights = exact(call)[0, head]
    v = call.v[0, head].double().numpy()
    gradient = call.output_gradient[0, head].double().numpy() @ v.T
    sizes = np.linalg.norm(v @ call.projection[head].double().numpy(), axis=-1)
    found = {"gradient": gradient, "product": weights * gradient, "contribution": weights * sizes}[what]
    allowed = call.mask.dense(call.queries, call.keys).numpy().reshape(call.queries, call.keys)
    return np.where(allowed, found, np.nan)


def furthest(values, step):
    """Of every block the number furthest from 0, NaN if there is none."""
    rows, columns = (-(-size // step) for size in values.shape)
    found = np.full((rows, columns), np.nan)
    for row, column in np.ndindex(rows, columns):
        block = values[row * step : (row + 1) * step, column * step : (column + 1) * step].ravel()
        block = block[~np.isnan(block)]
        if len(block):
            found[row, column] = block[np.abs(block).argmax()]
    return found


@pytest.mark.parametrize("what", QUANTITIES)
@pytest.mark.parametrize("mask", [masks.causal(), masks.everything(), masks.window(9, 0)], ids=str)
def test_tiles_of_every_level_are_the_definition(what, mask):
    call = with_gradient(made(300, 300, mask=mask, heads=2, channels=5))
    numbers = wanted(call, what, 1)
    matrix = HeadMatrix(call, 1, what=what)
    levels = build(matrix)
    assert levels.greatest == pytest.approx(np.nanmax(np.abs(numbers)), rel=1e-4)
    np.testing.assert_allclose(levels.received, exact(call)[0, 1].sum(0), rtol=1e-3, atol=1e-4)
    for level in range(matrix.coarsest + 1):
        found = tile(matrix, level=level, row=0, column=0, levels=levels)
        whole = furthest(numbers, 2**level)[:256, :256]
        np.testing.assert_allclose(found, whole, rtol=1e-3, atol=1e-5)
        mean = tile(matrix, level=level, row=0, column=0, kind="mean", levels=levels)
        sums = np.nan_to_num(numbers)
        step = 2**level
        assert mean[3, 2] == pytest.approx(
            sums[3 * step : 4 * step, 2 * step : 3 * step].mean(), rel=1e-3, abs=1e-5
        )


def test_kept_levels_are_those_of_tiles():
    call = with_gradient(made(2100, 2100, mask=masks.causal(), channels=3))
    matrix = HeadMatrix(call, 0, what="gradient")
    levels = build(matrix)
    assert levels.base == 3
    found = tile(matrix, level=3, row=0, column=0, levels=levels)
    fine = tile(matrix, level=2, row=0, column=0)  # 1024 × 1024 pairs
    np.testing.assert_allclose(found[:128, :128], furthest(fine, 2), rtol=1e-4, atol=1e-6)
    assert np.isnan(found[0, 200])


def test_hidden_keys_leave_the_others_as_they_are():
    call = with_gradient(made(11, 11, mask=masks.causal()))
    hidden = np.arange(11) == 0
    found = tile(HeadMatrix(call, 0, hidden=hidden, what="product"), level=0, row=0, column=0)
    numbers = wanted(call, "product", 0)
    assert np.isnan(found[:, 0]).all()
    np.testing.assert_allclose(found[:, 1:], numbers[:, 1:], rtol=1e-4, atol=1e-6)


def test_a_peak_is_what_is_furthest_from_zero():
    call = with_gradient(made(40, 40, mask=masks.causal()))
    numbers = wanted(call, "gradient", 0)
    found = peak(HeadMatrix(call, 0, what="gradient"), level=0, row=20, column=7)
    assert found.weight == pytest.approx(numbers[20, 7], rel=1e-4)
    assert peak(HeadMatrix(call, 0, what="gradient"), level=0, row=3, column=9).weight is None


def test_what_was_not_recorded_is_refused():
    with pytest.raises(ArgumentError, match="gradients=True"):
        HeadMatrix(made(5, 5, mask=masks.causal()), 0, what="gradient")


# ---- the server and its page -----------------------------------------------------------------------


def book():
    call = with_gradient(made(LENGTH, LENGTH, mask=masks.causal(), heads=2, channels=5, size=1.4))
    seen = Recording("Toy", [call])
    seen.tokens = [f"word{number}" for number in range(LENGTH)]
    return seen


@pytest.fixture(scope="module")
def base():
    with serving({"why": book()}) as (_, address):
        yield address


@pytest.fixture(scope="module")
def visitor(tabs, base):
    found = Visitor(tabs, base, viewport={"width": 1200, "height": 800})
    yield found
    found.leave()
    assert not found.problems


def test_the_server_tells_what_there_is():
    from starlette.testclient import TestClient

    app = served()
    app.server_state.library.give(Path("why.safetensors"), book())
    with TestClient(app, base_url=BASE) as http:
        assert http.get("/api/recordings/why").json()["what"] == ["weight", *QUANTITIES]
        assert http.get("/api/recordings/book").json()["what"] == ["weight"]
        answer = http.get("/api/recordings/why/tiles/0/1/0/1/0", params={"what": "gradient"})
        found = np.frombuffer(answer.content, "<f4").reshape(256, 256)
        numbers = wanted(book()[0], "gradient", 1)[256:512, :256]
        np.testing.assert_allclose(found, numbers, rtol=1e-3, atol=1e-5)
        for path, said in (
            ("/api/recordings/book/tiles/0/0/0/0/0?what=gradient", "gradients=True"),
            ("/api/recordings/why/tiles/0/0/0/0/0?what=gradient&type=png", "must be float32"),
            ("/api/recordings/why/tiles/0/0/0/0/0?what=meaning", "what"),
        ):
            refused = http.get(path)
            assert refused.status_code == 422
            assert said in refused.json()["error"]


@pytest.mark.parametrize("what", QUANTITIES)
def test_the_map_shows_what_was_chosen(visitor, what):
    visitor.map("why", "head=1&zoom=300.5+200.5+40")
    visitor.page.select_option('select[data-control="what"]', what)
    visitor.settled()
    numbers = wanted(book()[0], what, 1)
    visitor.page.mouse.move(*place_of(visitor, 300, 200))
    visitor.until("document.querySelector('.pair-readout').dataset.weight")
    told = visitor.ask("({...document.querySelector('.pair-readout').dataset})")
    assert (told["query"], told["key"]) == ("300", "200")
    assert float(told["weight"]) == pytest.approx(numbers[300, 200], rel=1e-3, abs=1e-6)
    visitor.until("regard.app.margins")
    assert visitor.ask("regard.app.layer.greatest") == pytest.approx(np.nanmax(np.abs(numbers)), rel=1e-3)
    signed = visitor.ask("regard.app.view.shading.signed")
    assert signed == (what != "contribution")  # without a direction contributions are sizes
    visitor.until(f"location.hash.includes('what={what}')")


def test_masked_pairs_and_far_out_blocks(visitor):
    visitor.map("why", "head=0&what=gradient")
    level = visitor.ask("regard.app.view.level")
    assert level > 0
    numbers = wanted(book()[0], "gradient", 0)
    visitor.page.mouse.move(*place_of(visitor, 500, 100))
    visitor.until("document.querySelector('.pair-readout').dataset.weight")
    told = visitor.ask("({...document.querySelector('.pair-readout').dataset})")
    step = 2**level
    block = numbers[500 // step * step :, 100 // step * step :][:step, :step]
    assert float(told["weight"]) == pytest.approx(furthest(block, step)[0, 0], rel=1e-3)
    visitor.page.mouse.move(*place_of(visitor, 100, 600))
    visitor.until("document.querySelector('.pair-readout').innerText.includes('masked')")


def test_the_keyboard_and_recordings_without_gradients(visitor):
    visitor.map("why", "head=0&what=product")
    visitor.page.keyboard.press("w")
    visitor.until("regard.state.now.what === 'contribution'")
    visitor.page.keyboard.press("?")
    assert "Weight × gradient" in visitor.page.inner_text(".help")
    visitor.map("book", "what=gradient")
    assert visitor.page.locator('[data-control="what"]').count() == 0
    assert visitor.ask("regard.state.now.what") == "weight"
