"""Atomic file writes: under a temporary name, renamed when complete.

Whatever goes wrong, the previous file is unchanged, no temporary file is left behind, and the user
gets one clear error that names the file and the reason. Missing folders are created.
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

from regard.errors import FileError, reason

MAX_NAME_BYTES = 120
"""How many bytes of a file's name its temporary file repeats; file systems allow 255 in total."""


@contextmanager
def replaced(path: str | Path) -> Iterator[Path]:
    """A temporary file next to ``path`` to write to; it replaces ``path`` when the block ends.

    Missing folders are created. If the block raises, or the disk is full or read-only, ``path`` is
    unchanged. A symbolic link stays one, and its target is replaced. Devices and pipes, such as
    ``/dev/stdout``, receive the contents when they are complete.

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
    """Replace a file with these bytes, entirely or not at all."""
    with replaced(path) as part:
        part.write_bytes(contents)


def write_text(path: str | Path, text: str) -> None:
    """Replace a file with this text in UTF-8, with unchanged line ends, entirely or not at all."""
    write_bytes(path, text.encode("utf-8"))


def check_writable(*paths: str | Path | None) -> None:
    """Raise now, before anything is computed, if one of these files could not be written later.

    Nothing is left behind: missing folders are created when the file is written.

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
    """Append text in UTF-8 to a file and wait until it is on disk.

    If the disk is full, part of the text may be written: readers must know how much of the file counts.
    """
    path = Path(path)
    with explained(path), path.open("ab") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())


def drop_leftovers(folder: str | Path) -> None:
    """Remove the temporary files of killed processes from a folder that no other process writes to."""
    for part in Path(folder).glob(".*.part"):
        with contextlib.suppress(OSError):
            part.unlink()


@contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """Turn an OSError of the block into one FileError: the file, the reason, what to do."""
    try:
        if "\0" in str(path):
            raise FileError(
                "{path} must be writable.",
                got="a name with a NUL character",
                do="Choose another name.",
                path=path,
            )
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            "{path} must be writable.",
            got="{reason}",
            do="Free some space or choose another place; existing files are unchanged.",
            path=path,
            reason=reason(error),
        ) from error


def _new_part(path: Path) -> Path:
    """A new empty file next to ``path``."""
    name = os.fsencode(path.name)[:MAX_NAME_BYTES].decode("utf-8", "ignore")
    part = path.with_name(f".{name}.{secrets.token_hex(4)}.part")
    # Not by tempfile, whose files only their owner can read.
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    return part


def _rights(path: Path) -> int:
    """The permissions of a file, which a replacement keeps."""
    return stat.S_IMODE(path.stat().st_mode)


def _to_disk(part: Path) -> None:
    """Wait until the contents are on disk, so that the rename never comes first."""
    with part.open("rb+") as file:
        os.fsync(file.fileno())


# ---- devices and pipes -----------------------------------------------------------------------------


def _is_device(path: Path) -> bool:
    """Whether this can be written to but is not a regular file, so it cannot be replaced."""
    if path.absolute().parts[1:2] in (("dev",), ("proc",)):
        return path.exists()  # /dev/stdout may be redirected to a file that another program writes to
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _passed_on(device: Path) -> Iterator[Path]:
    """A temporary file elsewhere, whose contents are sent to the device when they are complete."""
    handle, name = tempfile.mkstemp(suffix=".part")
    os.close(handle)
    try:
        yield Path(name)
        # Appended: if it is redirected to a file, the earlier contents are kept.
        with Path(name).open("rb") as whole, device.open("ab", buffering=0) as out:
            shutil.copyfileobj(whole, out)
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()
