"""A mask from its text: ``masks.parse("causal & (window(4, 0) | prefix(2))")``.

The text is the ``repr`` of a mask. The grammar, with ``&`` binding tighter than ``|``::

    mask    = term { "|" term }
    term    = factor { "&" factor }
    factor  = "~" factor | unit { ".T" }
    unit    = "(" mask ")" | name [ "(" [ value { "," value } ] ")" ]
    value   = [ name "=" ] ( number | "True" | "False" | "None" | "[" item { "," item } "]" )
    item    = value [ "*" number ]                       (so many times)

Nothing is evaluated: names come from the table of patterns, and everything else is an error
that points at its character.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from regard.errors import MaskSyntaxError, RegardError
from regard.masks.mask import Mask
from regard.masks.pairings import dense, documents
from regard.masks.patterns import causal, every, everything, local_global, nothing, padding, prefix, window

DEEPEST = 100
"""Brackets within brackets; more is a mistake or an attack, not a mask."""

LARGEST = 100_000_000
"""Entries of one table, so that ``0*9999999999`` is refused instead of filling the memory."""

_TOKEN = re.compile(r"\s*(?:(?P<number>-?\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>[&|~()\[\],.=*]))", re.ASCII)
_WORDS = {"True": True, "False": False, "None": None}


_PATTERNS: dict[str, Callable[..., Mask]] = {
    pattern.__name__: pattern
    for pattern in (
        *(causal, window, padding, prefix, documents),
        *(every, local_global, dense, everything, nothing),
    )
}


class _Token(NamedTuple):
    kind: str  # "number", "name", "sign" or "end"
    text: str
    position: int


def parse(text: str) -> Mask:
    """The mask that ``text`` describes.

    >>> parse("causal & (window(4, 0) | prefix(2))")
    causal() & (window(4, 0) | prefix(2))
    >>> parse("~documents([0*8, 1*8]) | every(4).T")
    ~documents([0*8, 1*8]) | every(4).T
    """
    if not isinstance(text, str):
        raise MaskSyntaxError(
            f"A mask text is a string. Got {type(text).__name__}.", text=repr(text)[:60], position=0
        )
    return _Reader(text).whole()


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._cut(text)
        self.depth = 0

    def _cut(self, text: str) -> list[_Token]:
        tokens, position = [], 0
        while position < len(text) and not text[position:].isspace():
            found = _TOKEN.match(text, position)
            if found is None:
                position += len(text[position:]) - len(text[position:].lstrip())
                self._fail(
                    f"A mask is written with names, numbers and & | ~ ( ) [ ]. Got {text[position]!r}.",
                    position,
                )
            kind = str(found.lastgroup)
            tokens.append(_Token(kind, found[kind], found.start(kind)))
            position = found.end()
        # The next token is last, where taking it costs nothing.
        return [_Token("end", "the end of the text", len(text)), *reversed(tokens)]

    def _fail(self, problem: str, position: int) -> NoReturn:
        raise MaskSyntaxError(problem, text=self.text, position=position)

    # ---- moving through the tokens -----------------------------------------------------------

    def _at(self, *signs: str) -> bool:
        return self.tokens[-1].kind == "sign" and self.tokens[-1].text in signs

    def _take(self) -> _Token:
        return self.tokens.pop() if self.tokens[-1].kind != "end" else self.tokens[-1]

    def _accept(self, sign: str) -> bool:
        if self._at(sign):
            self._take()
            return True
        return False

    def _expect(self, sign: str, why: str) -> None:
        if not self._accept(sign):
            here = self.tokens[-1]
            self._fail(f"Expected {sign!r} {why}. Got {here.text!r}.", here.position)

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail(f"A mask nests at most {DEEPEST} levels.", self.tokens[-1].position)

    # ---- masks -------------------------------------------------------------------------------

    def whole(self) -> Mask:
        mask = self.mask()
        rest = self.tokens[-1]
        if rest.kind != "end":
            self._fail(f"Expected & or | or the end of the text. Got {rest.text!r}.", rest.position)
        return mask

    def mask(self) -> Mask:
        return self._joined("|")

    def _joined(self, sign: str) -> Mask:
        read = self.factor if sign == "&" else lambda: self._joined("&")
        mask = read()
        while self._at(sign):
            position = self._take().position
            right = read()
            try:
                mask = mask & right if sign == "&" else mask | right
            except RegardError as error:
                self._fail(str(error), position)
        return mask

    def factor(self) -> Mask:
        self._deeper()
        if self._accept("~"):
            mask = ~self.factor()
        else:
            mask = self.unit()
            while self._accept("."):
                after = self._take()
                if after.text != "T":
                    self._fail(f"Expected T after the dot. Got {after.text!r}.", after.position)
                mask = mask.T
        self.depth -= 1
        return mask

    def unit(self) -> Mask:
        if self._accept("("):
            mask = self.mask()
            self._expect(")", "to close the bracket")
            return mask
        token = self._take()
        if token.kind != "name":
            self._fail(f"Expected a mask such as causal or window(4, 0). Got {token.text!r}.", token.position)
        pattern = _PATTERNS.get(token.text)
        if pattern is None:
            near = difflib.get_close_matches(token.text, _PATTERNS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(_PATTERNS)}."
            self._fail(f"No mask is called {token.text!r}. {hint}", token.position)
        values, named = self.arguments() if self._at("(") else ([], {})
        try:
            made: Mask = pattern(*values, **named)
        except RegardError as error:
            self._fail(str(error), token.position)
        except TypeError:
            call = list(inspect.signature(pattern).parameters)
            self._fail(f"{token.text} is written {token.text}({', '.join(call)}).", token.position)
        return made

    # ---- values ------------------------------------------------------------------------------

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        values: list[Any] = []
        named: dict[str, Any] = {}
        self._expect("(", "before the values")
        while not self._at(")"):
            if self.tokens[-1].kind == "name" and self.tokens[-2].text == "=":
                name = self._take().text
                self._take()
                named[name] = self.value()
            else:
                values.append(self.value())
            if not self._accept(","):
                break
        self._expect(")", "after the values")
        return values, named

    def value(self) -> Any:
        token = self._take()
        if token.kind == "number":
            return self._number(token)
        if token.text in _WORDS:
            return _WORDS[token.text]
        if token.text == "[":
            return self.items()
        return self._fail(
            f"Expected a number, True, False, None or a list. Got {token.text!r}.", token.position
        )

    def _number(self, token: _Token) -> int:
        if len(token.text) > 18:
            self._fail("Numbers have at most 18 digits.", token.position)
        return int(token.text)

    def items(self) -> list[Any]:
        self._deeper()
        items: list[Any] = []
        while not self._at("]"):
            value = self.value()
            count = 1
            if self._accept("*"):
                times = self._take()
                if times.kind != "number" or times.text.startswith("-"):
                    self._fail(f"Expected how many times after '*'. Got {times.text!r}.", times.position)
                count = self._number(times)
                if count > LARGEST - len(items):
                    self._fail(f"A list has at most {LARGEST:,} entries.", times.position)
            items.extend([value] * count)
            if not self._accept(","):
                break
        self._expect("]", "to close the list")
        self.depth -= 1
        return items
