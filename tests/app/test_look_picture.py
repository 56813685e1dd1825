"""``regard look photo.png``: a picture read by an encoder of pictures."""

import numpy as np
import pytest
from PIL import Image

import regard
from app.test_explain import run
from recording.test_picture import reader_of


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vit")
    reader_of("vit", folder)
    return folder


def test_a_picture_is_read_shown_and_saved(vit, tmp_path):
    photo, figure, saved = tmp_path / "photo & <b>.png", tmp_path / "head.png", tmp_path / "seen.safetensors"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 50, 3), np.uint8)).save(photo)
    shown = run("look", photo, "--model", vit, "--out", tmp_path / "look.html", "--figure", figure,
                "--layer", 1, "--head", 1, "--save", saved)  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert figure.stat().st_size > 1000
    assert regard.load(saved).picture.grid == (4, 4)
    assert "<b>.png" not in (tmp_path / "look.html").read_text(encoding="utf-8")


def test_what_is_refused(vit, tmp_path):
    (tmp_path / "not.png").write_text("no picture")
    for arguments, says in (
        ([tmp_path / "not.png", "--model", vit], "must hold a picture"),
        ([tmp_path / "not.png"], "encoder of pictures, without a text"),
        ([tmp_path / "not.png", "--model", vit, "--generate", 3], "omit --pair and --generate"),
    ):
        shown = run("look", *arguments, "--no-page")
        assert shown.exit_code == 1, shown.output
        assert says in " ".join(shown.output.split())
