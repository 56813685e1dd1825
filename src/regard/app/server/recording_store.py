"""The recordings that can be shown: those given at the start, and those of typed texts.

A typed text has an id that cannot be guessed, so that nobody sees the text of another user. Typed texts are
kept up to a number of bytes; the least recently used goes first.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import RecordingFileError, RegardError
from regard.views.html import visible_text
from regard.views.map import ByteCache

if TYPE_CHECKING:
    from regard.recording import Call, Recording
    from regard.views.page.display_tokens import SideTokens


@dataclass(frozen=True, eq=False)
class StoredRecording:
    """One sequence of a recording."""

    id: str
    title: str
    recording: Recording
    batch: int = 0
    words: str = field(default_factory=lambda: secrets.token_hex(8))  # differs after every start

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The calls of the recording."""
        return self.recording.calls

    @cached_property
    def _sides(self) -> tuple[list[SideTokens], list[tuple[int, int]]]:
        """The distinct texts, and for each call the indices of the texts of its rows and columns."""
        from regard.views.page.display_tokens import numbered, text_of

        texts: list[SideTokens] = []
        places: dict[object, int] = {}

        def place(tokens: list[str] | None, count: int) -> int:
            key = count if tokens is None else tuple(tokens)
            if key not in places:
                places[key] = len(texts)
                texts.append(numbered(count) if tokens is None else text_of(tokens))
            return places[key]

        numbers = [
            (
                place(self.recording.row_tokens(call, self.batch), call.queries),
                place(self.recording.key_tokens(call, self.batch), call.keys),
            )
            for call in self.calls
        ]
        return texts, numbers

    def key_text(self, call: int) -> SideTokens:
        """The tokens of the columns of a call."""
        texts, numbers = self._sides
        return texts[numbers[call][1]]

    def described(self) -> dict[str, Any]:
        """Everything but the numbers and the tokens."""
        from regard.views.page.page_payload import call_identity
        from regard.views.page.page_quantities import quantities_of

        _, numbers = self._sides
        return {
            "id": self.id,
            "title": self.title,
            "model": self.recording.model,
            "what": quantities_of(self.calls),
            "calls": [
                {
                    "index": index,
                    **call_identity(call),
                    "dense": call.dense,
                    "weights": call.has_weights,
                    "queryText": rows,
                    "keyText": columns,
                }
                for index, (call, (rows, columns)) in enumerate(zip(self.calls, numbers))
            ],
        }

    def texts(self) -> list[dict[str, Any]]:
        """The tokens of every text, as they are displayed."""
        return [
            {
                "tokens": list(text.tokens),
                "special": [i for i, is_one in enumerate(text.special) if is_one],
                "spaces": "".join("01"[space] for space in text.spaces),
            }
            for text in self._sides[0]
        ]

    def brief(self) -> dict[str, Any]:
        """An entry in the list of recordings."""
        longest = max((call.keys for call in self.calls), default=0)
        return {"id": self.id, "title": self.title, "model": self.recording.model, "tokens": longest}


class RecordingStore:
    """All recordings, by id."""

    def __init__(self, limit: int, keep: Path | None = None) -> None:
        self.given: dict[str, StoredRecording] = {}
        self._typed: ByteCache[StoredRecording] = ByteCache(limit, lambda entry: entry.recording.nbytes)
        self._lock = threading.Lock()
        self.keep = keep

    def give(self, path: Path, recording: Recording) -> list[StoredRecording]:
        """Add a recording named at the start, one entry for each of its sequences."""
        batch = max((call.batch for call in recording.calls), default=1)
        found = []
        for at in range(batch):
            name = visible_text(path.stem)
            title = name if batch == 1 else f"{name} · {at + 1}"
            entry = StoredRecording(_free(_slug(title), self.given), title, recording, at)
            self.given[entry.id] = entry
            found.append(entry)
        return found

    def offer_kept(self, known: Set[Path]) -> list[tuple[Path, RegardError]]:
        """Add the recordings in the folder to keep, newest first; returns those that failed, and why.

        Only as many as fit into the memory for typed texts: the folder may have grown over years.
        """
        from regard.recording import load

        skipped: list[tuple[Path, RegardError]] = []
        room = self._typed.limit
        for file in sorted(self.keep.glob("*.safetensors") if self.keep else [], reverse=True):
            if file.resolve() in known:
                continue
            try:
                if file.stat().st_size > room:
                    raise RecordingFileError(
                        "This server offers at most {limit:.1f} GB of kept recordings.",
                        do="Pass it with --recording.",
                        limit=self._typed.limit / 1000000000.0,
                    )
                recording = load(file)
                if not recording.calls:
                    raise RecordingFileError("A recording needs at least one call to be shown.", got="none")
                room -= recording.nbytes
                self.give(file, recording)
            except RegardError as error:
                skipped.append((file, error))
            except Exception as error:  # noqa: BLE001 - one bad file must not keep the server from starting
                skipped.append(
                    (
                        file,
                        RecordingFileError(
                            "Check that it is a recording.", got="{type}", type=type(error).__name__
                        ),
                    )
                )
        return skipped

    def add(self, title: str, recording: Recording) -> StoredRecording:
        """Add the recording of a typed text."""
        entry = StoredRecording(f"t-{secrets.token_urlsafe(12)}", title, recording)
        self._typed.put(entry.id, entry)
        return entry

    def get(self, name: str) -> StoredRecording | None:
        """An entry by its id."""
        return self.given.get(name) or self._typed.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self.given or name in self._typed

    @property
    def nbytes(self) -> int:
        """The bytes of typed texts."""
        return self._typed.nbytes

    def save(self, entry: StoredRecording) -> None:
        """Write a recording into the folder to keep, if there is one, atomically."""
        if self.keep is None:
            return
        # One at a time: two in the same second must not choose the same name.
        with self._lock:
            stamp = time.strftime("%Y%m%d-%H%M%S")
            taken = {file.stem for file in self.keep.glob("*.safetensors")}
            entry.recording.save(self.keep / f"{_free(f'{stamp}-{_slug(entry.title)}', taken)}.safetensors")


def title_of(text: str) -> str:
    """The beginning of a text as one line.

    >>> title_of("  The cat\\nsat. ")
    'The cat sat.'
    """
    line = " ".join(text[:400].split())
    return line if len(line) <= 72 else f"{line[:70].rstrip()} …"


def remove_parts(folder: Path) -> None:
    """Remove the temporary files of a server that was killed."""
    for part in folder.glob(".*.safetensors.*.part"):
        part.unlink(missing_ok=True)


def _slug(title: str) -> str:
    """A name that can be part of a URL.

    >>> _slug("My text · 2"), _slug("猫")
    ('My-text-2', 'recording')
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", title).strip("-.")[:60] or "recording"


def _free(name: str, taken: Iterable[str] | Sequence[str]) -> str:
    """The name, with a number if it is taken."""
    known = set(taken)
    return next(
        candidate
        for candidate in (name, *(f"{name}-{number}" for number in range(2, len(known) + 3)))
        if candidate not in known
    )
