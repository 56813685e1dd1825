"""The recipe: everything but the data that decides the result of a training."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from regard.checks import check_choice, check_integer, check_number, check_probability
from regard.errors import ArgumentError, reason
from regard.nn.embedding import MODEL_POSITIONS
from regard.nn.layers import NORMS

LARGEST = 1e30
"""The greatest number in a recipe; nothing above could be computed with."""

MOST_PARAMETERS = 10_000_000_000
"""Far beyond what 30,000 pairs can teach."""


@dataclass(frozen=True)
class Recipe:
    """Sizes, dropout and steps of one training; the default is that of the embedded translator.

    >>> small = Recipe(width=64, heads=2, steps=100)
    >>> Recipe.from_json(small.to_json()) == small
    True
    """

    # The model: 4.8M parameters on the pairs of Tatoeba, 10 MB in half precision.
    encoder_layers: int = 4
    decoder_layers: int = 3
    width: int = 192
    heads: int = 4
    hidden: int = 768
    norm: str = "pre"
    positions: str = "sinusoidal"
    length: int = 128  # positions, on either side
    english_tokens: int = 4000
    chinese_least: int = 2  # a character that is seen less often is unknown

    # Against memorizing 30,000 pairs. None on the attention weights: that keeps SDPA on its fast path.
    dropout: float = 0.25
    attention_dropout: float = 0.0
    label_smoothing: float = 0.1
    weight_decay: float = 0.01

    # The steps: linear warm-up, then a cosine down to a tenth, where averaging still has something to do.
    steps: int = 12000
    warm_up: int = 1000
    learning_rate: float = 2e-3
    last_learning_rate: float = 0.1  # as a share of learning_rate
    clip: float = 1.0
    tokens_per_batch: int = 3072  # both sides, padding counted
    checkpoint_every: int = 200
    log_every: int = 20
    averaged: int = 8  # the last checkpoints, averaged in the end

    held_out: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = type(field.default)
            if kind is int:
                check_integer(field.name, value, least=0 if field.name in ("seed", "warm_up") else 1)
            elif kind is float:
                self._check_number(field.name, value)
        check_choice("norm", self.norm, tuple(NORMS))
        check_choice("positions", self.positions, tuple(MODEL_POSITIONS))
        if self.width % self.heads:
            raise ArgumentError(
                "width divides evenly among the heads (width = {width}).",
                got="heads = {heads}",
                do="Choose a width that is a multiple of heads.",
                width=self.width,
                heads=self.heads,
            )
        for name in ("dropout", "attention_dropout", "label_smoothing"):
            check_probability(name, getattr(self, name))
        self._check_size()

    def _check_size(self) -> None:
        """Before anything is built: torch would end with a message about its allocator, or be killed."""
        layers = self.encoder_layers + 2 * self.decoder_layers
        tokens = self.english_tokens + self.length
        parameters = layers * self.width * (4 * self.width + 2 * self.hidden) + tokens * self.width
        if parameters > MOST_PARAMETERS or self.seed >= 1 << 63:
            raise ArgumentError(
                "A recipe asks for at most {MOST_PARAMETERS:,} parameters and a seed below 2⁶³.",
                got="about {parameters:.1e} parameters, seed = {seed}",
                do="Make width, hidden or the numbers of layers smaller.",
                MOST_PARAMETERS=MOST_PARAMETERS,
                parameters=parameters,
                seed=self.seed,
            )

    def _check_number(self, name: str, value: object) -> None:
        object.__setattr__(
            self, name, check_number(name, value, 0, LARGEST, example=0.1)
        )  # 0 and 0.0 in a file are one recipe

    def to_json(self) -> str:
        """The recipe as text."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """The recipe that a text holds; what it does not name is as in the default."""
        try:
            named = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ArgumentError(
                "A recipe is a JSON object.", got="{error}", do='Write {{"width": 192}}, say.', error=error
            ) from error
        if not isinstance(named, dict):
            raise ArgumentError(
                "A recipe is a JSON object.",
                got="{type}",
                do='Write {{"width": 192}}, say.',
                type=type(named).__name__,
            )
        return cls.from_fields(named)

    @classmethod
    def from_fields(cls, named: dict[str, Any]) -> Recipe:
        """The recipe with these fields; unknown fields are refused."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(named) - set(known))
        if unknown:
            raise ArgumentError(
                "A recipe has the fields {known}.",
                got="{unknown}",
                do="Correct the names.",
                known=", ".join(known),
                unknown=", ".join(unknown),
            )
        return cls(**named)

    @classmethod
    def read(cls, path: str | Path) -> Recipe:
        """The recipe in a file."""
        path = Path(path)
        if not path.is_file():
            raise ArgumentError(
                "A recipe is a JSON file.", got="{path}", do="Name one that exists.", path=path
            )
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(
                "A recipe is a JSON file in UTF-8 that can be read.",
                got="{path}: {reason}",
                do="Save it as UTF-8.",
                path=path,
                reason=reason(error),
            ) from error
        return cls.from_json(text)
