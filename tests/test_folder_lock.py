import errno

import pytest

from regard import folder_lock
from regard.errors import FileError, SurveyError
from regard.folder_lock import locked

BUSY = SurveyError("One at a time.")


def hold(folder):
    with locked(folder, busy=BUSY):
        pass


def test_one_at_a_time_and_then_the_next(tmp_path):
    with locked(tmp_path, busy=BUSY), pytest.raises(SurveyError, match="One at a time"):
        hold(tmp_path)
    hold(tmp_path)


def test_a_file_system_without_locks_is_no_reason_to_stop(tmp_path, monkeypatch):
    def without(_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(folder_lock, "_lock", without)
    with locked(tmp_path, busy=BUSY):
        hold(tmp_path)


@pytest.mark.parametrize("number", sorted(folder_lock.BUSY))
def test_what_systems_say_of_a_lock_that_is_held(tmp_path, monkeypatch, number):
    def held(_):
        raise OSError(number, "held")

    monkeypatch.setattr(folder_lock, "_lock", held)
    with pytest.raises(SurveyError, match="One at a time"):
        hold(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match=r"must be writable\. Got No such file"):
        hold(tmp_path / "none")


def test_what_the_block_raises_is_its_own(tmp_path):
    with pytest.raises(PermissionError, match="mine"), locked(tmp_path, busy=BUSY):
        raise PermissionError(errno.EACCES, "mine")
