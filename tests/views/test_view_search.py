"""Search in every view, the strongest key, the minimap, masked areas, explanations, and the focus."""

import numpy as np
import pytest

from views.viewing import VIEWS


def test_search_marks_every_match_and_goes_from_one_to_the_next(longer):
    longer.set(view="text")
    longer.page.keyboard.press("/")
    tokens = longer.run("regard.state.call.keyTokens")
    wanted = tokens[20]
    longer.page.keyboard.type(wanted)
    matches = longer.run("regard.app.found().list.map(({ token }) => token)")
    assert 20 in matches
    assert longer.page.locator(".running .found").count() == longer.run("regard.app.found().key.size")
    assert longer.text(".find-bar .hint") == f"{len(matches)} found"
    longer.page.keyboard.press("Enter")
    assert longer.now("query") == matches[0]
    assert longer.text(".find-bar .hint") == f"1 of {len(matches)}"
    longer.page.keyboard.press("Shift+Enter")
    assert longer.now("query") == matches[-1]
    box = longer.page.locator(f'.running [data-unit="{matches[-1]}"]').bounding_box()
    book = longer.page.locator(".book").bounding_box()
    assert book["y"] <= box["y"] <= book["y"] + book["height"]
    longer.page.keyboard.press("Escape")
    assert longer.now("find") == ""
    assert longer.page.locator(".found").count() == 0


@pytest.mark.parametrize("view", VIEWS)
def test_a_match_is_marked_in_every_view(longer, view):
    token = longer.run("regard.state.call.keyTokens[300]")
    longer.set(view=view, find=token)
    longer.run("(regard.app.find.step(1), 0)")
    first = longer.run("regard.app.found().list[0].token")
    assert longer.now("query") == first
    longer.set()
    if view in ("text", "lines", "steps"):
        assert longer.page.locator(".view .found").count() >= 1
    if view == "overview":
        assert longer.page.locator(".card .marks:not([hidden])").count() == len(longer.shown.traces) * 2
    if view == "matrix":
        seen = longer.run("regard.app.view.viewport.inSight")
        key = int(longer.shown.weights(0, longer.now("head"))[first].argmax())
        assert seen["top"] <= first < seen["bottom"]
        assert seen["left"] <= key < seen["right"]
    if view == "heads":
        weights = [longer.shown.weights(0, head)[first] for head in range(2)]
        longer.wait("document.querySelectorAll('.strongest-key .token-text').length >= 2")
        shown = longer.page.locator(".strongest-key .number").all_inner_texts()[:2]
        assert [float(text.rstrip("%")) for text in shown] == pytest.approx(
            [100 * row.max() for row in weights], abs=0.6
        )


def test_nothing_is_found(page):
    page.set(view="text", find="nowhere at all")
    assert page.text(".find-bar .hint") == "Not in this text"
    page.run("(regard.app.find.step(1), 0)")
    assert page.now("query") is None


def test_the_strongest_key(longer):
    longer.set(view="matrix", query=600, key=None, head=1)
    longer.page.keyboard.press("s")
    key = int(longer.shown.weights(0, 1)[600].argmax())
    assert longer.now("key") == key
    seen = longer.run("regard.app.view.viewport.inSight")
    assert seen["left"] <= key < seen["right"]
    assert seen["top"] <= 600 < seen["bottom"]
    longer.set(view="lines", query=600, key=None)
    longer.page.keyboard.press("s")
    first, last = longer.run("regard.app.view.right.window")
    assert first <= longer.now("key") < last
    longer.set(view="text", query=None, key=None)
    longer.page.keyboard.press("s")
    assert longer.now("key") is None


def test_the_strongest_key_of_lines_is_among_the_lines(page):
    # A head and a query that attend most to a special token, which is a sink and has no line.
    special = {at for at, is_special in enumerate(page.run("regard.state.call.keySpecial")) if is_special}
    tried = [(head, row) for head in range(2) for row in range(1, len(page.shown.weights(0, head)))]
    head, row = next(at for at in tried if int(page.shown.weights(0, at[0])[at[1]].argmax()) in special)
    weights = page.shown.weights(0, head)[row]
    page.set(view="lines", call=0, head=head, heads=[head], query=row, key=None, least="best")
    page.page.keyboard.press("s")
    resting = page.run("[...regard.app.view.restingColumns(regard.state.now.head)]")
    assert special <= {*resting}
    assert page.now("key") == max({*range(len(weights))} - {*resting}, key=lambda key: weights[key])
    page.set(key=None, least="0.01")
    page.page.keyboard.press("s")
    assert page.now("key") == int(weights.argmax())


def test_the_minimap_moves_a_long_matrix(longer):
    longer.set(view="matrix", zoom=[0, 0, 8])
    box = longer.page.locator(".minimap").bounding_box()
    longer.page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 0.5 * box["height"])
    seen = longer.run("regard.app.view.viewport.inSight")
    assert seen["top"] < 351 < seen["bottom"]
    assert seen["left"] < 526 < seen["right"]
    assert longer.page.locator(".minimap").get_attribute("aria-label").startswith("The whole matrix")


def test_a_short_matrix_has_no_minimap(page):
    page.set(view="matrix")
    assert page.page.locator(".minimap").is_hidden()


