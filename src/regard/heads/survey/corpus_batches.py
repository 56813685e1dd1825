"""Batches of a corpus, the same however many processes share them.

Documents are read in *stretches* of 2,048, in the order of the corpus. Within a stretch they are sorted by
length and cut into batches. So there is little padding, memory is that of a stretch, and batch number 17
holds the same documents in every run, wherever it is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from regard.heads.survey.corpus import CHARACTERS, Corpus, Document
from regard.recording.tokenizer_check import unknown_tokens

STRETCH_DOCUMENTS = 2048
"""Documents that are sorted together."""

CHARACTERS_PER_TOKEN = 64
"""Characters read for each token that fits, far more than any text has; the rest is not tokenized."""

MIN_CHARACTERS = 1 << 12
"""Characters that are tokenized however few tokens fit."""

MAX_TOKENIZER_CHARACTERS = 1 << 20
"""Characters passed to the tokenizer in one call: it needs some hundred bytes for each."""

SEGMENT_CHARACTERS = 1 << 18
"""Characters of a document that are tokenized as one text, where it is read in parts."""

MAX_REASON = 300
"""Characters of the reason of a failure that are kept."""


class DocumentPart(NamedTuple):
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
class CorpusBatch:
    """What is computed together."""

    number: int  # counted through the whole corpus
    stretch: int
    parts: tuple[DocumentPart, ...]
    failures: tuple[Failure, ...] = ()  # what of the stretch could not be read; with its first batch
    truncated: int = 0  # documents of the batch that were cut short
    divided: int = 0  # documents whose first part is in the batch and that have more
    position: int = 0  # how much of the corpus was read, as far as this batch goes


@dataclass(frozen=True)
class BatchPosition:
    """Where a stretch begins: its number and that of its first batch."""

    stretch: int = 0
    batch: int = 0


@dataclass(frozen=True, eq=False)
class CorpusBatches:
    """The batches of a corpus for a tokenizer."""

    corpus: Corpus
    tokenizer: Any
    longest: int  # tokens of a part
    tokens: int  # of a batch, padding included
    split: bool  # whether a document that is too long goes into parts, or is cut short
    special: frozenset[int] = field(default_factory=frozenset)

    @property
    def characters(self) -> int:
        """Characters of a document that are read: of one that is cut short no more than can be needed."""
        return (
            CHARACTERS
            if self.split
            else min(CHARACTERS, max(MIN_CHARACTERS, CHARACTERS_PER_TOKEN * self.longest))
        )

    def after(self, position: BatchPosition) -> Iterator[CorpusBatch]:
        """Every batch from a position on. What lies before is read over, not tokenized."""
        number = position.batch
        for index, documents in enumerate(_stretches(self.corpus.documents(self.characters))):
            if index < position.stretch:
                continue
            for batch in self._batches(index, number, documents):
                number += 1
                yield batch

    def find(self, wanted: Collection[tuple[int, int]]) -> dict[tuple[int, int], DocumentPart]:
        """The parts with these numbers of document and part, read again."""
        documents = {document for document, _ in wanted}
        found: dict[tuple[int, int], DocumentPart] = {}
        for document in self.corpus.documents(self.characters):
            if document.number in documents and document.problem is None:
                pieces = self._pieces([document.text])[0]
                for number, ids in enumerate(pieces if isinstance(pieces, list) else []):
                    place = document.number, number
                    if place in wanted:
                        found[place] = DocumentPart(*place, document.where, ids)
            if len(found) == len(wanted):
                break
        return found

    def _batches(self, stretch: int, first: int, documents: Sequence[Document]) -> Iterator[CorpusBatch]:
        failures = [failure(d, d.problem) for d in documents if d.problem is not None]
        parts: list[DocumentPart] = []
        divided: set[int] = set()
        cut = {document.number for document in documents if document.cut}
        good = [document for document in documents if document.problem is None]
        for document, pieces in zip(good, self._pieces([document.text for document in good])):
            problem = pieces if isinstance(pieces, str) else self._unknown(pieces)
            if isinstance(pieces, str) or problem is not None:
                failures.append(failure(document, str(problem)))
                continue
            if len(pieces) > 1:
                (divided if self.split else cut).add(document.number)
            kept = pieces if self.split else pieces[:1]
            parts += [DocumentPart(document.number, n, document.where, ids) for n, ids in enumerate(kept)]
        groups = list(
            _cut(sorted(parts, key=lambda part: (len(part.ids), part.document, part.part)), self.tokens)
        )
        # A stretch without a readable document still has a batch, which tells of its failures.
        begin, end = (documents[0].position, documents[-1].position) if documents else (0, 0)
        for index, group in enumerate(groups or [[]]):
            first_parts = {part.document for part in group if part.part == 0}
            yield CorpusBatch(
                number=first + index,
                stretch=stretch,
                parts=tuple(group),
                failures=tuple(sorted(failures)) if not index else (),
                truncated=len(first_parts & cut),
                divided=len(first_parts & divided),
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
        found: list[list[tuple[int, ...]] | str] = []
        for some in _groups(texts):
            found += self._pieces_of(some)
        return found

    def _pieces_of(self, texts: list[str]) -> list[list[tuple[int, ...]] | str]:
        """The same for texts that the tokenizer gets at once."""
        try:
            if len(texts) == 1 and len(texts[0]) > SEGMENT_CHARACTERS and self.split:
                return [self._segmented(texts[0])]
            return self._tokenized(texts)
        except BaseException as error:
            # A tokenizer may raise anything, and a panic of Rust is not an Exception; the other texts go on.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            if len(texts) == 1:
                return [f"{type(error).__name__}: {error}"]
            return [piece for text in texts for piece in self._pieces_of([text])]

    def _segmented(self, text: str) -> list[tuple[int, ...]] | str:
        """The pieces of a long text, which is tokenized a segment at a time."""
        pieces: list[tuple[int, ...]] = []
        reason = ""
        for segment in _segments(text):
            found = self._tokenized([segment])[0]
            if isinstance(found, str):
                reason = found
            else:
                pieces += found
        return pieces or reason

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
        """The pieces of one text by a tokenizer in Python, which cannot return pieces itself."""
        bare = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        size = self.longest - self.tokenizer.num_special_tokens_to_add()
        pieces = [bare[start : start + size] for start in range(0, len(bare), size)]
        whole = [tuple(self.tokenizer.build_inputs_with_special_tokens(list(piece))) for piece in pieces]
        return whole or "no token that the model knows"


def failure(document: Document | DocumentPart, reason: str) -> Failure:
    """That a document, or a part of one, could not be read; of a long reason the beginning."""
    number, part = (
        (document.document, document.part) if isinstance(document, DocumentPart) else (document.number, 0)
    )
    line = " ".join(reason.split("\n", 1)[0].split())
    return Failure(
        number, part, document.where, line if len(line) <= MAX_REASON else f"{line[:MAX_REASON]} …"
    )


def _stretches(corpus: Iterator[Document]) -> Iterator[list[Document]]:
    gathered: list[Document] = []
    characters = 0
    for document in corpus:
        gathered.append(document)
        characters += len(document.text)
        if len(gathered) == STRETCH_DOCUMENTS or characters >= CHARACTERS:
            yield gathered
            gathered, characters = [], 0
    if gathered:
        yield gathered


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts that are tokenized together; a very long one alone."""
    group: list[str] = []
    characters = 0
    for text in texts:
        if group and (characters + len(text) > MAX_TOKENIZER_CHARACTERS or len(text) > SEGMENT_CHARACTERS):
            yield group
            group, characters = [], 0
        group.append(text)
        characters += len(text)
        if len(text) > SEGMENT_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _segments(text: str) -> Iterator[str]:
    """A long text cut where a word ends, if one ends in the last quarter of a segment.

    >>> [len(one) for one in _segments("word " * 100_000)]
    [262139, 237859]
    """
    start = 0
    while start < len(text):
        end = start + SEGMENT_CHARACTERS
        if end < len(text):
            space = max(
                text.rfind(" ", end - SEGMENT_CHARACTERS // 4, end),
                text.rfind("\n", end - SEGMENT_CHARACTERS // 4, end),
            )
            end = space if space > start else end
        if segment := text[start:end].strip():
            yield segment
        start = end


def _cut(parts: Sequence[DocumentPart], tokens: int) -> Iterator[list[DocumentPart]]:
    """Groups of neighbours in length that have at most ``tokens`` tokens when padded to the longest."""
    batch: list[DocumentPart] = []
    for part in parts:
        if batch and (len(batch) + 1) * len(part.ids) > tokens:
            yield batch
            batch = []
        batch.append(part)
    if batch:
        yield batch
