"""Line breaks in Chinese text: characters are two columns wide, and a line may end between them.

>>> wrap("每个头在看什么，一行一个头。", 16)
['每个头在看什么，', '一行一个头。']
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from regard.languages import columns_of

_NEVER_FIRST = r"，。、；：！？）》」』】”’…—,;!?)\]}"
_NEVER_LAST = r"（《「『【“‘(\[{"
_WIDE = r"[⺀-鿿＀-￦]"
_BREAK = re.compile(rf"(?<![{_NEVER_LAST}])(?:(?<= )|(?<={_WIDE})(?<!：)|(?={_WIDE}))(?![ {_NEVER_FIRST}])")
"""Where a line may end: beside a wide character or after a space. A number stays with the colon before it."""

_WHOLE = re.compile(r'\[[^\[\]]*\]|"[^"]*"')
"""What stays on one line if it fits: ``[默认：4]``, ``"window(1, 1)"``."""


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text, each at most ``width`` columns wide; a longer word is cut."""
    whole = [found.span() for found in _WHOLE.finditer(text) if columns_of(found[0]) <= width]
    ends = [found.start() for found in _BREAK.finditer(text)]
    ends = [end for end in ends if end and not any(first < end < last for first, last in whole)]
    lines = [""]
    for first, last in zip([0, *ends], [*ends, len(text)], strict=True):
        for part in _cut(text[first:last], width):
            if lines[-1] and columns_of(lines[-1] + part.rstrip()) > width:
                lines.append("")
            lines[-1] += part
    return [line.rstrip() for line in lines]


def _cut(piece: str, width: int) -> Iterator[str]:
    while columns_of(piece.rstrip()) > width and len(piece) > 1:
        fitting = [end for end in range(1, len(piece)) if columns_of(piece[:end]) <= width] or [1]
        end = max([end for end in fitting if not re.match(f"[{_NEVER_FIRST}]", piece[end])] or fitting)
        yield piece[:end]
        piece = piece[end:]
    yield piece
