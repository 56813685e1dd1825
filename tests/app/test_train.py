import json

import pytest
from click.testing import CliRunner

from regard.app.main import main

WORDS = [("cat", "猫"), ("dog", "狗"), ("bird", "鸟"), ("fish", "鱼"), ("horse", "马"), ("cow", "牛")]
RECIPE = {
    "encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "hidden": 32, "length": 32,
    "english_tokens": 60, "steps": 6, "checkpoint_every": 3, "log_every": 2, "averaged": 2, "held_out": 4,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
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
    assert "4 beams" in again.output
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
