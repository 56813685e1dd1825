"""What a request says, checked: numbers within their range, words from their list, JSON of known shape."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from regard.app.server.refused import RefusedError
from regard.checks import is_integer

_NUMBER = re.compile("[0-9]{1,9}")


def number(said: Mapping[str, str], name: str, default: int | None = None) -> int:
    """A whole number of the address, 0 or more, of at most nine digits."""
    text = said.get(name)
    if text is None and default is not None:
        return default
    if text is None or not _NUMBER.fullmatch(text):
        raise RefusedError(
            422,
            "{name} is a whole number from 0 on.",
            got="{quoted}",
            do="Count from 0.",
            name=name,
            quoted=_quoted(text),
        )
    return int(text)


def word(said: Mapping[str, str], name: str, known: Sequence[str], default: str) -> str:
    """One of some words of the address."""
    text = said.get(name, default)
    if text not in known:
        raise RefusedError(
            422,
            "{name} is one of {known}.",
            got="{quoted}",
            do="Leave it out for {default}.",
            name=name,
            known=", ".join(known),
            quoted=_quoted(text),
            default=default,
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
        raise RefusedError(422, "A request is an object of JSON.", got="another value", do="Send {{…}}.")
    others = sorted(set(found) - set(known))
    if others:
        raise RefusedError(
            422,
            "A request has the fields {known}.",
            got="{quoted}",
            do="Leave it out.",
            known=", ".join(known),
            quoted=_quoted(others[0]),
        )
    return found


def text_field(found: Mapping[str, Any], name: str, *, most: int, needed: bool = True) -> str | None:
    """A text of some length."""
    value = found.get(name)
    if value is None and not needed:
        return None
    if not isinstance(value, str) or not value.strip():
        raise RefusedError(
            422,
            "{name} is a text of at least one word.",
            got="nothing of the kind",
            do="Write one.",
            name=name,
        )
    if len(value) > most:
        raise RefusedError(
            413,
            "{name} has at most {most:,} letters here.",
            got="{value_count:,}",
            do="Shorten it.",
            name=name,
            most=most,
            value_count=len(value),
        )
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise RefusedError(
            422, "{name} is text in UTF-8.", got="half of a letter", do="Send whole letters.", name=name
        )
    return value


def number_field(found: Mapping[str, Any], name: str, *, most: int, default: int | None) -> int | None:
    """A whole number from 0 to ``most``."""
    value = found.get(name)
    if value is None:
        return default
    if not is_integer(value, 0, most):
        raise RefusedError(
            422,
            "{name} is a whole number from 0 to {most}.",
            got="{quoted}",
            do="Choose another.",
            name=name,
            most=most,
            quoted=_quoted(value),
        )
    return value


def word_field(found: Mapping[str, Any], name: str, known: Sequence[str], default: str) -> str:
    """One of some words."""
    value = found.get(name, default)
    if value not in known:
        raise RefusedError(
            422,
            "{name} is one of {known}.",
            got="{quoted}",
            do="Choose one.",
            name=name,
            known=", ".join(known),
            quoted=_quoted(value),
        )
    return str(value)


def _quoted(value: object) -> str:
    return "nothing" if value is None else ascii(value)[:60]
