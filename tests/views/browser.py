"""A page in the browser: its numbers read by the page's own modules, and everything it does watched."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Error

from regard.views.page.page_html import ASSETS
from regard.views.script_bundle import bundle

READER = """
window.opened = await openRecording(document);
window.written = (bytes) => {
  if (bytes.toBase64) return bytes.toBase64();
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
};
"""


# The page hears of another address after it has changed, and may still write its own in between.
GO_TO = """(place) => new Promise((done) => {
  const wanted = new URL(place, location.href).hash;
  const go = () => {
    window.addEventListener("hashchange", () => (location.hash === wanted ? done(0) : go()), { once: true });
    if (location.hash === wanted) history.replaceState(null, "", "#elsewhere");
    location.hash = wanted;
  };
  go();
})"""


# The page looks by itself: each question from outside goes through the driver, and costs milliseconds of CPU.
UNTIL = """async (left) => {
  const end = performance.now() + left;
  while (!(%s)) {
    if (performance.now() > end) return false;
    await new Promise((done) => setTimeout(done, 10));
  }
  return true;
}"""


def until(page: Any, expression: str, seconds: float = 30) -> None:
    """Wait until a JavaScript expression is true: what a page does not do at once is read in this way only.

    The policy of the pages forbids the browser's own way of waiting.
    """
    end = time.monotonic() + seconds
    while True:
        left = 1000 * (end - time.monotonic())
        try:
            holds = page.evaluate(UNTIL % expression, left)
            break
        except Error as error:
            if "context was destroyed" not in str(error):  # the page goes somewhere else, and is asked there
                raise
    assert holds, f"never: {expression}; the page says: {page.inner_text('body')[:500]}"


def go_to(page: Any, place: str) -> None:
    """Another place of the same page, by the part of its address after ``#``; the page has followed."""
    page.evaluate(GO_TO, f"#{place}")


LATE_PAGE = Path(__file__).parents[1] / "js" / "late_page.js"


def come_late(browser: Any, delay: int) -> None:
    """From now on the pages of a browser do late what they do not do at once: see the script."""
    new_context = browser.new_context
    script = f"{LATE_PAGE.read_text(encoding='utf-8')}\ncomeLate({delay});"

    def late_context(**options: Any) -> Any:
        context = new_context(**options)
        context.add_init_script(script)
        return context

    browser.new_context = late_context


class Tabs:
    """Pages that tests borrow: a new one costs Chromium a second of CPU, another address a fifth of that."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self._free: dict[str, list[Any]] = {}

    def take(self, **options: Any) -> Any:
        """A page of a context with these options, to open something in."""
        free = self._free.setdefault(repr(options), [])
        page = free.pop() if free else self.browser.new_context(**options).new_page()
        page.options, page.size = options, page.viewport_size
        return page

    def give_back(self, page: Any) -> None:
        """Empty the page for the next test: nothing listens to it, and nothing is stored.

        A file stays open until the next one is; a served page would still ask its server, which ends.
        """
        if page.is_closed() or len(page.context.pages) > 1:
            page.context.close()
            return
        page.unroute_all()
        page.context.clear_cookies()
        if page.url.startswith("http"):
            page.evaluate("localStorage.clear()")
            page.goto("about:blank")
        if page.viewport_size != page.size:
            page.set_viewport_size(page.size)
        self._free[repr(page.options)].append(page)


class Heard:
    """Listens to a page until told to stop."""

    def __init__(self, page: Any, **listeners: Any) -> None:
        self._page, self._listeners = page, listeners
        for event, listener in listeners.items():
            page.on(event, listener)

    def stop(self) -> None:
        for event, listener in self._listeners.items():
            self._page.remove_listener(event, listener)


class Opened:
    """A page, with what it said and asked for."""

    def __init__(self, page: Any, path: Path) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page = page
        self.page.route("**/*", self._route)
        self.heard = Heard(
            page,
            console=self._heard,
            pageerror=lambda error: self.problems.append(f"uncaught: {error}"),
            dialog=self._dialog,
        )
        self.page.goto(Path(path).resolve().as_uri())

    def _route(self, route: Any) -> None:
        url = route.request.url
        if url.startswith("file:") and route.request.is_navigation_request():
            route.continue_()
            return
        self.requests.append(url)
        route.abort()

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def check(self) -> None:
        """Raise if anything went wrong since the page was opened."""
        assert not self.problems, self.problems
        assert not self.requests, self.requests

    def read(self) -> Opened:
        """Make the recording of the page available as ``opened``, through the page's own modules."""
        self.page.evaluate(
            "(code) => new Promise((done, failed) => {"
            "  const script = document.createElement('script');"
            "  script.type = 'module';"
            "  script.textContent = code + '; window.dispatchEvent(new Event(\"regard-read\"));';"
            "  window.addEventListener('regard-read', done, {once: true});"
            "  window.addEventListener('error', failed, {once: true});"
            "  document.head.append(script);"
            "})",
            bundle(ASSETS, "data/payload.js") + READER,
        )
        return self

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression over ``opened``."""
        return self.page.evaluate(f"() => ({expression})")

    def weights(self, call: int) -> np.ndarray:
        """All weights of a call, ``(head, query, key)``, as the page computes them."""
        heads, queries, keys = self.ask(
            f"[opened.calls[{call}].heads.length, opened.calls[{call}].queries, opened.calls[{call}].keys]"
        )
        texts = self.ask(
            f"""(() => {{
              const call = opened.calls[{call}];
              const whole = (head) => call.weights(head, 0, call.queries, 0, call.keys);
              return call.heads.map((_, head) => written(new Uint8Array(whole(head).buffer)));
            }})()"""
        )
        found = [np.frombuffer(base64.b64decode(text), np.float32) for text in texts]
        return np.stack(found).reshape(heads, queries, keys)
