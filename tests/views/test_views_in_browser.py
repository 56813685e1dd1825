"""The page in Chromium: every view opens, its numbers are right, and everything that switches switches."""

import json
import re
import time
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import regard
from regard import masks
from regard.recording import Call, Recording
from regard.views.page.html import ASSETS
from views import stage
from views.browser import Opened

CLOSE = 2e-3
VIEWS = ["overview", "lines", "matrix", "heads", "steps"]
SVG = "{http://www.w3.org/2000/svg}"


class Page:
    """A page under test, with its recording beside it."""

    def __init__(self, opened, shown):
        self.opened, self.page, self.shown = opened, opened.page, shown
        self.wait("window.regard")
        self.fresh = self.run("JSON.stringify(regard.state.now)")

    def run(self, code, *given):
        return self.page.evaluate(f"(given) => ({code})", *given)

    def wait(self, code):
        """Until something holds; asked from outside, because the page's own policy forbids eval."""
        end = time.monotonic() + 20
        while not self.run(f"Boolean({code})"):
            assert time.monotonic() < end, f"never: {code}"
            time.sleep(0.02)

    def set(self, **values):
        """Changes the state and waits until everything has its place and is drawn."""
        self.run("(regard.state.set(given), regard.ready())", values)
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def reset(self):
        self.run(
            "(regard.state.set(JSON.parse(given)), regard.app.help.isOpen && regard.app.help.close(), 0)",
            self.fresh,
        )
        self.page.mouse.move(2, 2)

    def now(self, name):
        return self.run(f"regard.state.now.{name}")

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def block(self, head):
        """All weights of the present call through the present lens."""
        rows, columns = self.run("[regard.app.look().rows.count, regard.app.look().columns.count]")
        found = self.run(f"Array.from(regard.app.look().weights({head}, 0, {rows}, 0, {columns}))")
        return np.array(found).reshape(rows, columns)

    def place_of(self, row, column):
        """Where a cell of the matrix is on the screen."""
        return self.run(
            """(() => { const { viewport, canvas } = regard.app.view;
            const box = canvas.getBoundingClientRect();
            return [box.left + viewport.x(given[1] + 0.5), box.top + viewport.y(given[0] + 0.5)]; })()""",
            [row, column],
        )

    def point(self, row, column):
        self.page.mouse.move(*self.place_of(row, column))

    def readout(self):
        """Query, key and weight as the line above the view says them."""
        line = self.page.locator(".readout")
        return [float(line.get_attribute(f"data-{name}") or "nan") for name in ("query", "key", "weight")]


def open_stage(browser, folder, shown, *, screen=None, **options):
    path = regard.page(shown.recording, folder / "page.html", title="A page", **options)
    context = browser.new_context(
        viewport=screen or {"width": 1100, "height": 760}, has_touch=screen is not None
    )
    return Page(Opened(context, path), shown)


@pytest.fixture(scope="module")
def full(browser, tmp_path_factory):
    page = open_stage(browser, tmp_path_factory.mktemp("full"), stage.everything())
    yield page
    page.opened.check()
    page.page.context.close()


@pytest.fixture(scope="module")
def far(browser, tmp_path_factory):
    page = open_stage(browser, tmp_path_factory.mktemp("far"), stage.long(701))
    yield page
    page.opened.check()
    page.page.context.close()


@pytest.fixture
def page(full):
    full.reset()
    return full


@pytest.fixture
def longer(far):
    far.reset()
    return far


# ---- frame ---------------------------------------------------------------------------------------


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
    press("3")
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
    page.page.click("input[type=search]")
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
    page.page.click('[aria-label="Head before"]')
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


