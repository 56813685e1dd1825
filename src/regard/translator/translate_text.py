"""A trained model with its vocabularies: text in, text out; saved as a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard import nn
from regard.deprecation import renamed_arguments
from regard.errors import ModelFileError, TextError
from regard.nn.beam_search import BeamCandidate, Choice
from regard.translator.candidate_choice import choose_candidate
from regard.translator.files import read_tensors, read_text, write_tensors, write_text
from regard.translator.name_evidence import NameEvidence
from regard.translator.names import StandIn, without_inflected
from regard.translator.recipe import TRAINED_ENCODERS, Recipe
from regard.translator.sentence_batches import pad_ids
from regard.translator.sentence_splitting import split_sentences
from regard.translator.stored_weights import FORMAT, restored_weights, stored_weights
from regard.translator.training_checkpoint import load_weights
from regard.translator.translation_table import TranslationTable
from regard.translator.vocabulary import (
    END,
    PADDING,
    START,
    ChineseCharacters,
    EnglishTokens,
    Vocabularies,
)

WEIGHTS, ENGLISH, CHINESE, RECIPE = "model.safetensors", "english.json", "chinese.json", "recipe.json"
WORDS, NAMES, EVIDENCE = "words.txt", "names.json", "name_evidence.json"
NUM_BEAMS = 16
"""The width of the beam search, and so the number of candidates to choose from."""

LENGTH_PENALTY = 1.0
"""The power of its length by which the log probability of a candidate is divided during the search."""

TOGETHER = 64
"""The number of sentences translated at once."""


def build_model(recipe: Recipe, vocabularies: Vocabularies) -> nn.Seq2Seq:
    """The model of a recipe, with random weights."""
    return nn.Seq2Seq(
        len(vocabularies.english),
        len(vocabularies.chinese),
        width=recipe.width,
        heads=recipe.heads,
        hidden=recipe.hidden,
        encoder_layers=recipe.encoder_layers,
        decoder_layers=recipe.decoder_layers,
        dropout=recipe.dropout,
        attention_dropout=recipe.attention_dropout,
        norm=recipe.norm,
        positions=recipe.positions,
        length=recipe.length,
        padding=PADDING,
        tied=True,
        encoder=_encoder_options(recipe),
    )


def _encoder_options(recipe: Recipe) -> dict[str, object] | None:
    """In what the encoder differs from the decoder: it has the shape of the one that it started from."""
    if not recipe.pretrained:
        return None
    return {**TRAINED_ENCODERS[recipe.pretrained], "dropout": recipe.pretrained_dropout}


@dataclass(frozen=True, eq=False)
class Translator:
    """A model and its vocabularies, and perhaps a table by which it chooses among its candidates.

    >>> from regard.translator import embedded
    >>> embedded().translate_all(["I love you."])
    ['我爱你。']
    """

    model: nn.Seq2Seq
    vocabularies: Vocabularies
    table: TranslationTable | None = None

    @renamed_arguments(beams="num_beams")
    def translate(
        self,
        text: str,
        *,
        num_beams: int = NUM_BEAMS,
        max_new_tokens: int | None = None,
        length_penalty: float = LENGTH_PENALTY,
        eos_token_id: int = END,
    ) -> str:
        """The Chinese translation of an English text, sentence by sentence; unknown names are copied."""
        return self.translate_all(
            [text],
            num_beams=num_beams,
            max_new_tokens=max_new_tokens,
            length_penalty=length_penalty,
            eos_token_id=eos_token_id,
        )[0]

    @renamed_arguments(beams="num_beams")
    def translate_all(
        self,
        texts: Sequence[str],
        *,
        num_beams: int = NUM_BEAMS,
        max_new_tokens: int | None = None,
        length_penalty: float = LENGTH_PENALTY,
        eos_token_id: int = END,
    ) -> list[str]:
        """The Chinese translations of many texts, in their order. ``eos_token_id`` ends a sentence."""
        split = [split_sentences(text) for text in texts]
        sentences = list(dict.fromkeys(sentence for text in split for sentence in text))
        made = self._sentences(sentences, num_beams, max_new_tokens, length_penalty, eos_token_id)
        found = dict(zip(sentences, made, strict=True))
        return ["".join(found[sentence] for sentence in text) for text in split]

    def _sentences(
        self,
        sentences: Sequence[str],
        num_beams: int,
        max_new_tokens: int | None,
        length_penalty: float,
        eos_token_id: int,
    ) -> list[str]:
        sources = [self.encode(sentence) for sentence in sentences]
        # Sentences of similar length together, so that there is little padding.
        order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
        found = [""] * len(sources)
        for first in range(0, len(order), TOGETHER):
            rows = order[first : first + TOGETHER]
            own = [sources[row] for row in rows]
            made = nn.generate(
                self.model,
                pad_ids(own),
                max_new_tokens=self._room(max(map(len, own)), max_new_tokens),
                start=START,
                eos_token_id=eos_token_id,
                num_beams=num_beams,
                length_penalty=length_penalty,
                choose=self._choice(own) if num_beams > 1 else None,
            )
            for row, ids in zip(rows, made.lists(eos_token_id), strict=True):
                hidden = self.vocabularies.hide_names(sentences[row])
                found[row] = hidden.restore(self.vocabularies.chinese.decode(ids))
        return found

    def _choice(self, sources: Sequence[Sequence[int]]) -> Choice:
        def choose(prompt: int, candidates: Sequence[BeamCandidate]) -> int:
            return choose_candidate(sources[prompt], candidates, self.table)

        return choose

    def encode(self, text: str) -> list[int]:
        """The ids of an English text with their end, after checking that it can be translated."""
        if not text.strip():
            raise TextError(
                "A text must have at least one word.",
                got="{text!r}",
                do='Pass, for example, "I love AI".',
                text=text,
            )
        english = self.vocabularies.english
        ids = [*english.encode(self.vocabularies.hide_names(text).text), END]
        if not english.knows(ids[:-1]):
            raise TextError(
                "A text needs at least one character that the model knows.",
                got="{text!r}",
                do="Write it in English.",
                text=text[:60],
            )
        if len(ids) > self.model.length:
            raise TextError(
                "A text must fit into the model's positions (longest = {longest}).",
                got="{ids_count} tokens",
                do="Translate it sentence by sentence.",
                longest=self.model.length,
                ids_count=len(ids),
            )
        return ids

    def reads(self, text: str) -> bool:
        """Whether a text can be translated at all."""
        try:
            self.encode(text)
        except TextError:
            return False
        return True

    def encode_translation(self, text: str, translation: str) -> list[int]:
        """The ids of a translation of a text, without start and end."""
        return self.vocabularies.chinese.encode(self.vocabularies.hide_names(text).hide(translation))

    def _room(self, tokens: int, asked: int | None) -> int:
        """The most characters of a translation: by default far more than any needs, but bounded."""
        return min(self.model.length - 1, 3 * tokens + 10 if asked is None else asked)


def save_translator(
    folder: Path,
    weights: Mapping[str, Tensor],
    vocabularies: Vocabularies,
    recipe: Recipe,
    table: TranslationTable | None = None,
) -> None:
    """Write weights, both vocabularies, the recipe and the table of translations into a folder."""
    write_vocabularies(folder, vocabularies)
    write_text(folder / RECIPE, recipe.to_json())
    write_tensors(folder / WEIGHTS, stored_weights(weights, bits=recipe.bits), {"format": FORMAT})
    if table is not None:
        table.write(folder)


def load_translator(folder: str | Path) -> Translator:
    """The translator in a folder that ``regard train`` wrote, in single precision, ready to translate.

    >>> from regard.translator.built_in import FOLDER
    >>> load_translator(FOLDER).translate("I love you.")
    '我爱你。'
    """
    folder = Path(folder)
    vocabularies = read_vocabularies(folder)
    model = build_model(Recipe.from_json(read_text(folder / RECIPE)), vocabularies)
    load_weights(model, _read_weights(folder / WEIGHTS), folder / WEIGHTS)
    return Translator(model.eval(), vocabularies, TranslationTable.read(folder))


def _read_weights(path: Path) -> dict[str, Tensor]:
    stored, _ = read_tensors(path, do="Copy or export it again.")
    try:
        return restored_weights(stored)
    except (RuntimeError, ValueError) as error:
        raise ModelFileError(
            "Matrices must be stored as whole numbers with a scale for each row.",
            got="{error} in {path}",
            do="Export the model again.",
            error=str(error).splitlines()[0],
            path=path,
        ) from error


def write_vocabularies(folder: Path, vocabularies: Vocabularies) -> None:
    """Write both vocabularies into a folder."""
    # Without indentation, because these files are shipped.
    compact = json.dumps(
        json.loads(vocabularies.english.to_json()), ensure_ascii=False, separators=(",", ":")
    )
    write_text(folder / ENGLISH, compact)
    write_text(folder / CHINESE, vocabularies.chinese.to_json())
    if vocabularies.words:
        write_text(folder / WORDS, "\n".join(sorted(without_inflected(vocabularies.words))) + "\n")
    if vocabularies.stand_ins:
        write_text(folder / NAMES, json.dumps(vocabularies.stand_ins, ensure_ascii=False) + "\n")
    if vocabularies.evidence is not None:
        write_text(folder / EVIDENCE, vocabularies.evidence.to_json())


def read_vocabularies(folder: Path) -> Vocabularies:
    """The vocabularies in a folder."""
    return Vocabularies(
        EnglishTokens.from_json(read_text(folder / ENGLISH)),
        ChineseCharacters.from_json(read_text(folder / CHINESE)),
        # Models of earlier versions have none of these.
        frozenset(read_text(folder / WORDS).split()) if (folder / WORDS).exists() else frozenset(),
        _read_stand_ins(folder / NAMES) if (folder / NAMES).exists() else (),
        NameEvidence.from_json(read_text(folder / EVIDENCE)) if (folder / EVIDENCE).exists() else None,
    )


def _read_stand_ins(path: Path) -> tuple[StandIn, ...]:
    try:
        return tuple(StandIn(str(english), str(chinese)) for english, chinese in json.loads(read_text(path)))
    except (ValueError, TypeError) as error:
        raise ModelFileError(
            "{NAMES} must be a JSON list of pairs, English and Chinese.",
            got="{type} in {path}",
            do="Export the model again.",
            NAMES=NAMES,
            type=type(error).__name__,
            path=path,
        ) from error


def count_parameters(model: torch.nn.Module) -> int:
    """How many parameters the model has."""
    return sum(parameter.numel() for parameter in model.parameters())
