"""``survey()``: what the heads of a model do over a corpus, on any number of processes, resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from regard import atomic
from regard.checks import check_choice, check_integer
from regard.errors import FileError, RegardError, SurveyError
from regard.heads.survey.accumulators import Accumulators
from regard.heads.survey.corpus import Corpus
from regard.heads.survey.corpus_batches import CorpusBatch, CorpusBatches, DocumentPart, Failure, failure
from regard.heads.survey.survey_folder import (
    FailureFile,
    FailureLog,
    ProcessProgress,
    SurveyFolder,
    SurveyPosition,
    close_generation,
    consolidate,
)
from regard.heads.survey.survey_results import Survey, check_parquet
from regard.heads.survey.surveyed_model import SurveyedModel
from regard.processes import Processes
from regard.recording.reader import Reader

FORMAT = 2
"""Increased when earlier checkpoints would mean something else."""

LONG = ("truncate", "split")


@dataclass(frozen=True)
class SurveyProgress:
    """How far a run has come, for a progress display.

    >>> SurveyProgress(texts=1000, share=0.5, left=75.0).share
    0.5
    """

    share: float  # of the corpus, from 0 to 1
    texts: int  # read by this process in this run
    left: float  # estimated seconds; NaN at the beginning


SurveyListener = Callable[[SurveyProgress], None]


def survey(
    reader: Reader,
    corpus: Corpus,
    folder: str | Path,
    *,
    report: SurveyListener | None = None,
    **options: Any,
) -> Survey | None:
    """Read every document of a corpus and add up what each head does; the result, in the first process.

    If this survey was started in the folder before, it continues where it stopped; the folder of
    another survey is refused.
    ``report`` is called with the progress of the run; the other options are those of :func:`prepare`.
    """
    return prepare(reader, corpus, folder, **options).go(report)


def prepare(
    reader: Reader,
    corpus: Corpus,
    folder: str | Path,
    *,
    layers: Sequence[int] | None = None,
    batch_tokens: int = 4096,
    long: str = "truncate",
    longest: int | None = None,
    checkpoint_every: float = 20.0,
    processes: Processes | None = None,
) -> SurveyRun:
    """A survey, checked and ready to run.

    Args:
        reader: a model with its tokenizer, from ``load_reader``.
        corpus: the documents.
        folder: for checkpoints and results.
        layers: only these.
        batch_tokens: how many tokens are computed together, padding included.
        long: what to do with a document that is longer than the model allows: ``"truncate"`` or ``"split"``.
        longest: how many tokens a document, or a part of it, may have; by default what the model allows.
        checkpoint_every: seconds from one checkpoint to the next.
        processes: those that share the work.
    """
    check_parquet()
    check_choice("long", long, LONG)
    check_integer("batch_tokens", batch_tokens, example=4096)
    subject = SurveyedModel(reader, None if layers is None else tuple(layers))
    most = subject.longest(longest, batch_tokens)
    identity = {
        "format": FORMAT,
        "model": reader.name,
        "weights": subject.digest(),
        "corpus": corpus.path.name,
        "texts": corpus.digest(),
        "unit": corpus.unit,
        "field": corpus.field,
        "limit": corpus.limit,
        "layers": None if layers is None else list(layers),
        "batch_tokens": batch_tokens,
        "long": long,
        "longest": most,
    }
    batches = CorpusBatches(
        corpus, reader.tokenizer, most, batch_tokens, long == "split", subject.words.special
    )
    place = SurveyFolder(Path(folder), identity)
    return SurveyRun(subject, batches, place, processes or Processes(), every=checkpoint_every)


class SurveyRun:
    """One run of a survey in one process."""

    def __init__(
        self,
        subject: SurveyedModel,
        batches: CorpusBatches,
        folder: SurveyFolder,
        processes: Processes,
        *,
        every: float,
    ) -> None:
        self.subject, self.batches, self.folder = subject, batches, folder
        self.processes, self.every = processes, every
        self.heads = subject.layout.heads

    def go(self, report: SurveyListener | None = None) -> Survey | None:
        """Start or resume, to the end; return the result in the first process."""
        try:
            with ExitStack() as stack:
                return self._go(report, stack)
        except FileError as error:
            raise error.but(
                do="Free some space or fix the permissions, then start again with the same folder: "
                "the survey continues from its last checkpoint.",
            ) from error

    def _go(self, report: SurveyListener | None, stack: ExitStack) -> Survey | None:
        position, before = self._begin(stack)
        if not position.complete:
            progress, found = self._work(position, report or (lambda _: None))
            position, before = self._end(position, before, progress, found)
        if not self.processes.first:
            return None
        result = Survey(
            self.folder.identity,
            self.subject.layout,
            before,
            self.folder.failures_of_state(position),
            position.seconds,
            self.subject.on_repeats(self.batches.longest),
        )
        if not before.counted("parts"):
            first = next(iter(result.failed()), {})
            raise SurveyError(
                "A survey needs at least one document that can be read.",
                got="none of {count} in {path}, the first at {where}: {reason}"
                if first
                else "none of {count} in {path}",
                do="Check the file and its --field, or try one text with regard look.",
                count=before.counted("failed"),
                path=self.batches.corpus.path,
                **first,
            )
        return result

    def _begin(self, stack: ExitStack) -> tuple[SurveyPosition, Accumulators]:
        """The first process prepares the folder; the others wait and read where to continue."""
        failed: RegardError | None = None
        position, before = SurveyPosition(), Accumulators.blank(self.heads)
        if self.processes.first:
            try:
                self.folder.begin()
                stack.enter_context(self.folder.locked())
                for one in (self.folder.path, self.folder.checkpoint):
                    atomic.drop_leftovers(one)
                position, before = consolidate(self.folder, self.heads)
            except RegardError as error:
                failed = error
        if bool(self.processes.total(torch.tensor([int(failed is not None)]))):
            raise failed or SurveyError(
                "The first process must be able to prepare the folder.",
                got="an error there",
                do="See its message.",
            )
        if not self.processes.first:
            position, _ = self.folder.load_state()
        return position, before

    def _work(self, position: SurveyPosition, report: SurveyListener) -> tuple[ProcessProgress, Accumulators]:
        """Compute every remaining batch of this process."""
        own, count = self.processes.own, self.processes.count
        found, done = Accumulators.blank(self.heads), frozenset(position.done)
        progress = ProcessProgress(position.generation, own, count, position.stretch, position.first)
        notes = FailureLog(self.folder.own_failures(own))
        clock = _ProgressClock(self.batches.corpus, report)
        saved = time.monotonic()
        try:
            for batch in self.batches.after(position.position):
                if batch.stretch != progress.stretch:
                    progress.stretch, progress.first = batch.stretch, batch.number
                progress.upto = batch.number + 1
                if batch.number % count != own or batch.number in done:
                    continue
                more, failures = self._read(batch, found)
                more.count(failed=notes.add(failures), truncated=batch.truncated, divided=batch.divided)
                found.merge(more)
                clock.tick(batch)
                if time.monotonic() - saved >= self.every:
                    self._save(progress, found, notes, clock)
                    saved = time.monotonic()
            self._save(progress, found, notes, clock)
        finally:
            notes.close()
        return progress, found

    def _save(
        self, progress: ProcessProgress, found: Accumulators, notes: FailureLog, clock: _ProgressClock
    ) -> None:
        written = notes.sync()
        progress.failed_bytes, progress.failed_digest = written.bytes, written.digest
        progress.seconds = clock.elapsed
        self.folder.save_part(progress, found)

    def _read(self, batch: CorpusBatch, found: Accumulators) -> tuple[Accumulators, list[Failure]]:
        """Read a batch together; if that fails, its texts one by one, so that only failing ones are lost."""
        failures = list(batch.failures)
        if not batch.parts:
            return Accumulators.blank(self.heads), failures
        bar = found.examples.bar
        try:
            return self.subject.read(batch.parts, bar), failures
        except Exception as error:  # noqa: BLE001 - a model may raise anything; the other texts go on
            if len(batch.parts) == 1:
                return Accumulators.blank(self.heads), [*failures, _failure(batch.parts[0], error)]
        total = Accumulators.blank(self.heads)
        for part in batch.parts:
            more, wrong = self._read(replace(batch, parts=(part,), failures=()), found)
            total.merge(more)
            failures += wrong
        return total, failures

    def _end(
        self, position: SurveyPosition, before: Accumulators, progress: ProcessProgress, found: Accumulators
    ) -> tuple[SurveyPosition, Accumulators]:
        """Merge the results of all processes into one state; until it is written, they are in the parts."""
        together = found.shared(self.processes)
        seconds = (
            float(self.processes.total(torch.tensor([progress.seconds]).double())) / self.processes.count
        )
        sizes = self.processes.all(torch.tensor([progress.failed_bytes]))
        digests = self.processes.all(torch.tensor(list(bytes.fromhex(progress.failed_digest))))
        after = SurveyPosition(
            generation=position.generation + 1,
            stretch=progress.stretch,
            first=progress.first,
            complete=True,
            seconds=position.seconds + seconds,
        )
        if self.processes.first:
            before.merge(together)
            failures = [self.folder.failures_of_state(position)]
            for own, (size, one) in enumerate(zip(sizes, digests)):
                written = FailureFile(int(size), bytes(one.tolist()).hex())
                failures.append(self.folder.failures_of_part(own, written))
            close_generation(self.folder, after, before, b"".join(failures))
        self.processes.wait()
        return after, before


def _failure(part: DocumentPart, error: Exception) -> Failure:
    said = str(error).strip()
    return failure(part, f"{type(error).__name__}: {said}" if said else type(error).__name__)


class _ProgressClock:
    """How much of the corpus was read, and how long the rest will take at this pace."""

    def __init__(self, corpus: Corpus, report: SurveyListener) -> None:
        self.size, self.limit, self.report = max(1, corpus.size), corpus.limit, report
        self.start = time.monotonic()
        self.begun: float | None = None
        self.texts = 0

    @property
    def elapsed(self) -> float:
        """Seconds of this run."""
        return time.monotonic() - self.start

    def tick(self, batch: CorpusBatch) -> None:
        """A batch is done."""
        share = batch.position / self.size
        if self.limit is not None and batch.parts:
            share = max(share, (1 + max(part.document for part in batch.parts)) / self.limit)
        share = min(1.0, share)
        self.begun = share if self.begun is None else self.begun
        self.texts += len(batch.parts)
        gone = share - self.begun
        left = self.elapsed * (1 - share) / gone if gone > 0 else float("nan")
        self.report(SurveyProgress(share, self.texts, left))