# ---- matrix --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "head", "row", "column"), [(0, 3, 2, 7), (2, 1, 5, 3), (3, 2, 6, 0), (5, 3, 4, 10)]
)
def test_the_crosshair_reads_the_exact_weight(page, call, head, row, column):
    page.set(view="matrix", call=call, head=head)
    page.point(row, column)
    query, key, weight = page.readout()
    assert (query, key) == (row, column)
    assert weight == pytest.approx(page.shown.weights(call, head)[row, column], abs=CLOSE)
    said = page.text(".readout .number")
    assert float(said.replace("−", "-")) == pytest.approx(weight, abs=1e-4)
    assert page.text(".readout .named:first-child .token-text") == page.run(
        "regard.state.call.queryTokens[given]", row
    )


def test_the_crosshair_says_masked(page):
    page.set(view="matrix", call=2)
    page.point(1, 5)
    assert "masked" in page.text(".readout")


def test_a_click_pins_a_pair_and_another_lets_it_go(page):
    page.set(view="matrix", call=4, head=1)
    page.page.mouse.click(*page.place_of(3, 6))
    page.page.mouse.move(2, 2)
    assert (page.now("query"), page.now("key")) == (3, 6)
    assert page.readout()[2] == pytest.approx(page.shown.weights(4, 1)[3, 6], abs=CLOSE)
    page.page.mouse.click(*page.place_of(3, 6))
    assert (page.now("query"), page.now("key")) == (None, None)


def test_the_wheel_zooms_at_the_pointer_and_a_drag_moves(longer):
    longer.set(view="matrix")
    x, y = (round(at) for at in longer.place_of(400, 200))
    box = longer.page.locator("canvas.map").bounding_box()

    def under(x, y):
        """The cell at a point of the screen, with fractions."""
        return longer.run("regard.app.view.viewport.cellAt(...given)", [x - box["x"], y - box["y"]])

    width, cell = longer.run("regard.app.view.viewport.cellWidth"), under(x, y)
    longer.page.mouse.move(x, y)
    longer.page.mouse.wheel(0, -1500)
    longer.wait("regard.state.now.zoom")
    assert longer.run("regard.app.view.viewport.cellWidth") > 8 * width
    assert np.allclose(under(x, y), cell, atol=0.02)
    longer.page.mouse.down()
    longer.page.mouse.move(x - 60, y - 30, steps=3)
    longer.page.mouse.up()
    assert np.allclose(under(x - 60, y - 30), cell, atol=0.02)
    assert longer.now("query") is None  # a drag is not a click
    longer.page.keyboard.press("0")
    assert longer.now("zoom") is None


def test_far_out_a_pixel_is_the_greatest_weight_of_its_block(longer):
    longer.set(view="matrix", head=1)
    level = longer.run("regard.app.view.level")
    assert level == 1
    wanted = longer.shown.weights(0, 1)
    padded = np.pad(wanted, ((0, 1), (0, 1)))
    wanted = padded.reshape(351, 2, 351, 2).max(axis=(1, 3))
    tile = longer.run(
        "(() => { const t = regard.app.view.tiles.get(1, 3, 2); return [t.rows, t.columns, ...t.values]; })()"
    )
    assert tile[:2] == [64, 64]
    assert np.allclose(np.array(tile[2:]).reshape(64, 64), wanted[192:256, 128:192], atol=CLOSE)
    longer.point(401, 301)
    query, key, weight = longer.readout()
    block = longer.shown.weights(0, 1)[400:402, 300:302]
    assert weight == pytest.approx(block.max(), abs=CLOSE)
    assert weight == pytest.approx(longer.shown.weights(0, 1)[int(query), int(key)], abs=CLOSE)
    assert "4 pairs" in longer.text(".readout")


def test_only_what_is_on_the_screen_is_computed(longer):
    longer.set(view="matrix", head=0, zoom=[500.0, 100.0, 40.0])
    longer.run("(regard.app.view.tiles.kept.clear(), regard.app.view.layout(), regard.ready())")
    kept = longer.run("[...regard.app.view.tiles.kept.keys()]")
    assert 0 < len(kept) <= 6
    assert all(name.startswith("0/7/") or name.startswith("0/8/") for name in kept)


