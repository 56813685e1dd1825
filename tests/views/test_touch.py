"""Pages on a phone, with a finger: a tap on a token or on a cell pins it, a second tap lets it go."""

import numpy as np
import pytest

import regard
from views import stage
from views.viewing import CLOSE, Page

PHONE = {
    "viewport": {"width": 390, "height": 780},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
CATS, WALL = stage.SOURCE.index("cats"), stage.SOURCE.index("wall")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A page that opens on the encoder's text, with nothing pinned."""
    shown = stage.everything()
    path = tmp_path_factory.mktemp("phone") / "page.html"
    return regard.page(shown.recording, path, view="text", kind="encoder", layer=1, head=2), shown


@pytest.fixture
def phone(opened, written):
    path, shown = written
    page = Page(opened(path, **PHONE), shown)
    page.set(query=None, key=None)
    return page


def tap_cell(page, row, column):
    page.page.touchscreen.tap(*page.place_of(row, column))


def test_a_tap_on_a_token_of_the_text_shades_the_others(phone):
    token = phone.page.locator(f'.text-block.key [data-unit="{CATS}"]')
    token.tap()
    phone.wait(f"regard.state.now.query === {CATS}")
    phone.wait("regard.app.view.blocks.key.tones.some((tone) => tone > 0)")
    weights = phone.shown.weights(1, 2)[CATS].copy()
    weights[[0, -1]] = 0  # special tokens are quiet
    strongest = int(weights.argmax())
    assert f"cats → {phone.run(f'regard.state.call.keyTokens[{strongest}]')}" in phone.text(".text-caption")
    tones = np.array(phone.run("Array.from(regard.app.view.blocks.key.tones)"))
    assert tones[strongest] == tones.max() > 0
    # Another token, from which the finger has gone: nothing is left of the first one.
    phone.page.locator(f'.text-block.key [data-unit="{WALL}"]').tap()
    phone.wait(f"regard.state.now.query === {WALL}")
    phone.wait("document.querySelector('.text-caption').innerText.includes('wall →')")
    phone.page.locator(f'.text-block.key [data-unit="{WALL}"]').tap()
    phone.wait("regard.state.now.query === null")
    phone.wait("!document.querySelector('.text-caption').innerText.includes('wall')")


def test_a_tap_on_a_cell_of_the_matrix_says_its_weight(phone):
    phone.set(view="matrix")
    tap_cell(phone, CATS, WALL)
    phone.wait(f"regard.state.now.query === {CATS} && regard.state.now.key === {WALL}")
    query, key, weight = phone.readout()
    assert (query, key) == (CATS, WALL)
    assert weight == pytest.approx(phone.shown.weights(1, 2)[CATS, WALL], abs=CLOSE)
    assert "cats" in phone.text(".readout")
    tap_cell(phone, CATS, WALL)
    phone.wait("regard.state.now.query === null && regard.state.now.key === null")


def test_a_tap_on_a_token_of_the_lines_pins_it(phone):
    phone.set(view="lines")
    for side, row in (("query", CATS), ("key", WALL)):
        column = phone.page.locator(f".column.{side}")
        column.locator(f'[data-index="{row}"]').tap(timeout=5000)
        phone.wait(f"regard.state.now.{side} === {row}")
    assert phone.readout()[:2] == [CATS, WALL]
    phone.page.locator(f'.column.key [data-index="{WALL}"]').tap(timeout=5000)
    phone.wait("regard.state.now.key === null")


def test_a_tap_on_a_thumbnail_opens_its_head(phone):
    phone.set(view="overview")
    phone.page.locator('.card[aria-label^="Layer 1, head 3"]').first.tap()
    phone.wait("regard.state.now.view === 'matrix' && regard.state.now.head === 3")


def test_a_tap_on_an_underlined_word_explains_it(phone):
    phone.page.locator(".quiet.fold").tap()
    phone.page.locator(".controls .term").first.tap()
    box = phone.page.locator(".explanation")
    box.wait_for()
    assert "rest their weight" in box.inner_text()
    place = box.bounding_box()
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= 390
