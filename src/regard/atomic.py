"""Writing files so that nothing is ever lost: under another name, renamed when whole.

Whatever goes wrong, the file that was there before stays as it was, nothing is left beside it, and
the user gets one clear error that names the file and the reason. Missing folders are made.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import FileError

MAX_NAME_BYTES = 120
"""Bytes of a name that its temporary file repeats; file systems allow 255 in all."""


@contextmanager
def replaced(path: str | Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write into; it takes the place of ``path`` when the block ends.

    Missing folders are made. If the block raises, or the disk is full or read-only, ``path`` is untouched.
    A symbolic link stays one, and its target is replaced. Devices and pipes, such as ``/dev/stdout``,
    get the contents when they are whole.

    >>> file = getfixture("tmp_path") / "new folder" / "x.txt"
    >>> with replaced(file) as part:
    ...     _ = part.write_text("whole")
    >>> file.read_text()
    'whole'
    """
    path = Path(path)
    with explained(path):
        if _is_device(path):
            with _passed_on(path) as part:
                yield part
            return
        path = path.resolve() if path.is_symlink() else path
        path.parent.mkdir(parents=True, exist_ok=True)
        part = _new_part(path)
        try:
            rights = _rights(path if path.exists() else part)
            yield part
            _to_disk(part)
            part.chmod(rights)
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


def check_writable(*paths: str | Path | None) -> None:
    """Raise now, before anything is computed, if one of these files could not be written later.

    Nothing is left behind: folders that are missing are made when the file is written.

    >>> check_writable(getfixture("tmp_path") / "new folder" / "x.txt", None)
    >>> list(getfixture("tmp_path").iterdir())
    []
    """
    for path in (Path(path) for path in paths if path is not None):
        with explained(path):
            if _is_device(path):
                continue
            if path.is_dir():
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            target = path.resolve() if path.is_symlink() else path.absolute()
            folder = next(folder for folder in target.parents if folder.exists())
            _new_part(folder / target.name).unlink()


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
def explained(path: str | Path) -> Iterator[None]:
    """What the system refuses inside is said as one error: the file, the reason, what to do."""
    try:
        if "\0" in str(path):
            raise OSError(None, "a name with a NUL character")
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            f"{path} must be writable.",
            got=error.strerror or str(error) or type(error).__name__,
            do="Free some space or choose another place; what was there before is unchanged.",
        ) from error


def _new_part(path: Path) -> Path:
    """An empty file beside ``path`` that nobody else has."""
    name = os.fsencode(path.name)[:MAX_NAME_BYTES].decode("utf-8", "ignore")
    part = path.with_name(f".{name}.{secrets.token_hex(4)}.part")
    # Made here rather than by tempfile, whose files are closed to others.
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    return part


def _rights(path: Path) -> int:
    """Who may read and write a file: a file that was closed to others stays so when it is replaced."""
    return stat.S_IMODE(path.stat().st_mode)


def _to_disk(part: Path) -> None:
    """Wait until the contents are on the disk, so that a rename never precedes them."""
    with part.open("rb+") as file:
        os.fsync(file.fileno())


# ---- devices and pipes -----------------------------------------------------------------------------


def _is_device(path: Path) -> bool:
    """Whether this is something that takes bytes and is not a file: it cannot be replaced by one."""
    if path.absolute().parts[1:2] in (("dev",), ("proc",)):
        return path.exists()  # /dev/stdout may lead to a file, which another program is writing
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _passed_on(device: Path) -> Iterator[Path]:
    """A temporary file elsewhere, whose contents go to the device when they are whole."""
    handle, name = tempfile.mkstemp(suffix=".part")
    os.close(handle)
    try:
        yield Path(name)
        # Appended: where it leads to a file after all, what stands there is kept.
        with Path(name).open("rb") as whole, device.open("ab", buffering=0) as out:
            shutil.copyfileobj(whole, out)
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()
