"""The app and the map in Chromium: a text typed, looked at, zoomed to a cell, its weight compared."""

import re
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.served import Words, serving, translation
from app.served import book as book_of
from regard.app.server.assets import assets
from regard.texts import read_table
from views.axe import RULES, violations
from views.exact_weights import exact
from views.visiting import Visitor, visitors

DRAWN_WORDS = """(() => {
  const words = [];
  const paper = new Proxy({}, { get: (_, name) => (...given) => {
    if (name === "text") words.push(given[2]);
    if (name === "clip") given[4]();
  } });
  regard.app.view.drawAll(paper);
  return words;
})()"""


@pytest.fixture(scope="module")
def kept():
    return {}


@pytest.fixture(scope="module")
def base(kept):
    kept["model"] = Words()
    with serving({"two": translation()}, models=[kept["model"]]) as (kept["app"], address):
        yield address


@pytest.fixture
def visit(tabs, base):
    with visitors(tabs, base) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def one_page(tabs, base):
    visitor = Visitor(tabs, base, viewport={"width": 1200, "height": 800})
    yield visitor
    visitor.leave()


@pytest.fixture
def book(one_page):
    """The map of the book at some place, in one page for many tests."""

    def at(place):
        one_page.ask("document.activeElement?.blur()")
        return one_page.map("book", place)

    yield at
    assert not one_page.problems


@pytest.fixture(scope="module")
def wanted(base, kept):
    return exact(kept["app"].server_state.library.get("book").calls[1])[0, 1]


def readout(visitor):
    return visitor.ask("({...document.querySelector('.pair-readout').dataset})")


def cell(visitor, level, row, column):
    """A cell of the first tile of a level, as the page holds it."""
    tile = f"regard.app.layer.get({level}, 0, 0)"
    return visitor.ask(f"{tile}.values[{row} * {tile}.columns + {column}]")


def place_of(visitor, query, key):
    """Where a pair is on the screen."""
    return visitor.ask(
        f"""(() => {{
          const {{ viewport, canvas }} = regard.app.view;
          const box = canvas.getBoundingClientRect();
          return [box.left + viewport.x({key} + 0.5), box.top + viewport.y({query} + 0.5)];
        }})()"""
    )


def test_a_text_is_typed_and_looked_at(visit, kept):
    visitor = visit().open("/").until("window.regard?.home")
    visitor.page.fill("textarea", "the cat sat on the mat")
    visitor.page.click("button.primary")
    visitor.until("location.pathname.startsWith('/look/') && window.regard?.state")
    assert visitor.ask("regard.recording.calls[0].keyTokens") == ["the", "cat", "sat", "on", "the", "mat"]
    entry = kept["app"].server_state.library.get(visitor.ask("location.pathname.split('/')[2]"))
    shown = np.array(visitor.ask("Array.from(regard.recording.calls[0].weights(1, 0, 6, 0, 6))")).reshape(
        6, 6
    )
    np.testing.assert_allclose(shown, entry.calls[0].weights(1), atol=2e-3)
    # On to the map of the same head, and back to the lines of one query.
    visitor.ask("regard.state.set({ head: 1 })")
    visitor.page.hover(".app-bar")
    visitor.page.click(".app-tabs a:nth-child(2)")
    visitor.until("location.pathname.startsWith('/map/')").settled()
    assert visitor.ask("regard.state.now.head") == 1
    visitor.page.mouse.click(*place_of(visitor, 4, 2))
    visitor.until("document.querySelector('.pair-links a')")
    visitor.page.click(".pair-links a")
    visitor.until("location.pathname.startsWith('/look/') && window.regard?.state?.now.view === 'lines'")
    assert visitor.ask("[regard.state.now.head, regard.state.now.query]") == [1, 4]
    # The first page remembers the text; nobody else sees it.
    visitor.page.click(".app-bar .back")
    visitor.until("window.regard?.home")
    assert "the cat sat on the mat" in visitor.page.inner_text(".entries")
    other = visit().open("/").until("window.regard?.home")
    assert "the cat" not in other.page.inner_text("body")


