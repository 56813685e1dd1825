"""Which English words each Chinese character comes from, according to one cross-attention head.

The head is chosen by measurement: :func:`measure_heads` counts, for word pairs that were checked by
hand, how often the English word that a head attends to most is the right one.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from regard.errors import ModelFileError, TextError
from regard.nn import DecoderLayer
from regard.recording import Call, Recording
from regard.translator.files import read_text
from regard.translator.names import PLACEHOLDERS, HiddenNames
from regard.translator.sentence_splitting import split_sentences
from regard.translator.translate_text import NUM_BEAMS, Translator
from regard.translator.vocabulary import END, EnglishTokens, Vocabularies
from regard.translator.watched_translation import WatchedTranslation, look

FILE = "alignment.json"
TYPED_WORD = re.compile(rf"[\w{''.join(PLACEHOLDERS)}]+(?:['’]\w+)*|[^\w\s]")
"""A word with its apostrophes, or a punctuation mark."""


class SourceWord(NamedTuple):
    """A word of the source as it was typed, and its pieces: first to stop − 1."""

    text: str
    first: int
    stop: int


def words_of(english: EnglishTokens, text: str, hidden: HiddenNames | None = None) -> list[SourceWord]:
    """The words of a text, with the names ``hidden`` in it; each punctuation mark is a word.

    >>> english = EnglishTokens.learn(["The cat sat.", "The cat ran."] * 9, 60)
    >>> [word.text for word in words_of(english, "The cats sat.")]
    ['The', 'cats', 'sat', '.']
    """
    hidden = hidden or HiddenNames(text)
    found = english.tokenizer.encode(hidden.text, add_special_tokens=False)
    words: list[SourceWord] = []
    starts = [one.start() for one in TYPED_WORD.finditer(hidden.text)]
    last = -1  # the number of the word that the piece before belongs to
    for place, (piece, (begin, end)) in enumerate(zip(found.tokens, found.offsets, strict=True)):
        typed = hidden.text[begin:end].strip()
        named = hidden.shown_at(end - len(typed), end) if typed else None
        number = bisect(starts, end - len(typed)) if typed else -1
        typed = typed if named is None else named
        if number == last != -1:
            before = words.pop()
            words.append(SourceWord(before.text + typed, before.first, place + 1))
        else:
            words.append(SourceWord(typed or piece, place, place + 1))
        last = number
    return words


def _proper_words(vocabularies: Vocabularies, text: str) -> list[SourceWord]:
    """The words without punctuation, on which idle heads rest."""
    words = words_of(vocabularies.english, text, vocabularies.hide_names(text))
    return [word for word in words if _has_letters(word.text)]


def _has_letters(piece: str) -> bool:
    return any(character.isalnum() for character in piece)


@dataclass(frozen=True)
class AlignmentHead:
    """A head of the cross-attention, and how many of the checked pairs it gets right.

    >>> AlignmentHead(layer=1, head=2, right=27, pairs=30).share
    0.9
    """

    layer: int
    head: int
    right: int
    pairs: int

    @property
    def share(self) -> float:
        """The share of the checked pairs that it gets right."""
        return self.right / self.pairs

    def to_json(self) -> str:
        """The head as text."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> AlignmentHead:
        """The head that a text holds."""
        try:
            return cls(**{name: int(value) for name, value in json.loads(text).items()})
        except (ValueError, TypeError, AttributeError) as error:
            raise ModelFileError(
                "The alignment head must be a JSON object with layer, head, right and pairs.",
                got="{error}",
                do="Export the model again.",
                error=error,
            ) from error


def read_alignment_head(folder: str | Path) -> AlignmentHead:
    """The head that aligns best in an exported model."""
    return AlignmentHead.from_json(read_text(Path(folder) / FILE))


@dataclass(frozen=True, eq=False)
class TranslationAlignment:
    """Which English words each character of a translation attends to: ``weights (character, word)``.

    Rows sum to less than 1: the rest is on the full stop, other punctuation and the end of the text.

    >>> import regard
    >>> regard.translate("I love you.", align=True).weights.shape  # (character, word)
    torch.Size([4, 3])
    """

    text: str
    translation: str
    words: tuple[str, ...]
    weights: Tensor  # (character, word)
    by: AlignmentHead

    def strongest(self, character: int) -> str:
        """The word that a character attends to most."""
        return self.words[int(self.weights[character].argmax())]

    def __str__(self) -> str:
        lines = [
            f"{character} ← {self.strongest(row)} {self.weights[row].amax():.0%}"
            for row, character in enumerate(self.translation)
            if _has_letters(character)
        ]
        return "\n".join([self.translation, *lines])


def align(
    translator: Translator,
    text: str,
    by: AlignmentHead,
    *,
    num_beams: int = NUM_BEAMS,
    max_new_tokens: int | None = None,
    eos_token_id: int = END,
) -> TranslationAlignment:
    """Translate a text and take its alignment from one head.

    >>> from regard.translator import embedded, embedded_alignment_head
    >>> align(embedded(), "The cat sat on the mat.", embedded_alignment_head()).strongest(0)
    'cat'
    """
    parts = []
    for sentence in split_sentences(text):
        translation = translator.translate(
            sentence, num_beams=num_beams, max_new_tokens=max_new_tokens, eos_token_id=eos_token_id
        )
        parts.append(
            alignment_of(look(translator, sentence, translation=translation), translator.vocabularies, by)
        )
    return _joined(text, parts)


