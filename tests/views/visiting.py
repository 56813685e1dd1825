"""A visitor of the served app in Chromium."""

from contextlib import contextmanager

from views.browser import Heard, go_to, until

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

    def until(self, expression):
        until(self.page, expression)
        return self

    def settled(self):
        return self.until(SETTLED)

    def map(self, name, place):
        """The map of a recording at some place; one that is open already is moved there."""
        self.page.mouse.move(5, 5)
        path = f"/map/{name}"
        if self.page.url.partition("#")[0] == self.base + path:
            go_to(self.page, place)
        else:
            self.open(f"{path}#{place}")
        return self.settled()


@contextmanager
def visitors(tabs, base):
    """Makes visitors of a server; at the end they leave, and none of them may have had a problem."""
    found = []

    def visitor(**options):
        found.append(Visitor(tabs, base, **options))
        return found[-1]

    yield visitor
    problems = [problem for one in found for problem in one.problems]
    for one in found:
        one.leave()
    assert not problems
