"""The matrix: exact under the crosshair, the greatest of a block far out, zoomed and moved."""

import numpy as np
import pytest

from views.viewing import CLOSE, words_of


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
    page.page.focus(".readout .value .term >> nth=1")
    assert "may not see this key" in page.page.locator(".readout .value .term").nth(1).get_attribute(
        "aria-description"
    )


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


@pytest.fixture
def resized(longer):
    """A page whose window a test may make smaller."""
    size = longer.page.viewport_size
    yield longer
    longer.page.set_viewport_size(size)


@pytest.mark.parametrize("width", [1400, 1024, 900, 700])
def test_what_the_axes_are_is_written_out_at_every_width(resized, width):
    longer = resized
    longer.page.set_viewport_size({"width": width, "height": 768})
    longer.set(view="matrix")
    longer.wait(f"Math.abs(regard.app.view.size.width - {width}) < 100")
    for masked in (True, False):
        x, text, limit = longer.run(
            """(() => {
              const texts = [];
              const keep = (name) => (...said) => name === "text" && texts.push(said);
              const paper = new Proxy({}, { get: (_, name) => keep(name) });
              regard.app.view.drawCaption(paper, given);
              const [x, , text, { limit }] = texts.at(-1);
              return [x, text, limit];
            })()""",
            masked,
        )
        assert text.startswith("Rows")
        wide = longer.run(
            """(() => {
              const context = document.createElement("canvas").getContext("2d");
              context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
              return context.measureText(given).width;
            })()""",
            text,
        )
        assert x >= 0
        assert wide <= limit + 0.5, (width, masked, text)
