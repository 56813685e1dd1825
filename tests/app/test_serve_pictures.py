"""Pictures in the app: an image encoder among the models, over HTTP and in the browser."""

import base64
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from app.served import Words, client, finished, served
from recording.test_picture import reader_of
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
