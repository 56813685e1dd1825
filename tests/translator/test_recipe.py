import dataclasses

import pytest

from regard.errors import ArgumentError
from regard.translator import Recipe, Vocabularies
from regard.translator.translate_text import build_model, count_parameters


def test_a_recipe_survives_its_file(tmp_path, tiny):
    file = tmp_path / "recipe.json"
    file.write_text(tiny.to_json(), encoding="utf-8")
    assert Recipe.read(file) == tiny
    assert Recipe.from_json('{"dropout": 0}') == dataclasses.replace(Recipe(), dropout=0.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"widht": 8}', "Got widht. Correct the names"),
        ("[]", "Got list"),
        ("{", "JSON object"),
        ('{"width": 8.0}', "Got width = 8.0"),
        ('{"steps": 0}', "Got steps = 0"),
        ('{"dropout": 1.0}', "Got dropout = 1.0"),
        ('{"clip": -1}', "Got clip = -1"),
        ('{"clip": true}', "Got clip = True"),
        ('{"written_pairs": 1}', "written_pairs must be true or false"),
        ('{"norm": "middle"}', "norm must be one of"),
        ('{"positions": "x"}', "positions must be one of"),
        ('{"norm": []}', "norm must be one of"),
        ('{"width": 190}', "Got heads = 4"),
        pytest.param('{"clip": 1' + "0" * 400 + "}", "clip must be a number", id="clip 10^400"),
        pytest.param("[" * 100_000, "JSON object", id="deep"),
    ],
)
def test_a_bad_recipe_is_refused(text, says):
    with pytest.raises(ArgumentError, match=says):
        Recipe.from_json(text)


def test_no_recipe_file_is_said_so(tmp_path):
    with pytest.raises(ArgumentError, match="A recipe must be a JSON file"):
        Recipe.read(tmp_path / "none.json")
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ArgumentError, match="A recipe must be a readable JSON file in UTF-8"):
        Recipe.read(tmp_path / "bad.json")


def test_the_default_fits_into_twelve_megabytes():
    class Sized:
        def __init__(self, size):
            self.size = size

        def __len__(self):
            return self.size

    model = build_model(Recipe(), Vocabularies(Sized(4000), Sized(3000)))
    assert 2 * count_parameters(model) < 11.3e6
