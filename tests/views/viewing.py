"""A page with its views in the browser, and how to look at them from a test."""

from xml.etree import ElementTree

import numpy as np

import regard
from views.browser import Opened, go_to, until

CLOSE = 2e-3
VIEWS = ["text", "overview", "lines", "matrix", "heads", "steps"]
SVG = "{http://www.w3.org/2000/svg}"


class Page:
    """A page under test, with its recording beside it."""

    def __init__(self, opened, shown):
        self.opened, self.page, self.shown = opened, opened.page, shown
        self.wait("window.regard?.app")
        self.fresh = self.run("JSON.stringify(regard.state.now)")

    def run(self, code, *given):
        return self.page.evaluate(f"(given) => ({code})", *given)

    def wait(self, code):
        until(self.page, code)

    def go_to(self, place):
        go_to(self.page, place)

    def set(self, **values):
        """Changes the state and waits until everything has its place and is drawn."""
        self.run("(regard.state.set(given), regard.ready())", values)
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def reset(self):
        self.run(
            "(regard.state.set(JSON.parse(given)), regard.app.help.isOpen && regard.app.help.close(),"
            " regard.app.find.root.hidden || regard.app.find.close(), document.activeElement?.blur(),"
            " regard.app.closest = 'matrix', 0)",
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
    """A page that opens on its overview with nothing pinned, unless the options say otherwise."""
    options = {"view": "overview", **options}
    path = regard.page(shown.recording, folder / "page.html", title="A page", **options)
    context = browser.new_context(
        viewport=screen or {"width": 1100, "height": 760}, has_touch=screen is not None
    )
    return Page(Opened(context.new_page(), path), shown)


def words_of(svg):
    """The texts of an SVG document."""
    return {element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")}
