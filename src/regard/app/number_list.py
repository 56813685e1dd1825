"""Lists of numbers on the command line: ``0,3-5`` is 0, 3, 4 and 5."""

from __future__ import annotations

import re
from gettext import gettext

import click


class NumberList(click.ParamType):
    """Whole numbers and ranges of them, separated by commas.

    >>> NUMBERS.convert("0,3-5", None, None)
    [0, 3, 4, 5]
    """

    name = "numbers"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """The numbers, in order."""
        if isinstance(value, list):
            return value
        found: set[int] = set()
        for part in str(value).split(","):
            read = re.fullmatch(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*", part)
            if read is None or int(read[2] or read[1]) < int(read[1]):
                said = gettext("{part!r} is neither a number nor a range such as 3-5")
                self.fail(said.format(part=part.strip()), param, ctx)
            found.update(range(int(read[1]), int(read[2] or read[1]) + 1))
        return sorted(found)


NUMBERS = NumberList()
