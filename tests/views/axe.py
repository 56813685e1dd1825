"""axe-core, which finds what keeps people out of a page; it comes from npm and is never part of a page."""

import os
from functools import cache
from pathlib import Path

import pytest

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"

HARMFUL = ("serious", "critical")

RULES = {"light": (), "dark": ("color-contrast",)}
"""What is checked in each theme: all rules in one; in the other those of colours, the only difference."""


@cache
def axe_script():
    """The program of axe-core; without it tests are skipped, except in CI."""
    if not AXE.is_file():
        how = "No axe-core found. Install it: npm install --no-save --no-package-lock."
        if os.environ.get("CI") == "true":
            pytest.fail(how)
        pytest.skip(how)
    return AXE.read_text(encoding="utf-8")


def violations(page, *rules):
    """What axe-core finds serious in a page of playwright: rule, how many places, the first of them and why.

    ``rules`` are those to check, by default all of them.
    """
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(axe_script())
    options = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = list(rules)
    found = page.evaluate("(options) => axe.run(document, options)", options)["violations"]
    return [_told(one["id"], one["nodes"]) for one in found if one["impact"] in HARMFUL]


def _told(rule, places):
    first = places[0]
    return f"{rule} in {len(places)} places: {first['html'][:200]} {first['failureSummary']}"
