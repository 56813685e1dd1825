"""Full and read-only disks: one line, exit status 1, the earlier file unchanged, nothing left beside it."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
import torch
from click.testing import CliRunner

import regard
from app.test_train import RECIPE, WORDS
from recording.kinds import recordings
from regard import atomic
from regard.app.main import main
from regard.app.server.limits import Limits
from regard.app.server.recording_store import RecordingStore
from regard.app.server.server_state import ServerState
from regard.errors import FileError, RecordingError
from regard.heads import table
from regard.views.figures import heatmap, save
from regard.views.page import page

CAT = "The cat sat on the mat."
EARLIER = b"what was there before"

COMMANDS = {
    "look --out": ["look", CAT, "--out", "FILE.html"],
    "look --save": ["look", CAT, "--no-page", "--save", "FILE.safetensors"],
    "look --figure": ["look", CAT, "--no-page", "--kind", "cross", "--figure", "FILE.png"],
    "explain --out": ["explain", "I love AI", "--out", "FILE.md"],
    "mask --figure": ["mask", "causal", "--figure", "FILE.svg"],
    "cost --figure": ["cost", "--length", "512", "--figure", "FILE.pdf"],
    "bench --figure": ["bench", "--length", "16", "--rounds", "1", "--figure", "FILE.png"],
    "demo --figure": ["demo", "library", "--figure", "FILE.png"],
}


@contextlib.contextmanager
def small_disk(folder, kilobytes=64):
    """A separate disk for a test, if one may be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if not sys.platform.startswith("linux") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a disk for this test")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder):
    """Take all the room that a disk has left."""
    with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.fixture(params=["full", "read-only"])
def disk(request, tmp_path):
    """A disk on which nothing can be written, and what the system says of it."""
    with small_disk(tmp_path / "disk") as folder:
        for name in ("x.html", "x.safetensors", "x.png", "x.svg", "x.pdf", "x.md", "x.csv"):
            (folder / name).write_bytes(EARLIER)
        fill(folder)
        if request.param == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield folder, "No space left" if request.param == "full" else "Read-only file system"


def run(*arguments):
    shown = CliRunner().invoke(main, [str(part) for part in arguments])
    assert shown.exception is None or isinstance(shown.exception, SystemExit), shown.exception
    return shown


def untouched(folder):
    """Whether all is as it was."""
    return all(file.read_bytes() == EARLIER for file in folder.iterdir() if file.name != "filler")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_commands_that_write_one_file(name, disk, monkeypatch, tmp_path, read_once):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.lessons.timing._in_own_process", lambda work: (0.001, 2**20))
    folder, says = disk
    shown = run(*(part.replace("FILE", str(folder / "x")) for part in COMMANDS[name]))
    assert shown.exit_code == 1
    last = shown.output[shown.output.index("Error: ") :]
    assert f"{folder / 'x'}." in last
    assert f"must be writable. Got {says}" in last
    assert last.count("\n") == 1
    assert untouched(folder)


def test_what_the_library_writes(disk):
    folder, says = disk
    seen = recordings()["layers"]
    for write in (
        lambda: seen.save(folder / "x.safetensors"),
        lambda: page(seen, folder / "x.html"),
        lambda: regard.show(seen).save(folder / "x.html"),
        lambda: save(heatmap(seen, layer=0, head=0), folder / "x.pdf"),
        lambda: table(seen).to_csv(folder / "x.csv"),
        lambda: table(seen).to_json(folder / "x.md"),
    ):
        with pytest.raises(FileError, match=says):
            write()
    assert untouched(folder)


def test_missing_folders_are_made(tmp_path):
    seen = recordings()["layers"]
    seen.save(tmp_path / "a" / "b" / "x.safetensors")
    page(seen, tmp_path / "c" / "x.html")
    save(heatmap(seen, layer=0, head=0), tmp_path / "d" / "x.png")
    table(seen).to_csv(tmp_path / "e" / "x.csv")
    assert run("explain", "a", "--out", tmp_path / "f" / "g" / "x.md").exit_code == 0
    assert run("mask", "causal", "--figure", tmp_path / "h" / "x.png").exit_code == 0
    assert len(list(tmp_path.glob("**/x.*"))) == 6


# ---- folders -------------------------------------------------------------------------------------


