"""A lock on a folder, for one run at a time; it is released when the process ends, however it ends."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from regard import atomic
from regard.errors import RegardError

FILE = ".lock"

BUSY = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK}
"""The errors for a lock that another process holds; any other error means that locks are not supported."""


@contextmanager
def locked(folder: Path, *, busy: RegardError) -> Iterator[None]:
    """Lock the folder, or raise ``busy`` if another run has locked it.

    Some network file systems have no locks. There the run continues without one: refusing would make
    the folder useless, and the lock only protects against a mistake.

    >>> from regard.errors import SurveyError
    >>> folder = getfixture("tmp_path")
    >>> with locked(folder, busy=SurveyError("One at a time.")):
    ...     with locked(folder, busy=SurveyError("One at a time.")):
    ...         pass
    Traceback (most recent call last):
    regard.errors.SurveyError: One at a time.
    """
    path = folder / FILE
    with atomic.explained(path):
        # Opened to append, so that neither the contents nor the time of the file change.
        file = path.open("ab")
    with file:
        try:
            _lock(file)
        except OSError as error:
            if error.errno in BUSY:
                raise busy from error
        yield


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # one byte, which need not exist

else:

    def _lock(file: IO[bytes]) -> None:
        try:
            import fcntl
        except ImportError:  # a Python without it, as in a browser
            return
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
