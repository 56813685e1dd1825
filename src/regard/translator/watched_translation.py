"""A translation with a recording of every head that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from regard.deprecation import renamed_arguments
from regard.errors import TextError
from regard.recording import Recording, watch
from regard.recording.next_tokens import next_tokens_of
from regard.translator.names import HiddenNames
from regard.translator.translate_text import NUM_BEAMS, Translator
from regard.translator.vocabulary import END, SPECIALS, START, UNKNOWN, EnglishTokens

MORE = "…"
"""The label of further tokens of a name."""


@dataclass(frozen=True, eq=False)
class WatchedTranslation:
    """A text, its translation, and the recording of the model that produced it.

    Row t of the decoder and of the cross-attention is the step that writes character t; its token is
    the character before, which that step reads. The last row writes the end.

    >>> from regard.translator import embedded
    >>> look(embedded(), "I love you.").translation
    '我爱你。'
    """

    text: str
    translation: str
    recording: Recording


@renamed_arguments(beams="num_beams")
@torch.no_grad()
def look(
    translator: Translator,
    text: str,
    *,
    translation: str | None = None,
    num_beams: int = NUM_BEAMS,
    **watching: Any,
) -> WatchedTranslation:
    """Translate ``text`` and record the attention; or record how a given ``translation`` would be written.

    ``watching`` are options of :func:`regard.watch`.

    >>> from regard.translator import embedded
    >>> seen = look(embedded(), "I love you.", translation="我爱你。").recording
    >>> seen.tokens[0][1:]
    ['我', '爱', '你', '。']
    """
    source = translator.encode(text)
    if translation is None:
        translation = translator.translate(text, num_beams=num_beams)
    target = [START, *_known(translator, text, translation)]
    # One pass over the finished translation gives the same numbers as step by step, with one call per layer.
    with watch(translator.model, **watching) as seen:
        logits = translator.model(torch.tensor([source]), torch.tensor([target]))
    hidden = translator.vocabularies.hide_names(text)
    seen.tokens = [SPECIALS[START], *_labels(hidden, translation)]
    names = [*SPECIALS, *translator.vocabularies.chinese.characters]
    seen.next_tokens = next_tokens_of(
        [logits[0]], torch.tensor(target), lambda ids: [names[index] for index in ids], generated=1
    )
    seen.source_tokens = [*_pieces(hidden, translator.vocabularies.english), SPECIALS[END]]
    return WatchedTranslation(text, translation, seen)


def _labels(hidden: HiddenNames, translation: str) -> list[str]:
    """One label for each character that the model writes: the name, where it has a stand-in."""
    parts = hidden.parts(hidden.hide(translation))
    return [label for shown, length in parts for label in (shown, *[MORE] * (length - 1))]


def _pieces(hidden: HiddenNames, english: EnglishTokens) -> list[str]:
    """The pieces of the source, with names in place of their stand-ins."""
    found = english.tokenizer.encode(hidden.text, add_special_tokens=False)
    labels = []
    for piece, (first, stop) in zip(found.tokens, found.offsets, strict=True):
        typed = hidden.text[first:stop].strip()
        named = hidden.shown_at(stop - len(typed), stop) if typed else None
        mark = "▁" if piece.startswith("▁") else ""
        labels.append(piece if named is None else mark + (named or MORE))
    return labels


def _known(translator: Translator, text: str, translation: str) -> list[int]:
    ids = translator.encode_translation(text, translation)
    if not ids or set(ids) <= {UNKNOWN}:
        raise TextError(
            "A translation needs at least one character that the model knows.",
            got="{translation!r}",
            do="Write it in Chinese.",
            translation=translation[:60],
        )
    if len(ids) + 1 > translator.model.length:
        raise TextError(
            "A translation must fit into the model's positions (longest = {longest}).",
            got="{ids_count} characters",
            do="Look at it sentence by sentence.",
            longest=translator.model.length - 1,
            ids_count=len(ids),
        )
    return ids