def test_no_piece_of_work_is_long(longer):
    # Time itself cannot be asked of a busy machine: between two looks at the clock stand at most 600,000
    # multiplications, about a millisecond, and a slice ends when 20 ms have passed.
    found = longer.run(
        """(async () => {
        regard.state.set({ view: "matrix", head: 0, zoom: null });
        await regard.ready();
        const { tiles, slices, look } = regard.app.view;
        const [sizes, slow] = [[], Math.max(look.call.channels, 8)];
        look.weights = (head, top, bottom, left, right) => {
          sizes.push((bottom - top) * (right - left) * slow);
          return Object.getPrototypeOf(look).weights.call(look, head, top, bottom, left, right);
        };
        tiles.kept.clear();
        regard.app.view.layout();
        const sliced = slices.task !== null;
        await regard.ready();
        delete look.weights;
        return [sliced, sizes.length, Math.max(...sizes), sizes.reduce((sum, size) => sum + size, 0)]; })()"""
    )
    sliced, pieces, largest, total = found
    assert sliced
    assert largest <= 600_000
    assert total >= 701 * 701 * 8
    assert pieces >= 6 * 6


def test_values_stand_in_cells_that_are_large_enough(page):
    page.set(view="matrix", call=3, head=0)
    assert page.run("regard.app.view.viewport.roomForValues")
    picture = page.run("regard.exportSvg()")
    weight = page.shown.weights(3, 0)[1, 1]
    assert f"{weight:.2f}"[1:] in words_of(picture.encode())


# ---- lens ----------------------------------------------------------------------------------------


def through_lens(weights, query_tokens, key_tokens, *, special, words, sinks):
    """The lens in NumPy: sinks removed and rows renormalised, then tokens hidden, then words merged."""

    def groups(tokens, gone):
        found = []
        for i, token in enumerate(tokens):
            if gone[i]:
                continue
            if words == "merge" and token.startswith("##"):
                found[-1].append(i)
            else:
                found.append([i])
        return found

    is_special = [np.array([t[0] in "[<" for t in tokens]) for tokens in (query_tokens, key_tokens)]
    sink = np.zeros(len(key_tokens), bool)
    if sinks == "first":
        sink[0] = True
    if sinks == "special":
        sink = is_special[1]
    removed = weights[:, sink].sum(1)
    kept = np.where(removed > 1 - 1e-4, 0, weights.T / np.maximum(1 - removed, 1e-9)).T
    hide = special == "hide"
    rows = groups(query_tokens, is_special[0] & hide)
    columns = groups(key_tokens, (is_special[1] & hide) | sink)
    seen = np.array([[kept[np.ix_(i, j)].sum(1).mean() for j in columns] for i in rows])
    return seen, np.array([removed[i].mean() for i in rows])


@pytest.mark.parametrize("special", ["show", "hide"])
@pytest.mark.parametrize("words", ["apart", "merge"])
@pytest.mark.parametrize("sinks", ["show", "first", "special"])
def test_the_lens_is_that_of_numpy(page, special, words, sinks):
    lens = {"special": special, "words": words, "sinks": sinks}
    sides = {
        "encoder": (stage.SOURCE, stage.SOURCE),
        "decoder": (stage.TARGET, stage.TARGET),
        "cross": (stage.TARGET, stage.SOURCE),
    }
    for call, head in ((1, 4), (2, 3), (3, 0), (4, 2)):
        page.set(call=call, head=head, **lens)
        kind = page.run("regard.state.call.kind")
        seen, removed = through_lens(page.shown.weights(call, head), *sides[kind], **lens)
        assert np.allclose(page.block(head), seen, atol=CLOSE)
        assert np.allclose(page.run(f"Array.from(regard.app.look().removed({head}))"), removed, atol=CLOSE)
        parts = page.run(f"Array.from(regard.app.look().weights({head}, 1, 3, 2, 4))")
        assert np.allclose(parts, seen[1:3, 2:4].ravel(), atol=CLOSE)


