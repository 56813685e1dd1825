"""A mask from its text: ``masks.parse("causal & (window(4, 0) | prefix(2))")``.

The text is the ``repr`` of a mask. The grammar, with ``&`` binding tighter than ``|``::

    mask    = term { "|" term }
    term    = factor { "&" factor }
    factor  = "~" factor | unit { ".T" }
    unit    = "(" mask ")" | name [ "(" [ value { "," value } ] ")" ]
    value   = [ name "=" ] ( number | "True" | "False" | "None" | "[" item { "," item } "]" )
    item    = value [ "*" number ]                       (repeated that many times)

Nothing is evaluated: names come from the table of patterns, and everything else is an error
that points at the character. Texts may be untrusted, so there are limits on characters, patterns,
nesting, and the total number of table entries. Parsing takes time and memory proportional to the
characters and entries.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from regard.errors import MaskSyntaxError, Phrase, RegardError
from regard.masks.grid_patterns import neighbourhood
from regard.masks.mask import Both, Combined, Either, Mask, MaskCombiner
from regard.masks.pair_patterns import dense, documents
from regard.masks.patterns import (
    causal,
    every,
    everything,
    local_global,
    nothing,
    padding,
    prefix,
    span,
    window,
)

CHARACTERS = 1 << 24
"""The most characters of a text: eight per entry."""

TERMS = 10_000
"""The most patterns of a text; ``local_global`` counts as three."""

ENTRIES = 1 << 21
"""The most entries of all tables together, so that ``0*9999999999`` does not fill the memory."""

DEEPEST = 100
"""The most nested brackets; more is a mistake or an attack, not a mask."""

AXES = 16
"""The most nested lists: a table has few axes."""

LONGEST_NAME = 64
"""Characters of a name that are compared when suggesting a similar one."""

_TOKEN = re.compile(r"\s*(?:(?P<number>-?[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[&|~()\[\],.=*]))")
_WORDS = {"True": True, "False": False, "None": None}


_PATTERNS: dict[str, Callable[..., Mask]] = {
    pattern.__name__: pattern
    for pattern in (
        *(causal, window, padding, prefix, span, documents),
        *(every, local_global, neighbourhood, dense, everything, nothing),
    )
}


class _Token(NamedTuple):
    kind: str  # "number", "name", "sign" or "end"
    text: str
    position: int

    def __str__(self) -> str:
        return repr(self.text if len(self.text) <= LONGEST_NAME else f"{self.text[:LONGEST_NAME]}…")


def parse(text: str) -> Mask:
    """The mask that ``text`` describes.

    >>> parse("causal & (window(4, 0) | prefix(2))")
    causal() & (window(4, 0) | prefix(2))
    >>> parse("~documents([0*8, 1*8]) | every(4).T")
    ~documents([0*8, 1*8]) | every(4).T
    """
    if not isinstance(text, str):
        raise MaskSyntaxError(
            "A mask text must be a string. Got {type}.",
            text=repr(text)[:60],
            position=0,
            type=type(text).__name__,
        )
    return _Reader(text).whole()


class _Reader:
    """A recursive-descent parser of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = self.axes = self.terms = self.entries = 0
        if len(text) > CHARACTERS:
            self._fail(
                "A mask text must have at most {most:,} characters. Got {text_count:,}.",
                CHARACTERS,
                most=CHARACTERS,
                text_count=len(text),
            )
        self._tokens = self._cut()
        self.here = next(self._tokens)
        self.next = next(self._tokens)

    def _cut(self) -> Iterator[_Token]:
        """The tokens one by one, then "end" tokens forever."""
        text, position = self.text, 0
        end = len(text.rstrip())
        while position < end:
            found = _TOKEN.match(text, position)
            if found is None:
                position = next(at for at in range(position, end) if not text[at].isspace())
                self._fail(
                    "A mask must be written with names, numbers and & | ~ ( ) [ ]. Got {sign!r}.",
                    position,
                    sign=text[position],
                )
            kind = str(found.lastgroup)
            yield _Token(kind, found[kind], found.start(kind))
            position = found.end()
        while True:
            yield _Token("end", "", len(text))

    def _fail(self, problem: str, position: int, /, **values: object) -> NoReturn:
        for name, one in values.items():
            if isinstance(one, _Token) and one.kind == "end":
                values[name] = Phrase("the end of the text")
        raise MaskSyntaxError(problem, text=self.text, position=position, **values)

    # ---- moving through the tokens -----------------------------------------------------------

    def _at(self, sign: str) -> bool:
        return self.here.kind == "sign" and self.here.text == sign

    def _take(self) -> _Token:
        taken, self.here = self.here, self.next
        self.next = next(self._tokens)
        return taken

    def _accept(self, sign: str) -> bool:
        if self._at(sign):
            self._take()
            return True
        return False

    def _expect(self, sign: str, why: Phrase) -> None:
        if not self._accept(sign):
            self._fail(
                "Expected {sign!r} {why}. Got {here}.", self.here.position, sign=sign, why=why, here=self.here
            )

    # ---- limits ------------------------------------------------------------------------------

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail(
                "A mask must not nest more than {DEEPEST} levels.", self.here.position, DEEPEST=DEEPEST
            )

    def _count_terms(self, made: Mask, position: int) -> None:
        self.terms += sum(1 for _ in made.patterns())
        if self.terms > TERMS:
            self._fail("A mask text must have at most {TERMS:,} patterns.", position, TERMS=TERMS)
        if isinstance(made, Combined) and self.depth >= DEEPEST:
            self._fail(
                "A mask must not nest more than {DEEPEST} levels.", position, DEEPEST=DEEPEST
            )  # it is written with brackets

    def _count_entries(self, count: int, position: int) -> None:
        self.entries += count
        if self.entries > ENTRIES:
            self._fail(
                "The lists of a mask text must have at most {ENTRIES:,} entries in all.",
                position,
                ENTRIES=ENTRIES,
            )

    # ---- masks -------------------------------------------------------------------------------

    def whole(self) -> Mask:
        mask = self.mask()
        if self.here.kind != "end":
            self._fail(
                "Expected & or | or the end of the text. Got {here}.", self.here.position, here=self.here
            )
        return mask

    def mask(self) -> Mask:
        either = MaskCombiner(Either)
        self._join(either, self.term(), self.here.position)
        while self._at("|"):
            position = self._take().position
            self._join(either, self.term(), position)
        return either.mask()

    def term(self) -> Mask:
        both = MaskCombiner(Both)
        self._join(both, self.factor(), self.here.position)
        while self._at("&"):
            position = self._take().position
            self._join(both, self.factor(), position)
        return both.mask()

    def _join(self, combiner: MaskCombiner, mask: Mask, position: int) -> None:
        try:
            combiner.add(mask)
        except RegardError as error:
            self._fail("{error}", position, error=error)

    def factor(self) -> Mask:
        self._deeper()
        if self._accept("~"):
            mask = ~self.factor()
        else:
            mask = self.unit()
            if self._is_transposed():
                mask = mask.T
        self.depth -= 1
        return mask

    def _is_transposed(self) -> bool:
        """Whether ``.T`` follows an odd number of times: two cancel out."""
        odd = False
        while self._accept("."):
            after = self._take()
            if after.text != "T":
                self._fail("Expected T after the dot. Got {after}.", after.position, after=after)
            odd = not odd
        return odd

    def unit(self) -> Mask:
        if self._accept("("):
            mask = self.mask()
            self._expect(")", Phrase("to close the bracket"))
            return mask
        token = self._take()
        if token.kind != "name":
            self._fail(
                "Expected a mask such as causal or window(4, 0). Got {token}.", token.position, token=token
            )
        pattern = _PATTERNS.get(token.text)
        if pattern is None:
            near = difflib.get_close_matches(token.text[:LONGEST_NAME], _PATTERNS, n=1)
            hint = (
                Phrase("Did you mean {near}?", near=near[0])
                if near
                else Phrase("Known: {names}.", names=", ".join(_PATTERNS))
            )
            self._fail("No mask is called {token}. {hint}", token.position, token=token, hint=hint)
        values, named = self.arguments() if self._at("(") else ([], {})
        try:
            made: Mask = pattern(*values, **named)
        except RegardError as error:
            self._fail("{error}", token.position, error=error)
        except TypeError:
            call = list(inspect.signature(pattern).parameters)
            self._fail(
                "{name} is written {name}({call}).", token.position, name=token.text, call=", ".join(call)
            )
        self._count_terms(made, token.position)
        return made

    # ---- values ------------------------------------------------------------------------------

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        values: list[Any] = []
        named: dict[str, Any] = {}
        self._expect("(", Phrase("before the values"))
        while not self._at(")"):
            if self.here.kind == "name" and self.next.text == "=":
                name = self._take()
                self._take()
                if name.text in named:
                    self._fail("{name} is given twice.", name.position, name=name)
                named[name.text] = self.value()
            else:
                values.append(self.value())
            if not self._accept(","):
                break
        self._expect(")", Phrase("after the values"))
        return values, named

    def value(self) -> Any:
        token = self._take()
        if token.kind == "number":
            return self._number(token)
        if token.text in _WORDS:
            return _WORDS[token.text]
        if token.text == "[":
            return self.items(token.position)
        return self._fail(
            "Expected a number, True, False, None or a list. Got {token}.", token.position, token=token
        )

    def _number(self, token: _Token) -> int:
        # 64 bits; the length is checked first, because converting long numbers is slow.
        if len(token.text) > 20 or not -(1 << 63) <= (number := int(token.text)) < 1 << 63:
            self._fail("Numbers must be between -2**63 and 2**63 - 1.", token.position)
        return number

    def items(self, start: int) -> NDArray[Any]:
        """A list after its opening bracket, as an array: runs are never expanded to Python objects."""
        self.axes += 1
        if self.axes > AXES:
            self._fail("Lists must not nest more than {most} levels.", start, most=AXES)
        values: list[Any] = []
        counts: list[int] = []
        while not self._at("]"):
            position = self.here.position
            value = self.value()
            if value is None:
                self._fail("A list must hold numbers, True, False or lists. Got None.", position)
            position = self.next.position if self._at("*") else position
            values.append(value)
            counts.append(self._times())
            # A nested list was counted when it was read. Every item counts at least 1, even if repeated 0×.
            again = max(value.size, 1) * (counts[-1] - 1) if isinstance(value, np.ndarray) else counts[-1]
            self._count_entries(max(again, 1), position)
            if not self._accept(","):
                break
        self._expect("]", Phrase("to close the list"))
        self.axes -= 1
        if not any(counts):
            return np.empty(0)
        try:
            return np.repeat(np.asarray(values), counts, axis=0)
        except ValueError:
            self._fail(
                "The rows of a table must have the same length. Got rows of different lengths. "
                "Pad the rows, or pass lengths=.",
                start,
            )

    def _times(self) -> int:
        if not self._accept("*"):
            return 1
        times = self._take()
        if times.kind != "number" or times.text.startswith("-"):
            self._fail(
                "Expected a number of repetitions after '*'. Got {times}.", times.position, times=times
            )
        return self._number(times)
