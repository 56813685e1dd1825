"""Tokens of Whisper as words: pieces are joined, and punctuation belongs to the word that it touches."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

OPENING = "\"'“¿([{-¡"
CLOSING = "\"'.。,，!！?？:：;；”)]}、…"

SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "MYANMAR", "KHMER")
"""Scripts written without spaces, by how their characters' names begin: every piece is a word."""

BROKEN = "\ufffd"
"""What a decoder writes for half a character."""


class WordTokens(NamedTuple):
    """A word in its spelling, the places of its tokens, and of those that are spoken: not punctuation."""

    text: str
    places: tuple[int, ...]
    spoken: tuple[int, ...]


def group_words(tokenizer: Any, tokens: Sequence[int], special: int) -> list[WordTokens]:
    """The words of a text; tokens from ``special`` on (ends, times, languages) are not part of any.

    A word ends before a special token, so that two sentences with a time between them stay apart.
    """
    found: list[WordTokens] = []
    joined = False
    for piece in _pieces(tokenizer, tokens, special):
        if piece is None:
            joined = False
            continue
        if joined and not _begins_word(piece.text, found[-1].text):
            last = found.pop()
            piece = WordTokens(last.text + piece.text, last.places + piece.places, last.spoken + piece.spoken)
        found.append(piece)
        joined = True
    return [
        WordTokens(text.strip(), places, spoken or places) for text, places, spoken in found if text.strip()
    ]


def _pieces(tokenizer: Any, tokens: Sequence[int], special: int) -> list[WordTokens | None]:
    """Whole characters with their tokens; None in place of each special token."""
    found: list[WordTokens | None] = []
    places: list[int] = []
    for place, token in enumerate(tokens):
        if token >= special:
            found.append(None)
            places = []
            continue
        places.append(place)
        text = tokenizer.decode([tokens[at] for at in places])
        last = place + 1 == len(tokens) or tokens[place + 1] >= special
        if last or not text.endswith(BROKEN) or len(places) > 4:  # no character has more than four bytes
            spoken = tuple(places) if any(one.isalnum() for one in text) else ()
            found.append(WordTokens(text, tuple(places), spoken))
            places = []
    return found


def _begins_word(text: str, before: str) -> bool:
    if before.strip() and all(one in OPENING for one in before.strip()):
        return False
    if text.startswith(" "):
        return True
    if text and all(one in CLOSING for one in text):
        return False
    return _spaceless(text[:1]) or _spaceless(before[-1:])


def _spaceless(character: str) -> bool:
    return bool(character) and unicodedata.name(character, "").startswith(SPACELESS)
