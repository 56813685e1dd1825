"""The folder of a survey: what it is a survey of, and how far each process has come.

``checkpoint/state.safetensors`` holds what earlier runs found, with a number, its *generation*. While a run
is under way, each process writes what it has found since then into its own part, with the generation it
builds on, and its failures into a file beside it. A new run first adds the parts to the state, under the next
generation; parts of an older generation are included already and no longer count. Every file is written under
another name and renamed when whole, and holds its numbers and its position together. So whenever a run is
killed, each batch is either in the state or in a part, once, or not done.

Every file has a digest: of its tensors, of its fields, or, for failures, in the checkpoint that counts them.
Each checkpoint also names the survey that it belongs to. What is damaged, missing or of another survey is an
error that says which file it is and what to remove; nothing of it is ever counted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard import atomic
from regard.checked_files import (
    DamagedError,
    digest,
    digest_of,
    json_bytes,
    read_json,
    read_tensors,
    write_json,
    write_tensors,
)
from regard.errors import Phrase, SurveyError, reason
from regard.folder_lock import locked
from regard.heads.survey.accumulators import Accumulators
from regard.heads.survey.corpus_batches import BatchPosition, Failure

IDENTITY = "survey.json"
STATE = "state.safetensors"


@dataclass(frozen=True)
class FailureFile:
    """How much of a file of failures counts, and the digest of that much."""

    bytes: int = 0
    digest: str = ""


@dataclass
class SurveyPosition:
    """Which batches were done: all of the stretches before the position, and some after it."""

    generation: int = 0
    stretch: int = 0
    first: int = 0  # batch of the stretch
    done: list[int] = field(default_factory=list)  # batches after the first
    complete: bool = False
    failed_bytes: int = 0
    failed_digest: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> FailureFile:
        """How much of its file of failures counts."""
        return FailureFile(self.failed_bytes, self.failed_digest)

    @property
    def position(self) -> BatchPosition:
        """Where to continue reading."""
        return BatchPosition(self.stretch, self.first)


@dataclass
class ProcessProgress:
    """How far one process has come in its run."""

    generation: int
    own: int
    count: int
    stretch: int
    first: int
    upto: int = 0  # all of its batches below this are done
    failed_bytes: int = 0
    failed_digest: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> FailureFile:
        """How much of its file of failures counts."""
        return FailureFile(self.failed_bytes, self.failed_digest)

    def did(self, batch: int, before: set[int]) -> bool:
        """Whether this process did a batch that was not done before its run."""
        return batch < self.upto and batch % self.count == self.own and batch not in before


@dataclass(frozen=True)
class SurveyFolder:
    """The files of a survey."""

    path: Path
    identity: dict[str, Any]

    @property
    def checkpoint(self) -> Path:
        """Where its checkpoints are."""
        return self.path / "checkpoint"

    # ---- what it is of ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Create the folder of a survey, or check that it is the folder of this survey."""
        try:
            self.checkpoint.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SurveyError(
                "--out must be a folder for the results.",
                got="{type} at {path}",
                do="Choose a writable folder with --out.",
                type=type(error).__name__,
                path=self.path,
            ) from error
        path = self.path / IDENTITY
        if not path.exists():
            write_json(path, self.identity)
            return
        known = self._known(path)
        for name, value in self.identity.items():
            if known.get(name) != value:
                raise SurveyError(
                    "A folder can contain only one survey ({short} in {path}).",
                    got="{short_2}",
                    do="Choose another folder with --out; nothing in this one is changed.",
                    short=_short(name, known.get(name)),
                    path=self.path,
                    short_2=_short(name, value),
                )

    def _known(self, path: Path) -> dict[str, Any]:
        try:
            return read_json(path)
        except DamagedError as error:
            if str(error) == "no digest":
                raise SurveyError(
                    "The files of a survey need digests, which reveal damage.",
                    got="{path} without one, from an earlier version of regard or another program",
                    do="Choose another folder with --out; nothing in this one is changed.",
                    path=path,
                ) from error
            raise SurveyError(
                "{IDENTITY} must be as the survey wrote it.",
                got="{error} in {path}",
                do="Delete only this file and start again: the checkpoints identify the survey.",
                IDENTITY=IDENTITY,
                error=error,
                path=path,
            ) from error

    def locked(self) -> AbstractContextManager[None]:
        """Lock the folder for one run."""
        busy = SurveyError(
            "Only one survey can run in a folder at a time.",
            got="another one running in {path}",
            do="Wait for it, or choose another folder with --out.",
            path=self.path,
        )
        return locked(self.checkpoint, busy=busy)

    # ---- checkpoints -------------------------------------------------------------------------------

    def save_part(self, progress: ProcessProgress, found: Accumulators) -> None:
        """Write what one process has found and how far it has come, together."""
        self._save(self._part(progress.own), found, asdict(progress))

    def save_state(self, position: SurveyPosition, found: Accumulators) -> None:
        """Write what all have found."""
        self._save(self.checkpoint / STATE, found, asdict(position))

    def load_state(self) -> tuple[SurveyPosition, Accumulators | None]:
        """What earlier runs found; nothing, in a new folder."""
        path = self.checkpoint / STATE
        if not path.exists():
            return SurveyPosition(), None
        try:
            facts, found = self._load(path)
            return SurveyPosition(**facts), found
        except (DamagedError, TypeError) as error:
            raise _lost(path, error) from error

    def parts(self, generation: int) -> Iterator[tuple[ProcessProgress, Accumulators]]:
        """The parts that build on the state."""
        for path in sorted(self.checkpoint.glob("part-*.safetensors")):
            try:
                facts, found = self._load(path)
                progress = ProcessProgress(**facts)
            except (DamagedError, TypeError) as error:
                raise SurveyError(
                    "A part of a checkpoint must be as the survey wrote it.",
                    got="{error} in {path}",
                    do="Delete this file and start again: only the texts of this part are read again.",
                    error=error,
                    path=path,
                ) from error
            if progress.generation > generation:
                none = Phrase("none that {name} builds on", name=path.name)
                raise _lost(self.checkpoint / STATE, none)
            if progress.generation == generation:
                yield progress, found

    def drop_parts(self, generation: int) -> None:
        """Remove parts, which the state now includes, and failures of older generations."""
        kept = self.failures(generation)
        for path in [*self.checkpoint.glob("part-*"), *self.checkpoint.glob("failed-*.jsonl")]:
            if path != kept:
                with atomic.explained(path):
                    path.unlink()

    def failures(self, generation: int) -> Path:
        """The file of failures that belongs to a state."""
        return self.checkpoint / f"failed-{generation}.jsonl"

    def own_failures(self, own: int) -> Path:
        """The file of failures of one process."""
        return self.checkpoint / f"part-{own}.failed.jsonl"

    def failures_of_state(self, position: SurveyPosition) -> bytes:
        """The failures that belong to the state, as they were written."""
        path = self.failures(position.generation)
        try:
            return _counted(path, position.failed)
        except DamagedError as error:
            raise _lost(path, error) from error

    def failures_of_part(self, own: int, written: FailureFile) -> bytes:
        """The failures of one process, as they were written."""
        path = self.own_failures(own)
        try:
            return _counted(path, written)
        except DamagedError as error:
            raise SurveyError(
                "The failures of a part must be as the survey wrote them.",
                got="{error} in {path}",
                do="Delete {name} beside it and start again: only the texts of that part are read again.",
                error=error,
                path=path,
                name=self._part(own).name,
            ) from error

    def _part(self, own: int) -> Path:
        return self.checkpoint / f"part-{own}.safetensors"

    def _save(self, path: Path, found: Accumulators, facts: dict[str, Any]) -> None:
        write_tensors(path, found.tensors(), {"survey": digest_of(self.identity), **facts})

    def _load(self, path: Path) -> tuple[dict[str, Any], Accumulators]:
        tensors, facts = read_tensors(path)
        if facts.pop("survey", None) != digest_of(self.identity):
            raise DamagedError("the numbers of another survey")
        return facts, Accumulators.from_tensors(tensors)


