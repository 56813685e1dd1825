"""The recipe: everything but the data that determines the result of training."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from regard.checks import check_choice, check_integer, check_number, check_probability
from regard.errors import ArgumentError, reason
from regard.nn.embedding import MODEL_POSITIONS
from regard.nn.layers import NORMS
from regard.translator.stored_weights import LEAST_BITS, MOST_BITS

LARGEST = 1e30
"""The largest number in a recipe; larger ones would overflow."""

PRECISIONS = ("float32", "bfloat16")
TRAINED_ENCODERS: dict[str, dict[str, Any]] = {
    "all-MiniLM-L6-v2": {
        "width": 384,
        "heads": 12,
        "hidden": 1536,
        "norm": "post",
        "activation": "gelu",
        "positions": "learned",
        "eps": 1e-12,
        "embedding_norm": True,
    }
}
"""The shapes of trained encoders, as options of the encoder of a ``Seq2Seq``."""

TRAINED_LAYERS, TRAINED_POSITIONS = 6, 511
"""How many layers they have, and positions after the first one, which a translator does not use."""

FROM_ZERO = ("seed", "warm_up", "validation", "similar", "joined_from", "constant_steps")
"""Whole numbers that may be 0."""

MOST_PARAMETERS = 10_000_000_000
"""Far more than 30,000 pairs can train."""


@dataclass(frozen=True)
class Recipe:
    """Sizes, dropout and steps of a training run; the built-in translator has its own.

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
    chinese_least: int = 2  # a rarer character is unknown

    # Against memorizing 30,000 pairs. None on the attention weights: that keeps SDPA on its fast path.
    dropout: float = 0.25
    attention_dropout: float = 0.0
    label_smoothing: float = 0.1
    weight_decay: float = 0.01
    piece_dropout: float = 0.0  # the share of merges of English pieces that is skipped
    target_dropout: float = 0.0  # the share of characters hidden from the decoder's input
    consistency: float = (
        0.0  # the weight of the divergence between two passes with different dropout (R-Drop)
    )
    consistent_from: float = 0.0  # the share of steps after which it is added: it doubles the cost of a step

    written_pairs: bool = False  # also train on the sentence pairs that come with regard

    # With a dictionary, as shares of the number of sentence pairs: drawn anew for every epoch.
    recombined: float = 0.5  # pairs with a word replaced on both sides
    entries: float = 0.4  # single words and phrases
    similar: int = 0  # a word is replaced by one of this many similar ones; 0: by any of its kind

    # Also a share of the number of sentence pairs: two short ones joined by a conjunction.
    joined: float = 0.0
    joined_from: int = 0  # the first epoch that has them, counted from 0

    # A trained encoder from whose embeddings and first layers the translator's encoder starts: its pieces of
    # words are the vocabulary, encoder_layers counts its layers, and width, heads and hidden are those of the
    # decoder alone.
    pretrained: str = ""  # "all-MiniLM-L6-v2", or none
    pretrained_rate: float = 0.1  # its learning rate, as a share of learning_rate
    pretrained_dropout: float = 0.1

    # The steps: linear warm-up, then a cosine down to a tenth, where averaging still has something to do.
    steps: int = 12000
    warm_up: int = 1000
    learning_rate: float = 2e-3
    last_learning_rate: float = 0.1  # as a share of learning_rate
    constant_steps: int = 0  # how many of the steps, at the end, have the last learning rate
    clip: float = 1.0
    tokens_per_batch: int = 3072  # both sides, padding counted
    checkpoint_every: int = 200
    log_every: int = 20
    averaged: int = 8  # the last checkpoints, averaged at the end
    bits: int = MOST_BITS  # of each number of the stored matrices, from 2 to 8
    precision: str = "float32"  # of linear layers; "bfloat16" is faster on CPUs that have it

    held_out: int = 1000
    validation: int = 0  # sentences to choose by, apart from those held out for the scores
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = type(field.default)
            if kind is int:
                check_integer(
                    field.name,
                    value,
                    least=0 if field.name in FROM_ZERO else 1,
                )
            elif kind is float:
                self._check_number(field.name, value)
            elif kind is bool:
                self._check_flag(field.name, value)
        check_integer("constant_steps", self.constant_steps, least=0, most=self.steps)
        check_integer("bits", self.bits, least=LEAST_BITS, most=MOST_BITS)
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("norm", self.norm, tuple(NORMS))
        check_choice("pretrained", self.pretrained, ("", *TRAINED_ENCODERS))
        check_choice("positions", self.positions, tuple(MODEL_POSITIONS))
        if self.width % self.heads:
            raise ArgumentError(
                "heads must divide width (width = {width}).",
                got="heads = {heads}",
                do="Choose a width that is a multiple of heads.",
                width=self.width,
                heads=self.heads,
            )
        if self.pretrained and self.piece_dropout:
            raise ArgumentError(
                "piece_dropout needs byte-pair pieces; a trained encoder has its own ({encoder}).",
                got="piece_dropout = {piece_dropout}",
                do="Set one of them to 0 or an empty text.",
                encoder=self.pretrained,
                piece_dropout=self.piece_dropout,
            )
        if self.pretrained and self.encoder_layers > TRAINED_LAYERS:
            raise ArgumentError(
                "A trained encoder has only {layers} layers.",
                got="encoder_layers = {encoder_layers}",
                do="Use fewer layers.",
                layers=TRAINED_LAYERS,
                encoder_layers=self.encoder_layers,
            )
        if self.pretrained and self.length > TRAINED_POSITIONS:
            raise ArgumentError(
                "A trained encoder has at most {positions} positions.",
                got="length = {length}",
                do="Use a smaller length.",
                positions=TRAINED_POSITIONS,
                length=self.length,
            )
        for name in (
            "dropout", "attention_dropout", "label_smoothing", "piece_dropout", "target_dropout",
            "pretrained_dropout",
        ):  # fmt: skip
            check_probability(name, getattr(self, name))
        self._check_size()

    def _check_size(self) -> None:
        """Checked before anything is built: torch would fail in its allocator, or be killed."""
        layers = self.encoder_layers + 2 * self.decoder_layers
        tokens = self.english_tokens + self.length
        parameters = layers * self.width * (4 * self.width + 2 * self.hidden) + tokens * self.width
        if parameters > MOST_PARAMETERS or self.seed >= 1 << 63:
            raise ArgumentError(
                "A recipe can have at most {MOST_PARAMETERS:,} parameters and a seed below 2⁶³.",
                got="about {parameters:.1e} parameters, seed = {seed}",
                do="Reduce width, hidden or the number of layers.",
                MOST_PARAMETERS=MOST_PARAMETERS,
                parameters=parameters,
                seed=self.seed,
            )

    def _check_number(self, name: str, value: object) -> None:
        object.__setattr__(
            self, name, check_number(name, value, 0, LARGEST, example=0.1)
        )  # 0 and 0.0 in a file are one recipe

    def _check_flag(self, name: str, value: object) -> None:
        if not isinstance(value, bool):
            raise ArgumentError(
                "{name} must be true or false.",
                got="{name} = {value!r}",
                do="Pass one of them.",
                name=name,
                value=value,
            )

    def to_json(self) -> str:
        """The recipe as text."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """The recipe in a text; fields that it omits have their defaults."""
        try:
            named = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ArgumentError(
                "A recipe must be a JSON object.",
                got="{error}",
                do='Write, for example, {{"width": 192}}.',
                error=error,
            ) from error
        if not isinstance(named, dict):
            raise ArgumentError(
                "A recipe must be a JSON object.",
                got="{type}",
                do='Write, for example, {{"width": 192}}.',
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
                "A recipe can have only the fields {known}.",
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
                "A recipe must be a JSON file.",
                got="{path}",
                do="Pass the path of one that exists.",
                path=path,
            )
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(
                "A recipe must be a readable JSON file in UTF-8.",
                got="{path}: {reason}",
                do="Save it as UTF-8.",
                path=path,
                reason=reason(error),
            ) from error
        return cls.from_json(text)
