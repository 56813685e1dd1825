"""A text with a model that answers it: the next token, a class, the word behind a mask, or a translation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.app.languages import TEXTS
from regard.app.model_input import BUILT_IN, busy
from regard.errors import ArgumentError, RecordingError

if TYPE_CHECKING:
    from rich.console import Console
    from torch import nn

    from regard.heads.answer_shares import Question
    from regard.recording.reader import Reader
    from regard.translator import Translator


@dataclass(frozen=True, eq=False)
class AnsweringModel(ABC):
    """A model, what it reads, and the names of its answers."""

    model: nn.Module
    inputs: Any
    tokens: Sequence[str]  # of the rows
    source_tokens: Sequence[str] | None

    @abstractmethod
    def number(self, answer: str) -> int:
        """The number of an answer: of a token or a class; raises ArgumentError if there is none."""

    @abstractmethod
    def name(self, number: int) -> str:
        """The token or class of this number."""

    def label(self, number: int) -> str:
        """The name as people see it."""
        return self.name(number)

    def text(self, numbers: Sequence[int]) -> str:
        """What these answers say one after the other."""
        return "".join(map(self.name, numbers))

    @abstractmethod
    def questions(self, row: int | None, target: str | None, against: str | None) -> list[Question]:
        """What is asked: one answer, or all that were written."""


@dataclass(frozen=True, eq=False)
class TokenAnswers(AnsweringModel):
    """A language model: a decoder, an encoder-decoder, or a masked one."""

    reader: Reader

    def number(self, answer: str) -> int:
        from regard.metrics import token_id

        return token_id(answer, self.reader.tokenizer)

    def name(self, number: int) -> str:
        from regard.views.page.display_tokens import typed_token

        return typed_token(self._token(number))

    def label(self, number: int) -> str:
        """In quotes, since " Paris" and "Paris" are two tokens."""
        return f'"{self.name(number)}"'

    def text(self, numbers: Sequence[int]) -> str:
        from regard.views.page.display_tokens import text_of

        shown = text_of([*map(self._token, numbers)])
        parts = (" " * space + token for token, space in zip(shown.tokens, shown.spaces, strict=True))
        return "".join(parts).strip()

    def _token(self, number: int) -> str:
        return str(self.reader.tokenizer.convert_ids_to_tokens(number))

    def questions(self, row: int | None, target: str | None, against: str | None) -> list[Question]:
        if self.reader.two_sided and row is None:
            written = self.inputs["decoder_input_ids"][0].tolist()
            return _all_written([*written[1:]], target, against)
        if not self.reader.writes and row is None:
            row = self._masked()
        return [_question(self, row, target, against)]

    def _masked(self) -> int:
        """The position of the mask."""
        mask = getattr(self.reader.tokenizer, "mask_token", None)
        found = [place for place, token in enumerate(self.tokens) if token == mask]
        if len(found) != 1:
            raise ArgumentError(
                "A masked language model needs exactly one mask ({mask}) in the text.",
                got="{count} of them",
                do="Write {mask} for one word, or choose a position with --row.",
                mask=mask,
                count=len(found),
            )
        return found[0]


@dataclass(frozen=True, eq=False)
class ClassAnswers(AnsweringModel):
    """A classifier."""

    classes: Mapping[int, str]

    def number(self, answer: str) -> int:
        for number, name in self.classes.items():
            if answer in (name, str(number)):
                return number
        raise ArgumentError(
            "A target must be one of the classes of the model ({classes}).",
            got="{answer!r}",
            do="Choose one of them, by its name or number.",
            classes=", ".join([*self.classes.values()][:12]),
            answer=answer,
        )

    def name(self, number: int) -> str:
        return self.classes.get(number, str(number))

    def questions(self, row: int | None, target: str | None, against: str | None) -> list[Question]:
        return [_question(self, row, target, against)]


@dataclass(frozen=True, eq=False)
class CharacterAnswers(AnsweringModel):
    """The built-in translator: row t writes character t."""

    translator: Translator
    translation: str

    def number(self, answer: str) -> int:
        from regard.translator.vocabulary import UNKNOWN

        ids = self.translator.vocabularies.chinese.encode(answer)
        if len(ids) != 1 or ids[0] == UNKNOWN:
            raise ArgumentError(
                "A target must be one Chinese character that the translator knows.",
                got="{answer!r}",
                do="Choose a common one.",
                answer=answer,
            )
        return ids[0]

    def name(self, number: int) -> str:
        from regard.translator.vocabulary import SPECIALS

        return (
            SPECIALS[number]
            if number < len(SPECIALS)
            else self.translator.vocabularies.chinese.decode([number])
        )

    def questions(self, row: int | None, target: str | None, against: str | None) -> list[Question]:
        written = self.translator.vocabularies.chinese.encode(self.translation)
        if row is None:
            return _all_written(written, target, against)
        if target is None and -len(self.tokens) <= row < len(written):
            # What was written there, which need not be the most likely one by itself.
            return [_question(self, row, None, against, written[row] if row >= 0 else None)]
        return [_question(self, row, target, against)]


def answering_model(
    console: Console, text: str, *, model: str | None = None, pair: str | None = None, lang: str = "en"
) -> AnsweringModel:
    """Load a model with the head that answers, and prepare what it reads."""
    if model in (None, BUILT_IN):
        return _translator(console, text, pair, lang)
    from regard.recording import load_reader

    with busy(console, TEXTS.say("reading.loading", lang, model=model)):
        reader = load_reader(model, answering=True)
    with busy(console, TEXTS.say("reading.reading", lang)):
        inputs = reader.inputs(text, pair=pair)

    def tokens(name: str) -> list[str]:
        return [str(token) for token in reader.tokenizer.convert_ids_to_tokens(inputs[name][0].tolist())]

    own, source = tokens("decoder_input_ids" if reader.two_sided else "input_ids"), None
    if reader.two_sided:
        source = tokens("input_ids")
    named = type(reader.model).__name__
    if "SequenceClassification" in named:
        classes = {int(number): str(name) for number, name in reader.model.config.id2label.items()}
        return ClassAnswers(reader.model, inputs, own, source, classes)
    if not reader.writes and "MaskedLM" not in named:
        raise RecordingError(
            "An explanation needs an answer: the logits of tokens, or of classes.",
            got="{model}, which has no language head and no classes",
            do="Take a model with a head: AutoModelForCausalLM, AutoModelForSequenceClassification, say.",
            model=named,
        )
    return TokenAnswers(reader.model, inputs, own, source, reader)


def _translator(console: Console, text: str, pair: str | None, lang: str) -> CharacterAnswers:
    import torch

    from regard.translator import embedded, look
    from regard.translator.vocabulary import START

    sentence = " ".join(text.split())
    with busy(console, TEXTS.say("reading.translating", lang)):
        translator = embedded()
        seen = look(translator, sentence, translation=pair)
    target = [START, *translator.vocabularies.chinese.encode(seen.translation)]
    inputs = (torch.tensor([translator.encode(sentence)]), torch.tensor([target]))
    own, source = seen.recording.tokens, seen.recording.source_tokens
    assert own is not None
    assert source is not None
    return CharacterAnswers(translator.model, inputs, own[0], source[0], translator, seen.translation)


def _question(
    answers: AnsweringModel, row: int | None, target: str | None, against: str | None, own: int | None = None
) -> Question:
    from regard.heads.answer_shares import Question

    return Question(
        row,
        own if target is None else answers.number(target),
        None if against is None else answers.number(against),
    )


def _all_written(written: Sequence[int], target: str | None, against: str | None) -> list[Question]:
    """Row t writes token t + 1 of the decoder's side."""
    from regard.heads.answer_shares import Question

    if target is not None or against is not None:
        raise ArgumentError(
            "A target needs a position in what the decoder wrote.",
            got="a target without a position",
            do="Choose the position with --row.",
        )
    if not written:
        raise ArgumentError(
            "Without --row, the decoder must write at least one token.",
            got="a model that ended its text at once",
            do="Try another text, or explain why it ended with --row 0.",
        )
    return [Question(row, token) for row, token in enumerate(written)]
