"""What a request says, checked: numbers within their range, words from their list, JSON of known shape."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from regard.app.server.refused import RefusedError

_NUMBER = re.compile("[0-9]{1,9}")


def number(said: Mapping[str, str], name: str, default: int | None = None) -> int:
    """A whole number of the address, 0 or more, of at most nine digits."""
    text = said.get(name)
    if text is None and default is not None:
        return default
    if text is None or not _NUMBER.fullmatch(text):
        raise RefusedError(422, f"{name} is a whole number from 0 on.", got=_quoted(text), do="Count from 0.")
    return int(text)


def word(said: Mapping[str, str], name: str, known: Sequence[str], default: str) -> str:
    """One of some words of the address."""
    text = said.get(name, default)
    if text not in known:
        raise RefusedError(
            422,
            f"{name} is one of {', '.join(known)}.",
            got=_quoted(text),
            do=f"Leave it out for {default}.",
        )
    return text


def object_of(body: bytes, known: Sequence[str]) -> dict[str, Any]:
    """The JSON object of a request, with no other fields than the known ones."""
    try:
        found = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise RefusedError(
            400, "A request is JSON in UTF-8.", got="something else", do="Send an object."
        ) from None
    if not isinstance(found, dict):
        raise RefusedError(422, "A request is an object of JSON.", got="another value", do="Send {…}.")
    others = sorted(set(found) - set(known))
    if others:
        raise RefusedError(
            422,
            f"A request has the fields {', '.join(known)}.",
            got=_quoted(others[0]),
            do="Leave it out.",
        )
    return found


def text_field(found: Mapping[str, Any], name: str, *, most: int, needed: bool = True) -> str | None:
    """A text of some length."""
    value = found.get(name)
    if value is None and not needed:
        return None
    if not isinstance(value, str) or not value.strip():
        raise RefusedError(
            422, f"{name} is a text of at least one word.", got="nothing of the kind", do="Write one."
        )
    if len(value) > most:
        raise RefusedError(
            413, f"{name} has at most {most:,} letters here.", got=f"{len(value):,}", do="Shorten it."
        )
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise RefusedError(422, f"{name} is text in UTF-8.", got="half of a letter", do="Send whole letters.")
    return value


def number_field(found: Mapping[str, Any], name: str, *, most: int, default: int | None) -> int | None:
    """A whole number from 0 to ``most``."""
    value = found.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise RefusedError(
            422,
            f"{name} is a whole number from 0 to {most}.",
            got=_quoted(value),
            do="Choose another.",
        )
    return value


def word_field(found: Mapping[str, Any], name: str, known: Sequence[str], default: str) -> str:
    """One of some words."""
    value = found.get(name, default)
    if value not in known:
        raise RefusedError(422, f"{name} is one of {', '.join(known)}.", got=_quoted(value), do="Choose one.")
    return str(value)


def _quoted(value: object) -> str:
    return "nothing" if value is None else ascii(value)[:60]
