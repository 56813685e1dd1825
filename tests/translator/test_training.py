import dataclasses
import json
import shutil

import pytest
import torch

from fuzz.damage import run_on_a_full_disk
from regard.errors import ArgumentError, ModelFileError, TrainingError
from regard.heads import read_monitor
from regard.translator import read_dictionary, recipe_of, train
from regard.translator.files import read_tensors
from regard.translator.linear_precision import linear_precision
from regard.translator.training import divergence_of_halves, hide_tokens, learning_rate
from regard.translator.training_checkpoint import CHECKPOINT, snapshots


class StoppedError(Exception):
    """Stands for anything that ends a training between two steps."""


def stop_at(step):
    def listen(report):
        if report.step == step:
            raise StoppedError

    return listen


def weights(folder, step):
    return read_tensors(folder / f"weights-{step:07d}.safetensors", do="")[0]


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def without_time(folder):
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in entry.items() if key != "seconds"} for entry in entries]


@pytest.fixture(scope="module")
def undisturbed(pairs, tiny, tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("undisturbed")
    train(pairs, folder, tiny)
    return folder


def test_the_loss_falls_and_everything_is_written(undisturbed, tiny):
    log = without_time(undisturbed)
    losses = [entry["loss"] for entry in log if "loss" in entry]
    held_out = [entry["held_out"] for entry in log if "held_out" in entry]
    assert losses[-1] < 0.7 * losses[0]
    assert held_out[-1] < 0.7 * held_out[0]
    assert [entry["step"] for entry in log if "loss" in entry] == [4, 8, 12, 16, 20, 24]
    assert [path.stem for path in snapshots(undisturbed)] == [
        "weights-0000015",
        "weights-0000020",
        "weights-0000024",
    ]
    assert (undisturbed / "loss.png").read_bytes().startswith(b"\x89PNG")
    heads = read_monitor(undisturbed / "monitor.csv")
    assert sorted({row["step"] for row in heads}) == list(range(24))  # every step of so short a run
    assert {row["kind"] for row in heads} == {"encoder", "decoder", "cross"}
    assert all(row["gradient"] > 0 for row in heads)
    assert recipe_of(undisturbed) == tiny


@pytest.mark.parametrize("step", [2, 5, 13, 15])
def test_a_stopped_training_resumes_exactly(pairs, tiny, undisturbed, tmp_path, step):
    with pytest.raises(StoppedError):
        train(pairs, tmp_path, tiny, report=stop_at(step))
    torch.manual_seed(99)  # whatever happened in between
    train(reversed_order(pairs), tmp_path, tiny, resume=True)
    for at in (15, 20, 24):
        assert same(weights(tmp_path, at), weights(undisturbed, at))
    assert without_time(tmp_path) == without_time(undisturbed)
    assert (tmp_path / "monitor.csv").read_bytes() == (undisturbed / "monitor.csv").read_bytes()
    state, facts = read_tensors(tmp_path / CHECKPOINT, do="")
    other, other_facts = read_tensors(undisturbed / CHECKPOINT, do="")
    assert same(state, other)
    timed = {"seconds": 0, "log_bytes": 0, "log_digest": ""}  # the log has the time in it
    assert {**facts, **timed} == {**other_facts, **timed}


def reversed_order(pairs):
    return list(reversed(pairs))


def test_another_seed_gives_other_weights(pairs, tiny, tmp_path):
    for seed in (3, 4):
        train(pairs, tmp_path / str(seed), dataclasses.replace(tiny, seed=seed, steps=2))
    one, other = (weights(tmp_path / seed, 2)["target.table.weight"][:9] for seed in ("3", "4"))
    assert not torch.equal(one, other)


def test_time_that_is_up_leaves_a_checkpoint_to_go_on_from(pairs, tiny, undisturbed, tmp_path):
    train(pairs, tmp_path, tiny, minutes=0.0)
    assert [path.stem for path in snapshots(tmp_path)] == ["weights-0000001"]
    train(pairs, tmp_path, tiny, resume=True)
    assert [path.name for path in snapshots(tmp_path)] == [path.name for path in snapshots(undisturbed)]
    assert same(weights(tmp_path, 24), weights(undisturbed, 24))


def test_training_does_not_touch_the_chance_of_others(pairs, tiny, tmp_path):
    torch.manual_seed(7)
    wanted = torch.rand(3)
    torch.manual_seed(7)
    train(pairs, tmp_path, dataclasses.replace(tiny, steps=1))
    assert torch.equal(torch.rand(3), wanted)


def contents(folder):
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()
    }