def _lost(path: Path, problem: Phrase | Exception) -> SurveyError:
    """The error for damage to the state, without which no part can be used."""
    return SurveyError(
        "A checkpoint must be as the survey wrote it.",
        got="{error} in {path}",
        do="Delete the folder {parent} to start over, or choose another folder with --out.",
        error=problem,
        path=path,
        parent=path.parent,
    )


def _counted(path: Path, written: FailureFile) -> bytes:
    """The bytes of a file that count; a killed run may have left more after them."""
    if not written.bytes:
        return b""
    try:
        contents = path.read_bytes()[: written.bytes]
    except OSError as error:
        raise DamagedError("{reason}", reason=reason(error)) from error
    if digest(contents) != written.digest:
        raise DamagedError("contents that differ from what was written")
    return contents


def consolidate(folder: SurveyFolder, heads: int) -> tuple[SurveyPosition, Accumulators]:
    """Add the parts of a run that ended early to the state, and return where to continue."""
    position, found = folder.load_state()
    found = Accumulators.blank(heads) if found is None else found
    parts = list(folder.parts(position.generation))
    if not parts:
        return position, found
    before = set(position.done)
    furthest = max(progress.upto for progress, _ in parts)
    # Every process of the run has a part, unless it ended before its first batch: then nothing is certain.
    whole = len(parts) == parts[0][0].count
    slowest = min((progress for progress, _ in parts), key=lambda progress: progress.first)
    stretch, first = (slowest.stretch, slowest.first) if whole else (position.stretch, position.first)
    done = {batch for batch in before if batch >= first}
    for progress, more in parts:
        done |= {batch for batch in range(first, furthest) if progress.did(batch, before)}
        found.merge(more)
    after = SurveyPosition(
        generation=position.generation + 1,
        stretch=stretch,
        first=first,
        done=sorted(done),
        seconds=position.seconds + max(progress.seconds for progress, _ in parts),
    )
    failures = [folder.failures_of_state(position)]
    failures += [folder.failures_of_part(progress.own, progress.failed) for progress, _ in parts]
    close_generation(folder, after, found, b"".join(failures))
    return after, found


