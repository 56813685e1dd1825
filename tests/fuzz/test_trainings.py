"""Trainings that are killed and whose files are damaged: the same weights or an error, never others."""

import collections
import dataclasses
import json
import os
import shutil

import pytest
import torch

from fuzz.damage import Killed, contents_of, damaged, killed_at_writes, write_all
from fuzz.rounds import cases, killed_again_and_again
from regard.errors import RegardError
from regard.translator import average, train, training_log
from regard.translator.training_checkpoint import expected_snapshots
from translator.conftest import pairs, tiny  # noqa: F401 - fixtures


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(training_log, "draw", lambda *_: None)  # a picture takes longer than the training


@pytest.fixture(scope="module")
def recipe(tiny):  # noqa: F811 - pytest's way
    return dataclasses.replace(tiny, width=8, hidden=8, steps=9, checkpoint_every=2, log_every=2)


def outcome(folder, recipe):
    """Everything that a training gives: the mean of its last weights, and its log without the time."""
    paths = expected_snapshots(folder, recipe.steps, every=recipe.checkpoint_every, kept=recipe.averaged)
    mean = {name: tensor.tolist() for name, tensor in average(paths).items()}
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return mean, [{**line, "seconds": 0} for line in lines]


def stop_at(step):
    def listen(report):
        if report.step == step:
            raise Killed

    return listen


def test_killed_at_any_write(pairs, recipe, tmp_path, monkeypatch):  # noqa: F811
    train(pairs, tmp_path / "undisturbed", recipe)
    wanted = outcome(tmp_path / "undisturbed", recipe)
    kills = 0
    for number, chance in cases(1):
        folder = tmp_path / str(number)
        every = chance.choice([3, 6, 12])
        while True:
            try:
                with killed_at_writes(monkeypatch, chance, every=every):
                    train(pairs, folder, recipe, resume=True)
                break
            except Killed:
                kills += 1
        assert outcome(folder, recipe) == wanted, number
        assert not list(folder.rglob(".*.part"))
        shutil.rmtree(folder)
    assert kills > 4
    print(f"{kills} ends at a write, all resumed to the same weights")


def test_damage_to_any_file(pairs, recipe, tmp_path):  # noqa: F811
    train(pairs, tmp_path / "undisturbed", recipe)
    wanted = outcome(tmp_path / "undisturbed", recipe)
    with pytest.raises(Killed):
        train(pairs, tmp_path / "begun", recipe, report=stop_at(7))
    kept = contents_of(tmp_path / "begun")
    outcomes = collections.Counter()
    for number, chance in cases(12):
        folder = tmp_path / str(number)
        write_all(folder, kept)
        path = sorted(kept)[number % len(kept)]
        raw, kind = damaged(kept[path], chance)
        (folder / path).write_bytes(raw)
        name = "weights" if path.name.startswith("weights-") else path.name
        try:
            train(pairs, folder, recipe, resume=True)
            found = outcome(folder, recipe)
        except RegardError as error:
            assert path.name in str(error), (number, kind, error)  # noqa: PT017
            outcomes[f"{name}: error"] += 1
        else:
            assert found == wanted, (number, path, kind)
            outcomes[f"{name}: unharmed"] += 1
        shutil.rmtree(folder)
    assert outcomes["checkpoint.safetensors: error"]
    print(dict(sorted(outcomes.items())))


def test_killed_by_the_system_at_any_moment(tmp_path):
    print(killed_again_and_again("training", tmp_path))