def test_controls_hide_merge_and_say_what_was_removed(page):
    page.set(view="matrix", call=0, head=2)
    page.page.check("text=Hide special tokens")
    page.page.check("text=Merge word pieces")
    names = page.run("regard.app.look().rowNames")
    assert names == ["unbelievable", "cats", "sat", "on", "the", "wallpaper"]
    page.page.select_option('select[data-control="sinks"]', "special")
    weights = page.shown.weights(0, 2)
    removed = weights[:, [0, 10]].sum(1)
    inner = [removed[1:4].mean(), *removed[4:8], removed[8:10].mean()]
    assert float(page.page.locator(".removed").get_attribute("data-removed")) == pytest.approx(
        np.mean(inner), abs=CLOSE
    )
    page.point(0, 1)
    wanted = (weights[1:4, 4] / (1 - removed[1:4])).mean()
    assert page.readout() == pytest.approx([0, 1, wanted], abs=CLOSE)
    assert f"{100 * inner[0]:.1f}% of this row removed" in page.text(".readout")


def test_a_pin_stays_on_its_token_through_the_lens(page):
    page.set(view="matrix", query=5, key=8)  # "sat" → "wall"
    page.set(special="hide", words="merge")
    assert page.readout()[:2] == [2, 5]
    page.set(special="show", words="apart")
    assert page.readout()[:2] == [5, 8]


def test_overview_pictures_follow_the_lens(page):
    page.set(view="overview")
    before = page.run("[regard.app.view.cards[0].canvas.width, regard.app.view.cards[0].canvas.height]")
    page.set(special="hide", words="merge")
    assert before == [11, 11]
    assert page.run("[regard.app.view.cards[0].canvas.width, regard.app.view.cards[0].canvas.height]") == [
        6,
        6,
    ]


# ---- overview and heads --------------------------------------------------------------------------


def test_the_overview_shows_every_head_by_kind_and_opens_one(page):
    page.set(view="overview")
    assert page.page.locator(".card").count() == 5 * 2 + 4 * 4
    assert page.page.locator(".block h2").all_inner_texts()[1].startswith("Decoder attention")
    page.page.click('.block:nth-child(3) .card[aria-label^="Layer 1, head 2"]')
    assert (page.now("view"), page.now("call"), page.now("head"), page.now("heads")) == ("matrix", 5, 2, [2])


def entropies(page):
    found = []
    for trace in page.shown.traces:
        weights = trace["weights"][0]
        found += [-np.sum(w * np.log(np.maximum(w, 1e-30)), -1).mean() for w in weights]
    return np.array(found)


def test_the_overview_sorts_by_a_statistic_and_shows_it(page):
    page.set(view="overview")
    page.page.select_option(".overview select", "entropy")
    numbers = [float(text) for text in page.page.locator(".caption .number").all_inner_texts()]
    assert np.allclose(numbers, np.sort(entropies(page))[::-1], atol=CLOSE)
    page.page.click("text=Greatest first")
    numbers = [float(text) for text in page.page.locator(".caption .number").all_inner_texts()]
    assert np.allclose(numbers, np.sort(entropies(page)), atol=CLOSE)


