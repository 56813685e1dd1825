"""The frame of the page: tabs, keys, controls."""

import pytest

from views.viewing import VIEWS


@pytest.mark.parametrize("way", ["click", "key"])
def test_every_view_opens(page, way):
    for number, view in enumerate(VIEWS, start=1):
        if way == "click":
            page.page.click(f'[data-view="{view}"]')
        else:
            page.page.keyboard.press(str(number))
        assert page.page.locator(f".view.{view}").is_visible()
        assert page.page.locator('[role="tab"][aria-selected="true"]').get_attribute("data-view") == view


def test_arrows_walk_layers_and_heads_and_stop_at_the_ends(page):
    press = page.page.keyboard.press
    press("ArrowDown")
    press("ArrowRight")
    press("ArrowRight")
    assert (page.now("call"), page.now("head")) == (1, 2)
    for _ in range(9):
        press("ArrowDown")
        press("ArrowRight")
    assert (page.now("call"), page.now("head")) == (1, 4)  # the encoder's last layer, and its last head
    press("ArrowUp")
    press("ArrowLeft")
    assert (page.now("call"), page.now("head")) == (0, 3)


def test_keys_pin_help_and_unpin(page):
    press = page.page.keyboard.press
    press("4")
    press("Shift+ArrowDown")
    press("Shift+ArrowDown")
    press("Shift+ArrowRight")
    assert (page.now("query"), page.now("key")) == (1, 0)
    press("?")
    assert page.page.locator("dialog.help").is_visible()
    press("Escape")
    assert not page.page.locator("dialog.help").is_visible()
    press("Escape")
    assert (page.now("query"), page.now("key")) == (None, None)


def test_keys_do_nothing_while_somebody_types(page):
    page.set(view="heads")
    page.page.click(".view input[type=search]")
    page.page.keyboard.type("1?")
    assert page.now("view") == "heads"
    assert page.now("filter") == "1?"
    assert not page.page.locator("dialog.help").is_visible()


def test_controls_choose_kind_layer_and_head(page):
    page.page.click('.segments >> text="Cross"')
    assert page.now("call") == 4
    page.page.select_option('select[data-control="layer"]', label="1")
    page.page.select_option('select[data-control="head"]', label="2")
    assert (page.now("call"), page.now("head")) == (5, 2)
    page.page.click('[aria-label="Previous head"]')
    assert page.now("head") == 1


def test_the_focus_stays_on_a_control_that_was_used(page):
    page.page.focus('[aria-label="Next layer"]')
    page.page.keyboard.press("Enter")
    assert page.now("call") == 1
    assert page.run("document.activeElement.dataset.control") == "layer"


def test_every_control_has_a_name(page):
    for view in VIEWS:
        page.set(view=view, query=3, key=2)
        nameless = page.run(
            """[...document.querySelectorAll("button, select, input, canvas[tabindex]")]
            .filter((one) => !one.hidden && !one.closest("label"))
            .filter((one) => !one.getAttribute("aria-label") && !one.textContent.trim())
            .map((one) => one.outerHTML)"""
        )
        assert not nameless


def test_the_overview_goes_to_the_kind_that_is_chosen(page):
    page.set(view="overview")
    page.page.set_viewport_size({"width": 900, "height": 420})
    page.page.click('.segments >> text="Cross"')
    box = page.page.locator('.card[aria-current="true"]').bounding_box()
    assert 0 < box["y"] < 420
    page.page.set_viewport_size({"width": 1280, "height": 800})


def test_steps_open_on_a_word(page):
    page.set(view="steps", query=None)
    assert page.page.locator('.token-strip [aria-pressed="true"]:not(.special)').count() == 1


def test_an_address_may_name_the_layer(page):
    page.go_to("layer=1&kind=cross")
    assert page.now("call") == 5
    page.go_to("layer=99")
    assert page.now("call") == 0
    page.go_to("")


def test_the_matrix_says_who_attends_to_whom(page):
    page.set(view="matrix", call=4)
    assert "the tokens being written" in page.run("regard.exportSvg()")
    page.set(call=0)
    assert "the tokens that attend." in page.run("regard.exportSvg()")
