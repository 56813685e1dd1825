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
    def interrupted():
        with atomic.replaced(tmp_path / "x") as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="must be writable"):
        atomic.write_text(tmp_path / "file" / "x.txt", "")


def test_the_error_is_an_oserror():
    assert issubclass(FileError, OSError)
    assert str(FileError("a.", got="b", do="c.")) == "a. Got b. c."


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x.txt").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "there" / "x.txt")
    (tmp_path / "nowhere").symlink_to(tmp_path / "there" / "new.txt")
    atomic.write_text(tmp_path / "link", "after")
    atomic.write_text(tmp_path / "nowhere", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "x.txt").read_text() == "after"
    assert (tmp_path / "there" / "new.txt").read_text() == "new"
    assert sorted(file.name for file in (tmp_path / "there").iterdir()) == ["new.txt", "x.txt"]


@pytest.mark.skipif(os.name != "posix", reason="rights of files are those of POSIX systems")
def test_a_file_that_was_closed_to_others_stays_so(tmp_path):
    (tmp_path / "x").write_text("")
    (tmp_path / "x").chmod(0o600)
    atomic.write_text(tmp_path / "x", "secret")
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["x" * 255, "猫" * 85, "x" * 250 + ".html"])
def test_long_names(name, tmp_path):
    atomic.write_text(tmp_path / name, "long")
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["x" * 256, "a\0b", "folder"])
def test_names_that_cannot_be(name, tmp_path):
    (tmp_path / "folder").mkdir()
    for write in (lambda path: atomic.write_text(path, ""), atomic.check_writable):
        if write is atomic.check_writable and len(name) > 255:
            continue  # found out in the end
        with pytest.raises(FileError, match="must be writable"):
            write(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_the_error_names_what_the_system_did_not_say(tmp_path):
    with pytest.raises(FileError, match="Got out of something"), atomic.explained(tmp_path / "x"):
        raise OSError("out of something")
