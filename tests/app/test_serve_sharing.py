"""Several clients and tabs: shares of the job slots, jobs that are shared, and the end of the server."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from app.served import Words, client, finished, running, served
from app.test_serve_jobs import ended, forever
from regard.app.server.jobs import MOST_SHARED
from regard.app.server.request_errors import RequestError
from regard.app.server.safety import ServerAddress


def until(true):
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_one_client_cannot_hold_all_slots(jobs):
    queue = jobs()
    first = [queue.submit("reading", forever, client="a") for _ in range(5)]
    until(lambda: sum(one.state == "running" for one in first) == 2)
    with pytest.raises(RequestError, match="This client already has 5 unfinished jobs") as refused:
        queue.submit("reading", forever, client="a")
    assert refused.value.status == 429
    # Two of its jobs run, so that one thread is free for others at once.
    assert ended(queue.submit("reading", lambda report: {}, client="b")).state == "done"
    queue.cancel(first[0])
    queue.cancel(first[4])
    until(lambda: first[2].state == "running")
    assert queue.submit("reading", forever, client="a").state == "waiting"


def test_the_client_with_fewer_jobs_comes_first(jobs):
    queue = jobs(workers=2, client_running=2)
    order = []
    go_on = threading.Event()

    def work(name):
        def run(report):
            order.append(name)
            go_on.wait(10)
            return {}

        return run

    held = [queue.submit("reading", work("a1"), client="a")]
    until(lambda: order == ["a1"])
    blocker = queue.submit("reading", forever, client="c")
    until(lambda: blocker.state == "running")
    held += [queue.submit("reading", work(name), client=name[0]) for name in ("a2", "a3", "b1")]
    queue.cancel(blocker)
    until(lambda: len(order) == 2)
    assert order == ["a1", "b1"]
    go_on.set()
    for one in held:
        ended(one)
    assert sorted(order[2:]) == ["a2", "a3"]


def test_whoever_cancels_a_shared_job_leaves_it_to_the_others(jobs):
    queue = jobs()
    mine = queue.submit("mapping", forever, key="map", client="a")
    yours = queue.submit("mapping", forever, key="map", client="a")
    assert mine.job is yours.job
    assert mine.id != yours.id
    until(lambda: mine.state == "running")
    for _ in range(3):  # also when asked again and again
        queue.cancel(mine)
    assert (mine.state, mine.described()["error"]) == ("cancelled", "Cancelled.")
    assert mine.over
    time.sleep(0.05)
    assert yours.state == "running"
    queue.cancel(yours)
    assert ended(yours.job).state == "cancelled"


def test_a_shared_job_ends_when_nobody_of_them_asks(jobs):
    queue = jobs(patience=0.3)
    mine = queue.submit("mapping", forever, key="map")
    yours = queue.submit("mapping", forever, key="map")
    queue.cancel(mine)
    for _ in range(5):
        time.sleep(0.1)
        queue.get(yours.id)
    assert yours.state == "running"
    assert str(ended(yours).error) == "The job stopped because nobody was waiting for it."


def test_a_job_is_shared_by_so_many_and_no_more(jobs):
    queue = jobs()
    for _ in range(MOST_SHARED):
        queue.submit("mapping", forever, key="map")
    with pytest.raises(RequestError, match="requests are already waiting for this job"):
        queue.submit("mapping", forever, key="map")


def test_ended_jobs_do_not_pile_up(jobs, monkeypatch):
    monkeypatch.setattr("regard.app.server.jobs.MOST_KEPT", 3)
    queue = jobs()
    for _ in range(10):
        last = ended(queue.submit("mapping", lambda report: {}))
    assert len(queue._subscriptions) <= 5
    assert queue.get(last.id) is last


def test_a_tab_that_closes_does_not_cancel_the_map_of_another(monkeypatch):
    from regard.app.server import server_state as state_module

    go_on = threading.Event()
    build = state_module.build

    def slow(matrix, report):
        while not go_on.wait(0.01):
            report(0.1)
        return build(matrix, report)

    monkeypatch.setattr(state_module, "build", slow)
    with client(served(models=[])) as http:
        mine, yours = (
            http.post("/api/recordings/book/maps", json={"head": 1}).json()["job"] for _ in range(2)
        )
        assert mine["id"] != yours["id"]
        assert http.delete(f"/api/jobs/{mine['id']}").json()["state"] == "cancelled"
        go_on.set()
        assert finished(http, yours)["state"] == "done"
        assert http.get(f"/api/jobs/{mine['id']}").json()["state"] == "cancelled"


def test_over_http_the_share_is_that_of_the_address():
    def app_of(port):
        return served(models=[Words(pause=0.05, layers=40)], server_address=ServerAddress(port=port))

    with running(app_of) as base, httpx.Client(base_url=base) as http:
        answers = [http.post("/api/readings", json={"model": "words", "text": "a b"}) for _ in range(6)]
        assert [one.status_code for one in answers] == [202] * 5 + [429]
        assert answers[-1].headers["retry-after"] == "30"
        spoofed = http.post(
            "/api/readings", json={"model": "words", "text": "a b"}, headers={"x-forwarded-for": "10.1.2.3"}
        )
        assert spoofed.status_code == 429


SERVER = """
import sys
from app.served import Words, served
from regard.app.server.safety import ServerAddress
from regard.app.server.run_server import serve

server_address = ServerAddress(port=int(sys.argv[1]))
app = served(models=[Words(pause=0.5, layers=40)], server_address=server_address, workers=1)
jobs = app.server_state.jobs
get = jobs.get

def told(name):
    print("asked", flush=True)
    return get(name)

jobs.get = told
serve(app, server_address, lambda: print("ready", flush=True))
"""


def test_the_server_ends_without_a_traceback_while_jobs_wait():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])},
    )
    assert process.stdout.readline().strip() == "ready"
    answers = []
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
        for attempt in range(100):
            try:
                begun = [http.post("/api/readings", json={"model": "words", "text": "a"}).json()]
                break
            except httpx.ConnectError:
                assert attempt < 99
                time.sleep(0.1)
        begun += [http.post("/api/readings", json={"model": "words", "text": "a"}).json() for _ in range(2)]

        def ask(job):
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as own:
                path = f"/api/jobs/{job['id']}"
                answers.append(own.get(path, params={"after": 10**8, "wait": 20}).json()["state"])

        asking = [threading.Thread(target=ask, args=(one["job"],)) for one in begun]
        for thread in asking:
            thread.start()
        for _ in asking:
            assert process.stdout.readline().strip() == "asked"
        process.send_signal(signal.SIGINT)
        for thread in asking:
            thread.join(20)
    said = process.communicate(timeout=30)
    assert said[1] == ""
    assert process.returncode == 0
    assert len(answers) == 3
    assert answers.count("cancelled") >= 2  # those that waited; the one that ran stops at its next step
