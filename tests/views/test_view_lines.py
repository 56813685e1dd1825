"""Lines: the mean over the heads that are on, and a window on long texts."""

import numpy as np
import pytest

from views.viewing import CLOSE, words_of


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
    assert {int(column) for column, _ in found} == {j for j in range(1, 6) if wanted[j] > 0.02}
    assert all(weight == pytest.approx(wanted[int(column)], abs=CLOSE) for column, weight in found)
    page.page.click('.column.key .token[data-index="2"]')
    page.page.mouse.move(2, 2)
    assert page.now("key") == 2
    assert page.run("regard.lines().every((line) => line.column === 2)")
    page.page.keyboard.press("Escape")
    assert page.now("key") is None
    assert page.text(".readout").startswith("Point at a token")


def test_the_lines_of_a_token_leave_out_sinks_and_an_export_says_so(page):
    page.set(view="lines", call=0, query=4, heads=[3])
    wanted = page.shown.weights(0, 3)[4]
    special = {0, len(wanted) - 1}
    assert wanted[[*special]].max() > 0.02
    assert not special & {*page.run("regard.lines().map(({ column }) => column)")}
    assert "All of the token, besides sinks" in words_of(page.run("regard.exportSvg()").encode())
    # A key is pointed at because of its lines, and so is every line above a threshold.
    page.set(query=None, key=0)
    assert len(page.run("regard.lines()")) > 1
    page.set(query=4, key=None, least="0.01")
    assert special & {*page.run("regard.lines().map(({ column }) => column)")}
    assert "At least 1.0%" in words_of(page.run("regard.exportSvg()").encode())


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


def test_an_address_of_lines_that_names_a_head_shows_that_head_alone(page):
    lit = "[...document.querySelectorAll('.chip[aria-pressed=true]')].map((chip) => chip.textContent)"
    page.run("void (location.hash = '#view=lines&call=0&head=1')")
    page.wait("regard.state.now.view === 'lines'")
    assert page.now("heads") == [1]
    assert page.run(lit) == ["1"]
    page.page.click(".chips >> text=All")
    page.wait("location.hash.includes('heads=all')")
    # The address that was written shows all heads again, also to somebody who begins with it.
    assert page.run(
        "regard.state.beginning({ view: 'lines', head: 1, heads: null }).heads === null"
        " && regard.state.beginning({ view: 'lines', head: 1, heads: [0, 2] }).heads.length === 2"
    )
    written = page.run("location.hash")
    page.run("void (location.hash = '#view=lines&call=0&head=2')")
    page.wait("regard.state.now.head === 2")
    assert page.now("heads") == [2]
    page.run("void (location.hash = given)", written)
    page.wait("regard.state.now.head === 1")
    assert page.now("heads") is None
    assert len(page.run(lit)) == len(page.run("regard.app.look().call.heads"))
    # Other views name a head without choosing lines.
    page.run("void (location.hash = '#view=matrix&head=3')")
    page.wait("regard.state.now.view === 'matrix'")
    assert page.now("heads") is None