def close_generation(
    folder: SurveyFolder, after: SurveyPosition, found: Accumulators, failures: bytes
) -> None:
    """Write the next state with the failures that belong to it, then remove the parts it was made of."""
    replace_file(folder.failures(after.generation), failures)
    after.failed_bytes, after.failed_digest = len(failures), digest(failures)
    folder.save_state(after, found)
    folder.drop_parts(after.generation)


class FailureLog:
    """The failures of one process, appended to its file and synced at every checkpoint."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._total = hashlib.blake2b(digest_size=16)
        with atomic.explained(path):
            self._file = path.open("wb")

    def add(self, failures: Iterable[Failure]) -> int:
        """Append failures; return how many."""
        count = 0
        for failure in failures:
            count += 1
            line = json_bytes(json.dumps(failure._asdict(), ensure_ascii=False) + "\n")
            self._total.update(line)
            with atomic.explained(self._path):
                self._file.write(line)
        return count

    def sync(self) -> FailureFile:
        """Sync the file; return how much of it counts."""
        with atomic.explained(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
            return FailureFile(self._file.tell(), self._total.hexdigest())

    def close(self) -> None:
        """Close the file. What did not fit on a full disk is in no checkpoint, so it does not count."""
        with contextlib.suppress(OSError):
            self._file.close()


def replace_file(path: Path, contents: bytes) -> None:
    """Replace the contents of a file atomically."""
    atomic.write_bytes(path, contents)


def _short(name: str, value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{name} = {text if len(text) <= 60 else text[:57] + '…'}"
