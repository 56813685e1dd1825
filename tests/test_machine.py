"""Half precision is tried in a child process: stand-ins for the child die, hang, or say nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard import machine

DIES = "import os, signal; print('trying bfloat16 product', flush=True); os.kill(os.getpid(), signal.SIGILL)"
HELPED = f"import os\nif os.environ.get('ONEDNN_MAX_CPU_ISA') != {{limit!r}}:\n    {DIES}"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals end processes on POSIX")


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No setting of the user, a separate cache, and a process that looks as before torch was imported."""
    monkeypatch.delenv(machine.SETTING, raising=False)
    monkeypatch.setenv(machine.CACHE, str(tmp_path / "cache"))
    monkeypatch.delitem(sys.modules, "torch")
    yield
    os.environ.pop(machine.SETTING, None)


def child(monkeypatch, code):
    """The real child replaced; how often it is started."""
    monkeypatch.setattr(machine, "CHILD", code)
    started = []
    run = subprocess.run

    def counted(*arguments, **options):
        started.append(options["env"].get(machine.SETTING))
        return run(*arguments, **options)

    monkeypatch.setattr(subprocess, "run", counted)
    return started


def test_a_machine_that_works_is_left_as_it_is(monkeypatch):
    child(monkeypatch, "pass")
    assert machine.prepare() == machine.HalfPrecision("works")
    assert machine.SETTING not in os.environ


@pytest.mark.parametrize("limit", machine.LIMITS)
def test_where_the_child_dies_the_mildest_limit_that_helps_is_set(monkeypatch, limit):
    started = child(monkeypatch, HELPED.format(limit=limit))
    found = machine.prepare()
    assert found == machine.HalfPrecision("limited", limit, "bfloat16 product: illegal instruction")
    assert os.environ[machine.SETTING] == limit
    assert found.setting == f"{machine.SETTING}={limit}"
    assert started == [None, *machine.LIMITS[: machine.LIMITS.index(limit) + 1]]


def test_where_no_limit_helps_nothing_is_set_and_it_is_said(monkeypatch):
    child(monkeypatch, DIES)
    found = machine.prepare()
    assert (found.outcome, found.limit) == ("dies", "")
    assert machine.SETTING not in os.environ


def test_what_the_user_set_stays_and_nothing_is_tried(monkeypatch):
    started = child(monkeypatch, DIES)
    monkeypatch.setenv(machine.SETTING, "DEFAULT")
    assert machine.prepare() is None
    assert os.environ[machine.SETTING] == "DEFAULT"
    assert not started


def test_after_torch_is_imported_nothing_is_tried(monkeypatch):
    started = child(monkeypatch, DIES)
    monkeypatch.setitem(sys.modules, "torch", object())
    assert machine.prepare() is None
    assert not started


def test_the_answer_is_kept_for_this_machine_cpu_and_torch(monkeypatch):
    started = child(monkeypatch, HELPED.format(limit=machine.LIMITS[0]))
    first = machine.half_precision()
    assert machine.half_precision() == first
    assert len(started) == 2
    assert machine.half_precision(again=True) == first
    assert len(started) == 4
    for name, value in (("cpu_text", "another CPU"), ("torch_version", "9.9")):
        with monkeypatch.context() as other:
            other.setattr(machine, name, lambda value=value: value)
            machine.half_precision()
    assert len(started) == 8
    monkeypatch.setattr("platform.node", lambda: "another machine")
    machine.half_precision()
    assert len(started) == 10


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{",
        b"null",
        b'{"outcome": "nonsense"}',
        b'{"outcome": "works", "more": 1}',
        b'{"outcome": "limited", "limit": "rm -rf"}',
        b'{"outcome": "limited", "limit": ["AVX2"]}',
        b'{"outcome": 1}',
        b"[" * 100_000,
    ],
    ids=lambda damaged: repr(damaged[:30]),
)
def test_a_damaged_answer_is_made_again(monkeypatch, damaged):
    started = child(monkeypatch, "pass")
    machine._file().parent.mkdir(parents=True)
    machine._file().write_bytes(damaged)
    assert machine.prepare() == machine.HalfPrecision("works")
    assert len(started) == 1
    assert json.loads(machine._file().read_text(encoding="utf-8"))["outcome"] == "works"


def test_a_cache_that_cannot_be_written_costs_only_time(monkeypatch, tmp_path):
    started = child(monkeypatch, HELPED.format(limit=machine.LIMITS[0]))
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv(machine.CACHE, str(tmp_path / "file" / "cache"))
    assert machine.half_precision().limit == machine.half_precision().limit == machine.LIMITS[0]
    assert len(started) == 4


def test_a_child_that_hangs_is_given_up_and_not_asked_again_at_once(monkeypatch):
    monkeypatch.setattr(machine, "TIMEOUT", 0.1)
    started = child(monkeypatch, "import time; time.sleep(60)")
    assert machine.prepare().outcome == "unknown"
    assert machine.prepare().outcome == "unknown"
    assert len(started) == 1
    monkeypatch.setattr(machine, "RETRY", 0.0)
    machine.prepare()
    assert len(started) == 2


def refuse(*_, **__):
    raise PermissionError(1, "no processes here")


@pytest.mark.parametrize(
    "harm",
    [
        lambda patch: patch.setattr(subprocess, "run", refuse),
        lambda patch: patch.setattr(sys, "executable", ""),
        lambda patch: patch.setattr(sys, "frozen", True, raising=False),
        lambda patch: patch.setattr(machine, "CHILD", "raise SystemExit('no torch')"),
        lambda patch: patch.setattr(
            machine, "CHILD", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        ),
    ],
    ids=["no processes", "no Python", "frozen", "an error", "killed by somebody"],
)
def test_what_cannot_be_tried_is_unknown_and_changes_nothing(monkeypatch, harm):
    harm(monkeypatch)
    assert machine.prepare().outcome == "unknown"
    assert machine.SETTING not in os.environ


def test_windows_says_it_by_a_number():
    assert machine.death(0xC000001D) == machine.death(0xC000001D - (1 << 32)) == "illegal instruction"
    assert machine.death(132) == "illegal instruction"  # as a shell hands it on
    assert machine.death(-9) == machine.death(0) == machine.death(1) == ""


def test_the_real_child_passes_or_says_where_it_died():
    found = machine.half_precision()
    assert found.outcome in ("works", "limited"), found


def test_the_cache_folder_is_the_usual_one_of_the_system(monkeypatch):
    monkeypatch.delenv(machine.CACHE)
    for platform, last in (
        ("linux", Path(".cache", "regard")),
        ("darwin", Path("Library", "Caches", "regard")),
        ("win32", Path("regard", "cache")),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        assert machine.cache_folder().parts[-2:] == last.parts[-2:]


def test_a_system_without_cpuinfo_still_has_a_cpu(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "none")
    assert machine.cpu_text()
    assert machine.cpu_name()
