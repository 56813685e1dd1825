"""What was kept is offered again; names, tokens and disks of all kinds."""

import logging

import pytest
from click.testing import CliRunner

from app.served import client, finished, served, translation
from regard.app.main import main
from regard.app.server.limits import Limits
from regard.app.server.recording_store import RecordingStore
from regard.app.server.run_server import make_app, open_library, server_address_of
from regard.app.server.safety import ServerAddress
from regard.errors import ArgumentError
from regard.recording import Recording


def post(http, text):
    return finished(http, http.post("/api/readings", json={"model": "words", "text": text}).json()["job"])


def offered(library):
    with client(make_app([], library, ServerAddress())) as http:
        return http.get("/api/state").json()["recordings"]


# ---- the folder ----------------------------------------------------------------------------------


def test_kept_recordings_are_offered_after_a_restart(tmp_path):
    with client(served(keep=tmp_path)) as http:
        for text in ("the cat sat", "the dog"):
            assert post(http, text)["result"] | {"recording": "", "title": ""} == {
                "recording": "",
                "title": "",
                "kept": True,
                "unsaved": False,
            }
    library = open_library([], tmp_path, Limits())
    found = offered(library)
    assert sorted(one["title"].split("-", 2)[2] for one in found) == ["the-cat-sat", "the-dog"]
    with client(make_app([], library, ServerAddress())) as http:
        for one in found:
            assert http.get(f"/api/recordings/{one['id']}").status_code == 200
            assert http.get(f"/api/recordings/{one['id']}/tiles/0/0/0/0/0").status_code == 200