def survey(folder, model_folders, corpus):
    corpus.write_text("the cat sat on the mat\nthe dog sat\n")
    return run("survey", corpus, "--model", model_folders["bert"], "--out", folder)


def train(folder, data):
    lines = [f"The {a} sees a {b}.\t{x}看见{y}。\tCC\n" for a, x in WORDS for b, y in WORDS]
    data.write_text("".join(lines), encoding="utf-8")
    recipe = data.with_name("recipe.json")
    recipe.write_text(json.dumps({**RECIPE, "steps": 2, "checkpoint_every": 1}), encoding="utf-8")
    return run("train", data, "--recipe", recipe, "--out", folder)


def told(shown, folder, says):
    assert shown.exit_code == 1, shown.output
    assert f"must be writable. Got {says}" in " ".join(shown.output.split())
    assert not list(folder.glob("**/.*.part"))


def test_survey(disk, model_folders, tmp_path):
    folder, says = disk
    shown = survey(folder / "survey", model_folders, tmp_path / "corpus.txt")
    assert shown.exit_code == 1
    assert says in " ".join(shown.output.split()) or "--out must be a folder for the results" in shown.output


def test_train(disk, tmp_path):
    folder, says = disk
    told(train(folder / "run", tmp_path / "cmn.txt"), folder, says)


@pytest.mark.parametrize("kilobytes", [16, 40, 300])
def test_a_disk_that_fills_up_under_a_survey(kilobytes, model_folders, tmp_path):
    with small_disk(tmp_path / "disk", kilobytes) as folder:
        told(survey(folder / "survey", model_folders, tmp_path / "corpus.txt"), folder, "No space left")


@pytest.mark.parametrize("kilobytes", [16, 60, 200])
def test_a_disk_that_fills_up_under_a_training(kilobytes, tmp_path):
    with small_disk(tmp_path / "disk", kilobytes) as folder:
        told(train(folder / "run", tmp_path / "cmn.txt"), folder, "No space left")


# ---- the server ----------------------------------------------------------------------------------


def test_a_reading_that_cannot_be_kept_is_not_lost(disk):
    folder, _ = disk
    server_state = ServerState([], RecordingStore(10**9, keep=folder), Limits())
    entry = server_state.library.add("a text", recordings()["layers"])
    assert server_state._save(entry, lambda *_: None) is False
    assert server_state.library.get(entry.id) is entry


def test_a_reading_with_nan_is_not_lost(tmp_path):
    server_state = ServerState([], RecordingStore(10**9, keep=tmp_path), Limits())
    seen = recordings()["layers"]
    seen[0].q[0, 0, 0, 0] = torch.nan
    entry = server_state.library.add("a text", seen)
    with pytest.raises(RecordingError):
        server_state.library.save(entry)
    assert server_state._save(entry, lambda *_: None) is False


# ---- without a disk of one's own -----------------------------------------------------------------


def test_commands_say_it_before_they_compute(monkeypatch, tmp_path):
    monkeypatch.setattr("regard.app.model_input.record", lambda *_, **__: pytest.fail("computed"))
    (tmp_path / "file").write_text("")
    for option, name in (("--out", "x.html"), ("--save", "x.safetensors"), ("--figure", "x.png")):
        shown = run("look", CAT, option, tmp_path / "file" / name)
        assert shown.exit_code == 1
        assert "must be writable" in shown.output


@pytest.mark.skipif(os.name != "posix", reason="devices and pipes have names on POSIX systems")
def test_devices_and_pipes_are_written_to(tmp_path):
    # Every command writes its files through this function, as the tests above show.
    write = [sys.executable, "-c", "from regard import atomic; atomic.write_text('/dev/stdout', 'said')"]
    assert subprocess.run(write, capture_output=True, check=True).stdout == b"said"
    with (tmp_path / "log").open("wb") as log:
        log.write(b"before\n")
        log.flush()
        subprocess.run(write, stdout=log, check=True)
    assert (tmp_path / "log").read_bytes() == b"before\nsaid"
    atomic.write_text("/dev/null", "gone")
    with pytest.raises(FileError, match="No space left"):
        atomic.write_text("/dev/full", "full")
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE)
    atomic.write_text(tmp_path / "pipe", "through")
    assert reader.communicate()[0] == b"through"
    assert (tmp_path / "pipe").is_fifo()
