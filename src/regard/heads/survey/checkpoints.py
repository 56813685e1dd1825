"""The folder of a survey: what it is a survey of, and how far each process has come.

``checkpoint/state.safetensors`` holds what earlier runs found, with a number, its *generation*. While a run
is under way each process writes what it has found beyond that into a part of its own, with the generation it
builds on, and its failures into a file beside it. A new run first adds the parts to the state, under the next
generation; parts of an older generation are in it already, and count no more. Every file is written under
another name and renamed when whole, and holds its numbers and its position together. So whenever a run is
killed, each batch is either in the state or in a part, once, or not done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from regard import atomic
from regard.errors import FileError, SurveyError
from regard.heads.survey.accumulators import Accumulators
from regard.heads.survey.batches import Bookmark, Failure

IDENTITY = "survey.json"


@dataclass
class Position:
    """Which batches were done: all of the stretches before the bookmark, and some behind it."""

    generation: int = 0
    stretch: int = 0
    first: int = 0  # batch of the stretch
    done: list[int] = field(default_factory=list)  # batches behind the first
    complete: bool = False
    failed_bytes: int = 0
    seconds: float = 0.0

    @property
    def bookmark(self) -> Bookmark:
        """Where to go on reading."""
        return Bookmark(self.stretch, self.first)


@dataclass
class Progress:
    """How far one process has come in its run."""

    generation: int
    own: int
    count: int
    stretch: int
    first: int
    upto: int = 0  # every batch of its own below this is done
    failed_bytes: int = 0
    seconds: float = 0.0

    def did(self, batch: int, before: set[int]) -> bool:
        """Whether this process did a batch that was not done before its run."""
        return batch < self.upto and batch % self.count == self.own and batch not in before


@dataclass(frozen=True)
class Folder:
    """The files of a survey."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """Where its checkpoints lie."""
        return self.path / "checkpoint"

    # ---- what it is of ---------------------------------------------------------------------------

    def begin(self, identity: dict[str, Any]) -> None:
        """Make the folder for a survey, or find that it is the folder of this very survey."""
        try:
            self.checkpoint.mkdir(parents=True, exist_ok=True)
            known = self._identity()
            if known is None:
                replace_file(
                    self.path / IDENTITY, json.dumps(identity, indent=1, ensure_ascii=False).encode()
                )
                return
            probe = self.checkpoint / ".probe"
            probe.write_bytes(b"")
            probe.unlink()
        except FileError:
            raise
        except OSError as error:
            raise SurveyError(
                "A survey writes its results into a folder.",
                got=f"{type(error).__name__} at {self.path}",
                do="Name a folder that can be written to with --out.",
            ) from error
        for name, value in identity.items():
            if known.get(name) != value:
                raise SurveyError(
                    f"A folder holds one survey ({_short(name, known.get(name))} in {self.path}).",
                    got=_short(name, value),
                    do="Name another folder with --out; what is in this one is kept.",
                )

    def _identity(self) -> dict[str, Any] | None:
        path = self.path / IDENTITY
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise SurveyError(
                f"{IDENTITY} in the folder of a survey says what it is a survey of.",
                got=f"something else in {path}",
                do="Name another folder with --out.",
            )
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The folder for one run alone, where the system has locks; they end with the process."""
        try:
            import fcntl
        except ImportError:  # no such thing on Windows
            yield
            return
        with (self.checkpoint / ".lock").open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise SurveyError(
                    "One survey at a time runs in a folder.",
                    got=f"another one under way in {self.path}",
                    do="Wait for it, or name another folder with --out.",
                ) from error
            except OSError:
                pass  # a file system without locks
            yield

    # ---- checkpoints -------------------------------------------------------------------------------

    def save_part(self, progress: Progress, found: Accumulators) -> None:
        """Write what one process has found and how far it has come, together."""
        self._save(f"part-{progress.own}", found, asdict(progress))

    def save_state(self, position: Position, found: Accumulators) -> None:
        """Write what all have found."""
        self._save("state", found, asdict(position))

    def load_state(self) -> tuple[Position, Accumulators | None]:
        """What earlier runs found; nothing, in a new folder."""
        loaded = self._load(self.checkpoint / "state.safetensors")
        return (Position(), None) if loaded is None else (Position(**loaded[0]), loaded[1])

    def parts(self, generation: int) -> Iterator[tuple[Progress, Accumulators]]:
        """The parts that build on the state."""
        for path in sorted(self.checkpoint.glob("part-*.safetensors")):
            loaded = self._load(path)
            if loaded is not None and loaded[0]["generation"] == generation:
                yield Progress(**loaded[0]), loaded[1]

    def drop_parts(self) -> None:
        """Take away parts, which are in the state by now, and failures of older generations."""
        kept = self.failures(self.load_state()[0].generation)
        for path in [*self.checkpoint.glob("part-*"), *self.checkpoint.glob("failed-*.jsonl")]:
            if path != kept:
                path.unlink()

    def failures(self, generation: int) -> Path:
        """The file of failures that belongs to a state."""
        return self.checkpoint / f"failed-{generation}.jsonl"

    def own_failures(self, own: int) -> Path:
        """The file of failures of one process."""
        return self.checkpoint / f"part-{own}.failed.jsonl"

    def _save(self, name: str, found: Accumulators, facts: dict[str, Any]) -> None:
        whole = {key: tensor.contiguous() for key, tensor in found.tensors().items()}
        contents = save(whole, metadata={"facts": json.dumps(facts)})
        replace_file(self.checkpoint / f"{name}.safetensors", contents)

    def _load(self, path: Path) -> tuple[dict[str, Any], Accumulators] | None:
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="pt") as file:
                facts = json.loads((file.metadata() or {})["facts"])
                return facts, Accumulators.from_tensors({n: file.get_tensor(n) for n in list(file.keys())})
        except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
            raise SurveyError(
                "A checkpoint is as the survey wrote it.",
                got=f"{type(error).__name__} in {path}",
                do="Name another folder with --out and begin anew.",
            ) from error


