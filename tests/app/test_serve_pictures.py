"""Pictures in the app: an image encoder among the models, over HTTP and in the browser."""

import base64
import shutil
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from app.served import Words, client, finished, served
from recording.test_picture import reader_of
from recording.test_vision_language import saved
from regard.app.server.served_models import load_models
from regard.app.server.served_pictures import PictureModel


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secret") / "small-vit"
    folder.mkdir()
    reader_of("vit", folder)
    (found,) = [one for one in load_models([str(folder)]) if isinstance(one, PictureModel)]
    return found


def png(width=30, height=50, kind="PNG"):
    file = BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def written(content):
    return base64.b64encode(content).decode()


@pytest.fixture(scope="module")
def http(model):
    with client(served(models=[Words(), model], picture=20_000)) as found:
        yield found


def read(http, **body):
    return http.post("/api/readings", json={"model": "model-0", "text": "photo.png", **body})


def test_a_picture_is_read_and_shown(http, model):
    described = http.get("/api/state").json()
    assert [one["kind"] for one in described["models"]] == ["encoder", "picture"]
    assert described["limits"]["picture"] == 20_000
    job = finished(http, read(http, picture=written(png())).json()["job"])
    assert job["state"] == "done", job
    entry = http.app.server_state.library.get(job["result"]["recording"])
    assert entry.title == "photo.png"
    wanted = model.reader.read(Image.open(BytesIO(png())))
    assert entry.recording.picture.grid == wanted.picture.grid == (4, 4)
    assert (entry.recording.picture.image == wanted.picture.image).all()
    page = finished(http, http.post(f"/api/recordings/{entry.id}/pages", json={}).json()["job"])
    assert page["state"] == "done", page
    shown = http.get(f"/look/{entry.id}").text
    assert "data:image/png;base64," in shown
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "reads a picture, without a text. Got no picture"),
        ({"picture": written(png()), "generate": 3}, "Got a picture with a text"),
        ({"picture": "not base 64!"}, "PNG, JPEG or WebP file in base 64"),
        ({"picture": written(b"GIF89a, or so")}, "PNG, JPEG or WebP file in base 64"),
        ({"picture": written(png(kind="BMP"))}, "PNG, JPEG or WebP file in base 64"),
        ({"picture": written(png()[:200])}, "PNG, JPEG or WebP file in base 64"),
        ({"model": "model-0", "picture": written(png(1, 1)), "pair": "x"}, "Got a picture with a text"),
    ],
)
def test_what_is_refused(http, body, says):
    job = finished(http, read(http, **body).json()["job"])
    assert job["state"] == "failed"
    assert says in job["error"]


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both") / "small-llava"
    folder.mkdir()
    saved("llava", folder)
    return folder


@pytest.fixture(scope="module")
def asking(llava, model):
    (found,) = [one for one in load_models([str(llava)]) if isinstance(one, PictureModel)]
    with client(
        served(models=[Words(), model, replace(found, id="asked")], picture=20_000, tokens=100)
    ) as http:
        yield http


def test_a_picture_is_read_with_a_question(asking):
    described = asking.get("/api/state").json()["models"][-1]
    assert (described["kind"], described["pair"]) == ("picture", True)
    body = {"model": "asked", "picture": written(png())}
    for question in ("What is this ?", None):
        job = finished(asking, read(asking, **body, pair=question).json()["job"])
        assert job["state"] == "done", job
        recording = asking.app.server_state.library.get(job["result"]["recording"]).recording
        assert recording.picture.grid == (4, 4)
        assert recording.next_tokens is not None
        if question:
            assert recording.tokens[0][-4:] == ["What", "is", "this", "?"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "reads a picture and a question, and writes nothing. Got no picture"),
        ({"picture": written(png()), "generate": 3}, "Got generate = 3"),
        ({"picture": written(png()), "pair": "cat " * 200}, "at most 100 tokens"),
        ({"picture": written(png()), "pair": "<image> <image>"}, "image token once"),
    ],
)
def test_what_a_model_of_pictures_and_text_refuses(asking, body, says):
    job = finished(asking, read(asking, model="asked", **body).json()["job"])
    assert job["state"] == "failed"
    assert says in job["error"]


def test_without_its_processor_it_reads_text(llava, tmp_path):
    folder = tmp_path / "no-processor"
    shutil.copytree(llava, folder, ignore=shutil.ignore_patterns("*processor*"))
    assert load_models([str(folder)])[-1].described()["kind"] == "encoder"


def test_a_model_of_text_refuses_pictures(model):
    from regard.app.server.api_types import ReadingRequest
    from regard.app.server.served_pictures import check_no_picture
    from regard.errors import ArgumentError

    with pytest.raises(ArgumentError, match=r"This model reads text. Got a picture"):
        check_no_picture(ReadingRequest("words", "x", picture="eA=="))


def test_a_picture_that_is_too_large_is_refused(http, monkeypatch):
    answer = read(http, picture="A" * 27_000)
    assert answer.status_code == 413
    assert "picture can have at most 26,668 characters" in answer.json()["error"]
    monkeypatch.setattr("regard.app.server.served_pictures.MOST_PIXELS", 100)
    job = finished(http, read(http, picture=written(png())).json()["job"])
    assert "at most 100 pixels. Got 30 × 50" in job["error"]
