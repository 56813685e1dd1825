"""Large, independent tasks in parallel, with torch at one thread inside each.

Torch splits every operation among its threads and waits for all of them before the next one begins. On
a busy machine one of them is often not running, so hundreds of small operations wait hundreds of
times. Here whole tasks run in parallel instead, and there is only one wait, at the end::

    def work():                        # runs with torch at one thread
        each(fill, range(rows))        # in parallel, on as many threads as torch has outside
        return result

    result = spread(work)

Short work runs in torch's own pool (``regard/openmp.py``), long work on threads of our own.

Results are in the order of the items, and tasks must not write to each other's memory, so nothing
depends on the number of threads. Torch's thread-local state (gradients on or off, inference mode,
autocast) is the same in the tasks as around ``spread``; the user's number of torch threads is unchanged.
With one thread, inside another ``spread``, and while torch transforms or traces the code, everything
simply runs in the calling thread.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar, cast

from regard.openmp import parallel_region

T = TypeVar("T")
R = TypeVar("R")

MIN_SPREAD_SIZE = 1 << 26
"""With fewer multiplications, a few milliseconds of work, threads cost more than they save."""

MAX_POOL_SIZE = 1 << 28
"""With fewer multiplications, some 20 milliseconds of work, torch's own pool does it: its threads spin for a
few milliseconds after each operation of a model, and ours would share the processors with them. Products of
matrices are a tenth slower there, so that large work runs on threads of our own."""

MOST_IDLE = 64
"""The most idle threads kept for reuse."""


def spread(work: Callable[[], R], size: int = MIN_SPREAD_SIZE) -> R:
    """Run ``work`` with torch at one thread; calls of ``each`` inside it run in parallel.

    ``size`` is the approximate number of multiplications; little work runs in the calling thread.

    >>> spread(lambda: each(lambda n: n * n, range(4)))
    [0, 1, 4, 9]
    """
    import torch

    count = torch.get_num_threads()
    shared = getattr(_here, "group", None) is not None
    if count == 1 or size < MIN_SPREAD_SIZE or shared or _inside() or not _can_spread():
        return work()
    region = parallel_region() if size < MAX_POOL_SIZE else None
    if region is not None:
        return _Pool(region, count).run(work)
    workers = _workers(count)
    if not workers:
        return work()
    group = _ThreadGroup(workers)
    try:
        return cast(R, group.run(work))
    finally:
        _release(group.members)


def each(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """``[work(item) for item in items]``, in parallel inside ``spread``.

    If one raises, no further item is started; of several errors, that of the first item is raised.
    """
    chosen = list(items)
    group: _ThreadGroup | _Pool | None = getattr(_here, "group", None)
    if group is None or len(chosen) < 2:
        return [work(item) for item in chosen]
    _here.group = None  # nested calls of each run in this thread
    try:
        return group.share(work, chosen)
    finally:
        _here.group = group


# ---- the threads -----------------------------------------------------------------------------

_here = threading.local()
_lock = threading.Lock()
_idle: list[_Worker] = []


class _Stopped(BaseException):
    """The thread that waits for the work was interrupted."""


class _Task:
    """A function to run in another thread, and its result or error."""

    def __init__(self, work: Callable[[], Any], state: _ThreadState) -> None:
        self._work, self._state = work, state
        self._done = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = self._state.run(self._work)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self._error = error
        finally:
            self._done.set()

    def wait(self) -> Any:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result


class _Worker(threading.Thread):
    """A thread in which torch uses one thread only."""

    def __init__(self) -> None:
        super().__init__(name="regard", daemon=True)
        self.tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self.ready = threading.Event()

    def run(self) -> None:
        import torch

        torch.get_num_threads()  # a thread inherits the number of the process on its first call
        torch.set_num_threads(1)
        _here.inside = True
        self.ready.set()
        while (task := self.tasks.get()) is not None:
            task.run()
            del task  # and everything that it refers to

    def give(self, work: Callable[[], Any], state: _ThreadState) -> _Task:
        task = _Task(work, state)
        self.tasks.put(task)
        return task


class _ThreadGroup:
    """The threads of one ``spread``: the first runs the work, the others help it with ``each``."""

    def __init__(self, members: list[_Worker]) -> None:
        self.members = members
        self.stopped = False

    def run(self, work: Callable[[], Any]) -> Any:
        def first() -> Any:
            _here.group = self
            try:
                return work()
            finally:
                _here.group = None

        task = self.members[0].give(first, _ThreadState())
        try:
            return task.wait()
        except BaseException:
            # Either the work raised or this thread was interrupted: no worker may continue to write.
            self.stopped = True
            task._done.wait()
            raise

    def share(self, work: Callable[[T], R], items: list[T]) -> list[R]:
        turns = _Turns(work, items, lambda: self.stopped)
        helpers = self.members[1 : len(items)]
        tasks = [helper.give(turns.take, _ThreadState()) for helper in helpers]
        turns.take()
        for task in tasks:
            task.wait()
        turns.check()
        if self.stopped:
            raise _Stopped
        return turns.results


class _Pool:
    """Torch's own threads: the calling one runs the work, and all of them share what ``each`` gives them."""

    def __init__(self, region: Callable[[Callable[[], None], int], None], count: int) -> None:
        self._region, self._count = region, count

    def run(self, work: Callable[[], R]) -> R:
        _here.group = self
        try:
            return work()
        finally:
            _here.group = None

    def share(self, work: Callable[[T], R], items: list[T]) -> list[R]:
        turns = _Turns(work, items, lambda: False)
        caller, states = threading.get_ident(), [_ThreadState() for _ in range(self._count)]

        def take() -> None:
            here = threading.get_ident() == caller
            inside, _here.inside = _inside(), True
            try:
                turns.take() if here else states.pop().run(turns.take)
            except BaseException as error:  # noqa: BLE001 - raised again below; nothing else may leave a region
                turns.fail(error)
            finally:
                _here.inside = inside

        self._region(take, min(self._count, len(items)))
        turns.check()
        return turns.results


