"""Work that takes time: a bounded queue, threads that process it, and jobs that can be stopped.

Threads rather than processes, because torch releases Python's lock inside its kernels, so that the server
responds while a job computes; a model is in memory only once; and a recording need not be copied to be
shown. A thread cannot be killed, so work calls ``report`` every few milliseconds, which raises if the job
was cancelled, took too long, or nobody is waiting for it.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from regard.app.server.limits import Limits
from regard.app.server.request_errors import RequestError
from regard.errors import RegardError

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]

KEPT_AFTER = 600.0
"""Seconds for which a finished job can be queried."""

MOST_KEPT = 1000
"""The most finished jobs that can be queried."""

MOST_SHARED = 64
"""The most requesters that share one job."""

log = logging.getLogger("regard.serve")


class JobEndedError(RegardError):
    """Why a job ended without a result."""


class JobStoppedError(BaseException):
    """Ends the work of a job from inside; not an Exception, so that nothing on the way catches it."""


class ProgressReporter(Protocol):
    """How work reports its progress; raises if the work should stop."""

    def __call__(self, share: float, stage: str | None = None) -> None:
        """``share`` goes from 0 to 1 within a stage."""


Work = Callable[[ProgressReporter], dict[str, Any]]


@dataclass
class Job:
    """One piece of work and its progress."""

    kind: str
    work: Work
    deadline: float
    client: str = ""  # whose limits it counts towards
    key: Hashable = None
    state: JobState = "waiting"
    stage: str = "waiting"
    share: float = 0.0
    result: dict[str, Any] | None = None
    error: RegardError | None = None
    version: int = 0
    ended: float | None = None
    stop: JobEndedError | None = None  # why it should stop
    subscriptions: list[Subscription] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.ended is not None

    def left(self, patience: float) -> bool:
        """Whether nobody is waiting for it any more."""
        return all(one.left(patience) for one in self.subscriptions)


@dataclass
class Subscription:
    """One requester's subscription to a job, with its own id.

    Several requesters can share one job for the same work. Cancelling ends only one's own subscription;
    the job stops when no subscription is left.
    """

    job: Job
    client: str = ""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    watchers: int = 0
    asked: float = field(default_factory=time.monotonic)
    cancelled: float | None = None  # when this requester left the job to the others

    @property
    def state(self) -> JobState:
        """The state of the job, as this requester sees it."""
        return "cancelled" if self.cancelled is not None else self.job.state

    @property
    def over(self) -> bool:
        """Whether it has ended, for this requester."""
        return self.cancelled is not None or self.job.over

    @property
    def error(self) -> RegardError | None:
        """Why it ended without a result."""
        return JobEndedError("Cancelled.") if self.cancelled is not None else self.job.error

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self.job.version + (self.cancelled is not None)

    @property
    def ended(self) -> float | None:
        """When it ended."""
        return self.job.ended if self.cancelled is None else self.cancelled

    def left(self, patience: float) -> bool:
        """Whether this requester has stopped asking."""
        if self.cancelled is not None:
            return True
        return self.watchers == 0 and time.monotonic() - self.asked > patience

    def described(self, lang: str = "en") -> dict[str, Any]:
        """The state of the job, as JSON for the requester."""
        error, job = self.error, self.job
        return {
            "id": self.id,
            "kind": job.kind,
            "state": self.state,
            "stage": job.stage,
            "share": round(job.share, 4),
            "version": self.version,
            "result": None if self.cancelled is not None else job.result,
            "error": None if error is None else error.in_words(lang),
        }


class Jobs:
    """The queue and its threads.

    >>> jobs = Jobs(Limits())
    >>> job = jobs.submit("adding", lambda report: {"sum": 1 + 1})
    >>> while not job.over:
    ...     time.sleep(0.01)
    >>> job.state, job.described()["result"]
    ('done', {'sum': 2})
    >>> jobs.close()
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._subscriptions: dict[str, Subscription] = {}
        self._open: list[Job] = []  # in order of arrival
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"regard-job-{number}", daemon=True)
            for number in range(limits.workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, kind: str, work: Work, key: Hashable = None, client: str = "") -> Subscription:
        """Put work into the queue, or join an unfinished job with the same key."""
        with self._changed:
            self._tidy()
            joined = (job for job in self._open if key is not None and job.key == key and job.stop is None)
            job = next(joined, None)
            if job is None:
                self._check_room(client)
                job = Job(kind, work, time.monotonic() + self.limits.job_seconds, client, key)
                self._open.append(job)
                self._changed.notify_all()
            if len(job.subscriptions) >= MOST_SHARED:
                raise RequestError(
                    429,
                    "{MOST_SHARED} requests are already waiting for this job.",
                    do="Please try again in a minute.",
                    headers={"retry-after": "30"},
                    MOST_SHARED=MOST_SHARED,
                )
            subscription = Subscription(job, client)
            job.subscriptions.append(subscription)
            self._subscriptions[subscription.id] = subscription
        return subscription

    def _check_room(self, client: str) -> None:
        if self._closed:
            raise RequestError(503, "The server is shutting down.", do="Start it again.")
        own = sum(job.client == client for job in self._open)
        if own >= self.limits.client_jobs:
            raise RequestError(
                429,
                "This client already has {own} unfinished jobs.",
                do="Please wait for one of them, or cancel it.",
                headers={"retry-after": "30"},
                own=own,
            )
        waiting = sum(job.state == "waiting" for job in self._open)
        if waiting >= self.limits.waiting:
            raise RequestError(
                429,
                "{waiting} jobs are already waiting.",
                do="Please try again in a minute.",
                headers={"retry-after": "30"},
                waiting=waiting,
            )

    def get(self, name: str) -> Subscription | None:
        """A subscription by its id; asking keeps its job alive."""
        found = self._subscriptions.get(name)
        if found is not None:
            found.asked = time.monotonic()
        return found

    def cancel(self, subscription: Subscription) -> None:
        """Cancel a subscription, and stop the job if it was the last one.

        A waiting job ends at once, a running one at its next step.
        """
        with self._changed:
            if subscription.over:
                return
            job = subscription.job
            others = [one for one in job.subscriptions if one is not subscription and one.cancelled is None]
            if others:
                subscription.cancelled = time.monotonic()
            else:
                self._stop(job)

    def stop(self) -> None:
        """Stop everything and accept nothing more, without waiting for running jobs."""
        with self._changed:
            self._closed = True
            for job in list(self._open):
                self._stop(job)
            self._changed.notify_all()

    def close(self) -> None:
        """Stop everything, and wait a little for running jobs."""
        self.stop()
        for thread in self._threads:
            thread.join(timeout=5)

    def _stop(self, job: Job) -> None:
        job.stop = job.stop or JobEndedError("Cancelled.")
        if job.state == "waiting":
            self._end(job, "cancelled", error=job.stop)

    # ---- in the threads --------------------------------------------------------------------------

    def _run(self) -> None:
        while (job := self._next()) is not None:
            self._work(job)

    def _next(self) -> Job | None:
        """Wait for a job that may run; None if there will be no more."""
        with self._changed:
            while not self._closed:
                self._drop_forgotten()
                job = self._choose()
                if job is not None:
                    job.state, job.stage, job.version = "running", job.kind, job.version + 1
                    job.deadline = time.monotonic() + self.limits.job_seconds
                    return job
                self._changed.wait()
        return None

    def _choose(self) -> Job | None:
        """The oldest job of the client with the fewest running jobs, if its limit allows one more."""
        running = Counter(job.client for job in self._open if job.state == "running")
        waiting = [job for job in self._open if job.state == "waiting"]
        best = min(waiting, key=lambda job: running[job.client], default=None)
        return best if best is not None and running[best.client] < self.limits.client_running else None

    def _work(self, job: Job) -> None:
        def report(share: float, stage: str | None = None) -> None:
            job.share = min(1.0, max(0.0, share))
            job.stage = stage or job.stage
            job.version += 1
            with self._changed:  # no one can join a job that is about to stop
                if job.stop is None and time.monotonic() > job.deadline:
                    job.stop = JobEndedError(
                        "The job took longer than {job_seconds:g} seconds.",
                        job_seconds=self.limits.job_seconds,
                    )
                if job.stop is None and job.left(self.limits.patience):
                    job.stop = JobEndedError("The job stopped because nobody was waiting for it.")
            if job.stop is not None:
                raise JobStoppedError

        try:
            report(0.0)
            result = job.work(report)
        except JobStoppedError:
            self._finish(job, "cancelled", error=job.stop)
        except RegardError as error:
            # Through its traceback the error would keep everything alive that the work used.
            self._finish(job, "failed", error=error.but())
        except Exception:
            # Other errors may name files of this machine, so they are logged, not sent to the browser.
            log.exception("a job of kind %s failed", job.kind)
            went_wrong = JobEndedError("Something went wrong; see the server's terminal for details.")
            self._finish(job, "failed", error=went_wrong)
        else:
            self._finish(job, "done", result=result)

    def _finish(self, job: Job, state: JobState, **outcome: Any) -> None:
        with self._changed:
            self._end(job, state, **outcome)
            self._changed.notify_all()

    def _end(
        self,
        job: Job,
        state: JobState,
        *,
        result: dict[str, Any] | None = None,
        error: RegardError | None = None,
    ) -> None:
        job.result, job.error, job.ended = result, error, time.monotonic()
        job.share = 1.0 if state == "done" else job.share
        job.work = _nothing  # what it refers to may be large
        job.state, job.version = state, job.version + 1
        self._open.remove(job)

    def _drop_forgotten(self) -> None:
        """Stop the jobs that nobody is waiting for."""
        for job in list(self._open):
            if job.state == "waiting" and job.left(self.limits.patience):
                self._end(
                    job,
                    "cancelled",
                    error=JobEndedError("The job stopped because nobody was waiting for it."),
                )

    def _tidy(self) -> None:
        """Forget old finished jobs, and stop those that nobody is waiting for."""
        self._drop_forgotten()
        now = time.monotonic()
        ended = [one for one in self._subscriptions.values() if one.ended is not None]
        for number, subscription in enumerate(ended):
            old = now - (subscription.ended or now) > KEPT_AFTER
            if old or number < len(ended) - MOST_KEPT:
                del self._subscriptions[subscription.id]
                subscription.job.subscriptions.remove(subscription)


def _nothing(report: ProgressReporter) -> dict[str, Any]:
    del report
    return {}
