"""Texts that attack, narrow screens, rows that see nothing, and the size of it all."""

import re

import torch

import regard
from regard import masks
from regard.recording import Recording, ScoredCall
from regard.views.page.page_html import frame_size
from views import stage
from views.browser import Opened
from views.viewing import VIEWS, Page, open_stage, words_of

HOSTILE = [
    "</script><img src=x onerror=window.hacked=1>",
    "<svg/onload=window.hacked=1>",
    "שלום",
    "👩‍👩‍👧",
    "a\u0000\ud800b",
    "&amp;\"'",
    "]]>",
]


def test_a_hostile_text_is_only_text(browser, tmp_path):
    shown = stage.long(len(HOSTILE))
    shown.recording.tokens = HOSTILE
    page = open_stage(browser, tmp_path, shown)
    for view in VIEWS:
        page.set(view=view, query=0, key=2)
        words = words_of(page.run("regard.exportSvg()").encode())
        if view in ("lines", "matrix"):
            assert "שלום" in words
            assert "👩‍👩‍👧" in words
    page.set(view="lines")
    assert page.page.locator(".column.query .token").first.inner_text() == HOSTILE[0]
    assert page.run("window.hacked") is None
    assert page.page.locator("#regard img, #regard svg").count() == 0
    page.opened.check()
    page.page.context.close()


LONG = "x" * 5000


def test_a_token_as_long_as_a_page_leaves_room_for_the_others(browser, tmp_path):
    shown = stage.long(7)
    shown.recording.tokens = ["a", LONG, "b", "c", "d", LONG, "e"]
    page = open_stage(browser, tmp_path, shown)
    for size in ({"width": 1100, "height": 760}, {"width": 390, "height": 780}):
        page.page.set_viewport_size(size)
        page.set(view="text", query=5, key=None)
        caption = page.page.locator(".text-said")
        assert caption.bounding_box()["height"] < 200
        assert caption.bounding_box()["y"] + caption.bounding_box()["height"] <= size["height"]
        page.set(view="heads")
        assert page.page.locator("th.pinned-token").bounding_box()["width"] < 400
    page.opened.check()
    page.page.context.close()


def test_two_matrices_above_each_other_on_a_phone_have_room_for_cells(browser, tmp_path):
    sides = []
    for _ in range(2):
        shown = stage.long(7)
        shown.recording.tokens = [LONG, *HOSTILE[:6]]
        sides.append(shown.recording)
    path = regard.page(*sides, path=tmp_path / "two.html", view="matrix")
    context = browser.new_context(viewport={"width": 390, "height": 780})
    page = Page(Opened(context.new_page(), path), None)
    page.set(view="matrix", query=0, key=1, find="img")  # all that takes room above a matrix
    stages = page.page.locator(".map-stage")
    assert [stages.nth(side).bounding_box()["height"] > 130 for side in (0, 1)] == [True, True]
    sizes = [
        float(size) for size in re.findall(r' (?:width|height)="([^"%]+)"', page.run("regard.exportSvg()"))
    ]
    assert min(sizes) >= 0
    page.page.set_viewport_size({"width": 390, "height": 560})  # too low for both
    page.set(query=2)
    sizes = [
        float(size) for size in re.findall(r' (?:width|height)="([^"%]+)"', page.run("regard.exportSvg()"))
    ]
    assert min(sizes) >= 0
    page.opened.check()
    context.close()


def test_a_narrow_screen_holds_every_view_and_two_fingers_zoom(browser, tmp_path):
    page = open_stage(browser, tmp_path, stage.everything(), screen={"width": 390, "height": 780})
    for view in VIEWS:
        page.set(view=view)
        assert page.run("document.documentElement.scrollWidth") <= 390
    page.set(view="matrix")
    fingers = page.page.context.new_cdp_session(page.page)

    def touch(kind, *places):
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (150, 350))
    touch("touchStart", (150, 350), (200, 350))
    for step in range(10, 70, 10):
        touch("touchMove", (150 - step, 350), (200 + step, 350))
    touch("touchEnd")
    page.wait("regard.state.now.zoom && regard.state.now.zoom[2] > 2")
    assert page.now("query") is None  # fingers that zoom pin nothing
    page.page.touchscreen.tap(
        *page.place_of(
            *page.run("(({ top, left }) => [top + 1, left + 1])(regard.app.view.viewport.inSight)")
        )
    )
    page.wait("regard.state.now.query !== null")
    page.page.click('[aria-label="Controls"]')
    assert page.page.locator('select[data-control="layer"]').is_visible()
    page.opened.check()
    page.page.context.close()


def test_runs_rows_that_see_nothing_and_texts_of_special_tokens_alone(browser, tmp_path):
    q = torch.randn(1, 2, 4, 6)
    left_padded = masks.causal() & masks.padding(torch.tensor([[False, False, True, True]]))
    calls = [
        ScoredCall("layer", "decoder", 0, q, q, torch.zeros(1, 2, 4), mask=mask, scale=0.4, run=run)
        for run, mask in enumerate((masks.causal(), left_padded))
    ]
    shown = stage.Stage(Recording("Toy", calls), [])
    shown.recording.tokens = ["[PAD]", "[PAD]", "[CLS]", "[SEP]"]
    page = open_stage(browser, tmp_path, shown)
    page.page.select_option('select[data-control="run"]', "1")
    assert page.now("call") == 1
    page.set(view="steps", query=1)
    assert "sees no key" in page.text(".steps-body")
    for lens in ({}, {"sinks": "special"}, {"special": "hide"}):
        for view in VIEWS:
            page.set(view=view, **lens)
            assert "NaN" not in page.run("regard.exportSvg()")
            assert "NaN" not in page.page.locator("#regard").inner_text()
    page.opened.check()
    page.page.context.close()


def test_the_page_stays_small():
    assert frame_size() < 127_000
