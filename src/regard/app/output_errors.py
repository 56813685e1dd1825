"""Standard output and error of the command line: any encoding, a full disk, a reader that is gone.

Every problem with them gives one line, or nothing if nobody reads the output any longer; never a traceback.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from regard.errors import FileError, reason
from regard.printing import safe, tolerate_encodings

FULL = {errno.ENOSPC, errno.EIO, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""The errors that mean nothing more can be written."""


def show(text: str) -> None:
    """Print data on standard output: unchanged into files and pipes, made safe on a terminal."""
    import click

    # To the stream itself: click would choose another encoding if it is ASCII.
    seen = sys.stdout is not None and sys.stdout.isatty()
    click.echo(safe(text) if seen else text, file=sys.stdout, nl=False)


@contextmanager
def guarded(complain: Callable[[FileError], None]) -> Iterator[None]:
    """Let a command line write in any encoding, and flush its output before it ends."""
    tolerate_encodings()
    try:
        yield
    finally:
        try:
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()
        except OSError as error:
            explained = explain(error)
            if explained is not None:
                with contextlib.suppress(OSError):
                    complain(explained)
            raise SystemExit(1) from None


def explain(error: OSError) -> FileError | None:
    """The error of the system as one of regard; None if the reader of the output is gone."""
    if _reader_has_gone(error):
        _abandon(sys.stdout)
        return None
    if error.filename is None and error.errno in FULL:
        _abandon(sys.stdout)
        return FileError(
            "The output of a command must be writable.",
            got="{reason}",
            do="Free some space, or write the output elsewhere.",
            reason=reason(error),
        )
    return FileError(
        "Files and folders must exist and be accessible.",
        got="{reason}" if error.filename is None else "{reason}: {path}",
        do="Correct the path or its permissions.",
        reason=reason(error),
        path=error.filename,
    )


def _reader_has_gone(error: OSError) -> bool:
    unnamed = error.filename is None
    return isinstance(error, BrokenPipeError) or (
        sys.platform == "win32" and unnamed and error.errno == errno.EINVAL  # what Windows raises for it
    )


def _abandon(stream: TextIO | None) -> None:
    """Redirect a stream to nowhere: Python would try to flush it at exit, and complain."""
    if stream is None:
        return
    with contextlib.suppress(OSError, ValueError):  # not every stream has a file descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
