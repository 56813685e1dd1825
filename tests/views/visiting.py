"""A visitor of the served app in Chromium."""

import time

from playwright.sync_api import Error

from views.browser import Heard

SETTLED = "window.regard?.app?.margins && regard.app.layer.idle"


class Visitor:
    """A page of the served app; anything that goes wrong in it is remembered."""

    def __init__(self, tabs, base, **options):
        self.tabs, self.page = tabs, tabs.take(**options)
        self.base = base
        self.problems = []
        self.heard = Heard(
            self.page,
            console=lambda said: said.type in ("error", "warning") and self.problems.append(said.text),
            pageerror=lambda error: self.problems.append(f"uncaught: {error}"),
        )

    def leave(self):
        self.heard.stop()
        self.tabs.give_back(self.page)

    def open(self, path):
        self.page.goto(self.base + path)
        return self

    def ask(self, expression):
        return self.page.evaluate(f"() => ({expression})")

    def until(self, expression, seconds=20):
        """Wait until an expression is true. The page's policy forbids the browser's own way of waiting."""
        end = time.monotonic() + seconds
        while not self._is(expression):
            assert time.monotonic() < end, (expression, self.problems, self.page.inner_text("body")[:500])
            self.page.wait_for_timeout(40)
        return self

    def _is(self, expression):
        try:
            return self.ask(f"Boolean({expression})")
        except Error as error:
            if "context was destroyed" in str(error):  # the page goes somewhere else
                return False
            raise

    def settled(self):
        return self.until(SETTLED)
