"""Connections: deadlines, shares of clients, and what they cannot hold up. Real sockets of the loopback."""

import contextlib
import socket
import time

import httpx
import pytest

from app.served import running, served
from regard.app.server.clients import client_at
from regard.app.server.safety import ServerAddress


def address_of(base):
    host, _, port = base.removeprefix("http://").partition(":")
    return host, int(port)


def opened(base, sent=b""):
    connection = socket.create_connection(address_of(base), timeout=10)
    connection.sendall(sent)
    return connection


def answer_of(connection):
    """Everything until the server closes; fails where it does not."""
    connection.settimeout(10)
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def send_on(connection, seconds=8):
    """Letter by letter, until the server closes."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection.sendall(b"x")
        time.sleep(0.05)


def app_of(port):
    return served(models=[], server_address=ServerAddress(port=port))


def test_half_open_connections_shut_nobody_out():
    """More than the server takes, each with the beginning of a request, from the visitor's own address."""
    with running(app_of, client_connections=20, connections=40) as base, contextlib.ExitStack() as held:
        for _ in range(60):
            held.enter_context(opened(base, b"GET / HTTP/1.1\r\nHost: "))
        for _ in range(3):
            assert httpx.get(f"{base}/api/state", timeout=5).status_code == 200


def test_the_oldest_silent_connection_goes_first():
    with running(app_of, client_connections=3) as base, contextlib.ExitStack() as held:
        first, *others = [held.enter_context(opened(base, b"GET / HTTP/1.1\r\n")) for _ in range(3)]
        held.enter_context(opened(base))
        assert answer_of(first) == b""
        for one in others:
            one.settimeout(0.2)
            with pytest.raises(TimeoutError):
                one.recv(1)


def test_with_all_connections_being_answered_one_more_is_told_so():
    with running(app_of, client_connections=2) as base, contextlib.ExitStack() as held:
        port = address_of(base)[1]
        unfinished = f"POST /api/readings HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 9\r\n\r\n"
        for _ in range(2):
            held.enter_context(opened(base, unfinished.encode()))
        time.sleep(0.3)
        said = answer_of(held.enter_context(opened(base)))
        assert said.startswith(b"HTTP/1.1 503 ")
        head, _, body = said.partition(b"\r\n\r\n")
        assert f"content-length: {len(body)}".encode() in head


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_a_head_that_does_not_end_is_not_waited_for(sent):
    with running(app_of, header_seconds=0.3) as base, opened(base, sent) as slow:
        said = answer_of(slow)
        assert said.startswith(b"HTTP/1.1 408 ") if sent else said == b""


def test_letters_one_by_one_do_not_lengthen_the_deadline():
    with (
        running(app_of, header_seconds=0.5) as base,
        opened(base, b"GET / HTTP/1.1\r\nX: ") as slow,
        pytest.raises(OSError),
    ):
        send_on(slow)


def test_the_second_request_of_a_connection_has_the_same_deadline():
    with running(app_of, header_seconds=0.5) as base:
        port = address_of(base)[1]
        whole = f"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        with opened(base, whole) as slow:
            assert slow.recv(15) == b"HTTP/1.1 200 OK"
            slow.sendall(b"GET / HT")
            answer_of(slow)


def test_a_body_that_goes_on_after_its_answer_is_not_listened_to():
    with running(app_of, header_seconds=0.3) as base:
        port = address_of(base)[1]
        head = f"POST /api/readings HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 99999999999\r\n\r\n"
        with opened(base, head.encode()) as slow:
            assert slow.recv(12) == b"HTTP/1.1 413"
            with pytest.raises(OSError):
                send_on(slow)


def test_a_client_that_does_not_read_is_left():
    """The answer is larger than the buffers between the two; the server must not keep it for ever."""

    def large(port):
        async def app(scope, receive, send):
            if scope["type"] == "lifespan":
                while True:
                    kind = (await receive())["type"]
                    await send({"type": f"{kind}.complete"})
                    if kind == "lifespan.shutdown":
                        return
            await send({"type": "http.response.start", "status": 200, "headers": []})
            try:
                for _ in range(400):
                    await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
                ends.append("sent")
            finally:
                ends.append("over")

        return app

    ends = []
    with (
        running(large, stall_seconds=0.3) as base,
        opened(base, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") as deaf,
    ):
        end = time.monotonic() + 10
        while "over" not in ends:
            assert time.monotonic() < end
            time.sleep(0.05)
        deaf.settimeout(1)
        total = 0
        with contextlib.suppress(OSError):
            while part := deaf.recv(1 << 20):
                total += len(part)
        assert total < 400 * 100_000


def test_clients_are_addresses():
    assert client_at("2001:db8::1") == client_at("2001:db8::ffff:1")
    assert client_at("2001:db8::1") != client_at("2001:db8:0:1::1")
    assert client_at("fe80::1%eth0") == client_at("fe80::2")
    assert client_at("::ffff:127.0.0.1") == "127.0.0.1"
    assert client_at("testclient") == "testclient"
    assert client_at(None) == ""


def test_forwarded_addresses_count_only_where_a_proxy_is_named(monkeypatch):
    """Else each request could call itself another client."""
    from regard.app.server.limits import Limits
    from regard.app.server.run_server import Server

    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    assert Server(None, Limits()).config.proxy_headers is False
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1")
    assert Server(None, Limits()).config.proxy_headers is True