def test_another_configuration_is_refused_and_nothing_overwritten(pairs, tiny, undisturbed):
    before = contents(undisturbed)
    for recipe, data, resume, says in (
        (dataclasses.replace(tiny, width=64), pairs, True, r"\(width = 32\). Got width = 64"),
        (dataclasses.replace(tiny, steps=99, dropout=0.2), pairs, True, "Got dropout = 0.2, steps = 99"),
        (tiny, pairs[1:], True, "Got data = "),
        (tiny, pairs, False, "Continue with --resume"),
    ):
        with pytest.raises(TrainingError, match=says):
            train(data, undisturbed, recipe, resume=resume)
        assert contents(undisturbed) == before


def test_a_folder_with_other_weights_is_left_alone(pairs, tiny, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"mine")
    with pytest.raises(TrainingError, match="A training run needs its own folder"):
        train(pairs, tmp_path, tiny)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_damaged_checkpoint_is_refused(pairs, tiny, tmp_path):
    train(pairs, tmp_path, tiny, minutes=0.0)
    whole = (tmp_path / CHECKPOINT).read_bytes()
    changed = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
    for damaged in (whole[:-50], changed, b"nonsense"):
        (tmp_path / CHECKPOINT).write_bytes(damaged)
        with pytest.raises(ModelFileError, match=CHECKPOINT.replace(".", r"\.")):
            train(pairs, tmp_path, tiny, resume=True)
        assert (tmp_path / CHECKPOINT).read_bytes() == damaged
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(ModelFileError, match="must describe a training"):
        train(pairs, tmp_path, tiny, resume=True)


def test_other_files_of_a_training_are_as_it_wrote_them(pairs, tiny, tmp_path):
    train(pairs, tmp_path, tiny, minutes=0.0)
    for name, old, new, says in (
        (
            "run.json",
            b'"learning_rate": 0.005',
            b'"learning_rate": 0.004',
            "contents that differ from what was written",
        ),
        ("run.json", b'"digest"', b'"digesu"', "no digest"),
        ("english.json", b'"a"', b'"b"', "The vocabularies of a training run must be as it wrote them"),
        ("log.jsonl", b'"held_out": ', b'"held_out": 1', "Move this file away and continue with --resume"),
    ):
        whole = (tmp_path / name).read_bytes()
        assert old in whole
        (tmp_path / name).write_bytes(whole.replace(old, new, 1))
        with pytest.raises(ModelFileError, match=says):
            train(pairs, tmp_path, tiny, resume=True)
        (tmp_path / name).write_bytes(whole)
    (tmp_path / "log.jsonl").unlink()
    with pytest.raises(StoppedError):
        train(pairs, tmp_path, tiny, resume=True, report=stop_at(4))
    assert without_time(tmp_path)[0]["step"] == 4


def test_a_checkpoint_that_was_there_is_missed(pairs, tiny, undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "copy")
    (folder / CHECKPOINT).unlink()
    with pytest.raises(ModelFileError, match=r"but 3 files of weights\. Restore it"):
        train(pairs, folder, tiny, resume=True)
    assert len(snapshots(folder)) == 3


def test_two_trainings_in_one_folder(pairs, tiny, tmp_path):
    refused = []

    def another(report):
        with pytest.raises(
            TrainingError, match=r"one training run can use a folder at a time\. Got another one"
        ):
            train(pairs, tmp_path, tiny, resume=True)
        refused.append(report.step)

    train(pairs, tmp_path, dataclasses.replace(tiny, steps=2), report=another)
    assert refused == [1, 2]


def test_a_full_disk_ends_a_training_and_the_next_goes_on(pairs, tiny, undisturbed, tmp_path, monkeypatch):
    _, ends = run_on_a_full_disk(monkeypatch, lambda: train(pairs, tmp_path, tiny, resume=True))
    assert ends
    assert all("No space left on device. Free some space" in said for said in ends)
    for at in (15, 20, 24):
        assert same(weights(tmp_path, at), weights(undisturbed, at))
    assert without_time(tmp_path) == without_time(undisturbed)


@pytest.mark.parametrize("minutes", [-1.0, float("nan"), float("inf")])
def test_minutes_are_checked_first(pairs, tiny, tmp_path, minutes):
    with pytest.raises(ArgumentError, match="minutes must be a finite number, 0 or more"):
        train(pairs, tmp_path / "run", tiny, minutes=minutes)
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_no_number_ends_the_training(pairs, tiny, tmp_path):
    with pytest.raises(TrainingError, match="The loss must be a finite number"):
        train(pairs, tmp_path, dataclasses.replace(tiny, learning_rate=1e30, clip=0.0, warm_up=0))


