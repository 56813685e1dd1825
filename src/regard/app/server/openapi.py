"""The interface as OpenAPI 3.1, made from ``api_types.py``; tests send what it allows and forbids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from msgspec.json import schema_components

from regard.app.server import api_types
from regard.app.server.limits import Limits
from regard.version import __version__

Shape = dict[str, Any]

REFERENCE = "#/components/schemas/{name}"
ADDRESS = "Parameters"
"""The suffix of types that describe a URL rather than JSON."""

ANSWERS = {200: "Done.", 202: "Started.", 304: "Not modified."}
ERRORS = {
    400: "The body is not JSON.",
    401: "The server's token is missing or wrong.",
    403: "A page of another site sent the request.",
    404: "No such recording, call or job.",
    408: "The body took too long to arrive.",
    409: "The levels of this head are not built yet: post to its maps first.",
    413: "The text or the body is too long.",
    415: "The content type is not application/json.",
    421: "The Host header does not name this server.",
    422: "A field or a parameter does not fit; the message says which.",
    429: "The queue of jobs is full; the message says how long it is.",
}
EVERYWHERE = (401, 403, 421)
BODY_ERRORS = (400, 408, 413, 415, 422, 429)
NUMBERS = "application/octet-stream"

RECORDING = "/api/recordings/{recording}"
CELL = "{call}/{head}/{level}/{row}/{column}"


@dataclass(frozen=True)
class Operation:
    """One method of one path; an answer is a type, or the media types of its bytes."""

    method: str
    path: str
    summary: str
    answers: Mapping[int, type[Struct] | tuple[str, ...]]
    errors: tuple[int, ...] = ()
    parameters: type[Struct] | None = None
    body: type[Struct] | None = None


OPERATIONS = (
    Operation("get", "/api/state", "Models, recordings and limits", {200: api_types.StateAnswer}),
    Operation(
        "post",
        "/api/readings",
        "Read a text; the job's result names the recording",
        {202: api_types.JobStarted},
        BODY_ERRORS,
        body=api_types.ReadingRequest,
    ),
    Operation(
        "post",
        "/api/counts",
        "How many tokens a text has for a model, and how much of it fits",
        {200: api_types.CountAnswer},
        BODY_ERRORS,
        body=api_types.CountRequest,
    ),
    Operation(
        "get",
        "/api/jobs/{job}",
        "The progress of a job, now or when its version is greater than `after`; asking keeps the job alive",
        {200: api_types.JobAnswer},
        (404, 422),
        api_types.JobPollParameters,
    ),
    Operation(
        "delete",
        "/api/jobs/{job}",
        "Cancel a job; it stops unless another client waits for it",
        {200: api_types.JobAnswer},
        (404, 408, 413),
        api_types.JobParameters,
    ),
    Operation(
        "get",
        RECORDING,
        "The description of a recording",
        {200: api_types.RecordingAnswer},
        (404,),
        api_types.RecordingParameters,
    ),
    Operation(
        "get",
        f"{RECORDING}/texts",
        "The tokens of every text of a recording",
        {200: api_types.TextsAnswer, 304: ()},
        (404,),
        api_types.RecordingParameters,
    ),
    Operation(
        "post",
        f"{RECORDING}/maps",
        "Build the coarse levels and the margins of a head, in one pass",
        {200: api_types.JobStarted, 202: api_types.JobStarted},
        (404, *BODY_ERRORS),
        api_types.RecordingParameters,
        api_types.MapRequest,
    ),
    Operation(
        "post",
        f"{RECORDING}/pages",
        "Write the page at /look/{recording}, of all calls or of one",
        {200: api_types.JobStarted, 202: api_types.JobStarted},
        (404, *BODY_ERRORS),
        api_types.RecordingParameters,
        api_types.PageRequest,
    ),
    Operation(
        "post",
        f"{RECORDING}/summaries",
        "Make a small picture, statistics and the role of every head of all calls",
        {200: api_types.JobStarted, 202: api_types.JobStarted},
        (404, *BODY_ERRORS),
        api_types.RecordingParameters,
        api_types.SummaryRequest,
    ),
    Operation(
        "get",
        f"{RECORDING}/summaries",
        "The pictures, statistics and roles of heads that are ready, without the `first` ones",
        {200: api_types.SummariesAnswer},
        (404, 422),
        api_types.SummaryParameters,
    ),
    Operation(
        "get",
        f"{RECORDING}/lines/{{call}}/{{head}}/{{side}}/{{token}}",
        "What one query attends to, a number for each key; or what attends to one key, as float32",
        {200: (NUMBERS,)},
        (404, 422),
        api_types.LineParameters,
    ),
    Operation(
        "get",
        f"{RECORDING}/margins/{{call}}/{{head}}",
        "The attention received by every key, then the entropy of every query, as float32",
        {200: (NUMBERS,), 304: ()},
        (404, 409, 422),
        api_types.HeadParameters,
    ),
    Operation(
        "get",
        f"{RECORDING}/peaks/{CELL}",
        "The largest weight in one cell, and where it is",
        {200: api_types.PeakAnswer},
        (404, 422),
        api_types.CellParameters,
    ),
    Operation(
        "get",
        f"{RECORDING}/rows/{{call}}/{{head}}/{{row}}",
        "The key that one query attends to most, and how much",
        {200: api_types.PeakAnswer},
        (404, 422),
        api_types.RowParameters,
    ),
    Operation(
        "get",
        f"{RECORDING}/tiles/{CELL}",
        "A tile of at most 256 × 256 cells, of 2^level × 2^level pairs each; "
        "x-regard-rows and x-regard-columns give its size",
        {200: (NUMBERS, "image/png"), 304: ()},
        (404, 409, 422),
        api_types.TileParameters,
    ),
)


def schema(limits: Limits) -> Shape:
    """The whole description."""
    found = _schemas(limits)
    paths: Shape = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation, found)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "regard",
            "version": __version__,
            "description": "Read a text with a model, and look at the attention of every head.",
        },
        "paths": paths,
        "components": {
            "schemas": {name: shape for name, shape in found.items() if not name.endswith(ADDRESS)}
        },
    }


def _schemas(limits: Limits) -> Shape:
    """The JSON Schema of every type, by name."""
    kinds = {
        one.__name__: one
        for one in vars(api_types).values()
        if isinstance(one, type) and issubclass(one, Struct) and one is not Struct
    }
    limited = {
        "ReadingRequest": api_types.reading_request(limits),
        "CountRequest": api_types.count_request(limits),
    }
    _, found = schema_components({**kinds, **limited}.values(), ref_template=REFERENCE)
    return found


def _described(operation: Operation, schemas: Shape) -> Shape:
    responses: Shape = {
        str(status): {"description": ANSWERS[status], **_content(answer)}
        for status, answer in operation.answers.items()
    }
    for status in sorted({*operation.errors, *EVERYWHERE}):
        responses[str(status)] = {"description": ERRORS[status], **_content(api_types.ErrorAnswer)}
    found: Shape = {
        "summary": operation.summary,
        "parameters": _parameters(operation, schemas),
        "responses": responses,
    }
    if operation.body is not None:
        found["requestBody"] = {"required": True, **_content(operation.body)}
    return found


def _parameters(operation: Operation, schemas: Shape) -> list[Shape]:
    """The fields of a type: in the path where it names them, otherwise in the query."""
    if operation.parameters is None:
        return []
    fields: Shape = schemas[operation.parameters.__name__]["properties"]
    inside = {name for name in fields if f"{{{name}}}" in operation.path}
    return [
        {
            "name": name,
            "in": "path" if name in inside else "query",
            "required": name in inside,
            "schema": shape,
        }
        for name, shape in fields.items()
    ]


def _content(answer: type[Struct] | tuple[str, ...]) -> Shape:
    if isinstance(answer, type):
        reference = {"$ref": REFERENCE.format(name=answer.__name__)}
        return {"content": {"application/json": {"schema": reference}}}
    if not answer:
        return {}
    return {"content": {media: {"schema": {"type": "string", "format": "binary"}} for media in answer}}
