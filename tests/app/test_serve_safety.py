"""Who may talk to the server: names, origins, tokens, and what browsers may do with its answers."""

import asyncio
import threading
import time

import httpx
import pytest
from click.testing import CliRunner

from app.served import Words, client, running, served
from regard.app.main import main
from regard.app.server.run_server import server_address_of
from regard.app.server.safety import RequestGuard, ServerAddress
from regard.errors import ArgumentError


@pytest.mark.parametrize(
    "host", ["evil.example:8000", "127.0.0.1:9", "127.0.0.1.evil.example:8000", "", "[::1", "10.0.0.1:8000"]
)
def test_other_names_are_refused(http, host):
    answer = http.get("/api/state", headers={"host": host})
    assert answer.status_code == 421
    assert "Use the address that it printed" in answer.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"])
def test_own_names_are_answered(http, host):
    assert http.get("/api/state", headers={"host": host}).status_code == 200


def test_a_server_for_others_is_reached_by_numbers_and_its_own_name():
    server_address = ServerAddress("0.0.0.0", 8000, "secret-secret", frozenset({"box.lan"}))
    assert server_address.knows("192.168.1.7:8000")
    assert server_address.knows("box.lan:8000")
    assert not server_address.knows("evil.example:8000")
    assert not ServerAddress("127.0.0.1", 8000).knows("192.168.1.7:8000")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/api/readings"), ("DELETE", "/api/jobs/x")])
def test_other_sites_cannot_do_anything(http, method, path, headers):
    body = {"model": "words", "text": "a"} if method == "POST" else None
    answer = http.request(method, path, json=body, headers=headers)
    assert answer.status_code == 403
    assert "Pages of other sites are not allowed to do this" in answer.json()["error"]


def test_the_own_page_can(http):
    headers = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    answer = http.post("/api/readings", json={"model": "words", "text": "a b"}, headers=headers)
    assert answer.status_code == 202


@pytest.mark.parametrize(
    "path", ["/", "/map/book", "/look/book", "/assets/page/style.css", "/api/state", "/none"]
)
def test_every_answer_carries_the_policy(http, path):
    headers = http.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_documents_have_no_script_inside(http):
    for path in ("/", "/map/book", "/look/book"):
        for script in http.get(path).text.split("<script")[1:]:
            assert script.startswith(' type="module" src="/assets/')


# ---- token -----------------------------------------------------------------------------------------


@pytest.fixture
def locked():
    with client(served(server_address=ServerAddress("127.0.0.1", 8000, "correct horse"))) as found:
        yield found


def test_without_the_token_nothing_is_said(locked):
    for path in ("/", "/api/state", "/assets/page/style.css", "/openapi.json", "/?token=wrong"):
        answer = locked.get(path)
        assert answer.status_code == 401
        assert "requires its token" in answer.json()["error"]
    assert locked.post("/api/readings", json={}).status_code == 401
    assert locked.get("/api/state", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert locked.get("/api/state", headers={"cookie": "regard-8000=wr\u00f6ng".encode()}).status_code == 401


def test_the_token_opens_once_and_then_the_cookie_does(locked):
    assert locked.get("/api/state", headers={"authorization": "Bearer correct horse"}).status_code == 200
    answer = locked.get("/map/book?x=1&token=correct%20horse", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/map/book?x=1")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert locked.get("/api/state").status_code == 200
    elsewhere = locked.get("//evil.example/?token=correct%20horse", follow_redirects=False)
    assert not elsewhere.headers.get("location", "/x").startswith("//")


def test_other_addresses_always_have_a_token():
    assert server_address_of("127.0.0.1", 8000, None).token is None
    assert server_address_of("127.0.0.1", 8000, "long enough").token == "long enough"
    made = [server_address_of("0.0.0.0", 8000, None).token for _ in range(2)]
    assert made[0] != made[1]
    assert len(made[0]) >= 32
    with pytest.raises(ArgumentError, match=r"A token needs at least 8 characters\. Got 3"):
        server_address_of("0.0.0.0", 8000, "abc")


# ---- time and size ---------------------------------------------------------------------------------


def test_a_body_that_never_ends_is_not_waited_for():
    async def app(scope, receive, send):
        raise AssertionError("not reached")

    guard = RequestGuard(app, ServerAddress(), body_bytes=100, body_seconds=0.05)
    sent = []

    async def receive():
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/readings",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000")],
    }
    # In a thread of its own: a browser of other tests may keep a loop running in this one.
    thread = threading.Thread(target=lambda: asyncio.run(guard(scope, receive, send)))
    thread.start()
    thread.join()
    assert sent[0]["status"] == 408


def test_a_client_that_leaves_ends_its_job():
    model = Words(pause=0.05, layers=60)

    def app_of(port):
        return keep.setdefault(
            "app", served(models=[model], server_address=ServerAddress(port=port), patience=2.0)
        )

    keep = {}
    with running(app_of) as base:
        job = httpx.post(f"{base}/api/readings", json={"model": "words", "text": "a b c"}).json()["job"]
        url = f"{base}/api/jobs/{job['id']}"
        # A question that waits keeps the job alive for as long as the client stays.
        held = httpx.get(url, params={"after": 10**6, "wait": 1}, timeout=5).json()
        assert held["state"] == "running"
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(url, params={"after": 10**6, "wait": 20}, timeout=0.3)
        found = keep["app"].server_state.jobs._subscriptions[job["id"]]
        for _ in range(100):
            if found.over:
                break
            time.sleep(0.1)
        assert str(found.error) == "The job stopped because nobody was waiting for it."
    assert model.read_texts == []


# ---- the command -------------------------------------------------------------------------------------


def test_the_command_says_what_is_wrong(tmp_path):
    run = CliRunner().invoke
    found = run(main, ["serve", "--recording", str(tmp_path / "none.safetensors")])
    assert found.exit_code == 1
    assert "load(path) needs the path of a file" in found.output
    found = run(main, ["serve", "--token", "abc"])
    assert "A token needs at least 8 characters" in found.output
    found = run(main, ["serve", "--keep", str(tmp_path / "nowhere")])
    assert "--keep must name an existing folder" in found.output
    found = run(main, ["serve", "--port", "0"])
    assert found.exit_code == 2


def test_an_address_that_is_taken_is_an_error_in_words():
    import socket

    from regard.app.server.run_server import serve

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ArgumentError, match="needs a free address"):
            serve(None, ServerAddress("127.0.0.1", taken.getsockname()[1]), lambda: None)


def test_without_starlette_the_command_says_what_to_install(monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.startswith("regard.app.server.run_server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    found = CliRunner().invoke(main, ["serve"])
    assert found.exit_code == 1
    assert 'pip install "regard[serve]"' in found.output
