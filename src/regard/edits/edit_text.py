"""An edit from its text: ``edits.parse("remove(layers=3, heads=1) + scale(0.5, layers=range(4, 6))")``.

The text is what an edit prints: the makers of this package, combined with ``+``; masks are written as in
``masks.parse``. Nothing is evaluated: Python only splits the text into its parts, and every part that is not
one of the names, numbers and lists below is an error. Edits that need a recording or means have no text.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from regard import masks
from regard.edits.edit import Edit
from regard.edits.mask_edits import block, only
from regard.edits.output_edits import remove, scale
from regard.edits.score_edits import temperature, uniform
from regard.errors import EditError, Phrase

CHARACTERS = 10_000
"""The most characters of a text."""

LONGEST_RANGE = 100_000
"""The most numbers of a range, so that a typing error does not fill the memory."""

_MAKERS: dict[str, Callable[..., Edit]] = {
    maker.__name__: maker for maker in (block, only, remove, scale, uniform, temperature)
}


def parse(text: str) -> Edit:
    """The edit that ``text`` describes.

    >>> parse("block(span(5, 9) & causal, layers=range(10, 20)) + remove(layers=3, heads=[1, 4])")
    block(span(5, 9) & causal(), layers=range(10, 20)) + remove(layers=[3], heads=[1, 4])
    """
    if not isinstance(text, str) or len(text) > CHARACTERS:
        raise EditError(
            "An edit must be a text of at most {most:,} characters.",
            got="{given}",
            do="Write, for example, remove(layers=3, heads=1).",
            most=CHARACTERS,
            given=f"{len(text):,}" if isinstance(text, str) else type(text).__name__,
        )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _unreadable(text) from error
    return _EditReader(text.strip()).edit(tree)


class _EditReader:
    """Turns the parts of one text into values."""

    def __init__(self, text: str) -> None:
        self.text = text

    def edit(self, node: ast.expr) -> Edit:
        first, *rest = reversed([*_summands(node)])
        found = self.call(first)
        for part in rest:
            found = found + (self.edit(part) if isinstance(part, ast.BinOp) else self.call(part))
        return found

    def call(self, node: ast.expr) -> Edit:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or _unpacks(node):
            self.fail(node)
        name = node.func.id
        maker = _MAKERS.get(name)
        if maker is None:
            near = difflib.get_close_matches(name[:64], _MAKERS, n=1)
            raise EditError(
                "No edit is called {name!r}. {hint}",
                name=name[:64],
                hint=Phrase("Did you mean {near}?", near=near[0])
                if near
                else Phrase("Known: {names}.", names=", ".join(_MAKERS)),
            )
        signature = inspect.signature(maker)
        first = next(iter(signature.parameters))
        named = {str(one.arg): self.value(one.value, mask=one.arg == "mask") for one in node.keywords}
        values = [self.value(one, mask=first == "mask") for one in node.args]
        try:
            signature.bind(*values, **named)
        except TypeError as error:
            raise EditError(
                "{name} is written {name}({call}).", name=name, call=", ".join(signature.parameters)
            ) from error
        return maker(*values, **named)

    def value(self, node: ast.expr, *, mask: bool = False) -> Any:
        """A mask, a number, a name in quotes, None, a list, a range or a slice."""
        if mask:
            return masks.parse(ast.get_source_segment(self.text, node) or "")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.interval(node, node.func.id)
        try:
            found = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            self.fail(node)
        if not isinstance(found, int | float | str | list | tuple | None):
            self.fail(node)
        return found

    def interval(self, node: ast.Call, name: str) -> range | slice:
        ends = [self.value(one) for one in node.args]
        if not 1 <= len(ends) <= 3 or not all(end is None or type(end) is int for end in ends):
            self.fail(node)
        if name == "slice":
            return slice(*ends)
        if name != "range" or None in ends or ends[2:] == [0]:
            self.fail(node)
        found = range(*ends)
        if len(found) > LONGEST_RANGE:
            raise EditError(
                "A range must have at most {most:,} numbers.",
                got="{given}",
                do="Omit it to change all of them, or write slice(start, None).",
                most=LONGEST_RANGE,
                given=ast.unparse(node),
            )
        return found

    def fail(self, node: ast.expr) -> NoReturn:
        raise _unreadable(ast.get_source_segment(self.text, node) or self.text)


def _summands(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of ``a + b + c``, the last one first; not recursive, because a text may have hundreds."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield node.right
        node = node.left
    yield node


def _unpacks(node: ast.Call) -> bool:
    """Whether a call has ``*values`` or ``**options``."""
    starred = any(isinstance(one, ast.Starred) for one in node.args)
    return starred or any(one.arg is None for one in node.keywords)


def _unreadable(text: str) -> EditError:
    return EditError(
        "An edit must be written with its name and options, and several are combined with +.",
        got="{text!r}",
        do="Write, for example, remove(layers=3, heads=1) or block(span(2, 5), layers=range(4, 8)).",
        text=text if len(text) <= 80 else f"{text[:79]}…",
    )
