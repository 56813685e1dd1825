"""``regard look photo.png``: read by an image encoder, or with a question by a model of both."""

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

import regard
from app.test_explain import run
from recording.test_picture import reader_of
from recording.test_vision_language import saved
from regard import edits
from regard.app.model_input import record

# PaliGemma's processor makes an array of a tensor.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


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


def test_an_edit_is_of_the_part_that_is_recorded(tmp_path):
    """PaliGemma sees in both directions, so that the layers of both its parts are those of an encoder."""
    saved("paligemma", tmp_path)
    photo, edit = photo_in(tmp_path), edits.remove(layers=0, heads=0)
    plain, edited = (
        record(Console(), str(photo), pair="What", model=str(tmp_path), edit=one).recording
        for one in (None, edit)
    )
    assert torch.equal(plain[0].k, edited[0].k)
    assert not torch.equal(plain[1].k, edited[1].k)


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
        ([tmp_path / "not.png"], "must be read by an image model"),
        ([tmp_path / "not.png", "--model", vit, "--generate", 3], "omit --generate"),
        ([photo, "What is this?", "--model", vit], "must be given a picture alone"),
    ):
        shown = run("look", *arguments, "--no-page")
        assert shown.exit_code == 1, shown.output
        assert says in " ".join(shown.output.split())