def test_the_table_holds_the_statistics_and_sorts_and_opens(page):
    page.set(view="heads")
    shown = page.page.locator('td[data-name="entropy"]').all_inner_texts()
    assert np.allclose([float(text) for text in shown], entropies(page), atol=CLOSE)
    page.page.click('th button[data-sort="entropy"]')
    assert page.page.locator("th:has([data-sort=entropy])").get_attribute("aria-sort") == "descending"
    shown = [float(text) for text in page.page.locator('td[data-name="entropy"]').all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    page.page.click('th button[data-sort="entropy"]')
    first = page.page.locator("tbody tr").first
    at = int(np.argmin(entropies(page)))
    wanted = [
        (call, head)
        for call, trace in enumerate(page.shown.traces)
        for head in range(trace["weights"].shape[1])
    ][at]
    first.click()
    assert page.now("view") in ("matrix", "lines")
    assert (page.now("call"), page.now("head")) == wanted


def test_the_table_filters_by_words_and_kind(page):
    page.set(view="heads")
    page.page.fill("input[type=search]", "1.3")
    assert page.page.locator("tbody tr").count() == 3
    page.page.select_option(".heads select", "cross")
    assert page.page.locator("tbody tr").count() == 1
    assert page.text(".heads [role=status]") == "1 of 26 heads"
    page.page.fill("input[type=search]", "nothing like it")
    assert page.page.locator("text=No head fits this filter.").is_visible()


# ---- lines ---------------------------------------------------------------------------------------


def test_lines_read_the_mean_over_the_heads_that_are_on(page):
    page.set(view="lines", call=4, query=3, key=9)
    wanted = page.shown.traces[4]["weights"][0][:, 3, 9]
    assert page.readout() == pytest.approx([3, 9, wanted.mean()], abs=CLOSE)
    page.page.click('.chip[aria-label="Head 1"]')
    assert page.now("heads") == [0, 2, 3]
    assert page.readout()[2] == pytest.approx(wanted[[0, 2, 3]].mean(), abs=CLOSE)
    page.page.dblclick('.chip[aria-label="Head 2"]')
    assert page.now("heads") == [2]
    assert page.readout()[2] == pytest.approx(wanted[2], abs=CLOSE)
    page.page.click("text=None")
    assert page.now("heads") == []
    page.page.click("text=All")
    assert page.now("heads") is None


def test_lines_hover_shows_and_click_pins(page):
    page.set(view="lines", call=2, heads=[1])
    page.page.hover('.column.query .token[data-index="4"]')
    assert page.readout()[0] == 4
    assert page.run("regard.lines().every((line) => line.row === 4)")
    found = page.run("regard.lines().map((line) => [line.column, line.weight])")
    wanted = page.shown.weights(2, 1)[4]
    assert {int(column) for column, _ in found} == {j for j in range(7) if wanted[j] > 0.02}
    assert all(weight == pytest.approx(wanted[int(column)], abs=CLOSE) for column, weight in found)
    page.page.click('.column.key .token[data-index="2"]')
    page.page.mouse.move(2, 2)
    assert page.now("key") == 2
    assert page.run("regard.lines().every((line) => line.column === 2)")
    page.page.keyboard.press("Escape")
    assert page.now("key") is None
    assert page.text(".readout").startswith("Point at a token")


def test_a_long_text_begins_with_one_head_that_goes_with_the_choice(longer):
    longer.set(view="lines")
    assert longer.now("heads") == [0]
    longer.set(head=1)
    assert longer.now("heads") == [1]
    longer.page.click(".chips >> text=All")
    longer.set(head=0)
    assert longer.now("heads") is None


def test_lines_of_a_long_text_show_a_window_and_the_weight_outside(longer):
    longer.set(view="lines", query=500, heads=[0])
    shown = longer.page.locator(".column.query .token").count()
    assert shown < 40
    assert longer.page.locator('.column.query .token[data-index="500"]').is_visible()
    first, last = longer.run("regard.app.view.right.window")
    row = longer.shown.weights(0, 0)[500]
    assert longer.page.locator(".edge.below").is_hidden() == (row[last:].sum() < 0.005)
    assert longer.text(".edge.above") == f"{100 * row[:first].sum():.0f}% above"
    longer.page.click(".edge.above")
    first, last = longer.run("regard.app.view.right.window")
    hidden = np.where(np.arange(701) < 460, row, 0)
    assert first <= int(hidden.argmax()) < last


# ---- steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "head", "query"), [(0, 1, 4), (2, 3, 5), (4, 0, 6)])
def test_steps_are_those_of_the_definition(page, call, head, query):
    page.set(view="steps", call=call, head=head, query=query)
    trace = page.shown.traces[call]
    for row in page.page.locator(".steps-table tbody tr").all():
        key = int(row.get_attribute("data-key"))
        assert float(row.get_attribute("data-weight")) == pytest.approx(
            trace["weights"][0, head, query, key], abs=CLOSE
        )
        assert float(row.get_attribute("data-dot")) == pytest.approx(
            trace["dots"][0, head, query, key], abs=CLOSE
        )
        cells = row.locator("td").all_inner_texts()
        assert float(cells[1].replace("−", "-")) == pytest.approx(
            trace["dots"][0, head, query, key], abs=CLOSE
        )
    output = [float(x) for x in page.page.locator("[data-output]").get_attribute("data-output").split()]
    assert np.allclose(output, trace["output"][0, head, query], atol=CLOSE)
    assert page.text('[data-total="total"]') == "1.0000"


def test_steps_show_cap_bias_mask_and_sink(page):
    page.set(view="steps", call=2, head=3, query=4)
    headings = page.page.locator(".steps-table th").all_inner_texts()
    assert [text.split("\n")[0] for text in headings] == [
        "Key",
        "Dot product",
        "Scaled",
        "Capped",
        "Bias",
        "Score",
        "Weight",
        "Weighted value",
    ]
    assert page.page.locator("tr.masked").count() == 2
    trace = page.shown.traces[2]
    sink = 1 - trace["weights"][0, 3, 4].sum()
    assert float(page.text('[data-total="sink"]')) == pytest.approx(sink, abs=CLOSE)
    capped = [
        row.locator("td").all_inner_texts()[3] for row in page.page.locator("tbody tr:not(.masked)").all()
    ]
    keys = [int(row.get_attribute("data-key")) for row in page.page.locator("tbody tr:not(.masked)").all()]
    assert np.allclose(
        [float(text.replace("−", "-")) for text in capped], trace["capped"][0, 3, 4, keys], atol=CLOSE
    )


def test_steps_open_a_key_channel_by_channel(page):
    page.set(view="steps", call=0, head=0, query=2)
    page.page.click('.steps-table tr[data-key="7"]')
    products = page.page.locator(".products li").all_inner_texts()
    assert len(products) == 8 + 1
    total = float(products[-1].split()[-1].replace("−", "-"))
    assert total == pytest.approx(page.shown.traces[0]["dots"][0, 0, 2, 7], abs=CLOSE)


def test_steps_fold_many_keys_and_unfold_them(longer):
    longer.set(view="steps", query=600)
    assert longer.page.locator(".steps-table tbody tr").count() == 10
    row = np.sort(longer.shown.weights(0, 0)[600])[::-1]
    assert float(longer.text('[data-total="rest"]')) == pytest.approx(row[10:].sum(), abs=CLOSE)
    longer.page.click("text=Show 200 more keys")
    assert longer.page.locator(".steps-table tbody tr").count() == 210
    assert "values=True" in longer.text(".steps-body")


def test_steps_of_dense_weights_say_why_not(browser, tmp_path):
    weights = torch.softmax(torch.randn(1, 2, 5, 5), -1)
    shown = stage.Stage(
        Recording("Bloom", [Call("attentions.0", "decoder", 0, own_weights=weights)]),
        [{"weights": weights.numpy()}],
    )
    page = open_stage(browser, tmp_path, shown, view="steps")
    assert "gave its weights directly" in page.text(".steps")
    page.set(view="matrix", head=1)
    page.point(3, 2)
    assert page.readout()[2] == pytest.approx(float(weights[0, 1, 3, 2]), abs=CLOSE)
    assert "The model gave" in page.run("(regard.state.set({ view: 'steps' }), regard.exportSvg())")
    page.opened.check()
    page.page.context.close()


# ---- export --------------------------------------------------------------------------------------


def words_of(svg):
    return {element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_exported_as_svg(page, view):
    page.set(view=view, call=4, head=2, query=3)
    picture = page.run("regard.exportSvg()")
    words = words_of(picture.encode())
    assert "var(" not in picture
    assert any(word.startswith("A page") for word in words)
    if view in ("lines", "matrix"):
        assert {"猫", "坐", "</s>", "cats", "believ", "[CLS]"} <= words
    if view == "steps":
        assert {"cats", "[CLS]", "1.0000", "3  在"} <= words
    if view == "heads":
        assert {"cross.1.attention", "Entropy"} <= words
    if view == "overview":
        assert "Cross attention" in words
        assert picture.count("<image") == 26


def test_the_matrix_is_exported_as_cells(page):
    page.set(view="matrix", call=3, head=1)
    root = ElementTree.fromstring(page.run("regard.exportSvg()").encode())
    cells = [one for one in root.iter(f"{SVG}rect") if one.get("rx")]
    assert len(cells) == 7 * 8 // 2  # the causal half


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_exported_as_png_twice_as_dense(page, view):
    page.set(view=view, query=3)
    size, start, area = page.run(
        """(async () => { const blob = await regard.exportPng();
        const picture = await createImageBitmap(blob);
        const { width, height } = regard.app.view.pictureSize();
        return [blob.size, [picture.width, picture.height], [Math.ceil(width), Math.ceil(height)]]; })()"""
    )
    assert size > 2000
    assert start == [2 * (area[0] + 48), 2 * (area[1] + 78)]


def test_the_buttons_give_files(page):
    page.set(view="matrix", call=4, head=2)
    for text, name in (
        ("SVG", "regard-matrix-layer-0-head-2.svg"),
        ("PNG", "regard-matrix-layer-0-head-2.png"),
    ):
        with page.page.expect_download() as waiting:
            page.page.click(f'button:text-is("{text}")')
        assert waiting.value.suggested_filename == name
        assert waiting.value.path().stat().st_size > 2000


# ---- themes, languages, address ------------------------------------------------------------------


def background(page):
    return sum(
        int(part)
        for part in re.findall(r"\d+", page.run("getComputedStyle(document.body).backgroundColor"))[:3]
    )


def test_light_and_dark_switch_and_follow_the_system(page):
    light = background(page)
    page.page.click('[aria-label^="Light or dark"]')
    assert page.now("theme") == "dark"
    assert background(page) < 120 < 700 < light
    page.set(theme="auto")
    page.page.emulate_media(color_scheme="dark")
    page.wait("document.documentElement.dataset.theme === 'dark'")
    assert background(page) < 120
    page.page.emulate_media(color_scheme="light")
    page.wait("document.documentElement.dataset.theme === 'light'")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("palette", ["blue", "viridis", "cividis"])
def test_ramps_grow_evenly_in_lightness(page, theme, palette):
    page.set(theme=theme, palette=palette)
    ramp = np.array(page.run("Array.from(regard.app.inks.ramp)")).reshape(256, 3) / 255
    light = ramp**2.2 @ [0.2126, 0.7152, 0.0722]
    steps = np.diff(light[::15]) * (1 if theme == "dark" else -1)
    assert (steps > -0.005).all()
    assert steps.sum() > 0.5


KNOWN_SIGNS = re.compile(r"watch\(model, values=True\)|\blse\b|\blog\b|\bexp\b|\bSVG\b|\bPNG\b|\bq\b|\bk\b")
SPEAKING = """(() => {
  const said = [];
  const walk = (node) => {
    if (node.nodeType === 3) { said.push(node.data); return; }
    if (node.nodeType !== 1 || node.getAttribute("translate") === "no" || node.tagName === "CANVAS") return;
    for (const name of ["aria-label", "title", "placeholder"]) said.push(node.getAttribute(name) ?? "");
    node.childNodes.forEach(walk);
  };
  walk(document.getElementById("regard"));
  return said; })()"""


@pytest.mark.parametrize("view", VIEWS)
def test_in_chinese_no_english_is_left(page, view):
    page.set(view=view, language="zh", call=2, query=4, key=1, sinks="first", words="merge")
    page.set(sort="entropy")
    page.page.keyboard.press("?")
    page.page.mouse.move(500, 500)
    said = page.run(SPEAKING)
    assert "总览" in said
    left = [text for text in said if re.search("[A-Za-z]{2,}", KNOWN_SIGNS.sub("", text))]
    assert not left
    # And the other way round.
    page.set(language="en")
    assert not [text for text in page.run(SPEAKING) if re.search("[\u4e00-\u9fff]", text)]


def test_both_languages_say_everything_and_nothing_is_unsaid(page):
    texts = page.run("regard.texts")
    assert texts["en"].keys() == texts["zh"].keys()
    for key, text in texts["en"].items():
        assert text.strip()
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", texts["zh"][key])), key
    source = "\n".join(file.read_text(encoding="utf-8") for file in ASSETS.rglob("*.js"))
    used = set(re.findall(r'say\("([\w.]+)"', source)) | set(
        re.findall(r'"((?:help|lines|steps|matrix)\.[\w.]+)"', source)
    )
    assert used <= texts["en"].keys()


def test_the_address_restores_the_view(page):
    page.set(
        view="steps",
        call=5,
        head=2,
        query=4,
        words="merge",
        scale="log",
        theme="dark",
        language="zh",
        heads=[0, 2],
    )
    address = page.run("location.hash")
    page.reset()
    assert page.now("view") == "overview"
    page.run("(location.hash = given, 0)", address)
    page.wait("regard.state.now.view === 'steps'")
    now = page.run("regard.state.now")
    wanted = {
        "call": 5,
        "head": 2,
        "query": 4,
        "words": "merge",
        "scale": "log",
        "theme": "dark",
        "language": "zh",
        "heads": [0, 2],
    }
    assert {name: now[name] for name in wanted} == wanted
    page.page.reload()
    page.wait("window.regard")
    assert {name: page.run("regard.state.now")[name] for name in wanted} == wanted


def test_back_and_forward(page):
    page.page.click('[data-view="heads"]')
    page.page.click('[data-view="matrix"]')
    page.page.go_back()
    page.wait("regard.state.now.view === 'heads'")
    page.page.go_forward()
    page.wait("regard.state.now.view === 'matrix'")


@pytest.mark.parametrize(
    "nonsense",
    [
        "view=sideways&call=99&head=-1",
        "call=1e9&heads=a b&zoom=x",
        "%%%&=&&__proto__=1&constructor=2",
        "query=&key=NaN&sort=evil",
    ],
)
def test_nonsense_in_the_address_is_ignored(page, nonsense):
    page.run("(location.hash = given, 0)", nonsense)
    page.page.wait_for_timeout(30)
    assert json.dumps(page.run("regard.state.now")) == json.dumps(page.run("regard.state.first"))


def test_a_page_opens_where_python_says(browser, tmp_path):
    page = open_stage(browser, tmp_path, stage.everything(), view="matrix", layer=1, head=3, lang="zh")
    assert (page.now("view"), page.now("call"), page.now("head"), page.now("language")) == (
        "matrix",
        1,
        3,
        "zh",
    )
    assert page.page.title() == "A page · regard"
    page.opened.check()
    page.page.context.close()


# ---- hostile and narrow --------------------------------------------------------------------------

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
        Call("layer", "decoder", 0, q, q, torch.zeros(1, 2, 4), None, mask, scale=0.4, run=run)
        for run, mask in enumerate((masks.causal(), left_padded))
    ]
    shown = stage.Stage(Recording("Toy", calls), [])
    shown.recording.tokens = ["[PAD]", "[PAD]", "[CLS]", "[SEP]"]
    page = open_stage(browser, tmp_path, shown)
    page.page.select_option('select[data-control="run"]', "1")
    assert page.now("call") == 1
    page.set(view="steps", query=1)
    assert "may see no key" in page.text(".steps-body")
    for lens in ({}, {"sinks": "special"}, {"special": "hide"}):
        for view in VIEWS:
            page.set(view=view, **lens)
            assert "NaN" not in page.run("regard.exportSvg()")
            assert "NaN" not in page.page.locator("#regard").inner_text()
    page.opened.check()
    page.page.context.close()


def test_the_page_stays_small():
    sizes = [file.stat().st_size for file in ASSETS.rglob("*") if file.suffix in (".js", ".css")]
    assert sum(sizes) < 170_000
