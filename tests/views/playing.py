"""Playables in the browser: the pages, and their pure modules called with numbers from Python."""

from functools import cache
from pathlib import Path

from regard.texts import read_table
from regard.views.script_bundle import bundle

ROOT = Path(__file__).parents[2]


@cache
def probe():
    """The pure modules as one script that puts ``play`` into the window."""
    return bundle(ROOT, "tests/js/play_probe.js", "play")


class Engine:
    """The modules in an empty page of Chromium."""

    def __init__(self, page):
        self.page = page
        page.goto("about:blank")
        page.evaluate(f"() => {{ {probe()} }}")
        found = {key: text for key, text in read_table("errors", "zh").items() if f'"{key}"' in probe()}
        page.evaluate("(errors) => play.learnErrors(errors)", found)

    def ask(self, code, given):
        """The value of an expression over ``given``, one for each case."""
        return self.page.evaluate(f"(cases) => cases.map((given) => {code})", given)