def test_the_learning_rate_goes_up_and_down(tiny):
    rates = [learning_rate(tiny, step) for step in range(tiny.steps + 1)]
    assert max(rates) == rates[tiny.warm_up - 1] == rates[tiny.warm_up] == tiny.learning_rate
    assert rates[: tiny.warm_up] == sorted(rates[: tiny.warm_up])
    assert rates[tiny.warm_up :] == sorted(rates[tiny.warm_up :], reverse=True)
    assert rates[-1] == pytest.approx(0.1 * tiny.learning_rate)


def test_the_last_steps_can_have_a_constant_learning_rate(tiny):
    longer = dataclasses.replace(tiny, steps=tiny.steps + 7, constant_steps=7)
    rates = [learning_rate(longer, step) for step in range(longer.steps)]
    assert rates[: tiny.steps] == [learning_rate(tiny, step) for step in range(tiny.steps)]
    assert rates[tiny.steps :] == [pytest.approx(0.1 * tiny.learning_rate)] * 7


def test_a_run_with_a_dictionary_resumes_bit_for_bit(pairs, tiny, tmp_path):
    words = [
        ("苹果", "apple"),
        ("猫", "cat"),
        ("狗", "dog"),
        ("茶", "tea"),
        ("书", "book"),
        ("汤姆", "Tom (name)"),
    ]
    (tmp_path / "words.u8").write_text(
        "".join(f"{zh} {zh} [x] /{en}/\n" for zh, en in words), encoding="utf-8"
    )
    dictionary = read_dictionary(tmp_path / "words.u8")
    recipe = dataclasses.replace(
        tiny, steps=5, validation=5, piece_dropout=0.3, precision="bfloat16", tokens_per_batch=1200,
        target_dropout=0.2, consistency=1.5, consistent_from=0.4,
    )  # fmt: skip
    whole = train(pairs, tmp_path / "whole", recipe, dictionary=dictionary)
    for _ in range(recipe.steps):  # stops after each step, in all of its epochs
        stopped = train(pairs, tmp_path / "stopped", recipe, dictionary=dictionary, resume=True, minutes=0)
    one, other = (read_tensors(run.folder / "checkpoint.safetensors", do="")[0] for run in (whole, stopped))
    assert all(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(TrainingError, match="dictionary = None"):
        train(pairs, tmp_path / "whole", recipe, resume=True)


def test_the_divergence_of_two_passes():
    torch.manual_seed(0)
    logits = torch.randn(6, 5, 7, dtype=torch.float64)
    following = torch.tensor([[4, 5, 6, 2, 0], [4, 2, 0, 0, 0], [5, 5, 5, 5, 2]]).repeat(2, 1)
    one, other = logits.softmax(-1).chunk(2)
    kept = following[:3] != 0
    wanted = sum(
        torch.nn.functional.kl_div(first[kept].log(), second[kept], reduction="sum") / 2
        for first, second in ((one, other), (other, one))
    )
    torch.testing.assert_close(divergence_of_halves(logits, following), wanted)
    assert divergence_of_halves(logits[:3].repeat(2, 1, 1), following) == 0


def test_consistency_begins_when_its_time_comes(pairs, tiny, undisturbed, tmp_path):
    later = dataclasses.replace(tiny, consistency=2.0, consistent_from=0.6)
    with pytest.raises(StoppedError):
        train(pairs, tmp_path, later, report=stop_at(16))
    found, plain = without_time(tmp_path), without_time(undisturbed)
    before = [entry for entry in plain if entry["step"] <= 0.6 * tiny.steps]
    assert before
    assert found[: len(before)] == before
    assert found[-1]["step"] == plain[len(found) - 1]["step"] == 16
    assert found[-1] != plain[len(found) - 1]


def test_hidden_tokens():
    torch.manual_seed(0)
    target = torch.randint(4, 99, (40, 50))
    target[:, 0], target[:, 40:] = 1, 0
    hidden = hide_tokens(target, 0.25)
    changed = hidden != target
    assert (hidden[changed] == 3).all()
    assert not changed[:, 0].any()
    assert not changed[:, 40:].any()
    assert 0.2 < changed[:, 1:40].float().mean() < 0.3
    assert hide_tokens(target, 0.0) is target


def test_linear_layers_in_half_precision():
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(64, 32), torch.randn(16, 64)
    exact = layer(x)
    exact.square().sum().backward()
    wanted, layer.weight.grad = layer.weight.grad, None
    with linear_precision("bfloat16"):
        half = layer(x)
    half.square().sum().backward()
    assert half.dtype == layer.weight.grad.dtype == torch.float32
    assert not torch.equal(half, exact)
    torch.testing.assert_close(half, exact, atol=0.03, rtol=0.03)
    assert torch.nn.functional.cosine_similarity(layer.weight.grad.flatten(), wanted.flatten(), 0) > 0.999
    with linear_precision("float32"):
        assert torch.equal(layer(x), exact)
