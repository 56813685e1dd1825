"""Jobs: the queue, cancelling, leaving, keeping; two clients beside each other."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from app.served import Words, client, finished, served
from regard.app.server.limits import Limits
from regard.app.server.request_errors import RequestError
from regard.errors import TextError
from regard.recording import load


def ended(job, seconds=10.0):
    end = time.monotonic() + seconds
    while not job.over:
        assert time.monotonic() < end, job
        time.sleep(0.01)
    return job


def forever(report):
    while True:
        report(0.5)
        time.sleep(0.01)


def test_a_job_tells_how_far_it_is(jobs):
    go_on = threading.Event()

    def work(report):
        report(0.25, "reading")
        go_on.wait(5)
        return {"answer": 42}

    job = jobs().submit("reading", work)
    while job.job.share != 0.25:
        time.sleep(0.01)
    assert (job.state, job.job.stage) == ("running", "reading")
    go_on.set()
    assert ended(job).described()["result"] == {"answer": 42}


def test_a_full_queue_refuses(jobs):
    queue = jobs(workers=1, waiting=2)
    first = queue.submit("mapping", forever)
    while first.state != "running":
        time.sleep(0.01)
    others = [queue.submit("mapping", forever) for _ in range(2)]
    with pytest.raises(RequestError, match="2 jobs are already waiting"):
        queue.submit("mapping", forever)
    queue.cancel(others[0])
    assert others[0].state == "cancelled"
    assert queue.submit("mapping", forever).state == "waiting"


def test_one_key_is_one_job(jobs):
    queue = jobs(workers=1)
    job = queue.submit("mapping", forever, key="map")
    again = queue.submit("mapping", forever, key="map")
    assert again.job is job.job
    assert queue.submit("mapping", forever, key="other").job is not job.job
    queue.cancel(job)
    queue.cancel(again)
    assert queue.submit("mapping", lambda report: {}, key="map").job is not job.job


def test_a_job_that_nobody_asks_about_ends(jobs):
    queue = jobs(workers=1, patience=0.2)
    asked, left = queue.submit("mapping", forever), queue.submit("mapping", forever)
    for _ in range(10):
        queue.get(asked.id)
        time.sleep(0.05)
    assert asked.state == "running"
    assert str(ended(asked).error) == "The job stopped because nobody was waiting for it."
    # The second had waited behind it, for nobody.
    assert str(ended(left).error) == "The job stopped because nobody was waiting for it."


def test_a_job_that_takes_too_long_ends(jobs):
    job = jobs(job_seconds=0.1).submit("mapping", forever)
    assert str(ended(job).error) == "The job took longer than 0.1 seconds."


def test_errors_of_regard_are_told_and_others_are_not(jobs, caplog):
    def refuses(report):
        raise TextError("A text has a word.", got="none", do="Write one.")

    def breaks(report):
        raise OSError("/home/somebody/secret.txt")

    queue = jobs()
    assert str(ended(queue.submit("reading", refuses)).error) == "A text has a word. Got none. Write one."
    broken = ended(queue.submit("reading", breaks))
    assert broken.state == "failed"
    assert "secret" not in str(broken.described())
    assert "secret.txt" in caplog.text  # the terminal says it
    assert ended(queue.submit("reading", lambda report: {})).state == "done"  # the thread lives on


# ---- over HTTP -----------------------------------------------------------------------------------


def post(http, text, **more):
    return http.post("/api/readings", json={"model": "words", "text": text, **more})


def test_the_queue_answers_429_with_a_clear_text():
    with client(served(models=[Words(pause=0.05, layers=4)], workers=1, waiting=1)) as http:
        begun = [post(http, "a b")]
        while http.get(f"/api/jobs/{begun[0].json()['job']['id']}").json()["state"] == "waiting":
            time.sleep(0.01)
        begun.append(post(http, "c d"))
        refused = post(http, "e f")
        assert [answer.status_code for answer in begun] == [202, 202]
        assert refused.status_code == 429
        assert refused.json()["error"].startswith("1 jobs are already waiting.")
        assert refused.headers["retry-after"] == "30"


def test_a_reading_shows_progress_and_can_be_cancelled_while_pages_answer():
    model = Words(pause=0.05, layers=6)
    with client(served(models=[model], workers=1)) as http:
        job = post(http, "the cat").json()["job"]
        shares = set()
        while len(shares) < 3:
            shares.add(http.get(f"/api/jobs/{job['id']}", params={"after": 0, "wait": 1}).json()["share"])
            assert http.get("/api/recordings/book/tiles/0/0/0/0/0").status_code == 200
        stopped = http.delete(f"/api/jobs/{job['id']}").json()
        assert finished(http, stopped)["state"] == "cancelled"
        assert model.read_texts == []
        assert not model.lock.locked()
        assert all(not part._forward_pre_hooks for part in model.model.modules())
        # The model reads the next text as if nothing had been.
        assert finished(http, post(http, "the dog").json()["job"])["state"] == "done"


def test_two_clients_do_not_disturb_each_other():
    model = Words(pause=0.01, layers=2)
    with client(served(models=[model])) as http:
        texts = ["one two three", "four five six seven"]
        begun = [post(http, text).json()["job"] for text in texts]
        done = [finished(http, job) for job in begun]
        for text, job in zip(texts, done):
            name = job["result"]["recording"]
            assert http.get(f"/api/recordings/{name}/texts").json()["texts"][0]["tokens"] == text.split()
            assert http.get(f"/api/recordings/{name}").json()["calls"][0]["keys"] == len(text.split())


def test_finished_recordings_are_kept(tmp_path):
    (tmp_path / ".old.safetensors.abc.part").write_bytes(b"half")
    from regard.app.server.run_server import open_library

    open_library([], tmp_path, Limits())
    assert list(tmp_path.iterdir()) == []
    with client(served(keep=tmp_path)) as http:
        for _ in range(2):
            done = finished(http, post(http, "the cat / sat").json()["job"])
            assert done["result"]["kept"] is True
            assert str(tmp_path) not in str(done)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    assert all(file.stem.endswith(("the-cat-sat", "the-cat-sat-2")) for file in files)
    assert load(files[0]).tokens == [["the", "cat", "/", "sat"]]


def test_a_disk_that_is_full_loses_the_file_and_not_the_recording(tmp_path, monkeypatch):
    from regard.recording import Recording

    def full(self, path):
        raise OSError(28, f"No space left on {path}")

    monkeypatch.setattr(Recording, "save", full)
    with client(served(keep=tmp_path)) as http:
        done = finished(http, post(http, "the cat").json()["job"])
        assert (done["state"], done["result"]["kept"]) == ("done", False)
        assert http.get(f"/api/recordings/{done['result']['recording']}").status_code == 200


KILLED = """
import sys, time, torch
from pathlib import Path
import regard.recording.recording_file as files
from regard.app.server.recording_store import RecordingStore
from regard.recording import Recording, ScoredCall

library = RecordingStore(10**9, Path(sys.argv[1]))
q = torch.zeros(1, 1, 50, 4)
seen = Recording("Toy", [ScoredCall("a", "encoder", 0, q, q, torch.full((1, 1, 50), 50.0).log())])
library.save(library.add("first", seen))

write = files.save_file
def slow(tensors, name, metadata):
    write(tensors, name, metadata=metadata)
    Path(name).write_bytes(Path(name).read_bytes()[:500])  # half of it is on the disk
    print("writing", flush=True)
    time.sleep(60)

files.save_file = slow
library.save(library.add("second", seen))
"""


def test_kill_in_the_middle_of_saving_loses_no_earlier_recording(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().strip() == "writing"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    whole = list(tmp_path.glob("*.safetensors"))
    assert [file.stem.rpartition("-")[2] for file in whole] == ["first"]
    assert load(whole[0])[0].queries == 50
    from regard.app.server.run_server import open_library

    open_library([], tmp_path, Limits())
    assert list(tmp_path.iterdir()) == whole
