"""Pictures of every view of a page, taken in headless Chromium; ``make_pictures.py`` writes them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

SCREEN = (1200, 760)

READY = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"


class Scene(NamedTuple):
    """One picture: which recording, what is set, and what is done before it is taken."""

    recording: str
    state: Mapping[str, Any]
    act: str = ""
    scheme: str = "light"


SCENES: dict[str, Scene] = {
    "page-text": Scene("sentence", {"query": 9}),
    "page-search": Scene("licence", {"find": "licens"}, "regard.app.find.step(1)"),
    "page-overview": Scene("sentence", {"view": "overview"}),
    "page-roles": Scene("licence", {"view": "overview", "sort": "role"}),
    "page-lines": Scene("sentence", {"view": "lines", "call": 2, "heads": [2, 7, 9], "query": None}),
    "page-matrix": Scene(
        "licence", {"view": "matrix", "call": 1, "head": 4, "zoom": [120, 120, 5]}, scheme="dark"
    ),
    "page-heads": Scene("licence", {"view": "heads", "query": 20, "sort": "peak"}),
    "page-steps": Scene("sentence", {"view": "steps", "query": 9, "key": 12}),
    "page-compare": Scene("compared", {"call": 2, "head": 3, "query": 9}),
    "page-difference": Scene("compared", {"view": "overview", "what": "difference"}),
    "page-gradients": Scene("gradients", {"view": "overview", "call": 0, "head": 0, "scale": "log"}),
    "page-relevance": Scene("gradients", {"group": "relevance"}, scheme="dark"),
}


PLAY_SCENES: dict[str, tuple[str, str]] = {
    "play-one-query": ("query", ""),
    "play-sentence": (
        "sentence",
        "document.querySelector('.of-queries .cell').focus({ preventScroll: true }), scrollTo(0, 700)",
    ),
    "play-masks": ("masks", ""),
    "play-transformer": ("transformer", ""),
}
"""The pictures of the playables: which page, and what is done before the picture is taken."""


def play_pictures(folder: Path, wanted: Sequence[str] = ()) -> Iterator[Path]:
    """Write the pictures of the playables, or those that are named."""
    import tempfile

    from playwright.sync_api import sync_playwright

    from regard.lessons.playable_pages import write_playables
    from regard.views.play import PLAYABLES

    chosen = {name: scene for name, scene in PLAY_SCENES.items() if not wanted or name in wanted}
    if not chosen:
        return
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        write_playables(place)
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name, (page_name, act) in chosen.items():
            page = browser.new_page(viewport={"width": SCREEN[0], "height": 860}, color_scheme="light")
            page.goto((Path(place) / PLAYABLES[page_name].file).as_uri())
            page.wait_for_timeout(500)  # costs of masks are computed a moment later
            page.evaluate(f"() => {{ {act} }}")
            page.evaluate(READY)
            target = folder / f"{name}.png"
            target.write_bytes(small(page.screenshot()))
            yield target
        browser.close()


def chromium() -> str:
    """The path of Chromium."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("Pictures of pages are taken in Chromium: apt-get install chromium fonts-noto-cjk.")
    return found


def page_pictures(folder: Path, pages: Mapping[str, Path], wanted: Sequence[str] = ()) -> Iterator[Path]:
    """Write the pictures, or those that are named; ``pages`` are files by the names of their recordings."""
    from playwright.sync_api import sync_playwright

    chosen = {name: scene for name, scene in SCENES.items() if not wanted or name in wanted}
    if not chosen:
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name, scene in chosen.items():
            target = folder / f"{name}.png"
            target.write_bytes(small(taken(browser, pages[scene.recording], scene)))
            yield target
        browser.close()


def taken(
    browser: Any, path: Path, scene: Scene, *, screen: tuple[int, int] = SCREEN, lang: str = "en"
) -> bytes:
    """A scene as a PNG, on a screen of some size."""
    context = browser.new_context(
        viewport={"width": screen[0], "height": screen[1]}, color_scheme=scene.scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(path.resolve().as_uri())
    while not page.evaluate("Boolean(window.regard?.app)"):
        page.wait_for_timeout(20)
    page.evaluate(
        "(state) => { regard.state.set(state); return regard.ready(); }", {"language": lang, **scene.state}
    )
    if scene.act:
        page.evaluate(scene.act)
    page.evaluate("regard.ready()")
    page.evaluate(READY)
    found: bytes = page.screenshot()
    context.close()
    return found


def small(data: bytes) -> bytes:
    """The picture with 256 colours, which is a third of the size."""
    from PIL import Image

    small = BytesIO()
    picture = Image.open(BytesIO(data)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(small, format="png", optimize=True)
    return small.getvalue()
