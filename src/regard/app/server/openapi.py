"""The interface in the words of OpenAPI 3.1; the tests send what it allows and what it forbids."""

from __future__ import annotations

from typing import Any

from regard.app.server.limits import Limits
from regard.version import __version__
from regard.views.map import HIDING, KINDS, TYPES
from regard.views.map.tile_encoding import SCALES

Shape = dict[str, Any]

WHOLE: Shape = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
TEXT: Shape = {"type": "string"}
YES: Shape = {"type": "boolean"}
SHARE: Shape = {"type": "number", "minimum": 0, "maximum": 1}

ERRORS = {
    400: "A body that is no JSON.",
    401: "The server asks for its token.",
    403: "A page of another site asked.",
    404: "No such recording, call or job.",
    408: "The body took too long to arrive.",
    409: "The levels of this head are not built yet: post to its maps first.",
    413: "The text or the body is too long.",
    415: "The body is not said to be JSON.",
    421: "The server is not known by the Host that was named.",
    422: "A field or a parameter that does not fit; the text says which.",
    429: "The queue of jobs is full; the text says how long it is.",
}
EVERYWHERE = (401, 403, 421)


def schema(limits: Limits) -> Shape:
    """The whole description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "regard",
            "version": __version__,
            "description": "Read a text with a model, and look at the attention of every head.",
        },
        "paths": {
            "/api/state": {"get": _call("Models, recordings and limits", {200: _json("State")})},
            "/api/readings": {
                "post": _call(
                    "Read a text; the job's result names the recording",
                    {202: _json("Begun")},
                    body=_reading(limits),
                    errors=(400, 408, 413, 415, 422, 429),
                )
            },
            "/api/jobs/{job}": {
                "get": _call(
                    "How far a job is, at once or when it is further than `after`; asking keeps it alive",
                    {200: _json("Job")},
                    [_path("job", TEXT), _query("after", WHOLE), _query("wait", WHOLE)],
                    errors=(404, 422),
                ),
                "delete": _call(
                    "Give a job up; it stops when nobody else holds it",
                    {200: _json("Job")},
                    [_path("job", TEXT)],
                    errors=(404, 408, 413),
                ),
            },
            "/api/recordings/{recording}": {
                "get": _call(
                    "A recording without numbers", {200: _json("Recording")}, RECORDING, errors=(404,)
                )
            },
            "/api/recordings/{recording}/texts": {
                "get": _call(
                    "The tokens of every text of it", {200: _json("Texts"), 304: {}}, RECORDING, errors=(404,)
                )
            },
            "/api/recordings/{recording}/maps": {
                "post": _call(
                    "Build the coarse levels and the margins of a head, in one pass",
                    {200: _json("Begun"), 202: _json("Begun")},
                    RECORDING,
                    body=_object({"call": WHOLE, "head": WHOLE, "sinks": _one_of(HIDING)}),
                    errors=(400, 404, 408, 413, 415, 422, 429),
                )
            },
            "/api/recordings/{recording}/pages": {
                "post": _call(
                    "Write the page at /look/{recording}, of all calls or of one",
                    {200: _json("Begun"), 202: _json("Begun")},
                    RECORDING,
                    body=_object(
                        {"call": {"type": ["integer", "null"], "minimum": 0, "maximum": 999_999_999}}
                    ),
                    errors=(400, 404, 408, 413, 415, 422, 429),
                )
            },
            "/api/recordings/{recording}/margins/{call}/{head}": {
                "get": _call(
                    "Attention received by every key, then the entropy of every query: float32",
                    {200: _bytes("application/octet-stream"), 304: {}},
                    PLACE,
                    errors=(404, 409, 422),
                )
            },
            "/api/recordings/{recording}/peaks/{call}/{head}/{level}/{row}/{column}": {
                "get": _call(
                    "The greatest weight behind one cell, and where it is",
                    {200: _json("Peak")},
                    [*PLACE, *CELL],
                    errors=(404, 422),
                )
            },
            "/api/recordings/{recording}/tiles/{call}/{head}/{level}/{row}/{column}": {
                "get": _call(
                    "A tile of at most 256 × 256 cells; a cell is 2^level × 2^level pairs. "
                    "x-regard-rows and x-regard-columns say how many there are",
                    {200: _bytes("application/octet-stream", "image/png"), 304: {}},
                    [
                        *PLACE,
                        *CELL,
                        _query("kind", _one_of(KINDS)),
                        _query("type", _one_of(TYPES)),
                        _query("scale", _one_of(SCALES)),
                    ],
                    errors=(404, 409, 422),
                )
            },
        },
        "components": {"schemas": SCHEMAS},
    }


def _call(
    summary: str,
    answers: dict[int, Shape],
    parameters: list[Shape] | None = None,
    *,
    body: Shape | None = None,
    errors: tuple[int, ...] = (),
) -> Shape:
    found: Shape = {"summary": summary, "parameters": parameters or [], "responses": {}}
    for status, content in answers.items():
        says = {200: "Done.", 202: "Begun.", 304: "As before."}[status]
        found["responses"][str(status)] = {"description": says, **content}
    for status in sorted({*errors, *EVERYWHERE}):
        found["responses"][str(status)] = {"description": ERRORS[status], **_json("Error")}
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return found


def _json(name: str) -> Shape:
    return {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}}


def _bytes(*kinds: str) -> Shape:
    return {"content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in kinds}}


def _path(name: str, shape: Shape) -> Shape:
    return {"name": name, "in": "path", "required": True, "schema": shape}


def _query(name: str, shape: Shape) -> Shape:
    return {"name": name, "in": "query", "required": False, "schema": shape}


def _one_of(words: tuple[str, ...]) -> Shape:
    return {"type": "string", "enum": list(words)}


def _object(fields: Shape, needed: tuple[str, ...] = ()) -> Shape:
    return {
        "type": "object",
        "properties": fields,
        "required": list(needed),
        "additionalProperties": False,
    }


def _reading(limits: Limits) -> Shape:
    text = {"type": "string", "minLength": 1, "maxLength": limits.letters}
    return _object(
        {
            "model": TEXT,
            "text": text,
            "pair": {**text, "type": ["string", "null"]},
            "generate": {"type": "integer", "minimum": 0, "maximum": limits.generated},
        },
        ("model", "text"),
    )


def _list(of: Shape) -> Shape:
    return {"type": "array", "items": of}


def _all(fields: Shape) -> Shape:
    return _object(fields, tuple(fields))


RECORDING = [_path("recording", TEXT)]
PLACE = [
    *RECORDING,
    _path("call", WHOLE),
    _path("head", WHOLE),
    _query("sinks", _one_of(HIDING)),
]
CELL = [_path(name, WHOLE) for name in ("level", "row", "column")]

JOB = _all(
    {
        "id": TEXT,
        "kind": _one_of(("reading", "mapping", "writing")),
        "state": _one_of(("waiting", "running", "done", "failed", "cancelled")),
        "stage": _one_of(("waiting", "reading", "saving", "mapping", "writing")),
        "share": SHARE,
        "version": WHOLE,
        "result": {"type": ["object", "null"]},
        "error": {"type": ["string", "null"]},
    }
)
CALL = _all(
    {
        "index": WHOLE,
        "name": TEXT,
        "layer": WHOLE,
        "kind": _one_of(("encoder", "decoder", "cross")),
        "run": WHOLE,
        "heads": _list(WHOLE),
        "queries": WHOLE,
        "keys": WHOLE,
        "dense": YES,
        "weights": {**YES, "description": "Whether it has weights, not statistics alone."},
        "queryText": WHOLE,
        "keyText": WHOLE,
    }
)
SCHEMAS: Shape = {
    "Error": _all({"error": TEXT}),
    "State": _all(
        {
            "version": TEXT,
            "models": _list(
                _all(
                    {
                        "id": TEXT,
                        "label": TEXT,
                        "kind": _one_of(("encoder", "decoder", "translator")),
                        "longest": {"type": ["integer", "null"]},
                        "pair": YES,
                    }
                )
            ),
            "recordings": _list(_all({"id": TEXT, "title": TEXT, "model": TEXT, "tokens": WHOLE})),
            "limits": _all(dict.fromkeys(("tokens", "letters", "generated", "tile"), WHOLE)),
        }
    ),
    "Job": JOB,
    "Begun": _all({"job": {"oneOf": [{"$ref": "#/components/schemas/Job"}, {"type": "null"}]}}),
    "Recording": _all(
        {
            "id": TEXT,
            "title": TEXT,
            "model": TEXT,
            "calls": _list(CALL),
            "whole": {**YES, "description": "Whether one page shows all calls."},
        }
    ),
    "Texts": _all({"texts": _list(_all({"tokens": _list(TEXT), "special": _list(WHOLE)}))}),
    "Peak": _all({"query": WHOLE, "key": WHOLE, "weight": SHARE, "mean": SHARE, "pairs": WHOLE}),
}
