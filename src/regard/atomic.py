"""Writing files so that nothing is ever lost: under another name, renamed when whole.

Whatever goes wrong, the file that was there before stays as it was, nothing is left beside it, and
the user gets one clear error that names the file and the reason.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import FileError


@contextmanager
def replaced(path: str | Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write into; it takes the place of ``path`` when the block ends.

    Missing folders are made. If the block raises, or the disk is full or read-only, ``path`` is untouched.

    >>> file = getfixture("tmp_path") / "new folder" / "x.txt"
    >>> with replaced(file) as part:
    ...     _ = part.write_text("whole")
    >>> file.read_text()
    'whole'
    """
    path = Path(path)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", suffix=".part", dir=path.parent)
        os.close(handle)
        part = Path(name)
        try:
            yield part
            _to_disk(part)
            part.chmod(0o666 & ~_umask())
            part.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise


def write_bytes(path: str | Path, contents: bytes) -> None:
    """Replace a file by these bytes, at once or not at all."""
    with replaced(path) as part:
        part.write_bytes(contents)


def write_text(path: str | Path, text: str) -> None:
    """Replace a file by this text in UTF-8, line ends as they are, at once or not at all."""
    write_bytes(path, text.encode("utf-8"))


def append_text(path: str | Path, text: str) -> None:
    """Add text in UTF-8 to the end of a file and wait until it is on the disk.

    On a full disk a part of it may be there: whoever reads such a file must know how much of it counts.
    """
    path = Path(path)
    with explained(path), path.open("ab") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())


def drop_leftovers(folder: str | Path) -> None:
    """Remove what killed processes left half written in a folder; for one that nobody else writes into."""
    for part in Path(folder).glob(".*.part"):
        with contextlib.suppress(OSError):
            part.unlink()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what the system says of a file that cannot be written into one clear error."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            f"{path} must be writable.",
            got=error.strerror or type(error).__name__,
            do="Free some space or choose another place; what was there before is unchanged.",
        ) from error


def _to_disk(part: Path) -> None:
    """Wait until the contents are on the disk, so that a rename never precedes them."""
    with part.open("rb+") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    """The permissions that new files do not get; a temporary file has fewer than others."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
