"""The types of requests and answers: one description for validation and for OpenAPI.

Requests and parameters are parsed into these types by ``request_validation.py``; ``openapi.py`` turns all of
them into JSON Schema.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from msgspec import Meta, Struct, defstruct

from regard.app.server.limits import Limits
from regard.views.map import HIDING, KINDS, TYPES
from regard.views.map.tile_encoding import SCALES
from regard.views.page.page_quantities import QUANTITIES

if TYPE_CHECKING:
    Hiding: TypeAlias = str
    Kind: TypeAlias = str
    Encoding: TypeAlias = str
    Scale: TypeAlias = str
    What: TypeAlias = str
else:
    Hiding, Kind, Encoding, Scale = Literal[HIDING], Literal[KINDS], Literal[TYPES], Literal[SCALES]
    What = Literal[QUANTITIES]

LARGEST = 999_999_999

Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
Share = Annotated[float, Meta(ge=0, le=1)]

# ---- parameters in the address -------------------------------------------------------------------


class RecordingParameters(Struct, frozen=True):
    """Which recording."""

    recording: str


class JobParameters(Struct, frozen=True):
    """Which job."""

    job: str


class JobPollParameters(JobParameters, frozen=True):
    """Which job; wait up to ``wait`` seconds until its version is greater than ``after``."""

    after: Whole = LARGEST
    wait: Whole = 0


class PageParameters(RecordingParameters, frozen=True):
    """Which recording, and which of its calls; all calls by default."""

    call: Whole | None = None


class SummaryParameters(RecordingParameters, frozen=True):
    """Which recording, and how many summaries the client has already."""

    first: Whole = 0


class HeadParameters(RecordingParameters, frozen=True, kw_only=True):
    """Which head of a recording, which of its keys are hidden, and what is shown of a pair."""

    call: Whole
    head: Whole
    sinks: Hiding = "show"
    what: What = "weight"


class RowParameters(HeadParameters, frozen=True, kw_only=True):
    """Which query of a head."""

    row: Whole


class LineParameters(HeadParameters, frozen=True, kw_only=True):
    """Which query of a head, or which key."""

    side: Literal["query", "key"]
    token: Whole


class CellParameters(HeadParameters, frozen=True, kw_only=True):
    """Which cell, or which tile, of a level of a head's map."""

    level: Whole
    row: Whole
    column: Whole


class TileParameters(CellParameters, frozen=True, kw_only=True):
    """Which tile, and how it is encoded."""

    kind: Kind = "max"
    type: Encoding = "float32"
    scale: Scale = "linear"


# ---- bodies --------------------------------------------------------------------------------------


class ReadingRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A text to read, or a picture and its name; ``reading_request`` adds the limits of a server."""

    model: str
    text: str
    pair: str | None = None  # a second text, or a question about the picture
    generate: int = 0
    picture: str | None = None  # a PNG, JPEG or WebP file in base 64


class CountRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A text whose tokens to count; ``count_request`` adds the limits of a server."""

    model: str
    text: str


class MapRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A head whose coarse levels to build; by default the first recorded one."""

    call: Whole = 0
    head: Whole | None = None
    sinks: Hiding = "show"
    what: What = "weight"


class PageRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A page to write, of all calls or of one."""

    call: Whole | None = None


class SummaryRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The call whose heads are summarised first; all others follow."""

    call: Whole = 0


@cache
def reading_request(limits: Limits) -> type[ReadingRequest]:
    """``ReadingRequest`` within the limits of a server."""
    text = Annotated[str, Meta(min_length=1, max_length=limits.characters, pattern=r"\S")]
    generate = Annotated[int, Meta(ge=0, le=limits.generated)]
    picture = Annotated[str, Meta(max_length=limits.picture_characters)]
    limited = defstruct(
        "ReadingRequest",
        [
            ("model", str),
            ("text", text),
            ("pair", text | None, None),
            ("generate", generate, 0),
            ("picture", picture | None, None),
        ],
        bases=(ReadingRequest,),
        namespace={
            "__doc__": "A text to read, or a picture in base 64: its name is the text, a question the pair."
        },
        frozen=True,
        forbid_unknown_fields=True,
    )
    return cast("type[ReadingRequest]", limited)


@cache
def count_request(limits: Limits) -> type[CountRequest]:
    """``CountRequest`` within the limits of a server."""
    text = Annotated[str, Meta(max_length=limits.characters)]
    limited = defstruct(
        "CountRequest",
        [("model", str), ("text", text)],
        bases=(CountRequest,),
        namespace={"__doc__": "A text whose tokens to count."},
        frozen=True,
        forbid_unknown_fields=True,
    )
    return cast("type[CountRequest]", limited)


# ---- answers -------------------------------------------------------------------------------------


class ErrorAnswer(Struct, forbid_unknown_fields=True):
    """What must hold, what was sent instead and what to do, in English or Chinese."""

    error: str


class ModelAnswer(Struct, forbid_unknown_fields=True):
    """A model that reads texts, or pictures."""

    id: str
    label: str
    architecture: Annotated[str, Meta(description="The name of its class.")]
    parameters: Whole
    kind: Literal["encoder", "decoder", "translator", "picture"]
    longest: int | None
    pair: bool
    examples: Annotated[list[str], Meta(description="Texts to try, in the language that the model reads.")]


class CountAnswer(Struct, forbid_unknown_fields=True):
    """How many tokens a text has, and how much of it the model can read."""

    tokens: Whole
    most: Annotated[Whole, Meta(description="The most tokens that this model reads on this server.")]
    characters: Annotated[
        Whole | None,
        Meta(description="How many characters from the start fit; null if the tokenizer cannot tell."),
    ]


class RecordingSummary(Struct, forbid_unknown_fields=True):
    """An entry in the list of recordings."""

    id: str
    title: str
    model: str
    tokens: Whole


class LimitsAnswer(Struct, forbid_unknown_fields=True):
    """The limits of one request."""

    tokens: Whole
    letters: Whole
    generated: Whole
    picture: Annotated[Whole, Meta(description="The most bytes of a picture.")]
    tile: Whole


class StateAnswer(Struct, forbid_unknown_fields=True):
    """Everything a client needs to begin."""

    version: str
    models: list[ModelAnswer]
    recordings: list[RecordingSummary]
    limits: LimitsAnswer


class JobAnswer(Struct, forbid_unknown_fields=True):
    """The progress of a job, and its result when it is done."""

    id: str
    kind: Literal["reading", "mapping", "writing", "summarising"]
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    stage: Literal["waiting", "reading", "saving", "mapping", "writing", "summarising"]
    share: Share
    version: Whole
    result: dict[str, Any] | None
    error: str | None


class JobStarted(Struct, forbid_unknown_fields=True):
    """The job that was started; null if its result exists already."""

    job: JobAnswer | None


class CallAnswer(Struct, forbid_unknown_fields=True, rename="camel"):
    """One attention call of a recording."""

    index: Whole
    name: str
    layer: Whole
    kind: Literal["encoder", "decoder", "cross"]
    run: Whole
    heads: list[Whole]
    queries: Whole
    keys: Whole
    dense: bool
    weights: Annotated[bool, Meta(description="False if only statistics were recorded.")]
    query_text: Whole
    key_text: Whole


class RecordingAnswer(Struct, forbid_unknown_fields=True):
    """The description of a recording."""

    id: str
    title: str
    model: str
    calls: list[CallAnswer]
    whole: Annotated[bool, Meta(description="Whether one page shows all calls.")]
    what: Annotated[list[What], Meta(description="What can be shown of a pair.")]


class TextAnswer(Struct, forbid_unknown_fields=True):
    """The tokens of a text, the positions of the special ones, and 1 or 0: whether a space is before."""

    tokens: list[str]
    special: list[Whole]
    spaces: str


class TextsAnswer(Struct, forbid_unknown_fields=True):
    """Every text of a recording."""

    texts: list[TextAnswer]


class ThumbnailsAnswer(Struct, forbid_unknown_fields=True):
    """A small picture of every head of a call: the greatest weight of each block of pairs."""

    rows: Whole
    columns: Whole
    values: Annotated[str, Meta(description="One byte per block, head by head, in base 64; 255 is weight 1.")]


class CallSummaryAnswer(Struct, forbid_unknown_fields=True):
    """The heads of one call: a number of each statistic and a small picture for every head."""

    call: Whole
    statistics: dict[str, list[float | None]]
    thumbnails: Annotated[ThumbnailsAnswer | None, Meta(description="Null if only statistics were recorded.")]


class CardsAnswer(Struct, forbid_unknown_fields=True):
    """A few heads whose roles are clear, or nearly so."""

    clear: Annotated[Whole, Meta(description="How many of the heads, the first ones, are clear.")]
    heads: Annotated[
        list[list[int | float | str]],
        Meta(description="Call, head, role, score, query, key, weight of each."),
    ]


class SummariesAnswer(Struct, forbid_unknown_fields=True):
    """What is known of all heads so far; post to the same path to have more computed."""

    calls: Annotated[Whole, Meta(description="How many calls the recording has.")]
    summaries: list[CallSummaryAnswer]
    roles: Annotated[
        list[list[list[int | float | str | None] | None]] | None,
        Meta(description="For each call and head its role, score and example; null until all are known."),
    ]
    cards: CardsAnswer | None


class PeakAnswer(Struct, forbid_unknown_fields=True):
    """The largest weight in a cell and its place, and the mean of the cell's pairs.

    Of another quantity, the number furthest from 0. The weight is null if all pairs are masked.
    """

    query: Whole
    key: Whole
    weight: float | None
    mean: float
    pairs: Whole