def _joined(text: str, parts: Sequence[TranslationAlignment]) -> TranslationAlignment:
    """The alignment of several sentences: no character attends to the words of another sentence."""
    if len(parts) == 1:
        return parts[0]
    words = tuple(word for part in parts for word in part.words)
    weights = torch.block_diag(*(part.weights for part in parts))
    return TranslationAlignment(
        text, "".join(part.translation for part in parts), words, weights, parts[0].by
    )


def alignment_of(
    seen: WatchedTranslation, vocabularies: Vocabularies, by: AlignmentHead
) -> TranslationAlignment:
    """The alignment in a recording, from one head."""
    words = _proper_words(vocabularies, seen.text)
    call = cross_call(seen.recording, by.layer)
    # Row t writes character t; the last row writes the end.
    hidden = vocabularies.hide_names(seen.text)
    parts = hidden.parts(hidden.hide(seen.translation))
    rows = _by_word(call.weights(by.head, rows=slice(sum(length for _, length in parts))), words)
    each = rows.split([length for _, length in parts])
    # All characters of a name have the mean of what stood in for it.
    means = [part.mean(0).expand(len(shown), -1) for (shown, _), part in zip(parts, each, strict=True)]
    weights = torch.cat(means)
    return TranslationAlignment(seen.text, seen.translation, tuple(word.text for word in words), weights, by)


def cross_call(recording: Recording, layer: int) -> Call:
    """The cross-attention of one layer of the decoder."""
    for call in recording:
        if call.kind == "cross" and call.layer == layer:
            return call
    raise ModelFileError(
        "The alignment head must be a cross-attention head of the model.",
        got="layer = {layer}",
        do="Export the model again.",
        layer=layer,
    )


def _by_word(weights: Tensor, words: Sequence[SourceWord]) -> Tensor:
    """``(character, piece)`` → ``(character, word)``: the sum over the pieces of a word."""
    return torch.stack([weights[:, word.first : word.stop].sum(1) for word in words], 1)


# ---- which head aligns -----------------------------------------------------------------------


class AlignedSentence(NamedTuple):
    """A sentence, its translation, and pairs of words that translate each other."""

    english: str
    chinese: str
    pairs: tuple[tuple[str, str], ...]


@cache
def checked_sentences() -> tuple[AlignedSentence, ...]:
    """The sentences whose words were paired by hand."""
    text = files("regard.translator").joinpath("checked_alignments.json").read_text(encoding="utf-8")
    return tuple(
        AlignedSentence(one["english"], one["chinese"], tuple((pair[0], pair[1]) for pair in one["pairs"]))
        for one in json.loads(text)
    )


def measure_heads(
    translator: Translator, sentences: Sequence[AlignedSentence] | None = None
) -> list[AlignmentHead]:
    """How many of the checked pairs each head of the cross-attention gets right, the best head first.

    The Chinese word is right if the English word that its characters attend to most, taken together,
    is the one that was paired with it. The decoder is given the hand-made translation, so that every
    model is measured on the same words.

    >>> from regard.translator import embedded, embedded_alignment_head
    >>> measure_heads(embedded())[0].to_json() == embedded_alignment_head().to_json()
    True
    """
    sentences = checked_sentences() if sentences is None else sentences
    right = dict.fromkeys(_cross_heads(translator), 0)
    for sentence in sentences:
        try:
            seen = look(translator, sentence.english, translation=sentence.chinese)
        except TextError:
            continue  # a model that cannot read a sentence gets its pairs wrong
        words = _proper_words(translator.vocabularies, sentence.english)
        for call in seen.recording:
            if call.kind != "cross":
                continue
            for head in call.head_numbers:
                weights = _by_word(call.weights(head), words)
                hits = sum(_is_right(weights, words, sentence, pair) for pair in sentence.pairs)
                right[call.layer, head] += hits
    pairs = sum(len(sentence.pairs) for sentence in sentences)
    # Ties in the order of the model.
    return [
        AlignmentHead(*place, right=hits, pairs=pairs)
        for place, hits in sorted(right.items(), key=lambda item: (-item[1], item[0]))
    ]


def _cross_heads(translator: Translator) -> list[tuple[int, int]]:
    layers = [layer for layer in translator.model.decoder.layers if isinstance(layer, DecoderLayer)]
    return [(number, head) for number, layer in enumerate(layers) for head in range(layer.cross.heads)]


def _is_right(
    weights: Tensor, words: Sequence[SourceWord], sentence: AlignedSentence, pair: tuple[str, str]
) -> bool:
    english, chinese = pair
    first = sentence.chinese.index(chinese)
    together = weights[first : first + len(chinese)].sum(0)
    return words[int(together.argmax())].text == english
