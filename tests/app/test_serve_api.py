"""The interface over HTTP: what is read, built and looked at, against the definition."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from app.served import book, client, finished, served
from regard.app.server.openapi import schema
from regard.app.server.served_models import load_models
from regard.recording import Recording
from regard.views.page.head_summaries import call_summaries
from views.exact_weights import blocks, exact


@pytest.fixture(scope="module")
def server_state(http):
    return http.app.server_state


def build(http, **place):
    answer = http.post("/api/recordings/book/maps", json=place)
    assert answer.status_code in (200, 202), answer.text
    job = answer.json()["job"]
    assert job is None or finished(http, job)["state"] == "done"


def numbers(answer):
    assert answer.status_code == 200, answer.text
    shape = int(answer.headers["x-regard-rows"]), int(answer.headers["x-regard-columns"])
    return np.frombuffer(answer.content, "<f4").reshape(shape)


def test_the_state_tells_what_there_is(http):
    found = http.get("/api/state").json()
    assert [model["id"] for model in found["models"]] == ["words"]
    assert found["recordings"] == [{"id": "book", "title": "book", "model": "Toy", "tokens": 1097}]
    assert found["limits"]["tokens"] == 16384


def test_a_recording_and_its_tokens(http):
    found = http.get("/api/recordings/book").json()
    assert [call["layer"] for call in found["calls"]] == [0, 1]
    assert found["calls"][0]["heads"] == [0, 1]
    assert found["whole"] is True
    (text,) = http.get("/api/recordings/book/texts").json()["texts"]
    assert text["tokens"][:2] == ["<s>", "word1"]
    assert text["special"] == [0]


@pytest.mark.parametrize("sinks", ["show", "first"])
def test_tiles_of_every_level_are_the_definition(http, server_state, sinks):
    call = server_state.library.get("book").calls[1]
    wanted = exact(call, None if sinks == "show" else np.arange(1097) == 0)[0, 1]
    build(http, call=1, head=1, sinks=sinks)
    for level in range(4):
        for kind in ("max", "mean"):
            row, column = (2, 1) if level < 2 else (0, 0)
            url = f"/api/recordings/book/tiles/1/1/{level}/{row}/{column}"
            found = numbers(http.get(url, params={"kind": kind, "sinks": sinks}))
            whole = blocks(wanted, 2**level, kind)
            part = whole[256 * row : 256 * (row + 1), 256 * column : 256 * (column + 1)]
            np.testing.assert_allclose(found, part, rtol=1e-4, atol=1e-5)
    content = http.get("/api/recordings/book/margins/1/1", params={"sinks": sinks}).content
    received, entropy = np.split(np.frombuffer(content, "<f4"), [1097])
    np.testing.assert_allclose(received, wanted.sum(0), rtol=1e-4, atol=1e-5)
    assert entropy.shape == (1097,)


def test_a_peak(http, server_state):
    wanted = exact(server_state.library.get("book").calls[0])[0, 0]
    found = http.get("/api/recordings/book/peaks/0/0/3/100/50").json()
    block = wanted[800:808, 400:408]
    assert found["weight"] == pytest.approx(block.max(), abs=1e-6)
    assert found["weight"] == pytest.approx(wanted[found["query"], found["key"]], abs=1e-6)
    assert found["pairs"] == 64


def test_the_strongest_key_of_a_query(http, server_state):
    weights = exact(server_state.library.get("book").calls[0])[0, 0, 700]
    found = http.get("/api/recordings/book/rows/0/0/700").json()
    assert (found["query"], found["key"]) == (700, int(weights.argmax()))
    assert found["weight"] == pytest.approx(weights.max(), abs=1e-6)


def test_tiles_have_names_that_browsers_keep(http):
    url = "/api/recordings/book/tiles/0/0/0/1/1"
    first = http.get(url)
    assert first.headers["cache-control"] == "private, no-cache"
    again = http.get(url, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = http.get(url, params={"kind": "mean"})
    assert other.headers["etag"] != first.headers["etag"]


@pytest.mark.parametrize(("kind", "size"), [("float16", 2), ("uint8", 1)])
def test_tiles_of_other_types(http, kind, size):
    answer = http.get("/api/recordings/book/tiles/0/0/0/0/0", params={"type": kind})
    assert len(answer.content) == 256 * 256 * size
    picture = http.get("/api/recordings/book/tiles/0/0/0/0/0", params={"type": "png"})
    assert picture.headers["content-type"] == "image/png"
    assert picture.content.startswith(b"\x89PNG")


def test_levels_must_be_built_first(http):
    answer = http.get("/api/recordings/book/tiles/0/1/3/0/0", params={"sinks": "special"})
    assert answer.status_code == 409
    assert "Level 3 of this head is not built yet" in answer.json()["error"]
    answer = http.get("/api/recordings/book/margins/0/1", params={"sinks": "special"})
    assert answer.status_code == 409


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/recordings/nobody", 404, "does not have this recording"),
        ("/api/recordings/../../etc/passwd", 404, "nothing at this address"),
        ("/api/jobs/none", 404, "This job no longer exists"),
        ("/nowhere", 404, "nothing at this address"),
        ("/assets/../library.py", 404, ""),
        ("/assets/app/%2e%2e/library.py", 404, "This file does not exist"),
        ("/api/recordings/book/tiles/9/0/0/0/0", 404, r"This call does not exist (0 … 1)"),
        ("/api/recordings/book/tiles/0/9/0/0/0", 422, "head must be one of the recorded heads"),
        ("/api/recordings/book/tiles/0/0/7/0/0", 422, "level must be between 0 and 3"),
        ("/api/recordings/book/tiles/0/0/0/99/0", 422, "A tile must be one of this level's"),
        ("/api/recordings/book/tiles/0/0/0/-1/0", 422, "row must be a whole number"),
        ("/api/recordings/book/tiles/0/0/" + "9" * 5000 + "/0/0", 422, "level must be a whole number"),
        ("/api/recordings/book/tiles/0/0/0/0/0?kind=least", 422, "kind must be one of max, mean"),
        ("/api/recordings/book/tiles/0/0/0/0/0?type=jpeg", 422, "type must be one of"),
        ("/api/recordings/book/tiles/0/0/0/0/0?scale=x", 422, "scale must be one of"),
        ("/api/recordings/book/tiles/0/0/0/0/0?sinks=x", 422, "sinks must be one of"),
        ("/api/recordings/book/peaks/0/0/0/1097/0", 422, "A cell must be one of this level's"),
        ("/api/recordings/book/rows/0/0/1097", 422, "A row must be one of the queries"),
        ("/api/jobs/x?wait=no", 404, "This job no longer exists"),
    ],
)
def test_refusals(http, path, status, says):
    answer = http.get(path)
    assert answer.status_code == status
    assert says in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"model": "words"}, 422, "text must be a text of at least one word"),
        ({"model": "words", "text": "  "}, 422, "text must be a text of at least one word"),
        ({"model": "other", "text": "a"}, 422, "model must be one of words"),
        ({"model": ["words"], "text": "a"}, 422, "model must be a text"),
        (
            {"model": "words", "text": "a", "path": "/etc/passwd"},
            422,
            "A request can have only the fields model, text",
        ),
        (
            {"model": "words", "text": "a", "generate": 10**9},
            422,
            "generate must be a whole number from 0 to 256",
        ),
        ({"model": "words", "text": "a " * 70_000}, 413, "at most 131,072 characters"),
        ([], 422, "must be a JSON object"),
        ({"model": "words", "text": "\ud800"}, 400, "must be JSON in UTF-8"),
    ],
)
def test_readings_that_are_refused(http, body, status, says):
    answer = http.post(
        "/api/readings", content=json.dumps(body).encode(), headers={"content-type": "application/json"}
    )
    assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.text


def test_bodies_that_are_refused(http):
    url = "/api/readings"
    assert http.post(url, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert http.post(url, content=b"{", headers={"content-type": "application/json"}).status_code == 400
    deep = b"[" * 100_000
    assert http.post(url, content=deep, headers={"content-type": "application/json"}).status_code == 400
    large = b" " * 3_000_000
    assert http.post(url, content=large, headers={"content-type": "application/json"}).status_code == 413

    def unsaid():
        yield from [b" " * 1_000_000] * 3

    answer = http.post(url, content=unsaid(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert http.put(url, json={}).status_code == 405


# ---- reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["translator", "model-0"])
def test_tokens_are_counted_before_a_text_is_read(model, model_folders):
    models = load_models([model_folders["bert"]])
    chosen = next(one for one in models if one.id == model)
    most = min(chosen.longest, 50)
    short, long = "the cat sat on the mat", "the cat sat on the mat " * 400
    with client(served(models=models, tokens=50)) as http:
        found = http.post("/api/counts", json={"model": model, "text": short}).json()
        assert (found["most"], found["characters"]) == (most, len(short))
        assert found["tokens"] == chosen.count(short, 10**6).tokens
        found = http.post("/api/counts", json={"model": model, "text": long[:390]}).json()
        assert found["tokens"] > most
        first = long[: found["characters"]]
        counted = http.post("/api/counts", json={"model": model, "text": first}).json()["tokens"]
        assert most - 6 < counted <= most
        empty = http.post("/api/counts", json={"model": model, "text": ""})
        assert empty.status_code == 200
        assert http.post("/api/counts", json={"model": "none", "text": "a"}).status_code == 422
        assert http.post("/api/counts", json={"model": model, "text": long}).status_code in (413, 422)


def test_a_text_is_read_and_looked_at(http, server_state):
    answer = http.post("/api/readings", json={"model": "words", "text": "the cat sat"})
    assert answer.status_code == 202
    job = finished(http, answer.json()["job"])
    assert (job["state"], job["share"]) == ("done", 1)
    name = job["result"]["recording"]
    found = http.get(f"/api/recordings/{name}").json()
    assert found["title"] == "the cat sat"
    wanted = server_state.library.get(name).calls[0].weights(1).numpy()
    np.testing.assert_array_equal(numbers(http.get(f"/api/recordings/{name}/tiles/0/1/0/0/0")), wanted)
    # Nobody else is told of it.
    assert name not in http.get("/api/state").text


def test_a_page_is_written_and_opened(http):
    job = finished(
        http, http.post("/api/readings", json={"model": "words", "text": "a </script> b"}).json()["job"]
    )
    name = job["result"]["recording"]
    waiting = http.get(f"/look/{name}")
    assert "wait.js" in waiting.text
    begun = http.post(f"/api/recordings/{name}/pages", json={}).json()["job"]
    assert finished(http, begun)["state"] == "done"
    page = http.get(f"/look/{name}").text
    assert 'data-regard="header"' in page
    assert '<script type="module" src="/assets/page/main.js"></script>' in page
    assert http.post(f"/api/recordings/{name}/pages", json={}).json() == {"job": None}
    one = http.post(f"/api/recordings/{name}/pages", json={"call": 0}).json()["job"]
    assert finished(http, one)["state"] == "done"
    assert 'data-regard="header"' in http.get(f"/look/{name}?call=0").text


def test_a_page_that_would_be_too_large_is_refused(monkeypatch):
    from regard.app.server import server_state as state_module

    monkeypatch.setattr(state_module, "WHOLE_PAGE", 1000)
    with client(served()) as http:
        answer = http.post("/api/recordings/book/pages", json={})
        assert answer.status_code == 422
        assert "A page of all calls can have at most 0 MB" in answer.json()["error"]
        assert http.get("/api/recordings/book").json()["whole"] is False


def test_all_heads_are_summarised_beginning_with_a_call(http):
    path = "/api/recordings/book/summaries"
    assert http.get(path).json() == {"calls": 2, "summaries": [], "roles": None, "cards": None}
    job = finished(http, http.post(path, json={"call": 1}).json()["job"])
    assert (job["state"], job["kind"], job["result"]) == (
        "done", "summarising", {"recording": "book", "calls": 2}
    )  # fmt: skip
    found = http.get(path).json()
    assert [one["call"] for one in found["summaries"]] == [1, 0]
    rows, columns, values = found["summaries"][0]["thumbnails"].values()
    weights = exact(book().calls[1])[0]
    wanted = np.stack([blocks(one, 18, "max") for one in weights])  # 1,097 tokens in at most 64 blocks
    assert (2, rows, columns) == wanted.shape
    pictures = np.frombuffer(base64.b64decode(values), np.uint8).reshape(wanted.shape)
    np.testing.assert_allclose(pictures / 255, wanted, atol=0.5 / 255 + 1e-6)
    assert len(found["roles"]) == 2
    assert found["cards"].keys() == {"clear", "heads"}
    # What a client has, it need not get again; what exists is not made again.
    assert [one["call"] for one in http.get(f"{path}?first=1").json()["summaries"]] == [0]
    assert http.post(path, json={}).json() == {"job": None}
    assert http.post(path, json={"call": 2}).status_code == 404
    assert http.post(path, json={"heads": 1}).status_code == 422
    assert http.get("/api/recordings/none/summaries").status_code == 404


def test_a_summary_that_was_left_is_continued():
    app = served()
    entry = app.server_state.library.get("book")
    with client(app) as http:
        kept = app.server_state.summary(entry)
        (first,) = call_summaries(entry.recording, places=[1])
        kept.ready.append(first)
        job = finished(http, http.post("/api/recordings/book/summaries", json={}).json()["job"])
        assert job["state"] == "done"
        assert [one.call for one in kept.ready] == [1, 0]


def test_the_map_of_statistics_alone_is_refused():
    app = served()
    entry = app.server_state.library.get("book")
    app.server_state.library.give(Path("short.safetensors"), Recording("Toy", [entry.calls[0].summary(0)]))
    with client(app) as http:
        assert http.get("/api/recordings/short").json()["calls"][0]["weights"] is False
        answer = http.post("/api/recordings/short/maps", json={})
        assert answer.status_code == 422
        assert "only its statistics" in answer.json()["error"]
        assert http.post("/api/recordings/short/pages", json={"call": 0}).status_code == 422


def test_recordings_of_texts_are_bounded_and_the_given_stay():
    with client(served(recording_bytes=20_000)) as http:
        names = []
        for number in range(8):
            text = " ".join([f"w{number}"] * 30)
            job = finished(
                http, http.post("/api/readings", json={"model": "words", "text": text}).json()["job"]
            )
            names.append(job["result"]["recording"])
            assert http.get(f"/api/recordings/{names[-1]}/tiles/0/0/0/0/0").status_code == 200
        assert http.get(f"/api/recordings/{names[0]}").status_code == 404
        assert http.get(f"/api/recordings/{names[-1]}").status_code == 200
        assert http.get("/api/recordings/book").status_code == 200
        server_state = http.app.server_state
        assert server_state.library.nbytes <= 20_000
        # What was made of those that have gone does not keep them in memory.
        assert {place[0] for place in server_state.matrices._held} == {
            name for name in names if name in server_state.library
        }


def test_the_interface_is_described(http):
    found = http.get("/openapi.json").json()
    assert found == schema(http.app.server_state.limits)
    routes = {route.path for route in http.app.app.routes if route.path.startswith("/api")}
    assert routes == set(found["paths"])


def test_no_answer_names_a_path(http):
    for path in ("/api/state", "/api/recordings/book", "/api/recordings/nobody", "/", "/map/book"):
        assert "/somewhere" not in http.get(path).text
        assert "secret" not in http.get(path).text


def test_a_line_of_the_matrix_is_a_row_or_a_column(http):
    call = http.app.server_state.library.get("book").calls[1]
    for side, wanted in (("query", call.weights(1)[40]), ("key", call.weights(1)[:, 40])):
        answer = http.get(f"/api/recordings/book/lines/1/1/{side}/40")
        assert answer.status_code == 200
        np.testing.assert_allclose(np.frombuffer(answer.content, np.float32), wanted, atol=1e-6)
    assert http.get("/api/recordings/book/lines/1/1/query/5000").status_code == 422
    assert http.get("/api/recordings/book/lines/1/1/row/4").status_code == 422
