"""The models that read texts and pictures: the built-in translator, and those named at the start.

The browser chooses among them by id; it cannot make the server load or download anything.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from regard.app.server.api_types import LARGEST, ReadingRequest
from regard.app.server.jobs import ProgressReporter
from regard.app.server.limits import Limits
from regard.app.server.model_label import architecture, model_label, unique_labels
from regard.app.server.model_progress import heard, held
from regard.app.server.served_pictures import PictureModel, check_no_picture
from regard.app.server.token_count import TokenCount, check_tokens, fitting
from regard.errors import ArgumentError, ModelFileError, RecordingError, TextError

if TYPE_CHECKING:
    from regard.recording import Reader, Recording

VALUES_UP_TO = 2048
"""Tokens up to which V is recorded too, for the steps, and what a decoder expects next."""


EXAMPLES = {
    "translator": ["The cat sat on the mat.", "I love playing football.", "She gave the apple to him."],
    "encoder": [
        "The animal didn't cross the street because it was too tired.",
        "He sat on the bank of the river.",
    ],
    "decoder": ["The capital of France is", "When Mary and John went to the store, John gave a drink to"],
}
"""Texts to try, by the kind of model."""


class ServedModel(Protocol):
    """Something that reads a text."""

    id: str
    label: str

    @property
    def longest(self) -> int:
        """The most tokens that it has positions for."""

    def count(self, text: str, most: int) -> TokenCount:
        """The tokens of a text, and how many characters of it have at most ``most`` tokens."""

    def described(self) -> dict[str, Any]:
        """Its description for the browser."""

    def read(self, request: ReadingRequest, limits: Limits, report: ProgressReporter) -> Recording:
        """The recording of a text."""


@dataclass
class ReaderModel:
    """A transformers model."""

    id: str
    label: str
    reader: Reader
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def longest(self) -> int:
        """The most tokens that it has positions for."""
        return int(min(self.reader.longest, LARGEST))

    def count(self, text: str, most: int) -> TokenCount:
        """The tokens of a text, special ones included, and how many characters fit."""
        tokenizer = self.reader.tokenizer
        if not tokenizer.is_fast:
            count = len(tokenizer(text)["input_ids"])
            return TokenCount(count, len(text) if count <= most else None)
        found = tokenizer(text, return_offsets_mapping=True)
        ends = [end for _, end in found["offset_mapping"]]
        added = tokenizer.num_special_tokens_to_add()
        return TokenCount(len(ends), fitting(text, [end for end in ends if end], most - added))

    def described(self) -> dict[str, Any]:
        """Its description for the browser."""
        longest = self.reader.longest
        kind = "translator" if self.reader.two_sided else "decoder" if self.reader.writes else "encoder"
        most = int(longest) if longest < 10**9 else None
        return {
            "id": self.id,
            "label": self.label,
            **architecture(self.reader.model),
            "kind": kind,
            "longest": most,
            "pair": True,
            "examples": EXAMPLES[kind],
        }

    def read(self, request: ReadingRequest, limits: Limits, report: ProgressReporter) -> Recording:
        """The recording of a text, after its size has been checked."""
        from regard.recording import estimate

        check_no_picture(request)
        texts = [request.text] if request.pair is None else [request.text, request.pair]
        # Counted before anything is computed; the reader raises if the model has fewer positions.
        count = sum(len(self.reader.tokenizer(text)["input_ids"]) for text in texts) + request.generate
        check_tokens(count, limits)
        with contextlib.suppress(RecordingError):  # the size is not known for every model
            size = estimate(self.reader.model, count)
            if size.nbytes > limits.recording_bytes:
                raise TextError(
                    "A recording can take at most {recording_bytes:.1f} GB on this server.",
                    got="{count:,} tokens: {size}",
                    do="Shorten the text, or choose a smaller model.",
                    recording_bytes=limits.recording_bytes / 1000000000.0,
                    count=count,
                    size=size,
                )
        with held(self._lock, report), heard(self.reader.model, report):
            moderate = count <= VALUES_UP_TO
            return self.reader.read(
                request.text,
                pair=request.pair,
                generate=request.generate,
                next_tokens=moderate,
                values=moderate,
            )


@dataclass
class TranslatorModel:
    """The built-in translator."""

    translator: Any
    id: str = "translator"
    label: str = "English → Chinese (built-in)"
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def longest(self) -> int:
        """The most tokens that it has positions for."""
        return int(self.translator.model.length)

    def count(self, text: str, most: int) -> TokenCount:
        """The pieces of a text with their end, and how many characters fit."""
        tokenizer = self.translator.vocabularies.english.tokenizer
        ends = [end for _, end in tokenizer.encode(text, add_special_tokens=False).offsets]
        return TokenCount(len(ends) + 1, fitting(text, ends, most - 1))

    def described(self) -> dict[str, Any]:
        """Its description for the browser."""
        return {
            "id": self.id,
            "label": self.label,
            **architecture(self.translator.model),
            "kind": "translator",
            "longest": self.longest,
            "pair": True,
            "examples": EXAMPLES["translator"],
        }

    def read(self, request: ReadingRequest, limits: Limits, report: ProgressReporter) -> Recording:
        """The recording of a translation."""
        from regard.translator import look

        check_no_picture(request)
        if request.generate:
            raise ArgumentError(
                "The built-in translator always writes its whole translation.",
                got="generate = {generate}",
                do="Omit it, or choose a decoder.",
                generate=request.generate,
            )
        sentence = " ".join(request.text.split())
        check_tokens(len(self.translator.encode(sentence)), limits)
        with held(self._lock, report), heard(self.translator.model, report):
            return look(self.translator, sentence, translation=request.pair, values=True).recording


def load_models(names: Sequence[str]) -> list[ServedModel]:
    """The built-in translator, if its weights are installed, and the models with these folders or names."""
    found: list[ServedModel] = []
    translator = _embedded()
    if translator is not None:
        found.append(TranslatorModel(translator))
    # The path of a folder is private, also in errors that mention the model.
    labels = unique_labels([model_label(name) for name in names])
    for number, (name, label) in enumerate(zip(names, labels, strict=True)):
        found.append(_loaded(f"model-{number}", name, label))
    return found


def _loaded(number: str, name: str, label: str) -> ServedModel:
    """A model with what it reads: pictures, pictures with a question, or text."""
    from regard.recording import load_picture_reader, load_reader
    from regard.recording.picture_reader import reads_pictures, reads_pictures_and_text

    if reads_pictures(name):
        return PictureModel(number, label, replace(load_picture_reader(name), name=label))
    if reads_pictures_and_text(name):
        # Without its processor, or with pictures that are not tokens of its text, it still reads text.
        with contextlib.suppress(ModelFileError):
            return PictureModel(number, label, replace(load_picture_reader(name), name=label))
    return ReaderModel(number, label, replace(load_reader(name), name=label))


def _embedded() -> Any:
    from regard.translator.built_in import FOLDER, embedded

    return embedded() if FOLDER.is_dir() else None
