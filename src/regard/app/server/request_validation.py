"""Requests parsed into the types of ``api_types.py``; errors name the field and say what it must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec import NODEFAULT, DecodeError, Struct, ValidationError, convert, json, structs
from msgspec.inspect import IntType, LiteralType, NoneType, StrType, UnionType, type_info

from regard.app.server.request_errors import RequestError
from regard.errors import Phrase

Request = TypeVar("Request", bound=Struct)


def parsed_body(body: bytes, kind: type[Request]) -> Request:
    """The JSON object of a request.

    >>> from regard.app.server.api_types import MapRequest
    >>> parsed_body(b'{"call": 3, "sinks": "first"}', MapRequest)
    MapRequest(call=3, head=None, sinks='first', what='weight')
    """
    try:
        said = json.decode(body)
    except (DecodeError, RecursionError):
        raise RequestError(
            400, "The body of a request must be JSON in UTF-8.", got="something else", do="Send an object."
        ) from None
    if not isinstance(said, dict):
        raise RequestError(
            422, "The body of a request must be a JSON object.", got="another value", do="Send {{…}}."
        )
    return _parsed(said, kind, strict=True)


def parsed_parameters(said: Mapping[str, str], kind: type[Request]) -> Request:
    """The parameters of a URL; unknown ones are ignored.

    >>> from regard.app.server.api_types import PageParameters
    >>> parsed_parameters({"recording": "book", "call": "3"}, PageParameters)
    PageParameters(recording='book', call=3)
    """
    return _parsed(dict(said), kind, strict=False)


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse a value that is not one of these."""
    if value not in known:
        raise RequestError(
            422,
            "{name} must be one of {known}.",
            got="{value}",
            do="Choose one of them.",
            name=name,
            known=", ".join(known),
            value=_quoted(value),
        )


def _parsed(said: dict[str, Any], kind: type[Request], *, strict: bool) -> Request:
    try:
        return convert(said, kind, strict=strict)
    except ValidationError as error:
        _refuse_field(said, kind, strict=strict)
        raise AssertionError(f"no field explains: {error}") from error


def _refuse_field(said: dict[str, Any], kind: type[Struct], *, strict: bool) -> None:
    """Raise for the first unknown field, or the first field that does not fit."""
    fields = structs.fields(kind)
    known = [field.name for field in fields]
    unknown = sorted(set(said) - set(known))
    if unknown and kind.__struct_config__.forbid_unknown_fields:
        raise RequestError(
            422,
            "A request can have only the fields {known}.",
            got="{unknown}",
            do="Remove it.",
            known=", ".join(known),
            unknown=_quoted(unknown[0]),
        )
    for field in fields:
        value = said.get(field.name, field.default)
        try:
            convert(None if value is NODEFAULT else value, field.type, strict=strict)
        except ValidationError as error:
            raise _refusal(field, None if value is NODEFAULT else value) from error


def _refusal(field: structs.FieldInfo, value: object) -> RequestError:
    """What a field must be, read from its type."""
    wanted = type_info(field.type)
    if isinstance(wanted, UnionType):
        wanted = next(one for one in wanted.types if not isinstance(one, NoneType))
    said: dict[str, Any] = {"name": field.name, "value": _quoted(value)}
    if isinstance(wanted, LiteralType):
        return RequestError(
            422,
            "{name} must be one of {known}.",
            got="{value}",
            do="Omit it to use {default}.",
            known=", ".join(map(str, wanted.values)),
            default=field.default,
            **said,
        )
    if isinstance(wanted, IntType):
        return RequestError(
            422,
            "{name} must be a whole number from {least} to {most}.",
            got="{value}",
            do="Choose a number in this range.",
            least=wanted.ge,
            most=wanted.le,
            **said,
        )
    assert isinstance(wanted, StrType)
    if isinstance(value, str) and wanted.max_length is not None and len(value) > wanted.max_length:
        return RequestError(
            413,
            "{name} can have at most {most:,} characters.",
            got="{count:,}",
            do="Shorten it.",
            name=field.name,
            most=wanted.max_length,
            count=len(value),
        )
    return RequestError(
        422, "{name} must be a text of at least one word.", got="{value}", do="Write one.", **said
    )


def _quoted(value: object) -> object:
    return Phrase("nothing") if value is None else ascii(value)[:60]
