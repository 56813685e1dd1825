"""Joins ES modules into one script, and finds the scripts that were joined when the wheel was built.

A wheel has every script of ``BUNDLES`` joined already, in a folder ``bundled`` beside its modules: the build
hook in ``hatch_build.py`` puts it there. A checkout and an editable install have no such folder, so
``script()`` joins the modules in memory. Both use ``bundle()``.

The modules use relative imports and named exports. They become one script in the order of their imports,
without the words ``import`` and ``export``, so every top-level name must be unique among them.

The build hook imports this module, so it and what it imports need only the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from regard.views.page_texts import with_texts

VIEWS = Path(__file__).parent

BUNDLED = "bundled"
"""The folder of the scripts that were joined when the wheel was built."""

BUNDLES = {
    "page/assets/main.js": "page",
    "page/assets/unpack.js": "page",
    "report/assets/report.js": "page",
    "play/assets/one_query.js": "play",
    "play/assets/sentence.js": "play",
    "play/assets/masks.js": "play",
    "play/assets/transformer.js": "play",
}
"""The scripts that files carry, by the module they start from, and the subject of their texts."""

_IMPORT = re.compile(r'^import \{([\w\s,]+)\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |class |const )", re.MULTILINE)
_NAME = re.compile(r"^(?:export )?(?:(?:async )?function\*?|class|const|let|var) +([\w$]+)", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:(?:async )?function\*?|class|const) +([\w$]+)", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://.*|/\*\*?(?: .*?)?\*/ *|/\*\*?\n(?: *\*.*\n)*? *\*/ *)$", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export|(?:const|let|var) *[\[{])", re.MULTILINE)


@cache
def script(entry: str) -> str:
    """One of ``BUNDLES``: from the wheel if it is there, otherwise joined now."""
    assert entry in BUNDLES, f"{entry} is not one of {list(BUNDLES)}"
    module = VIEWS / entry
    built = module.parent / BUNDLED / module.name
    return built.read_text(encoding="utf-8") if built.exists() else bundle(VIEWS, entry, BUNDLES[entry])


def built_scripts() -> dict[str, str]:
    """The scripts that a wheel carries, by their path in ``views``."""
    return {
        (PurePosixPath(entry).parent / BUNDLED / PurePosixPath(entry).name).as_posix(): bundle(
            VIEWS, entry, subject
        )
        for entry, subject in BUNDLES.items()
    }


def bundle(folder: Path, entry: str, subject: str = "page") -> str:
    """The module ``entry`` with everything it imports, dependencies first, as one script.

    ``subject`` names the texts that the script gets.
    """
    sources = {
        name: with_texts((folder / name).read_text(encoding="utf-8"), subject)
        for name in modules(folder, entry)
    }
    _check_names(sources)
    joined = "\n".join(_stripped(_EXPORT.sub("", _IMPORT.sub("", source))) for source in sources.values())
    assert "</script" not in joined.lower(), "a module would end its own script element"
    assert "<!--" not in joined, "a module would begin an HTML comment"
    return f"\n{joined}"


def _stripped(source: str) -> str:
    """A module without comments and indentation, which saves a fifth.

    Only comments that fill whole lines are removed, and no string spans several lines, so the program
    stays the same.
    """
    for line in source.splitlines():
        assert line.count("`") % 2 == 0, f"a template string spans several lines: {line}"
    return "\n".join(line.strip() for line in _COMMENT.sub("", source).splitlines() if line.strip())


def modules(folder: Path, entry: str) -> list[str]:
    """The modules that ``entry`` needs, each after those that it imports; ``entry`` comes last."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"{name} imports itself through {above}"
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
    """The path of the module that ``name`` imports as ``where``."""
    parts: list[str] = []
    for part in (PurePosixPath(name).parent / where).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _check_names(sources: Mapping[str, str]) -> None:
    """One script has one scope, so every top-level name may be defined in one module only."""
    owner: dict[str, str] = {}
    for name, source in sources.items():
        left = _LEFT.search(_EXPORT.sub("", _IMPORT.sub("", source)))
        assert left is None, f"{name} imports, exports or destructures in a way that cannot be joined: {left}"
        for found in _NAME.findall(source):
            assert owner.setdefault(found, name) == name, f"{found} is in {owner[found]} and in {name}"
