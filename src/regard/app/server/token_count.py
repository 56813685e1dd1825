"""How many tokens a text has, and how much of it fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from regard.app.server.limits import Limits
from regard.errors import TextError


class TokenCount(NamedTuple):
    """How many tokens a text has, and how many of its characters fit; None if the tokenizer cannot tell."""

    tokens: int
    characters: int | None


def fitting(text: str, ends: Sequence[int], most: int) -> int:
    """How many characters have at most ``most`` tokens, whose ends these are; cut between words.

    >>> fitting("one two three", [3, 7, 10, 13], 3)
    7
    >>> fitting("one two three", [3, 7, 10, 13], 4)
    13
    """
    if len(ends) <= most:
        return len(text)
    end = ends[most - 1] if most > 0 else 0
    if not text[end : end + 1].isspace():
        end = len(text[:end].rstrip()) if text[:end][-1:].isspace() else text.rfind(" ", 0, end)
    return max(end, 0)


def check_tokens(count: int, limits: Limits) -> None:
    """Raise if a text is longer than the server accepts."""
    if count > limits.tokens:
        raise TextError(
            "A text can have at most {tokens:,} tokens on this server.",
            got="{count:,}",
            do="Shorten it, or start the server with a larger --max-tokens.",
            tokens=limits.tokens,
            count=count,
        )
