"""Requests of all kinds to the web app, over sockets inside this process.

Whatever is sent, the app answers below 500 or closes the connection, soon, logs no error, and answers
the next visitor.
"""

import asyncio
import json
import logging
import socket
import threading
from collections import Counter
from pathlib import Path

from uvicorn.server import ServerState

from app.served import Words, book, translation
from fuzz.rounds import cases
from regard.app.server.connections import Connection
from regard.app.server.limits import Limits
from regard.app.server.run_server import Server, make_app, open_library
from regard.app.server.safety import ServerAddress

SECONDS = 30
"""After which an answer counts as hanging, on a machine that is busy."""

AT_ONCE = 50

SHORT = Limits(
    tokens=64,
    header_seconds=0.2,
    body_seconds=0.2,
    idle_seconds=0.2,
    poll_seconds=0,
    patience=1.0,
    connections=10**4,
    client_connections=10**4,
)

PATHS = [
    *(
        "/",
        "/api/state",
        "/openapi.json",
        "/assets/page/style.css",
        "/assets/../../etc/passwd",
        "/api/readings",
    ),
    *("/map/book", "/look/book", "/look/book?call=0", "/look/pair?call=9", "/api/recordings/book"),
    *("/api/recordings/pair/texts", "/api/recordings/book/maps", "/api/recordings/pair/maps"),
    *(
        "/api/recordings/pair/pages",
        "/api/recordings/book/margins/0/0",
        "/api/recordings/book/margins/1/1?sinks=first",
    ),
    *("/api/recordings/book/tiles/0/0/0/0/0", "/api/recordings/book/tiles/1/1/0/1/1?type=png&scale=log"),
    *(
        "/api/recordings/pair/tiles/2/1/0/0/0?kind=mean&sinks=special&type=float16",
        "/api/recordings/half/texts",
    ),
    *(
        "/api/recordings/book/peaks/0/0/0/0/0",
        "/api/recordings/pair/peaks/2/0/1/0/0",
        "/api/jobs/none?wait=20",
    ),
]
PIECES = [
    *(
        "0",
        "1",
        "-1",
        "999999999",
        "1000000000",
        "18446744073709551616",
        "1e9",
        "NaN",
        "٣",
        "null",
        "",
        "%00",
        "%ff",
    ),
    *(
        "%ed%a0%80",
        "..",
        "%2e%2e%2f",
        "//",
        "?",
        "&",
        "=",
        ";",
        "#",
        "%",
        "book",
        "pair",
        "half",
        "猫",
        "'",
        '"',
        "\\",
    ),
    *(
        "sinks=first",
        "sinks=",
        "kind=max&kind=mean",
        "type=png",
        "call=99999",
        "wait=99",
        "after=",
        "token=x",
        "a" * 3000,
    ),
]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "FOO"]
HEADERS = [
    *("Host: evil.example", "Host: ", "Host: 127.0.0.1:8000", "Origin: null", "Origin: http://evil.example"),
    *(
        "Sec-Fetch-Site: cross-site",
        "Content-Type: application/json",
        "Content-Type: \xff",
        "Cookie: regard-8000=\xff",
    ),
    *(
        "Cookie: =;;=\x01",
        "Authorization: Bearer \xff\xfe",
        "If-None-Match: *",
        'If-None-Match: "x", W/"y"',
        "Expect: 100-continue",
    ),
    *("Accept-Language: zh", "Accept-Language: " + "zh;q=" * 500, "Content-Length: 5", "Content-Length: -1"),
    *(
        "Content-Length: 99999999999999999999",
        "Content-Length: ١",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
    ),
    *(
        "Upgrade: websocket",
        "Connection: upgrade",
        "Connection: keep-alive",
        "X-Forwarded-For: 1.2.3.4",
        "X: " + "y" * 40_000,
    ),
    *(
        "Range: bytes=0-0",
        ": empty",
        "No colon",
        " folded",
        "X\x00: y",
        "TE: trailers",
        "HTTP2-Settings: AAMAAABkAAQ",
    ),
]
WORDS = [
    "",
    " ",
    "the cat",
    "a",
    "猫" * 20,
    "\ud800",
    "\x00",
    "x" * 5000,
    "word " * 100,
    "words",
    "book",
    "show",
    "first",
]
NUMBERS = [0, 1, -1, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308]


