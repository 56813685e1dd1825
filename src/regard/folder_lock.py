"""A folder for one run at a time: a lock that ends with the process, however that ends."""

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
"""What systems say of a lock that another process has; anything else means that there are no locks here."""


@contextmanager
def locked(folder: Path, *, busy: RegardError) -> Iterator[None]:
    """Hold the folder, or raise ``busy`` if another run holds it.

    Some network file systems have no locks. There the run goes on without one: to refuse would make
    the folder useless, and two runs in it at once are a mistake that locks merely catch.

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
        # To append, so that neither contents nor time of the file change.
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
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # one byte, which need not be there

else:

    def _lock(file: IO[bytes]) -> None:
        try:
            import fcntl
        except ImportError:  # Python without it, as in a browser
            return
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