def test_zooming_to_a_cell_reads_the_weight(book, wanted):
    visitor = book("call=1&head=1")
    assert visitor.ask("regard.app.view.level") > 0
    query, key = 700, 650
    for _ in range(30):
        x, y = place_of(visitor, query, key)
        visitor.page.mouse.move(x, y)
        if visitor.ask("regard.app.view.viewport.cellWidth") > 35:
            break
        visitor.page.mouse.wheel(0, -400)
    visitor.until("regard.app.view.level === 0 && regard.app.layer.idle")
    visitor.page.mouse.move(*place_of(visitor, query, key))
    visitor.until("document.querySelector('.pair-readout').dataset.weight")
    found = readout(visitor)
    assert (int(found["query"]), int(found["key"])) == (query, key)
    assert float(found["weight"]) == pytest.approx(wanted[query, key], abs=1e-6)
    assert "word700" in visitor.page.inner_text(".pair-readout")
    assert "word649\nword650\nword651" in visitor.page.inner_text(".pair-readout")  # in its context

    # A click pins it; a reload comes back to the same place with the same weight.
    visitor.page.mouse.click(*place_of(visitor, query, key))
    visitor.page.mouse.move(5, 5)
    visitor.until(f"regard.app.pinnedWeight !== null && location.hash.includes('query={query}')")
    before = visitor.ask(
        "JSON.stringify([regard.state.now, regard.app.view.viewport.row, regard.app.view.viewport.cellWidth])"
    )
    visitor.page.reload()
    visitor.settled().until("regard.app.pinnedWeight !== null")
    after = visitor.ask(
        "JSON.stringify([regard.state.now, regard.app.view.viewport.row, regard.app.view.viewport.cellWidth])"
    )
    numbers = [
        re.sub(r"-?[0-9.]+(e-?[0-9]+)?", lambda n: f"{float(n[0]):.2g}", text) for text in (before, after)
    ]
    assert numbers[0] == numbers[1]
    assert float(readout(visitor)["weight"]) == pytest.approx(wanted[query, key], abs=1e-6)


