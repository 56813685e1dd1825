"""The files that browsers get: style and modules as they lie in the package, and documents.

Every file is read once, at the start, and reached by its name alone: no path of a request ever
touches the disk.
"""

from __future__ import annotations

import hashlib
import html
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from regard.texts import LANGUAGE_TAGS
from regard.views.page.page_html import ASSETS as PAGE
from regard.views.page.page_html import data_elements, replaced, visible_text
from regard.views.page.page_texts import with_texts

if TYPE_CHECKING:
    from regard.views.page.page_payload import Payload

OWN = Path(__file__).parent / "assets"
MAP = Path(__file__).parents[2] / "views" / "map" / "assets"
FOLDERS = {"page": PAGE, "map": MAP, "app": OWN}

OPENING = '<html lang="en">'

TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


@dataclass(frozen=True)
class Asset:
    """One file."""

    content: bytes
    type: str
    etag: str


@cache
def assets() -> dict[str, Asset]:
    """All files by the end of their address, ``map/view.js`` say."""
    return {
        f"{name}/{file.relative_to(folder).as_posix()}": Asset(
            content := _content(file), TYPES[file.suffix], etag_of(content)
        )
        for name, folder in FOLDERS.items()
        for file in sorted(folder.rglob("*"))
        if file.suffix in TYPES
    }


def _content(file: Path) -> bytes:
    return with_texts(file.read_text(encoding="utf-8"), "page", "map", "app").encode()


@cache
def document(name: str, lang: str | None = None) -> bytes:
    """One of the app's own documents, with the language in which it begins."""
    return replaced((OWN / f"{name}.html").read_text(encoding="utf-8"), {OPENING: _opening(lang)}).encode()


def _opening(lang: str | None) -> str:
    """The first element of a document; the browser reads from it what the server was told."""
    return OPENING if lang is None else f'<html lang="{LANGUAGE_TAGS[lang]}" data-first="{lang}">'


def etag_of(*parts: bytes | str) -> str:
    """A name for contents: equal contents, equal name."""
    total = hashlib.blake2b(digest_size=12)
    for part in parts:
        total.update(part if isinstance(part, bytes) else part.encode())
        total.update(b"\0")
    return f'"{total.hexdigest()}"'


def page_of(payload: Payload, lang: str | None = None) -> bytes:
    """The page of a recording, with the app's bar above; its data inside, its modules as files.

    A policy that forbids scripts inside a document does not touch data elements: no browser runs them.
    """
    header = payload.header
    title = html.escape(visible_text(header["title"] or f"{header['model']} · regard"))
    scripts = [
        *data_elements(payload),
        '<script type="module" src="/assets/app/first.js"></script>',
        '<script type="module" src="/assets/page/main.js"></script>',
        '<script type="module" src="/assets/app/bar.js"></script>',
    ]
    styles = [f'<link rel="stylesheet" href="/assets/{name}">' for name in ("page/style.css", "app/app.css")]
    return replaced(
        (PAGE / "page.html").read_text(encoding="utf-8"),
        {
            OPENING: _opening(lang),
            "<title>regard</title>": f"<title>{title}</title>",
            '<link rel="stylesheet" href="style.css">': "\n".join(styles),
            "<body>": '<body class="served">',
            '<script type="module" src="main.js"></script>': "\n".join(scripts),
        },
    ).encode()
