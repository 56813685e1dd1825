"""Two processes under torchrun, against one with the same batches."""

import dataclasses
import json

import pytest
import torch

from regard.translator import train
from regard.translator.files import read_tensors
from torchrun_server import torchrun


def losses(folder):
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [entry["loss"] for entry in entries if "loss" in entry]


def test_two_processes_train_as_one(data, pairs, tiny, tmp_path):
    recipe = dataclasses.replace(tiny, dropout=0.0, steps=10, log_every=1, tokens_per_batch=70)
    file = tmp_path / "recipe.json"
    file.write_text(recipe.to_json(), encoding="utf-8")
    # The modules that training would import in each process.
    with torchrun(tmp_path, "regard.translator", "torch._dynamo") as together:
        code, said, errors = together(
            "trained", 2, "train", data, "--out", tmp_path / "two", "--recipe", file, "--num-beams", 2
        )
    assert code == 0, errors
    train(pairs, tmp_path / "one", recipe)
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-5)
    one, _ = read_tensors(tmp_path / "one" / "weights-0000010.safetensors", do="")
    two, _ = read_tensors(tmp_path / "two" / "weights-0000010.safetensors", do="")
    # Softmax does not see a bias of the keys: its gradient is rounding, which Adam makes large.
    for name in (name for name in one if not name.endswith("projection.bias")):
        torch.testing.assert_close(two[name], one[name], atol=1e-4, rtol=1e-3)
    # Only the first process writes and speaks.
    assert len(losses(tmp_path / "two")) == 10
    assert said.count("greedy") == 1
    assert (tmp_path / "two" / "model" / "scores.json").exists()
    checkpoint, _ = read_tensors(tmp_path / "two" / "checkpoint.safetensors", do="")
    assert not torch.equal(checkpoint["random.0"], checkpoint["random.1"])
    # Another number of processes is another configuration.
    with pytest.raises(ValueError, match="Got processes = 1"):
        train(pairs, tmp_path / "two", recipe, resume=True)
