"""The second side of ``regard look``: another text, another model, edited attention, or other layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.app.languages import TEXTS
from regard.app.model_input import RecordedText, record

if TYPE_CHECKING:
    from rich.console import Console

    from regard.edits import Edit
    from regard.recording import Recording

LONGEST_NAME = 60
"""How many characters of a text are used as the name of a side."""

KEPT_ALIKE = 20
"""How many characters of what two long texts begin with alike are kept before the first difference."""


@dataclass(frozen=True)
class Comparison:
    """What the user wants to compare with; None where both sides are the same."""

    text: str | None = None
    model: str | None = None
    layers: Sequence[int] | None = None
    edit: Edit | None = None

    @property
    def wanted(self) -> bool:
        """Whether there is anything to compare with."""
        return any(one is not None for one in (self.text, self.model, self.layers, self.edit))

    @property
    def reads_again(self) -> bool:
        """Whether the second side is another recording."""
        return any(one is not None for one in (self.text, self.model, self.edit))


def recorded_layers(layers: Sequence[int] | None, comparison: Comparison) -> Sequence[int] | None:
    """The layers to record: those of both sides, if one recording has both."""
    if layers is None or comparison.layers is None or comparison.reads_again:
        return layers
    return sorted({*layers, *comparison.layers})


def second_side(
    console: Console,
    subject: RecordedText,
    comparison: Comparison,
    *,
    text: str,
    model: str | None,
    pair: str | None,
    layers: Sequence[int] | None,
    lang: str,
    **reading: Any,
) -> tuple[Recording, dict[str, Any]]:
    """The other recording, and what ``page`` needs to know about both."""
    others = layers if comparison.layers is None else comparison.layers
    options: dict[str, Any] = {"layers": layers, "other_layers": others}
    if not comparison.reads_again:
        name = TEXTS.say("look.layers", lang, layers="{layers}")
        sides = [name.format(layers=_listed(some, lang)) for some in (layers, others)]
        return subject.recording, {**options, "names": sides}
    if others is not None:
        reading["layers"] = others
    other = record(
        console,
        text if comparison.text is None else comparison.text,
        model=model if comparison.model is None else comparison.model,
        pair=pair,
        edit=comparison.edit,
        lang=lang,
        **reading,
    )
    texts = [] if comparison.text is None else _told_apart(subject.text, other.text)
    models = [] if comparison.model is None else _labels(subject.model, other.model)
    edits = [] if comparison.edit is None else [TEXTS.say("look.plain", lang), repr(comparison.edit)]
    named = [side for side in (texts, models, edits) if side]
    names = [" · ".join(map(_short, parts)) for parts in zip(*named)]
    return other.recording, {**options, "names": names}


def _listed(layers: Sequence[int] | None, lang: str) -> str:
    return TEXTS.say("look.layers.all", lang) if layers is None else ", ".join(map(str, layers))


def _labels(one: str, other: str) -> list[str]:
    """The names of two models."""
    from regard.app.server.model_label import model_label, unique_labels

    return unique_labels([model_label(one), model_label(other)])


def _told_apart(one: str, other: str) -> list[str]:
    """Two names without most of what they begin with alike, if they would be cut before they differ.

    >>> _told_apart("a " * 40 + "cat", "a " * 40 + "mat")
    ['… a a a a a a a a a cat', '… a a a a a a a a a mat']
    """
    if max(len(one), len(other)) <= LONGEST_NAME:
        return [one, other]
    alike = next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    start = max(0, alike - KEPT_ALIKE)
    start += one[start:].find(" ") + 1 if start else 0  # whole words
    return [f"… {name[start:]}" if start else name for name in (one, other)]


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