class _Turns:
    """Items that several threads take in turns, and what came out."""

    def __init__(
        self, work: Callable[[Any], Any], items: Sequence[Any], is_stopped: Callable[[], bool]
    ) -> None:
        self._work, self._items, self._is_stopped = work, items, is_stopped
        self.results: list[Any] = [None] * len(items)
        self._errors: list[tuple[int, BaseException]] = []
        self._numbers = iter(range(len(items)))
        self._lock = threading.Lock()

    def take(self) -> None:
        """Work on one item after the other, until none is left or one has failed."""
        while not self._errors and not self._is_stopped():
            with self._lock:
                number = next(self._numbers, None)
            if number is None:
                return
            try:
                self.results[number] = self._work(self._items[number])
            except BaseException as error:  # noqa: BLE001 - raised again by check
                self._errors.append((number, error))

    def fail(self, error: BaseException) -> None:
        """Note an error that came between two items."""
        self._errors.append((len(self._items), error))

    def check(self) -> None:
        """Raise the error of the first item that failed."""
        if self._errors:
            raise min(self._errors, key=lambda one: one[0])[1]


def _inside() -> bool:
    """Whether this is one of our own threads."""
    return getattr(_here, "inside", False)


def _workers(count: int) -> list[_Worker]:
    """``count`` threads for one ``spread``, which no other one uses.

    There may be fewer if the system has no more, or if Python is shutting down.
    """
    with _lock:
        taken = [_idle.pop() for _ in range(min(count, len(_idle)))]
        if len(taken) < count:
            taken += _new_workers(count - len(taken), count)
    return taken


def _new_workers(missing: int, count: int) -> list[_Worker]:
    import torch

    new: list[_Worker] = []
    with contextlib.suppress(RuntimeError):
        for _ in range(missing):
            worker = _Worker()
            worker.start()
            new.append(worker)
    for worker in new:
        worker.ready.wait()
    # A thread's setting is its own, but later threads inherit it.
    torch.set_num_threads(count)
    return new


def _release(workers: list[_Worker]) -> None:
    with _lock:
        for worker in workers:
            if len(_idle) < MOST_IDLE:
                _idle.append(worker)
            else:
                worker.tasks.put(None)


def _forget() -> None:
    """Reset in a forked process: its threads are gone, and one of them may have held the lock."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()
    _here.group = None
    _here.inside = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# ---- thread-local state of torch -------------------------------------------------------------


class _ThreadState:
    """The thread-local state of torch and Python in this thread, to restore in another."""

    def __init__(self) -> None:
        import torch

        self._context = contextvars.copy_context()
        self._gradients = torch.is_grad_enabled()
        self._inference = torch.is_inference_mode_enabled()
        self._autocast: torch.autocast | None = None
        if torch.is_autocast_enabled("cpu"):
            dtype, keeps = torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()
            self._autocast = torch.autocast("cpu", dtype=dtype, cache_enabled=keeps)

    def run(self, work: Callable[[], Any]) -> Any:
        with self._restored():
            return self._context.run(work)

    @contextlib.contextmanager
    def _restored(self) -> Iterator[None]:
        import torch

        with (
            torch.inference_mode(self._inference),
            torch.set_grad_enabled(self._gradients),
            self._autocast or contextlib.nullcontext(),
        ):
            yield


def _can_spread() -> bool:
    """Whether another thread would compute the same as this one."""
    import torch
    from torch.autograd import forward_ad

    return (
        _threads_are_their_own()
        and not torch.compiler.is_compiling()
        and torch._C._get_tracing_state() is None
        and not torch._C._len_torch_dispatch_stack()
        and torch._C._functorch.peek_interpreter_stack() is None
        and forward_ad._current_level < 0
        and all(map(_looks_at_whole_calls, _function_modes()))
    )


@cache
def _threads_are_their_own() -> bool:
    """Whether torch's number of threads is thread-local, as with OpenMP."""
    import torch

    return "ATen parallel backend: OpenMP" in torch.__config__.parallel_info()


def _function_modes() -> list[Any]:
    import torch
    from torch.overrides import _get_current_function_mode_stack

    return _get_current_function_mode_stack() if torch._C._len_torch_function_stack() else []


def _looks_at_whole_calls(mode: object) -> bool:
    """Whether a torch function mode ignores the functions inside a task.

    Such a mode sets ``sees_pieces = False``; ``regard.watch`` does, because it sees whole attention calls.
    """
    return getattr(mode, "sees_pieces", True) is False
