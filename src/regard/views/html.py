"""What every HTML file of regard shares: the skeleton, the policy, the theme and escaping.

The page, the report, the explanation and the app's own documents all begin with ``html_document()``, so they
have the same head, the same colours, and load nothing from any network.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping

from regard.texts import LANGUAGE_TAGS

# ---- skeleton --------------------------------------------------------------------------------


def html_document(
    title: str,
    body: str,
    *,
    lang: str = "en",
    head: Iterable[str] = (),
    root: Mapping[str, str] | None = None,
    body_class: str = "",
) -> str:
    """A whole document. ``title`` is plain text, ``body`` is HTML, ``head`` are elements for the head.

    ``root`` holds further attributes of the ``<html>`` element.

    >>> text = html_document("1 < 2", "<p>Hello</p>", lang="zh", head=[policy()])
    >>> text.splitlines()[1], [line for line in text.splitlines() if "title" in line]
    ('<html lang="zh-CN">', ['<title>1 &lt; 2</title>'])
    """
    attributes = {"lang": LANGUAGE_TAGS[lang], **(root or {})}
    lines = [
        "<!doctype html>",
        f"<html{_attributes(attributes)}>",
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escaped(title)}</title>",
        '<link rel="icon" href="data:,">',  # without it, browsers ask for /favicon.ico
        *head,
        "</head>",
        f"<body{_attributes({'class': body_class} if body_class else {})}>",
        body,
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _attributes(values: Mapping[str, str]) -> str:
    return "".join(f' {name}="{html.escape(value)}"' for name, value in values.items())


def fill(skeleton: str, parts: Mapping[str, str]) -> str:
    """The skeleton with each part in place of its mark; every mark must occur exactly once.

    >>> fill("<p>a</p> b", {"<p>": "<p>b", "b": "!"})
    '<p>ba</p> !'
    """
    missing = [mark for mark in parts if skeleton.count(mark) != 1]
    assert not missing, f"the skeleton needs each of these once: {missing}"
    # In one pass, so that marks inside the parts are left alone.
    marks = "|".join(re.escape(mark) for mark in parts)
    return re.sub(marks, lambda mark: parts[mark[0]], skeleton)


# ---- policy ----------------------------------------------------------------------------------


def policy(*scripts: str) -> str:
    """A rule that browsers enforce: no requests, and no script except these, known by their hashes.

    >>> "script-src 'sha256-" in policy("let a = 1"), "script-src" in policy()
    (True, False)
    """
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    rules = [
        "default-src 'none'",
        *([f"script-src {hashes}"] if scripts else []),
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


# ---- theme -----------------------------------------------------------------------------------

LIGHT = {
    "paper": "#fcfcfb",
    "raised": "#ffffff",
    "ink": "#1d2025",
    "soft": "#5c636e",
    "faint": "#666d78",
    "hair": "#e4e6e8",
    "accent": "#2a62c4",
    "wash": "#eef3fb",
    "void": "#fcfcfb",
    "hatch": "#d5d8dc",
    "positive": "#2f6fc0",
    "negative": "#d27a2c",
    "error": "#b3261e",
    "shadow": "0 8px 40px rgb(20 24 32 / 14%)",
}
"""The colours on light paper, as CSS variables: ``--paper``, ``--ink`` and so on."""

DARK = {
    "paper": "#111418",
    "raised": "#181c21",
    "ink": "#e7e9ec",
    "soft": "#a2a9b4",
    "faint": "#8b93a0",
    "hair": "#272c33",
    "accent": "#82aefc",
    "wash": "#1b2738",
    "void": "#111418",
    "hatch": "#3d444d",
    "positive": "#6fa5ee",
    "negative": "#e39a55",
    "error": "#ff9a90",
    "shadow": "0 8px 40px rgb(0 0 0 / 50%)",
}
"""The same on dark paper."""

FONTS = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", '
    '"Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif'
)
"""The fonts of text, ``--text``."""


def theme_of_choice() -> str:
    """The colours for a page whose reader chooses: dark where the root has ``data-theme="dark"``."""
    return _rule(":root", "light", {**LIGHT, "text": FONTS}) + _rule(':root[data-theme="dark"]', "dark", DARK)


def theme_of_system() -> str:
    """The colours for a page without a switch: dark where the reader's system is."""
    dark = _rule(":root", "dark", DARK)
    return (
        _rule(":root", "light", {**LIGHT, "text": FONTS})
        + f"@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    )


def _rule(selector: str, scheme: str, variables: Mapping[str, str]) -> str:
    lines = "".join(f"  --{name}: {value};\n" for name, value in variables.items())
    return f"{selector} {{\n  color-scheme: {scheme};\n{lines}}}\n"


# ---- escaping --------------------------------------------------------------------------------


def escaped(text: str) -> str:
    """Text for HTML: nothing in it is markup, and it can be written as UTF-8.

    >>> escaped("<b> & \\ud800")
    '&lt;b&gt; &amp; \ufffd'
    """
    return html.escape(visible_text(text))


def visible_text(text: str) -> str:
    """Text that can be written as UTF-8: half of a surrogate pair becomes U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def json_in_html(value: object) -> str:
    r"""JSON that is safe in a script element: nothing in it ends the element or a line.

    >>> print(json_in_html(["</script>", "猫", "&"]))
    ["\u003c/script\u003e","猫","\u0026"]
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half of a surrogate pair is a character in Python and in JavaScript, but not in UTF-8.
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda sign: f"\\u{ord(sign[0]):04x}", text)
