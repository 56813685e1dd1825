import dataclasses
import json
import shutil

import pytest
import torch

from regard.errors import ArgumentError, ModelFileError, TextError, TrainingError
from regard.translator import average, evaluate, export, load_translator
from regard.translator.files import read_tensors
from regard.translator.training_checkpoint import snapshots


def test_the_average_is_the_mean(learned_run):
    paths = snapshots(learned_run.folder)
    assert len(paths) == 3
    mean = average(paths)
    several = [read_tensors(path, do="")[0] for path in paths]
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, torch.stack([each[name] for each in several]).mean(0))
    with pytest.raises(TrainingError, match="at least one checkpoint"):
        average([])


def test_an_exported_model_translates_what_it_has_not_seen(learned_run, scores):
    folder = learned_run.folder / "model"
    assert {path.name for path in folder.iterdir()} == {
        "model.safetensors", "english.json", "chinese.json", "recipe.json", "scores.json", "alignment.json",
        "README.md", "words.txt", "translation_table.safetensors",
    }  # fmt: skip
    weights, _ = read_tensors(folder / "model.safetensors", do="")
    assert {tensor.dtype for tensor in weights.values()} == {torch.int8, torch.float16, torch.float32}
    assert json.loads((folder / "scores.json").read_text()) == scores
    assert scores["greedy"]["bleu"] > 80
    assert scores["steps"] == 90
    translator = load_translator(folder)
    assert evaluate(translator, learned_run.corpus.held_out).bleu == scores["greedy"]["bleu"]
    assert translator.translate("I like cats.") == "我喜欢猫。"
    texts = ["Tom eat apples.", "we see tea.", "THEY BUY DOGS."]
    wanted = ["汤姆吃苹果。", "我们看见茶。", "他们买狗。"]
    assert translator.translate_all(texts) == translator.translate_all(texts, num_beams=1) == wanted


def test_weights_that_are_missing_are_named(learned_run, scores, few_everyday, tmp_path):
    assert scores["missing"] == []
    copied = dataclasses.replace(learned_run, folder=shutil.copytree(learned_run.folder, tmp_path / "copy"))
    (copied.folder / "weights-0000080.safetensors").unlink()
    (copied.folder / "weights-0000007.safetensors").write_bytes(b"not one of the last")
    (copied.folder / "log.jsonl").write_text("")  # says how it went, and decides nothing
    found = export(copied)
    assert found["averaged"] == ["weights-0000060.safetensors", "weights-0000090.safetensors"]
    assert found["missing"] == ["weights-0000080.safetensors"]
    assert found["steps"] == 90
    card = (copied.folder / "model" / "README.md").read_text(encoding="utf-8")
    assert "the last 2 checkpoints averaged (weights-0000080.safetensors missing)" in card
    damaged = copied.folder / "weights-0000060.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match=r"weights-0000060\.safetensors\. Remove this file and continue"):
        export(copied)


def test_options_of_an_export_are_checked_first(learned_run, tmp_path):
    with pytest.raises(ArgumentError, match="Got num_beams = 0"):
        export(dataclasses.replace(learned_run, folder=tmp_path), num_beams=0)
    with pytest.raises(TrainingError, match=r"Making a model needs at least one checkpoint\. Got none in"):
        export(dataclasses.replace(learned_run, folder=tmp_path))


def test_a_sentence_that_cannot_be_read_counts_as_empty(learned_run, scores):
    translator = load_translator(learned_run.folder / "model")
    held_out = learned_run.corpus.held_out
    spoiled = [dataclasses.replace(held_out[0], english="猫"), *held_out[1:]]
    assert evaluate(translator, spoiled).bleu < evaluate(translator, held_out).bleu


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "at least one word"),
        (" \n", "at least one word"),
        ("猫狗", "knows"),
        ("cat " * 99, "longest = 32"),
    ],
)
def test_bad_texts_are_refused(learned_run, scores, text, says):
    with pytest.raises(TextError, match=says):
        load_translator(learned_run.folder / "model").translate(text)


def test_damaged_folders_are_refused(learned_run, scores, tmp_path):
    def copy():
        return shutil.copytree(learned_run.folder / "model", tmp_path / "copy", dirs_exist_ok=True)

    whole = (copy() / "model.safetensors").read_bytes()
    for damaged in (whole[:1000], whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b""):
        (copy() / "model.safetensors").write_bytes(damaged)
        with pytest.raises(ModelFileError, match="Copy or export it again"):
            load_translator(tmp_path / "copy")
    (copy() / "recipe.json").write_text(learned_run.recipe.to_json().replace('"width": 32', '"width": 64'))
    with pytest.raises(ModelFileError, match="weights must fit the recipe"):
        load_translator(tmp_path / "copy")
    (copy() / "english.json").unlink()
    with pytest.raises(ModelFileError, match="with all of its files"):
        load_translator(tmp_path / "copy")
