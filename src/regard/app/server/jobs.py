"""Work that takes time: a queue with an end, threads that work it off, jobs that can be stopped.

Threads and not processes, because torch lets go of Python's lock inside its kernels, so that the
pages answer while a job computes; a model is in memory once; and a recording need not be copied to
where it is looked at. A thread cannot be killed, so work calls ``tell`` every few milliseconds of
its own, and that raises where the job was cancelled, took too long, or is asked about by nobody.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from regard.app.server.limits import Limits
from regard.app.server.refusing import RefusedError, in_language
from regard.errors import RegardError

State = Literal["waiting", "running", "done", "failed", "cancelled"]

KEPT_AFTER = 600.0
"""Seconds for which a job that has ended can be asked about."""

log = logging.getLogger("regard.serve")


class EndedError(RegardError):
    """Why a job ended without a result."""


class StoppedError(BaseException):
    """Ends the work of a job from inside; no ``except Exception`` on the way may swallow it."""


class Tell(Protocol):
    """How work says how far it is; ends the work by raising where it shall not go on."""

    def __call__(self, share: float, stage: str | None = None) -> None:
        """``share`` runs from 0 to 1 within a stage."""


Work = Callable[[Tell], dict[str, Any]]


@dataclass
class Job:
    """One piece of work and how far it is."""

    kind: str
    work: Work
    deadline: float
    key: Hashable = None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: State = "waiting"
    stage: str = "waiting"
    share: float = 0.0
    result: dict[str, Any] | None = None
    error: RegardError | None = None
    version: int = 0
    watchers: int = 0
    asked: float = field(default_factory=time.monotonic)
    ended: float | None = None
    stop: EndedError | None = None  # why it shall stop

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.ended is not None

    def left(self, patience: float) -> bool:
        """Whether nobody asks any more."""
        return self.watchers == 0 and time.monotonic() - self.asked > patience

    def described(self, lang: str = "en") -> dict[str, Any]:
        """What a client hears."""
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "stage": self.stage,
            "share": round(self.share, 4),
            "version": self.version,
            "result": self.result,
            "error": None if self.error is None else in_language(self.error, lang),
        }


class Jobs:
    """The queue and its threads.

    >>> jobs = Jobs(Limits())
    >>> job = jobs.submit("adding", lambda tell: {"sum": 1 + 1})
    >>> while not job.over:
    ...     time.sleep(0.01)
    >>> job.state, job.result
    ('done', {'sum': 2})
    >>> jobs.close()
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._jobs: dict[str, Job] = {}
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, name=f"regard-job-{number}", daemon=True)
            for number in range(limits.workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, kind: str, work: Work, key: Hashable = None) -> Job:
        """Put work into the queue; a job with the same key that has not ended is joined."""
        with self._lock:
            self._tidy()
            open_jobs = [job for job in self._jobs.values() if not job.over]
            for job in open_jobs:
                if key is not None and job.key == key and job.stop is None:
                    job.asked = time.monotonic()
                    return job
            waiting = sum(job.state == "waiting" for job in open_jobs)
            if waiting >= self.limits.waiting:
                raise RefusedError(
                    429,
                    f"{waiting} jobs are waiting already.",
                    do="Please try again in a minute.",
                    headers={"retry-after": "30"},
                )
            job = Job(kind, work, time.monotonic() + self.limits.job_seconds, key)
            self._jobs[job.id] = job
        self._queue.put(job)
        return job

    def get(self, name: str) -> Job | None:
        """A job by its id; asking keeps it alive."""
        job = self._jobs.get(name)
        if job is not None:
            job.asked = time.monotonic()
        return job

    def cancel(self, job: Job) -> None:
        """Stop a job; one that waits ends at once, one that runs at its next step."""
        with self._lock:
            if job.over:
                return
            job.stop = job.stop or EndedError("Cancelled.")
            if job.state == "waiting":
                self._end(job, "cancelled", error=job.stop)

    def close(self) -> None:
        """Stop everything and wait a little for it."""
        for job in list(self._jobs.values()):
            self.cancel(job)
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout=5)

    # ---- in the threads --------------------------------------------------------------------------

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            with self._lock:
                if not job.over and job.left(self.limits.patience):
                    self._end(job, "cancelled", error=EndedError("Nobody asked for it any more."))
                if job.over:
                    continue
                job.state, job.stage, job.version = "running", job.kind, job.version + 1
                job.deadline = time.monotonic() + self.limits.job_seconds
            self._work(job)

    def _work(self, job: Job) -> None:
        def tell(share: float, stage: str | None = None) -> None:
            job.share = min(1.0, max(0.0, share))
            job.stage = stage or job.stage
            job.version += 1
            if job.stop is None and time.monotonic() > job.deadline:
                job.stop = EndedError(f"It took longer than {self.limits.job_seconds:g} seconds.")
            if job.stop is None and job.left(self.limits.patience):
                job.stop = EndedError("Nobody asked for it any more.")
            if job.stop is not None:
                raise StoppedError

        try:
            tell(0.0)
            result = job.work(tell)
        except StoppedError:
            self._finish(job, "cancelled", error=job.stop)
        except RegardError as error:
            # The error itself would hold on to everything that its work held.
            self._finish(job, "failed", error=EndedError(error.must, got=error.got, do=error.do))
        except Exception:
            # What else went wrong may name files of this machine: it is said here, not to the browser.
            log.exception("a job of kind %s failed", job.kind)
            went_wrong = EndedError("Something went wrong; the server's terminal says what.")
            self._finish(job, "failed", error=went_wrong)
        else:
            self._finish(job, "done", result=result)

    def _finish(self, job: Job, state: State, **outcome: Any) -> None:
        with self._lock:
            self._end(job, state, **outcome)

    def _end(
        self,
        job: Job,
        state: State,
        *,
        result: dict[str, Any] | None = None,
        error: RegardError | None = None,
    ) -> None:
        job.result, job.error, job.ended = result, error, time.monotonic()
        job.share = 1.0 if state == "done" else job.share
        job.work = _nothing  # what it held on to may be large
        job.state, job.version = state, job.version + 1

    def _tidy(self) -> None:
        """Forget old jobs, and let those go that wait for nobody."""
        now = time.monotonic()
        for job in list(self._jobs.values()):
            if job.state == "waiting" and job.left(self.limits.patience):
                self._end(job, "cancelled", error=EndedError("Nobody asked for it any more."))
            if job.ended is not None and now - job.ended > KEPT_AFTER:
                del self._jobs[job.id]


def _nothing(tell: Tell) -> dict[str, Any]:
    del tell
    return {}
