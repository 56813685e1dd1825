import json

import pytest
from click.testing import CliRunner

from regard.app.main import main
from regard.translator import development_sentences, everyday_sentences, measured_model

WORDS = [("cat", "猫"), ("dog", "狗"), ("bird", "鸟"), ("fish", "鱼"), ("horse", "马"), ("cow", "牛")]
RECIPE = {
    "encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "hidden": 32, "length": 32,
    "english_tokens": 60, "steps": 6, "checkpoint_every": 3, "log_every": 2, "averaged": 2, "held_out": 4,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    # Nine of both sets instead of 200: these models translate none of them.
    monkeypatch.setattr(measured_model, "everyday_sentences", lambda: everyday_sentences()[:9])
    monkeypatch.setattr(measured_model, "development_sentences", lambda: development_sentences()[:9])
    lines = [f"The {a} sees a {b}.\t{x}看见{y}。\tCC\n" for a, x in WORDS for b, y in WORDS]
    (tmp_path / "cmn.txt").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE), encoding="utf-8")
    return tmp_path


def run(folder, *arguments):
    call = ["train", str(folder / "cmn.txt"), "--out", str(folder / "run"), *map(str, arguments)]
    return CliRunner().invoke(main, call)


def test_the_command_from_end_to_end(folder):
    first = run(folder, "--recipe", folder / "recipe.json", "--minutes", 0)
    assert first.exit_code == 0, first.output
    again = run(folder, "--resume")
    assert again.exit_code == 0, again.output
    assert "6/6" in again.output
    assert "left" in again.output
    assert "greedy" in again.output
    assert "16 beams" in again.output
    scores = json.loads((folder / "run" / "model" / "scores.json").read_text())
    assert scores["held_out_sentences"] == 4
    assert scores["averaged"] == ["weights-0000003.safetensors", "weights-0000006.safetensors"]
    assert (folder / "run" / "loss.png").exists()


def test_options_are_checked_before_the_training(folder):
    for option, value in (("--beams", 0), ("--minutes", -1)):
        shown = run(folder, "--recipe", folder / "recipe.json", option, value)
        assert shown.exit_code == 2
        assert f"{option}':" in shown.output
    assert not (folder / "run").exists()


def test_missing_weights_are_named(folder):
    assert run(folder, "--recipe", folder / "recipe.json").exit_code == 0
    (folder / "run" / "weights-0000003.safetensors").unlink()
    shown = run(folder, "--resume")
    assert shown.exit_code == 0
    assert "Averaged files of weights: 1. Missing: weights-0000003" in " ".join(shown.output.split())


def test_errors_are_clean_and_nothing_is_overwritten(folder):
    assert run(folder, "--recipe", folder / "recipe.json", "--steps", 1).exit_code == 0
    before = (folder / "run" / "run.json").read_bytes()
    for arguments, says in (
        (["--recipe", folder / "recipe.json"], "Continue with --resume"),
        (
            ["--resume", "--steps", 9],
            "options it started with (steps = 1). Got steps = 9",
        ),
        (["--recipe", folder / "none.json"], "A recipe must be a JSON file"),
        (["--resume", "--steps", 0], "Got steps = 0"),
    ):
        shown = run(folder, *arguments)
        assert shown.exit_code == 1
        assert shown.output.startswith("Error: ")
        assert says in " ".join(shown.output.split())
    assert (folder / "run" / "run.json").read_bytes() == before
    (folder / "cmn.txt").write_text("alone\n")
    assert "in line 1 of" in run(folder, "--resume").output


def test_a_dictionary_and_a_second_measurement(folder):
    words = [f"{chinese} {chinese} [x] /{english}/\n" for english, chinese in WORDS]
    (folder / "words.u8").write_text("".join(words), encoding="utf-8")
    recipe = {**RECIPE, "validation": 3, "piece_dropout": 0.2, "precision": "bfloat16"}
    (folder / "recipe.json").write_text(json.dumps(recipe), encoding="utf-8")
    options = ["--dictionary", folder / "words.u8"]
    assert run(folder, "--recipe", folder / "recipe.json", *options, "--minutes", 0).exit_code == 0
    refused = run(folder, "--resume")
    assert refused.exit_code == 1
    assert "dictionary" in refused.output
    done = run(folder, "--resume", *options)
    assert done.exit_code == 0, done.output
    model = folder / "run" / "model"
    before = json.loads((model / "scores.json").read_text(encoding="utf-8"))
    assert before["dictionary_words"] == 6
    assert before["validation"]["sentences"] == 3
    assert "CC-CEDICT" in (model / "README.md").read_text(encoding="utf-8")
    assert "cat" in (model / "words.txt").read_text(encoding="utf-8").split()
    (model / "README.md").unlink()
    again = CliRunner().invoke(main, ["train", str(folder / "cmn.txt"), "--evaluate", str(model)])
    assert again.exit_code == 0, again.output
    assert "My grandmother bakes bread every" in again.output
    assert "0 good to every reader, 0 wrong, 9 not read yet" in " ".join(again.output.split())
    assert json.loads((model / "scores.json").read_text(encoding="utf-8")) == before
    assert (model / "README.md").exists()


def test_a_folder_is_asked_for(folder):
    shown = CliRunner().invoke(main, ["train", str(folder / "cmn.txt")])
    assert shown.exit_code == 1
    assert "needs a folder for its output. Got no --out" in shown.output
