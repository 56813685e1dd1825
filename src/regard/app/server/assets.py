"""The files that browsers get: styles, modules and documents.

Every file is read once, at the start, and found by its name in a table, so no path of a request touches the
disk.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from regard.views.html import html_document, theme_of_choice
from regard.views.page.page_html import ASSETS as PAGE
from regard.views.page.page_html import data_elements, page_body, title_of
from regard.views.page_texts import with_texts

if TYPE_CHECKING:
    from regard.views.page.page_payload import Payload

OWN = Path(__file__).parent / "assets"
MAP = Path(__file__).parents[2] / "views" / "map" / "assets"
FOLDERS = {"page": PAGE, "map": MAP, "app": OWN}

TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}

STYLES = ("page/theme.css", "page/style.css", "app/app.css")

NOSCRIPT = "<noscript>This page needs JavaScript. · 本页需要启用 JavaScript。</noscript>"

DOCUMENTS = {
    "home": ('<div id="home"></div>', ("app/home.js",)),
    "map": ('<div id="regard" class="map-root"></div>', ("map/main.js", "app/bar.js")),
    "wait": ('<div id="regard" class="waiting-root"></div>', ("app/wait.js", "app/bar.js")),
}
"""The app's own documents: the element that each fills, and its modules."""


@dataclass(frozen=True)
class Asset:
    """One file."""

    content: bytes
    type: str
    etag: str


@cache
def assets() -> dict[str, Asset]:
    """All files by the end of their address, such as ``map/view.js``."""
    contents = {
        f"{name}/{file.relative_to(folder).as_posix()}": _content(file)
        for name, folder in FOLDERS.items()
        for file in sorted(folder.rglob("*"))
        if file.suffix in TYPES
    }
    contents["page/theme.css"] = theme_of_choice().encode()
    return {
        name: Asset(content, TYPES[Path(name).suffix], etag_of(content)) for name, content in contents.items()
    }


def _content(file: Path) -> bytes:
    return with_texts(file.read_text(encoding="utf-8"), "page", "map", "app").encode()


@cache
def document(name: str, lang: str | None = None) -> bytes:
    """One of the app's own documents. It starts in ``lang``, or in the language of the browser."""
    element, modules = DOCUMENTS[name]
    return _served("regard", "\n".join([element, NOSCRIPT, *map(_module, modules)]), lang)


def page_of(payload: Payload, lang: str | None = None) -> bytes:
    """The page of a recording with the app's bar above: its data inside, its modules as files.

    The server's policy forbids scripts inside a document, which data elements are not: no browser runs them.
    """
    # A page with the numbers of some calls gets those of the others from the server.
    whole = all("q" in call or "weights" in call for call in payload.header["calls"])
    layers = () if whole else ("app/layer_source.js",)
    modules = map(_module, ("app/first_language.js", "page/main.js", *layers, "app/bar.js"))
    return _served(title_of(payload), page_body([*data_elements(payload), *modules]), lang)


def _served(title: str, body: str, lang: str | None) -> bytes:
    """A document of the app. ``data-first`` tells its modules which language ``--lang`` asked for."""
    return html_document(
        title,
        body,
        lang=lang or "en",
        head=[f'<link rel="stylesheet" href="/assets/{name}">' for name in STYLES],
        root={} if lang is None else {"data-first": lang},
        body_class="served",
    ).encode()


def _module(name: str) -> str:
    return f'<script type="module" src="/assets/{name}"></script>'


def etag_of(*parts: bytes | str) -> str:
    """A name for contents: equal contents have equal names."""
    total = hashlib.blake2b(digest_size=12)
    for part in parts:
        total.update(part if isinstance(part, bytes) else part.encode())
        total.update(b"\0")
    return f'"{total.hexdigest()}"'
