"""The texts of all errors, read from the source: what the catalogue must have.

An error is said in parts, ``Error("must", got="…", do="…")``. A part may be an f-string, and then its
template has numbered places: ``f"Got {n} words"`` is ``Got {0} words``. A part without any word of a
language (``heads = {0}``) is the same in all of them, and is no template.

>>> found = list(of_source('raise ShapeError(f"Keys are {n} long.", got=f"keys = {m}", do="Cut them.")'))
>>> found
['Keys are {0} long.', 'Cut them.']
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2]

_PLACE = "\0"
_CLASSES = re.compile(r"_?[A-Z]\w*Error|ClickException|BadParameter")
_OTHERS = {"KeyError", "TypeError", "AssertionError", "NotImplementedError", "AttributeError", "ValueError"}
_PARTS = {"must", "got", "do"}

_Texts = dict[str, list[ast.expr]]
"""What a name may stand for."""


def of_package(folder: Path = SOURCE) -> dict[str, str]:
    """Every template in the source, with the first place where it stands."""
    found: dict[str, str] = {}
    for file in sorted(folder.rglob("*.py")):
        for template in of_source(file.read_text(encoding="utf-8")):
            found.setdefault(template, str(file.relative_to(folder)))
    return found


def of_source(code: str) -> Iterator[str]:
    """The templates of one file, in order."""
    tree = ast.parse(code)
    calls: dict[str, list[ast.Call]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            calls.setdefault(_name(node.func), []).append(node)
    yield from _inside(tree, {}, calls)


def _inside(node: ast.AST, texts: _Texts, calls: dict[str, list[ast.Call]]) -> Iterator[str]:
    """Walk down; each function knows the texts that it was given and those that it gave names to."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        texts = texts | _given_texts(node, calls.get(node.name, [])) | _named_texts(node)
    if isinstance(node, ast.Call) and _raises(node.func):
        # The server's errors have a number first, which says nothing.
        said = [*node.args[:2], *(one.value for one in node.keywords if one.arg in _PARTS)]
        for part in said:
            for template in dict.fromkeys([*_written(part, texts), *_inner(part, texts)]):
                if _has_words(template):
                    yield numbered(template)
    for child in ast.iter_child_nodes(node):
        yield from _inside(child, texts, calls)


def _name(called: ast.expr) -> str:
    return called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")


def _raises(called: ast.expr) -> bool:
    name = _name(called)
    return name in ("fail", "_fail") or (bool(_CLASSES.fullmatch(name)) and name not in _OTHERS)


def _given_texts(function: ast.FunctionDef | ast.AsyncFunctionDef, calls: list[ast.Call]) -> _Texts:
    """The sentences that a function is called with in its file, by the names of its parameters."""
    names = [one.arg for one in function.args.args if one.arg not in ("self", "cls")]
    found: _Texts = {}
    for call in calls:
        given = [*zip(names, call.args), *((one.arg, one.value) for one in call.keywords if one.arg)]
        for name, value in given:
            if any(" " in text.strip() for text in _written(value, {})):
                found.setdefault(name, []).append(value)
    return found


def _named_texts(function: ast.AST) -> _Texts:
    """What a function writes into its names, and into the tables that it names."""
    found: _Texts = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            holder = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(holder, ast.Name):
                found.setdefault(holder.id, []).append(node.value)
    return found


def _written(node: ast.expr, texts: _Texts) -> list[str]:
    """What an expression may write, with a mark for whatever is only known when it runs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(one.value) if isinstance(one, ast.Constant) else _PLACE for one in node.values)]
    if isinstance(node, ast.IfExp):
        return _written(node.body, texts) + _written(node.orelse, texts)
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in _written(value, texts)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [a + b for a in _written(node.left, texts) for b in _written(node.right, texts)]
    if isinstance(node, ast.Subscript):
        return _written(node.value, texts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return _written(node.func.value, texts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        return _written(node.args[0], texts)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _written(node.elt, texts)
    if isinstance(node, ast.Name):
        others = {name: values for name, values in texts.items() if name != node.id}
        return [text for value in texts.get(node.id, []) for text in _written(value, others)] or [_PLACE]
    return [_PLACE]


def _inner(node: ast.expr, texts: _Texts) -> list[str]:
    """The texts that may stand in the places of an f-string."""
    return [
        text
        for one in ast.walk(node)
        if isinstance(one, ast.FormattedValue)
        for text in _written(one.value, texts)
        if len(re.sub(r"[^A-Za-z]", "", text)) > 2
    ]


def _has_words(template: str) -> bool:
    bare = re.sub(r"\w+ = ", "", template).replace(_PLACE, " ")
    return bool(re.search(r"[A-Za-z]{2}", bare))


def numbered(template: str) -> str:
    """Marks as numbered places.

    >>> numbered("Keys are \\0 of \\0.")
    'Keys are {0} of {1}.'
    """
    first, *rest = template.split(_PLACE)
    return first + "".join(f"{{{place}}}{text}" for place, text in enumerate(rest))
