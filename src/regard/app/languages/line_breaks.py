"""Line breaks in Chinese text: characters are two columns wide, and a line may end between them.

>>> wrap("每个头在看什么，一行一个头。", 16)
['每个头在看什么，', '一行一个头。']
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from regard.languages import columns_of

_NEVER_FIRST = frozenset("，。、；：！？）》」』】”’…—,;!?)]}")
_NEVER_LAST = frozenset("（《「『【“‘([{")
_WHOLE = re.compile(r'\[[^\[\]]*\]|"[^"]*"')
"""What stays on one line if it fits: ``[默认：4]``, ``"window(1, 1)"``."""


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text, each at most ``width`` columns wide; a longer word is cut."""
    lines = [""]
    for piece in _pieces(text, width):
        for part in _cut(piece, width):
            if lines[-1] and columns_of(lines[-1] + part.rstrip()) > width:
                lines.append("")
            lines[-1] += part
    return [line.rstrip() for line in lines]


def _pieces(text: str, width: int) -> Iterator[str]:
    """The text in pieces after which a line may end, each with the spaces that follow it."""
    whole = [found.span() for found in _WHOLE.finditer(text) if columns_of(found[0]) <= width]
    held = {place for start, end in whole for place in range(start + 1, end)}
    piece = ""
    for place, sign in enumerate(text):
        if piece and place not in held and _may_end(piece[-1], sign):
            yield piece
            piece = ""
        piece += sign
    if piece:
        yield piece


def _may_end(before: str, after: str) -> bool:
    if after == " " or after in _NEVER_FIRST or before in _NEVER_LAST:
        return False
    if before == "：":
        return columns_of(after) == 2  # a number stays with what it is the number of
    return before == " " or columns_of(before) == 2 or columns_of(after) == 2


def _cut(piece: str, width: int) -> Iterator[str]:
    while columns_of(piece.rstrip()) > width and len(piece) > 1:
        fitting = [end for end in range(1, len(piece)) if columns_of(piece[:end]) <= width] or [1]
        end = max([end for end in fitting if piece[end] not in _NEVER_FIRST] or fitting)
        yield piece[:end]
        piece = piece[end:]
    yield piece