def consolidate(folder: Folder, heads: int) -> tuple[Position, Accumulators]:
    """Add the parts of a run that ended early to the state, and say where to go on."""
    position, found = folder.load_state()
    found = Accumulators.blank(heads) if found is None else found
    parts = list(folder.parts(position.generation))
    if not parts:
        return position, found
    before = set(position.done)
    furthest = max(progress.upto for progress, _ in parts)
    # Every process of the run has a part, unless it ended before its first batch: then nothing is sure.
    whole = len(parts) == parts[0][0].count
    slowest = min((progress for progress, _ in parts), key=lambda progress: progress.first)
    stretch, first = (slowest.stretch, slowest.first) if whole else (position.stretch, position.first)
    done = {batch for batch in before if batch >= first}
    for progress, more in parts:
        done |= {batch for batch in range(first, furthest) if progress.did(batch, before)}
        found.merge(more)
    after = Position(
        generation=position.generation + 1,
        stretch=stretch,
        first=first,
        done=sorted(done),
        seconds=position.seconds + max(progress.seconds for progress, _ in parts),
    )
    sources = [(folder.failures(position.generation), position.failed_bytes)]
    sources += [(folder.own_failures(progress.own), progress.failed_bytes) for progress, _ in parts]
    close_generation(folder, after, found, sources)
    return after, found


def close_generation(
    folder: Folder, after: Position, found: Accumulators, failures: Iterable[tuple[Path, int]]
) -> None:
    """Write the next state with the failures that belong to it, then take away what it is made of."""
    written = b"".join(path.read_bytes()[:size] for path, size in failures if size)
    replace_file(folder.failures(after.generation), written)
    after.failed_bytes = len(written)
    folder.save_state(after, found)
    folder.drop_parts()


class Notes:
    """The failures of one process, appended to its file and made sure of at every checkpoint."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with atomic.explained(path):
            self._file = path.open("wb")

    def add(self, failures: Iterable[Failure]) -> int:
        """Write them down; how many they were."""
        count = 0
        for failure in failures:
            count += 1
            with atomic.explained(self._path):
                self._file.write(json.dumps(failure._asdict(), ensure_ascii=False).encode() + b"\n")
        return count

    def sure(self) -> int:
        """Bring them to the disk; how many bytes there are."""
        with atomic.explained(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """No more."""
        self._file.close()


def replace_file(path: Path, contents: bytes) -> None:
    """Replace a file by these contents, at once or not at all."""
    atomic.write_bytes(path, contents)


def _short(name: str, value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{name} = {text if len(text) <= 60 else text[:57] + '…'}"