def test_far_out_the_pointer_tells_the_greatest_of_its_block(book, wanted):
    visitor = book("call=1&head=1")
    level = visitor.ask("regard.app.view.level")
    step = 2**level
    visitor.page.mouse.move(*place_of(visitor, 800, 100))
    visitor.until("document.querySelector('.pair-readout').dataset.weight")
    found = readout(visitor)
    row, column = 800 // step * step, 100 // step * step
    block = wanted[row : row + step, column : column + step]
    assert float(found["weight"]) == pytest.approx(block.max(), abs=1e-6)
    assert wanted[int(found["query"]), int(found["key"])] == pytest.approx(block.max(), abs=1e-6)
    # The tile on the screen says the same.
    shown = cell(visitor, level, 800 // step, 100 // step)
    assert shown == pytest.approx(block.max(), abs=1e-6)


def test_sinks_hidden_and_means(book, kept):
    call = kept["app"].server_state.library.get("book").calls[1]
    hidden = exact(call, np.arange(1097) == 0)[0, 1]
    visitor = book("call=1&head=1&sinks=first&show=mean&query=500&key=400")
    visitor.until("regard.app.pinnedWeight !== null")
    assert float(readout(visitor)["weight"]) == pytest.approx(hidden[500, 400], abs=1e-6)
    received = visitor.ask("Array.from(regard.app.margins.received)")
    np.testing.assert_allclose(received, hidden.sum(0), rtol=1e-3, atol=1e-4)
    level = visitor.ask("regard.app.view.level")
    step = 2**level
    shown = cell(visitor, level, 512 // step, 256 // step)
    # What a query of the block gives to the keys of the block, on average.
    assert shown == pytest.approx(hidden[512 : 512 + step, 256 : 256 + step].sum(1).mean(), rel=1e-3)


def test_calls_of_other_shapes(visit, kept):
    visitor = visit().open("/map/two").settled()
    weights = exact(kept["app"].server_state.library.get("two").calls[2])[0, 1]
    visitor.page.click("text=Cross")
    visitor.page.keyboard.press("]")
    visitor.until("regard.state.call.kind === 'cross' && regard.state.now.head === 1").settled()
    visitor.page.mouse.move(*place_of(visitor, 3, 17))
    visitor.until("document.querySelector('.pair-readout').dataset.weight")
    found = readout(visitor)
    assert (found["query"], found["key"]) == ("3", "17")
    assert float(found["weight"]) == pytest.approx(weights[3, 17], abs=1e-6)
    assert "垫" in visitor.page.inner_text(".pair-readout")
    visitor.page.click("text=Decoder")
    visitor.until("regard.state.call.kind === 'decoder'").settled()


# ---- the text by windows -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_text(base, kept):
    """A recording whose text has several windows."""
    seen = book_of(3301)
    kept["app"].server_state.library.give(Path("long.safetensors"), seen)
    return exact(seen.calls[0])[0, 1]


def told(visitor):
    return visitor.page.inner_text(".map-text .text-caption")


def test_the_text_of_a_long_recording_by_windows(visit, long_text):
    visitor = visit(viewport={"width": 1200, "height": 800}).open("/map/long#head=1").settled()
    visitor.page.keyboard.press("t")
    visitor.until("regard.app.text.elements?.length === 1500")
    assert "0 – 1,499 of 3,301" in visitor.page.inner_text(".map-text .text-bar")
    # A pinned query far away: its window opens, and the text is shaded by its weights.
    visitor.ask("regard.state.set({ query: 3100 })")
    visitor.until("regard.app.text.line?.token === 3100")
    assert visitor.ask("regard.app.text.from") == 3000
    shown = np.array(visitor.ask("Array.from(regard.app.text.shown)"))
    wanted = long_text[3100].copy()
    wanted[0] = shown[0]  # a sink may be quiet
    np.testing.assert_allclose(shown, wanted, atol=1e-5)
    assert told(visitor).startswith("Layer 0 · head 1: word3100 → word")
    # The strongest key is listed and gone to, wherever it is.
    best = int(np.argmax(shown))
    visitor.page.locator(".map-text .strongest button").first.click()
    assert visitor.ask(f"regard.app.text.from <= {best} && {best} < regard.app.text.from + 1500")


def test_pointing_and_walking_in_a_window(visit, long_text):
    visitor = (
        visit(viewport={"width": 1200, "height": 800}).open("/map/long#head=1&view=text&query=1600").settled()
    )
    visitor.until("regard.app.text.line?.token === 1600")
    visitor.page.locator(".map-text .token").nth(20).hover()
    visitor.until("regard.app.text.line?.token === 1520")
    visitor.page.mouse.move(5, 5)
    visitor.until("regard.app.text.line?.token === 1600")
    visitor.page.focus(".map-text .running")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("regard.app.text.line?.token === 1601")
    assert visitor.ask("regard.state.now.query") == 1601
    # What attends to a token is a column.
    visitor.page.click("text=Attended to by")
    visitor.until("regard.app.text.line?.direction === 'to'")
    shown = np.array(visitor.ask("Array.from(regard.app.text.shown)"))
    np.testing.assert_allclose(shown, long_text[:, 1601], atol=1e-5)
    assert violations(visitor.page) == []
    visitor.page.keyboard.press("t")
    assert visitor.page.locator(".map-text").is_hidden()


def test_page_up_and_down_skip_no_line_of_a_window(visit, long_text):
    visitor = visit(viewport={"width": 1200, "height": 800}).open("/map/long#head=1&view=text").settled()
    visitor.until("regard.app.text.elements?.length === 1500")
    place = "[regard.app.text.from, regard.app.text.scroller.scrollTop]"
    visitor.page.keyboard.press("PageDown")  # nothing has the focus yet
    assert visitor.ask(place)[1] > 0
    visitor.page.locator(".map-text .token").nth(3).click()
    visitor.ask("void (regard.app.text.scroller.scrollTop = 0)")
    seen = []
    while not seen or (seen[-1] != visitor.ask(place) and len(seen) < 60):
        seen.append(visitor.ask(place))
        visitor.page.keyboard.press("PageDown")
    height = visitor.ask("regard.app.text.scroller.clientHeight")
    assert {start for start, _ in seen} == {0, 1500, 3000}
    for (before, top), (after, below) in pairwise(seen):
        assert 0 < below - top < height if before == after else below == 0
    for place_before in reversed(seen[:-1]):
        visitor.page.keyboard.press("PageUp")
        assert visitor.ask("regard.app.text.from") == place_before[0]
    visitor.page.keyboard.press("PageUp")
    assert visitor.ask(place) == [0, 0]


def test_lines_of_the_text_end_where_they_do(visit, kept):
    seen = book_of(9)
    seen.tokens = [["one", ".\n", "two", "\n", "three", *"abcd"]]
    kept["app"].server_state.library.give(Path("lines.safetensors"), seen)
    visitor = visit().open("/map/lines#view=text").settled()
    tops = visitor.ask(
        "[...document.querySelectorAll('.map-text .token')]"
        ".map((one) => Math.round(one.getBoundingClientRect().top))"
    )
    assert tops[0] == tops[1] < tops[2] == tops[3] < tops[4] == tops[-1]


def test_what_is_said_of_the_coarse_levels_stands_aside_where_they_are_not_seen(visit, long_text):
    visitor = visit().open("/map/long#head=1").settled()
    visitor.ask("void (regard.app.layer.built = false, regard.app.say('Drawing'), regard.app.view.refine())")
    middle = """(() => {
      const place = regard.app.view.notice.getBoundingClientRect();
      const { left, top, width, height } = regard.app.view.stage.getBoundingClientRect();
      const [x, y] = [left + width / 2, top + 0.4 * height];
      return place.left <= x && x <= place.right && place.top <= y && y <= place.bottom;
    })()"""
    assert visitor.ask(middle)
    visitor.ask("regard.app.view.goTo(1600, 1500)")
    visitor.until("regard.app.view.level === 0")
    visitor.until(f"!{middle}")


def test_the_text_marks_what_is_searched_for(visit, long_text):
    visitor = visit().open("/map/long#head=1&view=text&query=1600").settled()
    marked = "[...document.querySelectorAll('.map-text .found')].map((one) => Number(one.dataset.token))"
    name = "word16"  # word160, word1600 … in two windows
    visitor.page.fill(".map-search input", name)
    wanted = [at for at, one in enumerate(visitor.ask("regard.app.keyTokens")) if one.startswith(name)]
    assert visitor.ask(marked) == [at for at in wanted if 1500 <= at < 3000]
    assert visitor.page.inner_text(".match-count") == f"{len(wanted)} found"
    visitor.page.press(".map-search input", "Shift+Enter")  # backwards, from the last one
    visitor.until(f"regard.state.now.query === {wanted[-1]}")
    assert visitor.page.inner_text(".match-count") == f"{len(wanted)} of {len(wanted)}"
    first = wanted[-1] // 1500 * 1500
    visitor.until(f"regard.app.text.from === {first}")
    assert visitor.ask(marked) == [at for at in wanted if first <= at < first + 1500]
    visitor.page.fill(".map-search input", "")
    assert visitor.ask(marked) == []


def test_what_is_searched_for_is_shown_though_the_pointer_rests_on_the_text(visit, long_text):
    visitor = visit().open("/map/long#head=1&view=text&query=1600").settled()
    visitor.until("regard.app.text.line?.token === 1600")
    visitor.page.locator(".map-text .token").nth(20).hover()
    visitor.until("regard.app.text.line?.token === 1520")
    visitor.ask("regard.state.set({ query: 200 })")
    visitor.until("regard.app.text.line?.token === 200")


def test_a_late_line_of_another_head_is_not_shown(visit, long_text):
    visitor = visit().open("/map/long#head=1&view=text&query=1600").settled()
    visitor.until("regard.app.text.line?.token === 1600")
    held = []
    visitor.page.route(re.compile(r"/lines/\d+/0/"), lambda route: held.append(route))
    visitor.ask("regard.state.set({ head: 0 })")
    visitor.until("regard.state.now.head === 0")
    visitor.ask("regard.state.set({ head: 1 })")
    with visitor.page.expect_response(re.compile(r"/lines/\d+/0/")):
        held[0].continue_()
    visitor.ask("new Promise((resolve) => setTimeout(resolve, 100))")
    shown = np.array(visitor.ask("Array.from(regard.app.text.line.values)"))
    np.testing.assert_allclose(shown[:1601], long_text[1600, :1601], atol=1e-5)


def test_the_windows_speak_chinese_and_cross_attention_has_none(visit, long_text):
    visitor = visit(locale="zh-CN").open("/map/long#view=text").settled()
    assert "共 3,301 个" in visitor.page.inner_text(".map-text")
    visitor.open("/map/two#call=2&view=text").settled()
    assert visitor.ask("regard.state.now.view") == "map"


def test_search_goes_to_the_token(book):
    visitor = book("")
    visitor.page.keyboard.press("/")
    visitor.page.keyboard.type("Word 88")
    visitor.until("regard.app.matches.length === 11")  # word88 and word880 … word889
    visitor.page.keyboard.press("Enter")
    visitor.page.keyboard.press("Enter")
    visitor.until("regard.state.now.query === 880")
    in_sight = visitor.ask("regard.app.view.viewport.inSight")
    assert in_sight["top"] <= 880 < in_sight["bottom"]
    # What is shown is the key that the query attends to most, not the empty paper around the query.
    assert in_sight["left"] <= visitor.ask("regard.state.now.key") < in_sight["right"]
    visitor.page.fill(".map-search input", "#42")
    visitor.page.click(".search-sides button:nth-child(2)")
    visitor.page.press(".map-search input", "Enter")
    visitor.until("regard.state.now.key === 42")
    visitor.page.fill(".map-search input", "nowhere")
    assert visitor.page.inner_text(".match-count") == "Not in this text."


def test_a_late_answer_does_not_undo_a_search(visit):
    visitor = visit().open("/map/book").settled()
    first, held = re.compile(r"/rows/\d+/\d+/88\?"), []
    visitor.page.route(first, lambda route: held.append(route))
    visitor.page.keyboard.press("/")
    visitor.page.keyboard.type("Word 88")
    visitor.until("regard.app.matches.length === 11")
    visitor.page.keyboard.press("Enter")
    visitor.page.keyboard.press("Enter")
    visitor.until("regard.state.now.query === 880")
    with visitor.page.expect_response(first):
        held[0].continue_()
    visitor.page.unroute(first)
    visitor.ask("new Promise((resolve) => setTimeout(resolve, 100))")
    assert visitor.ask("regard.state.now.query") == 880


def test_a_late_peak_of_another_head_is_not_shown(visit, wanted):
    visitor = visit(viewport={"width": 1200, "height": 800}).open("/map/book#call=1&head=0").settled()
    peaks, held = re.compile(r"/peaks/1/0/"), []
    visitor.page.route(peaks, lambda route: held.append(route))
    visitor.page.mouse.move(*place_of(visitor, 600, 300))
    visitor.until("regard.app.view.peaks.size === 1")
    visitor.ask("regard.state.set({ head: 1 })")
    visitor.settled()
    with visitor.page.expect_response(peaks):
        held[0].continue_()
    visitor.ask("new Promise((resolve) => setTimeout(resolve, 100))")
    visitor.page.mouse.move(*place_of(visitor, 600.3, 300.3))
    visitor.until("document.querySelector('.pair-readout').dataset.weight")
    found = readout(visitor)
    best = wanted[int(found["query"]), int(found["key"])]
    assert float(found["weight"]) == pytest.approx(best, abs=1e-6)


def test_the_keyboard_moves_zooms_and_steps(book):
    visitor = book("query=10&key=5")
    keys = visitor.page.keyboard
    keys.press("+")
    keys.press("+")
    visitor.until("regard.state.now.zoom !== null")
    before = visitor.ask("regard.app.view.viewport.row")
    keys.press("ArrowDown")
    assert visitor.ask("regard.app.view.viewport.row") > before
    keys.press("Shift+ArrowDown")
    keys.press("Shift+ArrowLeft")
    assert visitor.ask("[regard.state.now.query, regard.state.now.key]") == [11, 4]
    keys.press("]")
    keys.press("}")
    assert visitor.ask("[regard.state.now.head, regard.state.now.call]") == [1, 1]
    keys.press("0")
    keys.press("Escape")
    assert visitor.ask("[regard.state.now.zoom, regard.state.now.query]") == [None, None]
    keys.press("?")
    assert visitor.page.is_visible("dialog.help")
    keys.press("Escape")
    assert not visitor.page.is_visible("dialog.help")


def test_the_map_is_exported(book, tmp_path):
    visitor = book("call=1")
    with visitor.page.expect_download() as waiting:
        visitor.page.click("text=PNG")
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    assert file.name == "regard-map-layer-1-head-0.png"
    picture = np.asarray(Image.open(file).convert("L"))
    assert picture.shape[1] > 1000
    assert picture.std() > 5


@pytest.mark.parametrize(("width", "height"), [(1200, 760), (1400, 900), (390, 844)])
def test_the_map_fills_the_window_and_names_its_margins(visit, width, height):
    visitor = visit(viewport={"width": width, "height": height}).open("/map/book").settled()
    across, down = visitor.ask(
        "['width', 'height'].map((way) => regard.app.view.viewport[way] / regard.app.view.size[way])"
    )
    assert across > 0.7
    assert down > 0.7
    share = visitor.ask(
        "(({ viewport: { width, height } }) => width * height / innerWidth / innerHeight)(regard.app.view)"
    )
    assert share > 0.4
    words = visitor.ask(DRAWN_WORDS)
    assert {"attention received by each key", "entropy of each query"} <= set(words)
    # Zooming makes the cells square.
    for _ in range(4):
        visitor.page.click(".zoom-tools button:last-child")
    visitor.until("regard.app.layer.idle")
    sizes = visitor.ask("(({ cellWidth, cellHeight }) => [cellWidth, cellHeight])(regard.app.view.viewport)")
    assert sizes[0] == pytest.approx(sizes[1])


def test_a_phone(visit, wanted):
    visitor = visit(
        viewport={"width": 390, "height": 780}, device_scale_factor=2, has_touch=True, is_mobile=True
    )
    visitor.open("/map/book#call=1&head=1").settled()
    assert visitor.ask("document.documentElement.scrollWidth") <= 390
    visitor.page.click(".zoom-tools button:last-child")
    visitor.until("regard.state.now.zoom !== null && regard.app.layer.idle")
    visitor.page.touchscreen.tap(
        *place_of(
            visitor,
            *visitor.ask(
                "(({top, bottom, left}) => [(top + bottom) >> 1, left + 9])(regard.app.view.viewport.inSight)"
            ),
        )
    )
    visitor.until("regard.app.pinnedWeight !== null")
    found = readout(visitor)
    assert float(found["weight"]) == pytest.approx(wanted[int(found["query"]), int(found["key"])], abs=1e-6)
    visitor.page.click(".fold")
    assert visitor.page.is_visible(".controls select")
    visitor.open("/").until("window.regard?.home")
    assert visitor.ask("document.documentElement.scrollWidth") <= 390


def test_chinese_and_dark(visit):
    visitor = visit(color_scheme="dark").open("/map/book").settled()
    visitor.page.click("text=中文")
    visitor.until("document.documentElement.lang === 'zh-CN'")
    assert "搜索" in visitor.page.get_attribute(".map-search input", "placeholder")
    assert visitor.ask("document.documentElement.dataset.theme") == "dark"
    assert visitor.page.inner_text(".app-tabs").split() == ["视图", "地图"]
    # The choice is remembered on the first page.
    visitor.open("/").until("window.regard?.home")
    assert "文本" in visitor.page.inner_text("h2")


def test_an_address_of_nonsense_shows_the_map(book):
    visitor = book("call=99&head=-1&zoom=x+y+z&sinks=no&query=1e9")
    assert visitor.ask("[regard.state.now.call, regard.state.now.zoom, regard.state.now.query]") == [
        0,
        None,
        None,
    ]


def test_a_reading_is_cancelled_and_a_closed_page_ends_its_job(visit, kept, monkeypatch):
    model = kept["model"]
    monkeypatch.setattr(model, "pause", 1.0)  # longer than a busy browser needs to be closed
    read_before = list(model.read_texts)
    visitor = visit().open("/").until("window.regard?.home")
    file = {"name": "text.txt", "mimeType": "text/plain", "buffer": b"to be cancelled"}
    visitor.page.set_input_files("input[type=file]", file)
    visitor.until("document.querySelector('textarea').value === 'to be cancelled'")
    visitor.page.set_input_files("input[type=file]", {**file, "buffer": b"\xff\xfe\x00"})
    visitor.until("document.querySelector('.note').textContent.includes('not UTF-8 text')")
    visitor.page.click("button.primary")
    visitor.until("document.querySelector('progress')")
    visitor.page.click("button.primary")
    visitor.until("!document.querySelector('progress')")
    visitor.page.fill("textarea", "to be left")
    visitor.page.click("button.primary")
    visitor.until("document.querySelector('progress')")
    jobs = kept["app"].server_state.jobs
    (last,) = [job for job in jobs._open if not job.over and job.kind == "reading" and job.stop is None]
    visitor.page.close()
    end = time.monotonic() + 20
    while not last.over:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert last.state == "cancelled"
    assert model.read_texts == read_before


def test_an_empty_text_is_told_in_the_colour_of_errors(visit):
    visitor = visit().open("/")
    visitor.until("document.querySelector('textarea')")
    visitor.page.fill("textarea", "  ")
    visitor.page.press("textarea", "Control+Enter")
    assert visitor.page.inner_text(".note.error") == "Type a text first."
    visitor.page.fill("textarea", "the cat")
    assert visitor.page.locator(".note.error").count() == 0


def test_tokens_are_counted_while_typing_and_the_first_ones_can_be_read(visit, kept, monkeypatch):
    monkeypatch.setattr(kept["model"], "longest", 4)
    visitor = visit().open("/")
    visitor.until("document.querySelector('.examples button')")
    visitor.page.click(".examples button >> nth=0")
    assert visitor.page.input_value("textarea").startswith("The animal")
    visitor.until("document.querySelector('.counter.error button')")
    assert "11 tokens; this model reads at most 4." in visitor.page.inner_text(".counter")
    visitor.page.click(".counter button")
    visitor.until("location.pathname.startsWith('/look/')")


# ---- modules -------------------------------------------------------------------------------------


def test_every_import_is_a_file_that_exports_it():
    found = assets()
    pattern = re.compile(r'^import (?:\{([^}]*)\} from )?"([^"]+)";', re.MULTILINE)
    own = [name for name in found if name.endswith(".js") and not name.startswith("page/")]
    assert len(own) > 10
    for name in own:
        source = found[name].content.decode()
        for names, where in pattern.findall(source):
            near = "/".join(_resolved(Path(*Path(name).parent.parts, where).parts))
            target = where.removeprefix("/assets/") if where.startswith("/") else near
            assert target in found, (name, where)
            exported = set(
                re.findall(
                    r"^export (?:async )?(?:function|class|const) (\w+)", found[target].content.decode(), re.M
                )
            )
            assert {one.strip() for one in names.split(",") if one.strip()} <= exported, (name, where)


def _resolved(parts):
    kept = []
    for part in parts:
        if part == "..":
            kept.pop()
        else:
            kept.append(part)
    return kept


def test_every_word_is_spoken_in_both_languages():
    known = {key for subject in ("page", "map", "app") for key in read_table(subject, "zh")}
    said = set()
    for name, asset in assets().items():
        if name.endswith(".js") and not name.startswith("page/"):
            said |= set(re.findall(r'say\("([a-z.]+)"', asset.content.decode()))
    assert len(said) > 50
    assert said <= known


@pytest.mark.parametrize("viewport", [{"width": 1200, "height": 800}, {"width": 390, "height": 844}])
def test_nobody_is_kept_out(visit, viewport):
    visitor = visit(viewport=viewport, bypass_csp=True)
    for view in ("map", "text"):
        visitor.map("two", f"view={view}&query=3&key=2")
        for theme in ("light", "dark"):
            visitor.ask(f"regard.state.set({{ theme: '{theme}' }})")
            assert violations(visitor.page, *RULES[theme]) == []
    visitor.open("/").until("document.querySelector('textarea')")
    for theme in ("light", "dark"):
        visitor.page.emulate_media(color_scheme=theme)
        assert violations(visitor.page, *RULES[theme]) == []
    visitor.page.emulate_media(color_scheme="light")