def test_masked_pairs_are_hatched_and_named(page):
    call = next(at for at, trace in enumerate(page.shown.traces) if (trace["weights"][0] == 0).any())
    page.set(view="matrix", call=call, head=0)
    weights = page.shown.weights(call, 0)
    areas = page.run("regard.app.view.maskedRectangles().length")
    assert areas > 0
    hatched = page.run("regard.exportSvg()")
    assert ">masked<" in hatched
    row, column = np.argwhere(weights == 0)[0]
    page.point(int(row), int(column))
    assert "masked" in page.text(".readout")
    # A drawing of the same areas says the same as the weights.
    cells = page.run(
        """(() => { const { viewport, look } = regard.app.view;
        const inside = (x, y) => regard.app.view.maskedRectangles().some(
          ([left, top, width, height]) => x > left && x < left + width && y > top && y < top + height);
        return Array.from({ length: look.rows.count }, (_, row) => Array.from({ length: look.columns.count },
          (_, column) => inside(viewport.x(column + 0.5), viewport.y(row + 0.5)))); })()"""
    )
    assert (np.array(cells) == (weights == 0)).all()


def test_words_explain_themselves_to_pointer_and_keyboard(page):
    page.set(view="matrix", query=1, key=1)
    page.page.hover(".readout .term >> nth=0")
    assert "each row of attention belongs to one query" in page.text(".explanation")
    page.page.mouse.move(2, 2)
    assert page.page.locator(".explanation").is_hidden()
    page.page.keyboard.press("Tab")
    page.page.focus(".controls .term")
    page.page.keyboard.press("Shift+Tab")
    page.page.keyboard.press("Tab")
    assert "rest their weight" in page.text(".explanation")
    page.page.keyboard.press("Escape")
    assert page.page.locator(".explanation").is_hidden()
    assert page.now("query") == 1  # the first Escape closed the explanation alone


def test_no_explanation_of_a_word_that_is_gone(page):
    call = next(at for at, trace in enumerate(page.shown.traces) if (trace["weights"][0] == 0).any())
    page.set(view="matrix", call=call, head=0)
    row, column = np.argwhere(page.shown.weights(call, 0) == 0)[0]
    page.point(int(row), int(column))
    box = page.page.locator(".readout .term", has_text="masked").bounding_box()
    page.page.mouse.move(box["x"] + 4, box["y"] + 4)  # off the matrix, so the readout is cleared
    assert page.page.locator(".readout .term", has_text="masked").count() == 0
    assert page.page.locator(".explanation").is_hidden()


def test_the_keyboard_stays_where_a_head_was_opened(page):
    page.set(view="overview")
    page.page.focus(".card >> nth=3")
    page.page.keyboard.press("Enter")
    assert page.now("view") in ("matrix", "lines")
    assert page.run("document.querySelector('.stage').contains(document.activeElement)")
    assert page.run("document.activeElement !== document.body")


def test_a_row_of_the_matrix_as_a_table(page):
    page.set(view="matrix", call=0, head=1, query=2, key=None)
    page.page.click(".row-table summary")
    table = page.page.locator(".row-table tbody tr")
    table.first.wait_for()  # the page fills the table after the click
    rows = table.all_inner_texts()
    weights = page.shown.weights(0, 1)[2]
    order = np.argsort(-weights, kind="stable")
    position, _, weight = rows[0].split("\t")
    assert int(position) == order[0]
    assert float(weight) == pytest.approx(weights[order[0]], abs=2e-3)
    page.page.focus("canvas.map")
    page.page.keyboard.press("Shift+ArrowDown")
    assert page.text(".row-table caption").startswith("Query 3")
    page.page.click(".row-table summary")


def test_lines_show_the_strongest_of_each_query_by_default(page):
    page.set(view="lines", call=2, heads=[1])
    weights = page.shown.weights(2, 1)
    special = page.run("regard.state.call.keySpecial")
    first = page.run("regard.state.call.statistic('first_weight')[1]")
    resting = [bool(is_special) or (at == 0 and first >= 0.25) for at, is_special in enumerate(special)]
    open_keys = np.where(resting, 0, weights)
    found = page.run("regard.lines().map(({ row, column }) => [row, column])")
    assert sorted(map(tuple, found)) == [
        (row, int(open_keys[row].argmax())) for row in range(len(weights)) if open_keys[row].max() > 0.02
    ]
    page.page.select_option(".chips select", "0.25")
    found = page.run("regard.lines().map(({ row, column }) => [row, column])")
    assert sorted(map(tuple, found)) == [tuple(map(int, at)) for at in np.argwhere(weights >= 0.25)]
    svg = page.run("regard.exportSvg()")
    assert "At least 25%" in svg
    assert ">Head 1<" in svg


def test_both_columns_scroll_together(longer):
    longer.set(view="lines", query=None, key=None)
    longer.page.mouse.move(2, 2)
    box = longer.page.locator(".column.query").bounding_box()
    longer.page.mouse.move(box["x"] + 30, box["y"] + 100)
    before = longer.run("regard.app.view.right.root.scrollTop")
    longer.page.mouse.wheel(0, 400)
    longer.wait(f"regard.app.view.right.root.scrollTop === {before} + 400")
    assert longer.run("regard.app.view.left.root.scrollTop - regard.app.view.right.root.scrollTop") == 0


def test_heads_by_role(page):
    page.set(view="overview", sort="role")
    assert page.page.locator(".card").count() == 5 * 2 + 4 * 4
    page.set(view="heads", sort="role")
    titles = page.page.locator(".group th").all_inner_texts()
    assert len(titles) >= 1
    assert page.page.locator("tbody tr:not(.group)").count() == 5 * 2 + 4 * 4
