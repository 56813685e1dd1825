"""The HTML file of a recording: skeleton, style, program and data in one. It loads nothing.

The program and the style are compressed; the few lines of ``unpack.js`` unpack them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from regard.views.html import html_document, json_in_html, policy, theme_of_choice
from regard.views.page.page_payload import Payload
from regard.views.script_bundle import script

ASSETS = Path(__file__).parent / "assets"

NOSCRIPT = (
    "<noscript>This page computes attention in the browser. Please allow JavaScript. · "
    "本页在浏览器中计算注意力，请启用 JavaScript。</noscript>"
)


def document(payload: Payload) -> str:
    """The page as text."""
    return html_document(
        title_of(payload),
        page_body(
            [*data_elements(payload), packed("program"), f'<script type="module">{unpacker()}</script>']
        ),
        lang=payload.header["language"],
        head=[policy(unpacker(), program()), packed("style")],
    )


def title_of(payload: Payload) -> str:
    """The title of the window."""
    return payload.header["title"] or f"{payload.header['model']} · regard"


def page_body(elements: list[str]) -> str:
    """The place where the page draws itself, then scripts and data."""
    return "\n".join(['<div id="regard"></div>', NOSCRIPT, *elements])


def frame_size() -> int:
    """How many bytes a page has without a recording: program, style and skeleton."""
    skeleton = html_document("", page_body([packed("program"), unpacker()]), head=[packed("style")])
    return len(skeleton.encode())


@cache
def packed(name: str) -> str:
    """The program or the style, compressed to a third, in an element that no browser runs; see unpack.js."""
    text = program() if name == "program" else page_style()
    data = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
    return f'<script type="application/octet-stream" data-regard="{name}">{data}</script>'


def page_style() -> str:
    """The style of the page with its colours."""
    return theme_of_choice() + (ASSETS / "style.css").read_text(encoding="utf-8")


def program() -> str:
    """All modules of the page as one script, under a name that the developer tools of browsers show."""
    return f"{script('page/assets/main.js')}\n//# sourceURL=regard.js\n"


def unpacker() -> str:
    """The script that is in the page uncompressed."""
    return script("page/assets/unpack.js")


def data_elements(payload: Payload) -> Iterator[str]:
    """The header and the arrays, each in an element that no browser runs."""
    yield f'<script type="application/json" data-regard="header">{json_in_html(payload.header)}</script>'
    for text in payload.arrays.texts:
        yield f'<script type="application/octet-stream" data-regard="array">{text}</script>'