def test_damaged_ones_are_skipped_with_a_word(tmp_path):
    translation().save(tmp_path / "a.safetensors")
    whole = (tmp_path / "a.safetensors").read_bytes()
    (tmp_path / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.safetensors").write_text("nothing of the kind")
    (tmp_path / "folder.safetensors").mkdir()
    (tmp_path / "notes.txt").write_text("of the user")
    skipped = {}
    library = open_library([], tmp_path, Limits(), skipped.__setitem__)
    assert [one.title for one in library.given.values()] == ["a"]
    assert sorted(skipped) == ["folder.safetensors", "half.safetensors", "text.safetensors"]
    assert all(str(error) for error in skipped.values())
    assert len(list(tmp_path.iterdir())) == 5  # nothing is removed


def test_a_file_that_was_also_given_by_name_is_there_once(tmp_path):
    translation().save(tmp_path / "a.safetensors")
    library = open_library([tmp_path / "a.safetensors"], tmp_path, Limits())
    assert len(library.given) == 1


def test_kept_recordings_beyond_the_room_are_named(tmp_path):
    for name in ("1", "2", "3"):
        translation().save(tmp_path / f"{name}.safetensors")
    size = (tmp_path / "1.safetensors").stat().st_size
    skipped = {}
    library = open_library([], tmp_path, Limits(recording_bytes=int(1.5 * size)), skipped.__setitem__)
    assert [one.title for one in library.given.values()] == ["3"]  # the newest
    assert sorted(skipped) == ["1.safetensors", "2.safetensors"]
    assert "Pass it with --recording" in str(skipped["1.safetensors"])


@pytest.mark.parametrize(
    ("lang", "said"), [("en", "skipped bad.safetensors: "), ("zh", "跳过 bad.safetensors：")]
)
def test_the_command_names_what_it_skipped(tmp_path, monkeypatch, lang, said):
    from regard.app.server import run_server, served_models

    (tmp_path / "bad.safetensors").write_bytes(b"bad")
    monkeypatch.setattr(served_models, "load_models", lambda names: [])
    monkeypatch.setattr(run_server, "serve", lambda app, server_address, ready, limits: ready())
    found = CliRunner().invoke(main, ["serve", "--keep", str(tmp_path), "--lang", lang])
    assert found.exit_code == 0, found.output
    assert said in found.output


@pytest.mark.parametrize("error", [OSError(28, "No space left"), RuntimeError("I/O error: No space left")])
def test_a_disk_that_is_full_loses_no_reading(tmp_path, monkeypatch, caplog, error):
    def full(self, path):
        raise error

    monkeypatch.setattr(Recording, "save", full)
    with caplog.at_level(logging.WARNING), client(served(keep=tmp_path)) as http:
        done = post(http, "the cat")
        assert done["state"] == "done"
        assert (done["result"]["kept"], done["result"]["unsaved"]) == (False, True)
        assert http.get(f"/api/recordings/{done['result']['recording']}").status_code == 200
        assert str(tmp_path) not in str(done)
    assert "could not be saved" in caplog.text
    with client(served()) as http:  # nobody wanted it kept
        assert post(http, "the cat")["result"]["unsaved"] is False


# ---- names that are not UTF-8 --------------------------------------------------------------------


def test_half_characters_in_a_file_break_nothing(tmp_path):
    from pathlib import Path

    seen = translation()
    seen.model = "half \ud800 model"
    seen.tokens = ["half \udfff", *"坐在垫上"]
    for call in seen.calls:
        object.__setattr__(call, "name", f"{call.name} \udc80")
    library = RecordingStore(10**9)
    (entry,) = library.give(Path("/x/f\udcffile.safetensors"), seen)
    with client(make_app([], library, ServerAddress())) as http:
        assert http.get("/api/state").json()["recordings"][0]["model"] == "half \ufffd model"
        described = http.get(f"/api/recordings/{entry.id}")
        assert described.status_code == 200
        assert "\ufffd" in described.json()["title"]
        assert "half \ufffd" in http.get(f"/api/recordings/{entry.id}/texts").json()["texts"][1]["tokens"][0]
        job = http.post(f"/api/recordings/{entry.id}/pages", json={}).json()["job"]
        assert finished(http, job)["state"] == "done"
        assert http.get(f"/look/{entry.id}").status_code == 200


# ---- tokens of the address -----------------------------------------------------------------------

TOKENS = [
    "a&#b=c;d%20+e",
    "令牌是很长的秘密",
    "Straße 1234",
    'quote"\\quote',
    "&#60;script&#62;",
    "token=token",
    "+" * 8,
]


@pytest.mark.parametrize("token", TOKENS)
def test_any_token_opens_by_the_printed_address(token):
    server_address = server_address_of("127.0.0.1", 8000, token)
    with client(served(server_address=server_address)) as http:
        assert http.get("/api/state").status_code == 401
        bearer = {"authorization": f"Bearer {token}".encode()}
        assert http.get("/api/state", headers=bearer).status_code == 200
        assert http.get("/api/state", headers={"authorization": b"Bearer \xff\xfe"}).status_code == 401
        answer = http.get(server_address.address, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert token not in answer.headers["set-cookie"]
        assert http.get("/api/state").status_code == 200  # by the cookie
        http.cookies.clear()
        assert http.get("/api/state").status_code == 401


def test_the_way_to_the_page_survives_the_token():
    server_address = server_address_of("127.0.0.1", 8000, "long enough")
    with client(served(server_address=server_address)) as http:
        answer = http.get("/map/a%3Fb%20c?x=%26%23&token=long+enough", follow_redirects=False)
        assert answer.headers["location"] == "/map/a%3Fb%20c?x=%26%23"


def test_a_cookie_is_not_the_token():
    server_address = server_address_of("127.0.0.1", 8000, "long enough")
    with client(served(server_address=server_address)) as http:
        assert http.get("/api/state", headers={"cookie": "regard-8000=long enough"}).status_code == 401


@pytest.mark.parametrize("token", ["half a \udcff token", "two\nlines of it", "a\x00bcdefgh"])
def test_tokens_that_nobody_can_type_are_refused(token):
    with pytest.raises(ArgumentError, match="characters that can be typed"):
        server_address_of("0.0.0.0", 8000, token)


# ---- tokens of a text ----------------------------------------------------------------------------


def test_tokens_of_a_text_are_shown_as_they_are():
    text = "&#60;b&#62; </script> 猫 \u202e <img>"
    with client(served()) as http:
        name = post(http, text)["result"]["recording"]
        assert http.get(f"/api/recordings/{name}/texts").json()["texts"][0]["tokens"][0] == "&#60;b&#62;"
        job = http.post(f"/api/recordings/{name}/pages", json={}).json()["job"]
        assert finished(http, job)["state"] == "done"
        page = http.get(f"/look/{name}").text
        assert "<img>" not in page
        assert "&#60;b" not in page  # a browser would read it as <b
        assert "\\u0026#60;b" in page
        assert "猫" in page


def test_the_built_in_translator_can_be_named(monkeypatch):
    from regard.app.server import run_server

    monkeypatch.setattr(run_server, "serve", lambda app, server_address, ready, limits: ready())
    found = CliRunner().invoke(main, ["serve", "--model", "translator"])
    assert found.exit_code == 0, found.output
    assert found.output.count("(built-in)") == 1
