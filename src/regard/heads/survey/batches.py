"""Batches of a corpus, the same however many processes share them.

Documents are taken in *stretches*: so many of them, in the order of the corpus. Within a stretch they are
sorted by length and cut into batches. So padding is small, memory is that of a stretch, and batch number
17 holds the same documents in every run: it is computed alike wherever it is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from regard.heads.survey.corpus import Corpus, Document
from regard.recording.vocabulary import unknown_tokens

STRETCH = 2048
"""Documents that are sorted together."""

CHARACTERS = 1 << 23
"""Characters of a stretch: long documents make it shorter."""


class Part(NamedTuple):
    """A document as the model reads it, or a part of one that was too long."""

    document: int
    part: int
    where: str
    ids: tuple[int, ...]


class Failure(NamedTuple):
    """A document that could not be read, and why."""

    document: int
    part: int
    where: str
    reason: str


@dataclass(frozen=True)
class Batch:
    """What is computed together."""

    number: int  # counted through the whole corpus
    stretch: int
    parts: tuple[Part, ...]
    failures: tuple[Failure, ...] = ()  # what of the stretch could not be read; with its first batch
    truncated: int = 0  # documents of the batch that were cut short
    divided: int = 0  # documents whose first part is in the batch and that have more
    position: int = 0  # how much of the corpus was read, as far as this batch goes


@dataclass(frozen=True)
class Bookmark:
    """Where a stretch begins: its number and that of its first batch."""

    stretch: int = 0
    batch: int = 0


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of a corpus for a tokenizer."""

    corpus: Corpus
    tokenizer: Any
    longest: int  # tokens of a part
    tokens: int  # of a batch, padding included
    split: bool  # whether a document that is too long goes into parts, or is cut short
    special: frozenset[int] = field(default_factory=frozenset)

    def after(self, bookmark: Bookmark) -> Iterator[Batch]:
        """Every batch from a bookmark on. What lies before is read over, not tokenized."""
        number = bookmark.batch
        for index, documents in enumerate(_stretches(self.corpus)):
            if index < bookmark.stretch:
                continue
            for batch in self._batches(index, number, documents):
                number += 1
                yield batch

    def find(self, wanted: Collection[tuple[int, int]]) -> dict[tuple[int, int], Part]:
        """The parts with these numbers of document and part, read again."""
        documents = {document for document, _ in wanted}
        found: dict[tuple[int, int], Part] = {}
        for document in self.corpus:
            if document.number in documents:
                pieces = self._pieces([document.text])[0]
                for number, ids in enumerate(pieces if isinstance(pieces, list) else []):
                    place = document.number, number
                    if place in wanted:
                        found[place] = Part(*place, document.where, ids)
            if len(found) == len(wanted):
                break
        return found

    def _batches(self, stretch: int, first: int, documents: Sequence[Document]) -> Iterator[Batch]:
        failures = [Failure(d.number, 0, d.where, d.problem) for d in documents if d.problem is not None]
        parts: list[Part] = []
        lengths: dict[int, int] = {}
        good = [document for document in documents if document.problem is None]
        for document, pieces in zip(good, self._pieces([document.text for document in good])):
            problem = pieces if isinstance(pieces, str) else self._unknown(pieces)
            if isinstance(pieces, str) or problem is not None:
                failures.append(Failure(document.number, 0, document.where, str(problem)))
                continue
            lengths[document.number] = len(pieces)
            kept = pieces if self.split else pieces[:1]
            parts += [Part(document.number, n, document.where, ids) for n, ids in enumerate(kept)]
        groups = list(
            _cut(sorted(parts, key=lambda part: (len(part.ids), part.document, part.part)), self.tokens)
        )
        # A stretch without a readable document still has a batch, which tells of its failures.
        begin, end = (documents[0].position, documents[-1].position) if documents else (0, 0)
        for index, group in enumerate(groups or [[]]):
            longer = sum(part.part == 0 and lengths[part.document] > 1 for part in group)
            yield Batch(
                number=first + index,
                stretch=stretch,
                parts=tuple(group),
                failures=tuple(sorted(failures)) if not index else (),
                truncated=0 if self.split else longer,
                divided=longer if self.split else 0,
                position=begin + (end - begin) * (index + 1) // max(1, len(groups)),
            )

    def _unknown(self, pieces: Sequence[tuple[int, ...]]) -> str | None:
        """Why a document is left out that the tokenizer does not know; None for the others."""
        counts = [unknown_tokens(self.tokenizer, ids, self.special) for ids in pieces]
        unknown, ordinary = (sum(count) for count in zip(*counts))
        return (
            f"{unknown} of {ordinary} tokens are unknown to the tokenizer" if 2 * unknown > ordinary else None
        )

    def _pieces(self, texts: list[str]) -> list[list[tuple[int, ...]] | str]:
        """The ids of each text in parts that fit, or why there are none."""
        try:
            return self._tokenized(texts) if texts else []
        except Exception as error:  # noqa: BLE001 - a tokenizer may raise anything; the others go on
            if len(texts) == 1:
                return [f"{type(error).__name__}: {error}"]
            return [piece for text in texts for piece in self._pieces([text])]

    def _tokenized(self, texts: list[str]) -> list[list[tuple[int, ...]] | str]:
        """All pieces by the tokenizer itself, so that each has its special tokens."""
        if not getattr(self.tokenizer, "is_fast", True):
            return [self._by_hand(text) for text in texts]
        found = self.tokenizer(
            texts, truncation=True, max_length=self.longest, return_overflowing_tokens=True, verbose=False
        )
        of_text = found.get("overflow_to_sample_mapping", range(len(texts)))
        pieces: list[list[tuple[int, ...]]] = [[] for _ in texts]
        for text, ids in zip(of_text, found["input_ids"]):
            if any(one not in self.special for one in ids):
                pieces[text].append(tuple(ids))
        return [some or "no token that the model knows" for some in pieces]

    def _by_hand(self, text: str) -> list[tuple[int, ...]] | str:
        """The pieces of one text by a tokenizer in Python, which gives no pieces of its own."""
        bare = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        size = self.longest - self.tokenizer.num_special_tokens_to_add()
        pieces = [bare[start : start + size] for start in range(0, len(bare), size)]
        whole = [tuple(self.tokenizer.build_inputs_with_special_tokens(list(piece))) for piece in pieces]
        return whole or "no token that the model knows"


def _stretches(corpus: Corpus) -> Iterator[list[Document]]:
    gathered: list[Document] = []
    characters = 0
    for document in corpus:
        gathered.append(document)
        characters += len(document.text)
        if len(gathered) == STRETCH or characters >= CHARACTERS:
            yield gathered
            gathered, characters = [], 0
    if gathered:
        yield gathered


def _cut(parts: Sequence[Part], tokens: int) -> Iterator[list[Part]]:
    """Neighbours in length together, while padded to the longest they have at most so many tokens."""
    batch: list[Part] = []
    for part in parts:
        if batch and (len(batch) + 1) * len(part.ids) > tokens:
            yield batch
            batch = []
        batch.append(part)
    if batch:
        yield batch