def value_of(chance, depth=0):
    """JSON of some shape."""
    kind = chance.randrange(7 if depth < 4 else 4)
    if kind == 4:
        return [value_of(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind > 4:
        names = ["model", "text", "pair", "generate", "call", "head", "sinks", "other", ""]
        return {chance.choice(names): value_of(chance, depth + 1) for _ in range(chance.randrange(6))}
    return chance.choice([None, chance.random() < 0.5, chance.choice(NUMBERS), chance.choice(WORDS)])


def body_of(chance, damaged):
    kind = chance.randrange(8)
    if kind == 0:
        return b""
    if kind == 1:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
    if kind == 2:
        return damaged[: chance.randrange(len(damaged))]
    if kind == 3:
        return chance.choice(
            [b"[" * 5000, b"{}", b"[]", b"null", b"NaN", b'{"text": Infinity}', b'{"a":1,"a":2}', b"\xff"]
        )
    if kind == 4:
        reading = {"model": "words", "text": chance.choice(WORDS), "generate": chance.choice([0, 1, -1])}
        return json.dumps(reading).encode()
    if kind == 5:
        place = {
            "call": chance.randrange(4),
            "head": chance.randrange(4),
            "sinks": chance.choice(["show", "first", "x"]),
        }
        return json.dumps(
            {name: place[name] for name in chance.sample(sorted(place), chance.randrange(4))}
        ).encode()
    return json.dumps(value_of(chance)).encode()


def fitting_body(chance, path):
    """What the path asks for, so that jobs begin, share and are refused."""
    if path.endswith("readings"):
        words = " ".join(
            chance.choice(["cat", "&#60;", "猫", "</script>"]) for _ in range(chance.randrange(1, 9))
        )
        return json.dumps({"model": "words", "text": words}).encode()
    if path.endswith("maps"):
        return json.dumps(
            {"head": chance.randrange(2), "sinks": chance.choice(["show", "first", "special"])}
        ).encode()
    return json.dumps({"call": chance.randrange(3)}).encode()


def request_of(chance, damaged):
    """A request as bytes, more or less well formed."""
    method = chance.choice(METHODS[:5] if chance.random() < 0.8 else METHODS)
    path = chance.choice(PATHS)
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        parts = path.split("/")
        parts[chance.randrange(len(parts))] = chance.choice(PIECES)
        path = "/".join(parts) + chance.choice(["", "?", "&"]) + chance.choice(["", chance.choice(PIECES)])
    if method == "POST" and chance.random() < 0.5:
        path = chance.choice([one for one in PATHS if one.endswith(("readings", "maps", "pages"))])
    body = b"" if method in ("GET", "HEAD") and chance.random() < 0.8 else body_of(chance, damaged)
    if method == "POST" and chance.random() < 0.4:
        body = fitting_body(chance, path)
    lines = [f"{method} {path} HTTP/{chance.choice(['1.1'] * 17 + ['1.0', '2', '1.1 '])}"]
    if chance.random() < 0.9:
        lines.append("Host: 127.0.0.1:8000")
    if body and chance.random() < 0.9:
        lines += [f"Content-Length: {len(body)}"]
    if chance.random() < 0.8:
        lines += ["Content-Type: application/json"]
    lines += [chance.choice(HEADERS) for _ in range(chance.choice([0, 0, 0, 1]))]
    lines += ["Connection: close"]
    head = "\r\n".join(lines).encode("utf-8", "surrogatepass")
    whole = head + b"\r\n\r\n" + body
    return mutated(chance, whole) if chance.random() < 0.15 else whole


def mutated(chance, sent):
    """Some bytes taken out, doubled, changed or cut off."""
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(sent) + 1)
        sent = chance.choice(
            [
                sent[:at],
                sent[:at] + bytes([chance.randrange(256)]) + sent[at + 1 :],
                sent[:at] + sent[at + chance.randrange(9) :],
                sent[:at] + sent[max(0, at - 20) : at] * chance.choice([1, 30]) + sent[at:],
            ]
        )
    return sent or b"\n"


class Sockets:
    """The app behind connections of the server, each the other end of a pair of sockets."""

    def __init__(self, app):
        self.config = Server(app, SHORT).config
        self.config.load()
        # uvicorn takes its log for itself; the tests want to see it.
        logging.getLogger("uvicorn").propagate = True
        self.state = ServerState()

    async def answer(self, sent):
        """What comes back until the server closes."""
        here, there = socket.socketpair()
        make = lambda: Connection(self.config, self.state, {}, limits=SHORT)  # noqa: E731
        await asyncio.get_running_loop().connect_accepted_socket(make, there)
        reader, writer = await asyncio.open_connection(sock=here)
        try:
            writer.write(sent)
            return await asyncio.wait_for(reader.read(), SECONDS)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def all(self, requests):
        answers = []
        for start in range(0, len(requests), AT_ONCE):
            answers += await asyncio.gather(*map(self.answer, requests[start : start + AT_ONCE]))
        return answers


def library_of(folder):
    """A recording, one over two texts, and what could be offered of a folder of damaged ones."""
    library = open_library([], folder, SHORT)
    library.give(Path("book.safetensors"), book(300))
    library.give(Path("pair.safetensors"), translation())
    half = translation()
    half.model, half.tokens = "\ud800", ["\udfff", *"坐在垫上"]
    library.give(Path("half.safetensors"), half)
    return library


def in_own_loop(work):
    """In a separate thread: a browser of other tests may keep a loop running in this one."""
    found = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(work())))
    thread.start()
    thread.join()
    return found[0]


