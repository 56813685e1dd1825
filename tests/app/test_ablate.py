"""``regard ablate`` and ``regard look --effects``: what they print, write and refuse."""

import csv
import json
import re

import numpy as np
import pytest
import torch

import regard
from app.command_line import CAT, run
from regard import metrics
from regard.errors import ArgumentError
from views.decoding import Decoded

pytestmark = pytest.mark.usefixtures("elsewhere")


def test_without_a_model_the_translator_is_measured_by_its_loss(tmp_path):
    shown = run("ablate", CAT, "--most", 5, "--figure", "effects.svg", "--out", "effects.csv")
    assert shown.exit_code == 0, shown.output
    assert regard.translate(CAT) in shown.output
    assert re.search(r"Change of loss without each head \(0\.\d+ with all of them\)", shown.output)
    assert "… and 67 more" in shown.output
    rows = list(csv.DictReader((tmp_path / "effects.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 72
    best = max(rows, key=lambda row: abs(float(row["difference"])))
    line = shown.output.splitlines()[3].split()
    assert line[:3] == [best["kind"], best["layer"], best["head"]]
    assert "cross" in (tmp_path / "effects.svg").read_text(encoding="utf-8")


def test_a_decoder_with_two_tokens_in_chinese(model_folders, tmp_path):
    shown = run(
        "ablate", "the cat sat on the", "--model", model_folders["gpt2"], "--target", "mat",
        "--against", "dog", "--by", "layer", "--out", "x.json", "--lang", "zh",
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert "逐层去掉注意力时 difference('mat', 'dog') 的变化" in shown.output
    assert [row["layer"] for row in json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))] == [0, 1]


def test_by_key_a_decoder_names_what_it_wrote_and_cross_attention_the_source():
    shown = run("ablate", CAT, "--by", "key", "--top", 30)
    assert shown.exit_code == 0, shown.output
    rows = [line.split() for line in shown.output.splitlines()]
    named = {
        (row[0], int(row[1])): row[2] for row in rows if row and row[0] in ("encoder", "decoder", "cross")
    }
    assert named["encoder", 1] == named["cross", 1] == "cat"
    assert named["decoder", 1] == regard.translate(CAT)[0]


def test_by_key_names_the_tokens(model_folders):
    shown = run(
        "ablate", "the cat sat on the mat", "--model", model_folders["gpt2"], "--by", "key", "--target", "dog"
    )
    assert shown.exit_code == 0, shown.output
    for word in ("cat", "sat", "on", "mat", "logit('dog')"):
        assert word in shown.output


def test_encoders_and_encoder_decoders(model_folders):
    shown = run("ablate", "the cat sat", "--model", model_folders["bert"])
    assert shown.exit_code == 0, shown.output
    assert "Change of cosine without each head (1.000 with all of them)" in shown.output
    shown = run("ablate", "the cat sat", "--model", model_folders["bart"], "--pair", "the dog sat")
    assert shown.exit_code == 0, shown.output
    assert "cross" in shown.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--against", "dog"), "--against needs a --target"),
        (("--target", "mat"), "--target needs a --model"),
        (("--out", "x.txt"), "--out must be a .csv or a .json file"),
        (("--by", "edge"), "is not one of"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments, says):
    shown = run("ablate", CAT, *arguments)
    assert shown.exit_code == 2
    assert says in " ".join(shown.output.split())


def test_a_target_is_one_token(model_folders):
    shown = run("ablate", "the cat", "--model", model_folders["gpt2"], "--target", "the mat")
    assert shown.exit_code == 1
    assert "exactly one token of the model. Got 'the mat', which is 'the' + 'mat'" in shown.output
    shown = run("ablate", "the cat", "--model", model_folders["gpt2"], "--target", "the mat", "--lang", "zh")
    assert "须恰好是模型的一个词元" in shown.output


def test_control_c_shows_what_was_measured(monkeypatch):
    import os
    import signal

    from regard.ablation import measured_effects, sweep

    monkeypatch.setattr(measured_effects, "TOKENS", 64)  # several forward passes
    tried = sweep._tried

    def interrupted(*args):
        os.kill(os.getpid(), signal.SIGINT)
        return tried(*args)

    monkeypatch.setattr(sweep, "_tried", interrupted)
    shown = run("ablate", CAT)
    assert shown.exit_code == 0, shown.output
    assert "Stopped: the other edits were not tried." in shown.output


# ---- the page ------------------------------------------------------------------------------------


def test_a_page_with_effects_shows_and_sorts_them(tmp_path):
    shown = run("look", CAT, "--effects")
    assert shown.exit_code == 0, shown.output
    page = Decoded(tmp_path / "look.html")
    header = page.header
    assert header["statistics"][0] == "effect"
    sizes = [np.abs(page.arrays[call["statistics"]].reshape(-1, 4)[0]).max() for call in header["calls"]]
    assert 0.01 < max(sizes) < 3
    assert header["start"]["sort"] == "effect"
    assert run("look", CAT).exit_code == 0
    header = Decoded(tmp_path / "look.html").header
    assert "effect" not in header["statistics"]


def test_a_second_text_is_read_once(model_folders, tmp_path):
    """An @ that was written twice is a sign of the text, not the name of a file."""
    text = ["the cat sat", "--pair", "@@the mat", "--model", model_folders["bert"]]
    shown = run("look", *text, "--effects", "--out", "pair.html")
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "pair.html").exists()


def test_effects_are_for_pages_of_what_was_read():
    for arguments in (("--no-page",), ("--generate", 3)):
        shown = run("look", CAT, "--effects", *arguments)
        assert shown.exit_code == 2
        assert "--effects needs a page" in shown.output


def test_a_page_takes_effects_by_head_alone(tmp_path):
    model = regard.nn.LanguageModel(50, width=16, heads=2, layers=2)
    ids = torch.arange(1, 9)[None]
    with torch.no_grad(), regard.watch(model) as seen:
        model(ids)
    with pytest.raises(ArgumentError, match=r"regard.ablate by head. Got a sweep by layer"):
        regard.page(seen, tmp_path / "x.html", effects=regard.ablate(model, ids, metrics.loss, by="layer"))
    with pytest.raises(ArgumentError, match=r"regard.ablate by head. Got dict"):
        regard.page(seen, tmp_path / "x.html", effects={})
