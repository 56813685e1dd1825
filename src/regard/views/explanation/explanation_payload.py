"""What an explanation holds: its texts, in one language, and every number in full.

The terminal omits columns that do not fit; JSON has everything.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

Row = tuple[float | None, ...]


@dataclass(frozen=True)
class Grid:
    """Numbers with names on both sides; a missing number is ``None``. ``weights`` are between 0 and 1."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[Row, ...]
    title: str = ""
    weights: bool = False


@dataclass(frozen=True)
class Step:
    """One step of the calculation: its name, what it does, its formula, shape and numbers."""

    name: str
    title: str
    says: str
    formula: str
    shape: tuple[int, ...]
    grids: tuple[Grid, ...]


@dataclass(frozen=True)
class StrongestKeys:
    """What one word attends to most, strongest first; ``nothing`` is for a word that sees nothing."""

    word: str
    strongest: tuple[tuple[str, float], ...]
    nothing: str = ""


@dataclass(frozen=True)
class Explanation:
    """Attention explained: every step with its numbers, and which words each word attends to.

    ``str()`` is Markdown.
    """

    title: str
    about: tuple[str, ...]
    lang: str
    steps: tuple[Step, ...]
    looks_title: str
    looks: tuple[StrongestKeys, ...]

    def __str__(self) -> str:
        return self.to_markdown()

    def __getitem__(self, name: str) -> Step:
        """The step of that name.

        >>> import regard
        >>> regard.explain("I love AI")["weights"].shape  # (head, query, key)
        (1, 3, 3)
        """
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(f"no step {name!r}; there are {', '.join(step.name for step in self.steps)}")

    def to_markdown(self) -> str:
        """Headings, formulas and tables."""
        from regard.views.explanation.explanation_markdown import markdown_of

        return markdown_of(self)

    def to_html(self) -> str:
        """A page that loads nothing."""
        from regard.views.explanation.explanation_html import document

        return document(self)

    def to_json(self) -> str:
        """Every number, unrounded; −∞ is the text ``"-inf"``, because JSON has no infinity."""
        return json.dumps(_plain(asdict(self)), ensure_ascii=False, indent=1, allow_nan=False) + "\n"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def number(value: float | None) -> str:
    """A number for readers.

    >>> number(-1.23456), number(-math.inf), number(1234.5), number(None), number(-0.0001)
    ('−1.235', '−∞', '1,234.5', '', '0.000')
    """
    if value is None:
        return ""
    if value == -math.inf:
        return "−∞"
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:,.1f}"
    return "0.000" if text == "-0.000" else text.replace("-", "−")


def shape_of(step: Step) -> str:
    """The shape of a step: ``(2 × 3 × 4)``."""
    return f"({' × '.join(map(str, step.shape))})" if step.shape else ""
