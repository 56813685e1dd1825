import csv
import io
import json
import xml.etree.ElementTree as ET

import pytest
import torch
from click.testing import CliRunner

import regard
from regard.app.command import main

CAT = "The cat sat on the mat."


def run(*arguments, **options):
    return CliRunner().invoke(main, [str(part) for part in arguments], **options)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)


def test_the_embedded_translator_is_looked_at(tmp_path):
    shown = run("look", CAT)
    assert shown.exit_code == 0, shown.output
    translation = regard.translate(CAT)
    for part in (translation, "cat", "cross-attention of layer", "the most telling heads", "look.html"):
        assert part in shown.output
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert CAT in page
    assert len(page) < 600_000


def test_a_model_in_a_folder(model_folders, tmp_path):
    shown = run("look", "the cat sat on the mat", "--model", model_folders["bert"], "--out", "bert.html")
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "bert.html").exists()
    assert "MB" in shown.output
    assert not (tmp_path / "look.html").exists()


def test_a_decoder_goes_on_and_is_saved_and_drawn(model_folders, tmp_path):
    shown = run(
        "look", "the cat", "--model", model_folders["gpt2"], "--generate", 5,
        "--figure", "head.svg", "--layer", 1, "--head", 2, "--save", "seen.safetensors", "--no-page",
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert list(tmp_path.glob("*.html")) == []
    seen = regard.load("seen.safetensors")
    assert seen[0].v is not None
    text = "".join(ET.parse(tmp_path / "head.svg").getroot().itertext())
    assert "cat" in text


def test_an_encoder_decoder_with_a_given_answer(model_folders):
    shown = run("look", "the cat", "--model", model_folders["bart"], "--pair", "on mat", "--no-page")
    assert shown.exit_code == 0, shown.output
    assert "on mat" in shown.output


def test_the_translation_to_look_at_may_be_given():
    shown = run("look", CAT, "--pair", "猫在睡觉。", "--no-page")
    assert "猫在睡觉。" in shown.output


def test_the_page_is_opened(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert run("look", CAT, "--open").exit_code == 0
    assert opened[0].startswith("file://")
    assert opened[0].endswith("/look.html")


def test_a_large_page_asks_first(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.views.page.writing.LARGEST", 1000)
    shown = run("look", CAT)
    assert shown.exit_code == 1
    assert "insist with --yes" in shown.output
    assert not (tmp_path / "look.html").exists()
    assert run("look", CAT, "--yes").exit_code == 0
    assert (tmp_path / "look.html").exists()


def test_layers_alone():
    assert run("look", CAT, "--layers", "0-1", "--no-page").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["look", ""], "at least one word"),
        (["look", CAT, "--generate", 4], "writes its whole translation"),
        (["look", CAT, "--model", "./nowhere"], "which is neither"),
        (["look", CAT, "--layer", 9], "layer is one of what the page has"),
        (["look", CAT, "--head", 9], "head is one of what the page has"),
        (["look", CAT, "--layers", "7"], "layers= names layers of the model"),
        (["look", "@none.txt"], "@ names a file"),
        (["look", CAT, "--out", "none/x.html"], "Files are written into folders that exist"),
        (["heads", ""], "at least one word"),
        (["heads", CAT, "--sort", "nonsense"], "The table has the columns"),
        (["heads", "--recording", "none.safetensors"], "none.safetensors"),
    ],
)
def test_bad_input_is_refused(arguments, says):
    shown = run(*arguments)
    assert shown.exit_code == 1, shown.output
    assert says in shown.output
    assert "Traceback" not in shown.output


def test_heads_prints_a_row_for_every_head():
    shown = run("heads", CAT, "--csv")
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert len(rows) == 4 * 4 + 3 * 4 * 2
    assert float(rows[0]["entropy"]) >= 0
    assert json.loads(run("heads", CAT, "--json").stdout)[0]["layer"] == 0
    shown = run("heads", CAT, "--sort", "entropy", "--ascending", "--most", 3, "--csv")
    found = [float(row["entropy"]) for row in csv.DictReader(io.StringIO(shown.stdout))]
    assert found == sorted(found)
    assert len(found) == 3


def test_heads_in_the_terminal():
    shown = run("heads", CAT)
    assert shown.exit_code == 0, shown.output
    assert "entropy" in shown.output
    assert "looks at" in run("heads", CAT, "--roles").output
    assert run("heads", CAT, "--roles", "--csv").stdout.startswith("call,")


def test_heads_of_a_saved_recording():
    run("look", CAT, "--save", "seen.safetensors", "--no-page")
    assert (
        run("heads", "--recording", "seen.safetensors", "--csv").stdout == run("heads", CAT, "--csv").stdout
    )


@pytest.mark.parametrize(
    "arguments",
    [["heads"], ["heads", CAT, "--recording", "x"], ["heads", CAT, "--csv", "--json"],
     ["heads", "--recording", "x", "--layers", "1"]],
)  # fmt: skip
def test_options_that_contradict(arguments):
    assert run(*arguments).exit_code == 2
