"""Pictures of every view of a page and of the playables; ``make_pictures.py`` writes them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from picture_browser import SCREEN, opened, painted, started, until, write_picture


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
    "page-lines": Scene("sentence", {"view": "lines", "call": 1, "heads": [4, 8, 9], "query": None}),
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


class PlayScene(NamedTuple):
    """One picture of a playable: which page, when it is ready, and what is done before it is taken."""

    page: str
    ready: str
    act: str = "0"


PLAY_SCENES: dict[str, PlayScene] = {
    "play-one-query": PlayScene("query", "document.querySelector('.key-row')"),
    "play-sentence": PlayScene(
        "sentence",
        "document.querySelector('.of-queries .cell')",
        "(document.querySelector('.chapter.project').scrollIntoView(), "
        "document.querySelector('.of-queries .cell').focus({ preventScroll: true }))",
    ),
    "play-masks": PlayScene("masks", "document.querySelector('.cost-chart')"),
    "play-transformer": PlayScene("transformer", "document.querySelector('.head-button')"),
}

PLAY_PICTURES = {
    f"{name}{ending}": (lang, scene)
    for name, scene in PLAY_SCENES.items()
    for lang, ending in (("en", ""), ("zh", "-zh"))
}
"""Pictures of playables by name, each with its language."""


def play_pictures(wanted: Sequence[str] = ()) -> None:
    """Write the pictures of the playables in both languages, or those that are named."""
    from regard.lessons.playable_pages import write_playables
    from regard.views.play import PLAYABLES

    chosen = {name: found for name, found in PLAY_PICTURES.items() if not wanted or name in wanted}
    if not chosen:
        return
    with tempfile.TemporaryDirectory() as place, started() as browser:
        for lang in {lang for lang, _ in chosen.values()}:
            write_playables(Path(place) / lang, lang=lang)
        for name, (lang, scene) in chosen.items():
            address = (Path(place) / lang / PLAYABLES[scene.page].file).as_uri()
            with opened(browser, address, viewport={**SCREEN, "height": 860}) as page:
                until(page, scene.ready)
                page.evaluate(scene.act)
                painted(page)
                write_picture(name, page.screenshot())


def page_pictures(pages: Mapping[str, Path], wanted: Sequence[str] = ()) -> None:
    """Write the pictures, or those that are named; ``pages`` are files by the names of their recordings."""
    with started() as browser:
        for name, scene in SCENES.items():
            if not wanted or name in wanted:
                write_picture(name, taken(browser, pages[scene.recording], scene))


def taken(browser: Any, path: Path, scene: Scene, *, screen: Mapping[str, int] = SCREEN) -> bytes:
    """A scene as a PNG, on a screen of some size."""
    with opened(browser, path.resolve().as_uri(), viewport=screen, color_scheme=scene.scheme) as page:
        until(page, "window.regard?.app")
        page.evaluate("(state) => { regard.state.set(state); return regard.ready(); }", scene.state)
        if scene.act:
            page.evaluate(scene.act)
        page.evaluate("regard.ready()")
        painted(page)
        found: bytes = page.screenshot()
    return found
