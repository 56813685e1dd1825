"""``regard look photo.png``: read by an encoder of pictures, or with a question by a model of both."""

import numpy as np
import pytest
from PIL import Image

import regard
from app.test_explain import run
from recording.test_picture import reader_of
from recording.test_vision_language import saved


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vit")
    reader_of("vit", folder)
    return folder


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llava")
    saved("llava", folder)
    return folder


def photo_in(folder, name="photo.png"):
    pixels = np.random.default_rng(0).integers(0, 256, (30, 50, 3), np.uint8)
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def test_a_picture_is_read_shown_and_saved(vit, tmp_path):
    photo = photo_in(tmp_path, "photo & <b>.png")
    figure, kept = tmp_path / "head.png", tmp_path / "seen.safetensors"
    shown = run("look", photo, "--model", vit, "--out", tmp_path / "look.html", "--figure", figure,
                "--layer", 1, "--head", 1, "--save", kept)  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert figure.stat().st_size > 1000
    assert regard.load(kept).picture.grid == (4, 4)
    assert "<b>.png" not in (tmp_path / "look.html").read_text(encoding="utf-8")


def test_a_picture_is_read_with_a_question(llava, tmp_path):
    photo, kept = photo_in(tmp_path), tmp_path / "seen.safetensors"
    page = tmp_path / "look.html"
    shown = run("look", photo, "What is this ?", "--model", llava, "--out", page, "--save", kept)
    assert shown.exit_code == 0, shown.output
    seen = regard.load(kept)
    assert seen.picture.grid == (4, 4)
    assert seen.tokens[0][-4:] == ["What", "is", "this", "?"]
    assert "data:image/png;base64," in page.read_text(encoding="utf-8")


def test_questions_that_are_refused(llava, tmp_path):
    photo = photo_in(tmp_path)
    for arguments, status, says in (
        (["The", "cat", "--model", llava], 2, "QUESTION needs a picture"),
        ([photo, "What", "--pair", "What", "--model", llava], 2, "not with both"),
        (
            [photo, "What", "--model", llava, "--effects", "--out", tmp_path / "a.html"],
            1,
            "--effects needs a text",
        ),
    ):
        shown = run("look", *arguments)
        assert shown.exit_code == status, shown.output
        assert says in " ".join(shown.output.split())


def test_what_is_refused(vit, tmp_path):
    photo = photo_in(tmp_path)
    (tmp_path / "not.png").write_text("no picture")
    for arguments, says in (
        ([tmp_path / "not.png", "--model", vit], "must hold a picture"),
        ([tmp_path / "not.png"], "must be read by a model of pictures"),
        ([tmp_path / "not.png", "--model", vit, "--generate", 3], "omit --generate"),
        ([photo, "What is this?", "--model", vit], "must be given a picture alone"),
    ):
        shown = run("look", *arguments, "--no-page")
        assert shown.exit_code == 1, shown.output
        assert says in " ".join(shown.output.split())
