import errno
import os
from pathlib import Path

import pytest

from regard import atomic
from regard.errors import FileError


def test_a_file_is_written_with_the_rights_of_new_files(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    atomic.write_text(tmp_path / "deep" / "er" / "x.txt", "line\r\nline\n")
    assert (tmp_path / "deep" / "er" / "x.txt").read_bytes() == b"line\r\nline\n"
    assert (tmp_path / "deep" / "er" / "x.txt").stat().st_mode == plain.stat().st_mode


def test_a_full_disk_keeps_what_was_there(tmp_path, monkeypatch):
    file = tmp_path / "x.txt"
    file.write_text("before")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(FileError, match=r"x\.txt must be writable\. Got No space left on device\. Free some"):
        atomic.write_text(file, "after")
    assert file.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.txt"]


def test_any_exception_leaves_no_part_behind(tmp_path):
    with pytest.raises(KeyboardInterrupt), atomic.replaced(tmp_path / "x") as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="must be writable"):
        atomic.write_text(tmp_path / "file" / "x.txt", "")


def test_the_error_is_an_oserror():
    assert issubclass(FileError, OSError)
    assert str(FileError("a.", got="b", do="c.")) == "a. Got b. c."
