"""A function on all threads of torch's own pool, where that is GNU OpenMP (Linux).

After each of its operations, a thread of the pool waits for the next one by spinning for some milliseconds.
Threads of our own would have to share the processors with it, in the middle of a model. So pieces of work run
in the pool itself, as one parallel region. Inside of it torch computes with one thread.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_process = os.getpid()


def parallel_region() -> Callable[[Callable[[], None], int], None] | None:
    """A function that runs another one once on each of some threads, the calling one among them.

    None where torch has another pool, and in a process that was forked: its pool has no threads any more.

    >>> region = parallel_region()
    >>> calls = []
    >>> if region is not None:
    ...     region(lambda: calls.append(1), 2)
    >>> len(calls) in (0, 1, 2)
    True
    """
    library = _gnu_openmp() if os.getpid() == _process else None
    if library is None:
        return None

    def region(work: Callable[[], None], threads: int) -> None:
        import torch

        def one(_: object) -> None:
            torch.get_num_threads()  # a thread gets the number of the process on its first call
            library.omp_set_num_threads(1)  # until the region ends
            work()

        library.GOMP_parallel(_Body(one), None, threads, 0)

    return region


@cache
def _gnu_openmp() -> ctypes.CDLL | None:
    """GNU OpenMP, as torch has loaded it."""
    import torch

    for path in sorted(Path(torch.__file__).parent.joinpath("lib").glob("libgomp*.so*")):
        try:
            library = ctypes.CDLL(str(path))
            library.GOMP_parallel.argtypes = [_Body, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
            library.GOMP_parallel.restype = library.omp_set_num_threads.restype = None
            library.omp_set_num_threads.argtypes = [ctypes.c_int]
        except (OSError, AttributeError):
            continue
        return library
    return None
