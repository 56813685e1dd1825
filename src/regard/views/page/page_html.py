"""One HTML file from the skeleton, the style, the modules and a payload; it asks nothing of any network.

The modules are plain ES modules with relative imports. They are put into one script in the order
of their imports, without the words ``import`` and ``export``; so their top-level names are unique.
That script and the style travel compressed; a few lines that stand in the page unpack them.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from regard.texts import LANGUAGE_TAGS
from regard.views.page.page_payload import Payload
from regard.views.page.page_texts import with_texts

ASSETS = Path(__file__).parent / "assets"
ENTRY = "main.js"

_IMPORT = re.compile(r'^import \{([\w\s,]+)\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |class |const )", re.MULTILINE)
_NAME = re.compile(r"^(?:export )?(?:(?:async )?function\*?|class|const|let|var) +([\w$]+)", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:(?:async )?function\*?|class|const) +([\w$]+)", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://.*|/\*\*?(?: .*?)?\*/ *|/\*\*?\n(?: *\*.*\n)*? *\*/ *)$", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export|(?:const|let|var) *[\[{])", re.MULTILINE)


def document(payload: Payload) -> str:
    """The page as text: the skeleton, with what it would ask a server for put into it."""
    header = payload.header
    title = html.escape(visible_text(header["title"] or f"{header['model']} · regard"))
    scripts = [*data_elements(payload), packed("program"), f'<script type="module">{unpacker()}</script>']
    return replaced(
        (ASSETS / "page.html").read_text(encoding="utf-8"),
        {
            '<html lang="en">': f'<html lang="{LANGUAGE_TAGS[header["language"]]}">',
            '<meta charset="utf-8">': f'<meta charset="utf-8">\n{policy(unpacker(), script_of_page())}',
            "<title>regard</title>": f"<title>{title}</title>",
            '<link rel="stylesheet" href="style.css">': packed("style"),
            '<script type="module" src="main.js"></script>': "\n".join(scripts),
        },
    )


def frame_size() -> int:
    """How many bytes a page has without anything in it: the program, the style and the skeleton."""
    parts = (packed("program"), packed("style"), unpacker())
    return (ASSETS / "page.html").stat().st_size + sum(len(part.encode()) for part in parts)


@lru_cache(maxsize=2)
def packed(name: str) -> str:
    """The program or the style in an element that no browser runs, a third of its size; see unpack.js."""
    text = script_of_page() if name == "program" else (ASSETS / "style.css").read_text(encoding="utf-8")
    data = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
    return f'<script type="application/octet-stream" data-regard="{name}">{data}</script>'


def replaced(skeleton: str, parts: Mapping[str, str]) -> str:
    """The skeleton with every part in place of its mark; each mark is there exactly once.

    >>> replaced("<p>a</p> b", {"<p>": "<p>b", "b": "!"})
    '<p>ba</p> !'
    """
    missing = [mark for mark in parts if skeleton.count(mark) != 1]
    assert not missing, f"the skeleton needs each of these once: {missing}"
    # In one pass, so that nothing that was put in is looked at again.
    marks = "|".join(re.escape(mark) for mark in parts)
    return re.sub(marks, lambda mark: parts[mark[0]], skeleton)


def policy(*scripts: str) -> str:
    """A promise that the browser keeps: no request anywhere, and no script but these."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    known = " ".join(f"'sha256-{digest}'" for digest in digests)
    rules = (
        f"default-src 'none'; script-src {known}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


def data_elements(payload: Payload) -> Iterator[str]:
    """The header and the arrays, each in an element that no browser runs."""
    yield f'<script type="application/json" data-regard="header">{json_in_html(payload.header)}</script>'
    for text in payload.shelf.texts:
        yield f'<script type="application/octet-stream" data-regard="array">{text}</script>'


def json_in_html(value: object) -> str:
    r"""JSON that can stand in a script element: nothing in it ends the element or a line.

    >>> print(json_in_html(["</script>", "猫", "&"]))
    ["\u003c/script\u003e","猫","\u0026"]
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half a surrogate pair is a character in Python and in JavaScript but not in a file of UTF-8.
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda sign: f"\\u{ord(sign[0]):04x}", text)


def visible_text(text: str) -> str:
    """Text that can be written as UTF-8."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


# ---- modules ---------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def script_of_page() -> str:
    """All modules of the page as one script, under a name that the tools of browsers show."""
    return f"{inlined(ASSETS, ENTRY)}\n//# sourceURL=regard.js\n"


@lru_cache(maxsize=1)
def unpacker() -> str:
    """The script that stands in the page as it is."""
    return inlined(ASSETS, "unpack.js")


def inlined(folder: Path, entry: str) -> str:
    """The module ``entry`` with all that it imports, dependencies first."""
    sources: dict[str, str] = {}
    for name in modules(folder, entry):
        sources[name] = with_texts((folder / name).read_text(encoding="utf-8"), "page")
    _check_names(sources)
    script = "\n".join(_bare(_EXPORT.sub("", _IMPORT.sub("", source))) for source in sources.values())
    assert "</script" not in script.lower(), "a module would end its own script element"
    assert "<!--" not in script, "a module would begin a comment of HTML"
    return f"\n{script}"


def _bare(source: str) -> str:
    """A module without the lines that are for its readers alone, and without indentation: a fifth less.

    Only whole lines of comment are taken, and no text of a module goes over several lines, so nothing
    of the program is touched.
    """
    assert all(line.count("`") % 2 == 0 for line in source.splitlines()), "a text goes over several lines"
    return "\n".join(line.strip() for line in _COMMENT.sub("", source).splitlines() if line.strip())


def modules(folder: Path, entry: str) -> list[str]:
    """The modules that ``entry`` needs, itself last, each after those that it imports."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"{name} imports itself by way of {above}"
        if name in order:
            return
        source = (folder / name).read_text(encoding="utf-8")
        for names, where in _IMPORT.findall(source):
            needed = _joined(name, where)
            exported = _EXPORTED.findall((folder / needed).read_text(encoding="utf-8"))
            missing = {one.strip() for one in names.split(",") if one.strip()} - set(exported)
            assert not missing, f"{name} imports {sorted(missing)}, which {needed} does not export"
            visit(needed, (*above, name))
        order.append(name)

    visit(entry, ())
    return order


def _joined(name: str, where: str) -> str:
    """The module that ``name`` calls ``where``."""
    parts: list[str] = []
    for part in (PurePosixPath(name).parent / where).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _check_names(sources: Mapping[str, str]) -> None:
    """One script has one scope: every top-level name belongs to one module."""
    owner: dict[str, str] = {}
    for name, source in sources.items():
        left = _LEFT.search(_EXPORT.sub("", _IMPORT.sub("", source)))
        assert left is None, f"{name} imports, exports or takes apart in a way that cannot be inlined: {left}"
        for found in _NAME.findall(source):
            assert owner.setdefault(found, name) == name, f"{found} is in {owner[found]} and in {name}"