def test_requests_of_all_kinds_get_an_answer_below_500(tmp_path, caplog):
    translation().save(tmp_path / "kept.safetensors")
    damaged = (tmp_path / "kept.safetensors").read_bytes()[:3000]
    app = make_app([Words()], library_of(None), ServerAddress(), SHORT)
    requests = [request_of(chance, damaged) for _, chance in cases(400)]
    good = b"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nConnection: close\r\n\r\n"
    with caplog.at_level(logging.ERROR):
        *answers, last = in_own_loop(lambda: Sockets(app).all([*requests, good]))
    app.server_state.jobs.close()
    counts = Counter()
    for sent, answer in zip(requests, answers):
        if answer.startswith(b"HTTP/1.1 100"):
            answer = answer.partition(b"\r\n\r\n")[2]  # the answer itself comes after "go on"
        status = int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0
        assert status < 500, (sent[:300], answer[:300])
        assert answer == b"" or status, (sent[:300], answer[:300])
        counts[status] += 1
    assert not caplog.records, caplog.text
    assert last.startswith(b"HTTP/1.1 200 ")
    assert {200, 202, 400, 404, 422} <= set(counts)
    print(
        f"{len(requests)} requests:",
        ", ".join(f"{status or 'closed'} × {n}" for status, n in sorted(counts.items())),
    )


def test_damaged_recordings_in_the_kept_folder_are_skipped_or_served(tmp_path):
    translation().save(tmp_path / "kept.safetensors")
    whole = (tmp_path / "kept.safetensors").read_bytes()
    for number, chance in cases(40):
        bad = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            bad[chance.randrange(len(bad) if chance.random() < 0.5 else 2000)] = chance.randrange(256)
        (tmp_path / f"{number}.safetensors").write_bytes(
            bad if chance.random() < 0.8 else bad[: chance.randrange(9000)]
        )
    skipped = {}
    library = open_library([], tmp_path, SHORT, skipped.__setitem__)
    app = make_app([], library, ServerAddress(), SHORT)
    paths = ["/api/state"]
    for name in library.given:
        paths += [
            f"/api/recordings/{name}{rest}" for rest in ("", "/texts", "/tiles/0/0/0/0/0", "/peaks/2/1/0/0/0")
        ]
    requests = [
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nConnection: close\r\n\r\n".encode() for path in paths
    ]
    answers = in_own_loop(lambda: Sockets(app).all(requests))
    app.server_state.jobs.close()
    assert all(b"200" <= answer[9:12] < b"500" for answer in answers)
    print(f"{len(library.given)} offered, {len(skipped)} skipped")


def test_the_fuzzer_can_fail(caplog):
    async def broken(scope, receive, send):
        raise ValueError("not caught")

    (answer,) = in_own_loop(
        lambda: Sockets(broken).all([b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"])
    )
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert caplog.records
