"""What the description inside a recording file says, field by field: one schema for writing and reading.

A mask is a text, or a list that begins with its kind: ``["&", mask, …]``, ``["|", mask, …]``,
``["~", mask]``, ``["table", tensor name]``, ``["rows", [start, stop, mask], …]`` or ``["placed", position of
key 0, position of the first query or -1, mask]``. A bias is ``{"kind": …, "table": tensor name}``,
``{"sum": [bias, …]}``, ``{"scaled": bias, "factors": tensor name}`` or ``{"capped": tensor name of Q, "k": …,
"scale": …, "softcap": …}``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

LARGEST = 1e15
"""No number of a recording is larger: products and squares of such numbers still fit float32."""

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""A number of a layer, a head, a run or a position."""

Position = Annotated[int, Meta(ge=-1, le=2**31 - 1)]
"""A position, or -1 for none."""

Finite = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Meta(ge=1 / LARGEST, le=LARGEST)]


class CallDescription(Struct, frozen=True):
    """One attention call, its tensors by the names that they have in the file."""

    name: str
    kind: Literal["encoder", "decoder", "cross"]
    layer: Count
    run: Count
    scale: Finite
    softcap: Positive | None
    heads: list[Count] | None
    tensors: dict[str, str]
    mask: str | list[Any]
    bias: dict[str, Any] | None


class NextTokensDescription(Struct, frozen=True):
    """The likeliest next tokens, tensors by their names in the file."""

    words: list[str]
    best: str
    probabilities: str
    own: str
    generated: Count | None


class PictureDescription(Struct, frozen=True):
    """A picture: the name of its tensor of pixels, its grid, and the positions of its patches."""

    pixels: str
    grid: tuple[Count, Count]
    tokens: list[Position]


class RecordingDescription(Struct, frozen=True):
    """A whole recording; ``regard`` is the version that wrote it."""

    regard: str
    model: str
    tokens: list[list[str]] | None
    source_tokens: list[list[str]] | None
    calls: list[CallDescription]
    next_tokens: NextTokensDescription | None = None  # files written before it existed lack it
    picture: PictureDescription | None = None


# ---- biases --------------------------------------------------------------------------------------


class T5Description(Struct, frozen=True, tag_field="kind", tag="t5"):
    """T5's buckets of distances."""

    table: str
    bidirectional: bool
    max_distance: Count


class RelativeDescription(Struct, frozen=True, tag_field="kind", tag="relative"):
    """A number for every clipped distance."""

    table: str


class AlibiDescription(Struct, frozen=True, tag_field="kind", tag="alibi"):
    """A slope for every head."""

    table: str


class TensorDescription(Struct, frozen=True, tag_field="kind", tag="tensor"):
    """Four axes that broadcast to the scores."""

    table: str


BiasDescription = T5Description | RelativeDescription | AlibiDescription | TensorDescription


class ScaledDescription(Struct, frozen=True):
    """A bias times factors."""

    scaled: dict[str, Any]
    factors: str


class CappedDescription(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Softcapped scores; ``capped`` is Q. Earlier versions wrote their factors here, not in ``scaled``."""

    capped: str
    k: str
    scale: Finite
    softcap: Positive
    factors: str | None = None


class SumDescription(Struct, frozen=True):
    """Several biases added up."""

    sum: Annotated[list[dict[str, Any]], Meta(min_length=1)]
