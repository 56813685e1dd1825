"""What the jobs do: read a text, map a head, write a page, summarise all heads; and the caches of results."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from regard.app.server.api_types import ReadingRequest
from regard.app.server.assets import page_of
from regard.app.server.jobs import Jobs, ProgressReporter, Subscription, log
from regard.app.server.limits import Limits
from regard.app.server.recording_store import RecordingStore, StoredRecording, title_of
from regard.app.server.served_models import ServedModel
from regard.errors import ArgumentError, RecordingError
from regard.views.map import ByteCache, HeadMatrix, Levels, build, hidden_keys
from regard.views.map.levels import base_level

if TYPE_CHECKING:
    from regard.recording import Call
    from regard.views.page.head_summaries import CallSummary, RoleSummary

WHOLE_PAGE = 24_000_000
"""Bytes up to which a page has the numbers of all calls; larger recordings have a page for each call."""

PICTURE_SHARE = 0.5
"""The share of the time of a summary that statistics and pictures take; the rest is for roles."""


@dataclass(eq=False)
class HeadSummaries:
    """Pictures and statistics of the heads of a recording, as far as they are known."""

    calls: int
    nbytes: int
    ready: list[CallSummary] = field(default_factory=list)  # in the order in which they were made
    roles: RoleSummary | None = None

    def described(self, first: int) -> dict[str, Any]:
        """The summaries that were made after the ``first`` ones, and the roles once they are known."""
        return {
            "calls": self.calls,
            "summaries": [summary.described() for summary in self.ready[first:]],
            "roles": None if self.roles is None else self.roles.roles,
            "cards": None if self.roles is None else self.roles.cards,
        }


class ServerState:
    """The models, recordings and jobs of one server, and their results."""

    def __init__(
        self, models: list[ServedModel], library: RecordingStore, limits: Limits, lang: str | None = None
    ) -> None:
        self.models = {model.id: model for model in models}
        self.library = library
        self.limits = limits
        self.lang = lang  # the initial language of pages; None leaves it to the browser
        self.jobs = Jobs(limits)
        self.matrices: ByteCache[HeadMatrix] = ByteCache(limits.matrix_bytes, lambda matrix: matrix.nbytes)
        self.levels: ByteCache[Levels] = ByteCache(limits.level_bytes, lambda levels: levels.nbytes)
        self.pages: ByteCache[bytes] = ByteCache(limits.page_bytes, len)
        self.summaries: ByteCache[HeadSummaries] = ByteCache(limits.summary_bytes, lambda one: one.nbytes)
        self._lock = threading.Lock()

    # ---- reading ---------------------------------------------------------------------------------

    def read(self, model: ServedModel, request: ReadingRequest, client: str = "") -> Subscription:
        """Read a text; the result names the recording."""

        def work(report: ProgressReporter) -> dict[str, Any]:
            recording = model.read(request, self.limits, report)
            entry = self.library.add(title_of(request.text), recording)
            self._forget()
            kept = self._save(entry, report)
            # The user asked to keep recordings, and should know that this one is not kept.
            unsaved = not kept and self.library.keep is not None
            return {"recording": entry.id, "title": entry.title, "kept": kept, "unsaved": unsaved}

        return self.jobs.submit("reading", work, client=client)

    def _forget(self) -> None:
        """Drop the results of recordings that were evicted; they would keep them in memory."""
        for kept in (self.matrices, self.levels, self.pages, self.summaries):
            kept.drop(lambda place: place[0] not in self.library)

    def _save(self, entry: StoredRecording, report: ProgressReporter) -> bool:
        """Whether it is on disk now; a recording that cannot be saved can still be shown."""
        if self.library.keep is None:
            return False
        report(0.0, "saving")
        try:
            self.library.save(entry)
        except Exception as error:  # noqa: BLE001 - whatever it is, the reading itself has succeeded
            log.warning("a recording could not be saved: %s", error)
            return False
        return True

    # ---- maps ------------------------------------------------------------------------------------

    def matrix(
        self, entry: StoredRecording, call: int, head: int, sinks: str, what: str = "weight"
    ) -> HeadMatrix:
        """A head prepared for tiles."""
        place = (entry.id, call, head, sinks, what)
        found = self.matrices.get(place)
        if found is None:
            keys = entry.calls[call].keys
            # Finding the special tokens of a long text takes a moment.
            hidden = hidden_keys(
                sinks, entry.key_text(call).special if sinks == "special" else [False] * keys
            )
            # One at a time, so that two tiles of one head share the matrix and its caches.
            with self._lock:
                found = self.matrices.get(place)
                if found is None:
                    found = HeadMatrix(
                        entry.calls[call], head, entry.batch, hidden if hidden.any() else None, what
                    )
                    self.matrices.put(place, found)
        return found

    def needs_levels(self, matrix: HeadMatrix, level: int) -> bool:
        """Whether a level needs a pass over the whole head."""
        return level >= base_level(matrix)

    def build(
        self,
        entry: StoredRecording,
        call: int,
        head: int,
        sinks: str,
        client: str = "",
        *,
        what: str = "weight",
    ) -> Subscription | None:
        """Build the levels and margins of a head; None if they exist."""
        place = (entry.id, call, head, sinks, what)
        if self.levels.get(place) is not None:
            return None
        matrix = self.matrix(entry, call, head, sinks, what)

        def work(report: ProgressReporter) -> dict[str, Any]:
            self.levels.put(place, build(matrix, lambda share: report(share)))
            return {"recording": entry.id, "call": call, "head": head, "sinks": sinks, "what": what}

        return self.jobs.submit("mapping", work, key=("map", *place), client=client)

    # ---- pages -----------------------------------------------------------------------------------

    def write_page(self, entry: StoredRecording, call: int | None, client: str = "") -> Subscription | None:
        """Write the page of a recording, or of one of its calls; None if it exists."""
        if self.pages.get((entry.id, call)) is not None:
            return None
        self.check_page(entry, call)

        def work(report: ProgressReporter) -> dict[str, Any]:
            from regard.views.page.page_payload import payload_of, payload_of_call

            if call is None:
                calls = _CallsWithProgress(list(entry.calls), report)
                payload = payload_of(entry.recording, calls, batch=entry.batch, title=entry.title)
            else:
                payload = payload_of_call(entry.recording, call, batch=entry.batch, title=entry.title)
            self.pages.put((entry.id, call), page_of(payload, self.lang))
            return {"recording": entry.id, "call": call}

        return self.jobs.submit("writing", work, key=("page", entry.id, call), client=client)

    def summary(self, entry: StoredRecording) -> HeadSummaries:
        """What is known of all heads of a recording."""
        with self._lock:
            found = self.summaries.get((entry.id,))
            if found is None:
                from regard.views.page.head_summaries import summaries_bytes

                found = HeadSummaries(len(entry.calls), summaries_bytes(entry.calls))
                self.summaries.put((entry.id,), found)
        return found

    def summarise(self, entry: StoredRecording, call: int, client: str = "") -> Subscription | None:
        """Make what is missing of the pictures, statistics and roles of all heads, beginning with a call."""
        found = self.summary(entry)
        if found.roles is not None:
            return None

        def work(report: ProgressReporter) -> dict[str, Any]:
            from regard.views.page.head_summaries import call_summaries, role_summary

            made = {summary.call for summary in found.ready}
            order = [*range(call, found.calls), *range(call)]
            missing = [place for place in order if place not in made]
            for summary in call_summaries(entry.recording, entry.batch, places=missing):
                found.ready.append(summary)
                report(PICTURE_SHARE * len(found.ready) / found.calls)

            def progress(done: int, calls: int) -> None:
                report(PICTURE_SHARE + (1 - PICTURE_SHARE) * done / calls)

            found.roles = role_summary(entry.recording, entry.batch, progress)
            return {"recording": entry.id, "calls": found.calls}

        return self.jobs.submit("summarising", work, key=("summary", entry.id), client=client)

    def check_page(self, entry: StoredRecording, call: int | None) -> None:
        """Raise if a page would be too large or is not possible."""
        from regard.views.page.write_page import LARGEST

        chosen = entry.calls if call is None else entry.calls[call : call + 1]
        if not chosen or not all(one.has_weights for one in chosen):
            raise RecordingError(
                "A page needs Q and K.", got="statistics only", do="Record without statistics=True."
            )
        most = WHOLE_PAGE if call is None else LARGEST
        size = _page_bytes(chosen)
        if size > most:
            raise ArgumentError(
                "A page of all calls can have at most {most:.0f} MB."
                if call is None
                else "A page of one call can have at most {most:.0f} MB.",
                got="about {size:.0f} MB",
                do="Choose one call." if call is None else "Open the map, which has no such limit.",
                most=most / 1000000.0,
                size=size / 1000000.0,
            )

    def whole(self, entry: StoredRecording) -> bool:
        """Whether one page shows all calls."""
        return _page_bytes(entry.calls) <= WHOLE_PAGE


def _page_bytes(calls: Sequence[Call]) -> int:
    from regard.recording import Recording
    from regard.views.page import estimate_page

    return estimate_page(Recording("", calls)).nbytes


class _CallsWithProgress(list["Call"]):
    """Calls that report the progress of an iteration over them, which can also stop it."""

    def __init__(self, calls: list[Call], report: ProgressReporter) -> None:
        super().__init__(calls)
        self._report = report

    def __iter__(self) -> Iterator[Call]:
        for at in range(len(self)):
            self._report(at / len(self))
            yield self[at]
