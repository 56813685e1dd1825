"""Some layers and heads of a recording, so that only these are measured."""

from __future__ import annotations

from collections.abc import Sequence

from regard.checks import check_members
from regard.recording import Call, Recording

Chosen = int | Sequence[int] | None
"""One number, several, or None for all."""


def chosen(recording: Recording, layers: Chosen, heads: Chosen) -> list[tuple[int, Call]]:
    """The calls of these layers with only these heads, each with its number in the recording."""
    wanted_layers = check_members("layers", layers, {call.layer for call in recording})
    wanted_heads = check_members("heads", heads, {head for call in recording for head in call.head_numbers})
    found = [
        (number, of_heads(call, wanted_heads))
        for number, call in enumerate(recording)
        if wanted_layers is None or call.layer in wanted_layers
    ]
    return [(number, call) for number, call in found if call is not None]


def of_heads(call: Call, heads: frozenset[int] | None) -> Call | None:
    """The call with some of its heads, each with its own key head; None if it has none of them."""
    if heads is None or set(call.head_numbers) <= heads:
        return call
    index = [at for at, head in enumerate(call.head_numbers) if head in heads]
    return call.select(heads=index) if index else None
