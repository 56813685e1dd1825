"""The likeliest next tokens of every position: the same as from the model's own logits, saved and loaded."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import regard
from regard.errors import ArgumentError, RecordingFileError, ShapeError
from regard.recording import load_reader, recording_file
from regard.recording.next_tokens import NextTokens
from small_models import WORDS


@pytest.fixture(scope="module")
def readers(model_folders):
    return {name: load_reader(model_folders[name]) for name in ("gpt2", "bart", "bert")}


def expected(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].softmax(-1)


def agrees(found, likely, ids):
    assert len(found) == len(ids)
    top = likely.topk(5, -1)
    for position in range(len(ids)):
        tokens, shares = zip(*found.at(position))
        assert list(tokens) == [WORDS[index] for index in top.indices[position]]
        assert shares == pytest.approx(top.values[position].tolist(), abs=1e-6)
    for position in range(1, len(ids)):
        own = float(likely[position - 1, ids[position]])
        assert found.probability(position) == pytest.approx(own, abs=1e-6)
    assert found.probability(0) is None


def test_a_text_that_is_read(readers):
    seen = readers["gpt2"].read("the cat sat on", next_tokens=True)
    ids = [4, 5, 6, 7]
    agrees(seen.next_tokens, expected(readers["gpt2"].model, ids), ids)
    assert seen.next_tokens.generated is None


def test_a_generation(readers):
    seen = readers["gpt2"].read("the cat", generate=5, next_tokens=True)
    ids = [WORDS.index(token) for token in seen.tokens[0]]
    agrees(seen.next_tokens, expected(readers["gpt2"].model, ids), ids)
    assert seen.next_tokens.generated == 2
    # Greedy: what was written is what was likeliest.
    assert seen.next_tokens.at(1)[0][0] == seen.tokens[0][2]


def test_logits_that_the_model_changes_after_its_last_layer_are_asked_of_the_model(readers, monkeypatch):
    reader = readers["gpt2"]
    forward = type(reader.model).forward

    def scaled(self, *args, **kwargs):
        found = forward(self, *args, **kwargs)
        found.logits = found.logits * 0.25
        return found

    monkeypatch.setattr(type(reader.model), "forward", scaled)
    seen = reader.read("the cat sat on", next_tokens=True)
    ids = [4, 5, 6, 7]
    agrees(seen.next_tokens, expected(reader.model, ids), ids)
    monkeypatch.setattr("regard.recording.next_tokens.WHOLE", 1)
    assert reader.read("the cat sat on", next_tokens=True).next_tokens is None


def test_an_encoder_decoder(readers):
    reader = readers["bart"]
    seen = reader.read("the cat sat", pair="on mat", next_tokens=True)
    source = torch.tensor([[4, 5, 6]])
    target = torch.tensor([[WORDS.index(token) for token in seen.tokens[0]]])
    with torch.no_grad():
        likely = reader.model(input_ids=source, decoder_input_ids=target).logits[0].softmax(-1)
    agrees(seen.next_tokens, likely, target[0].tolist())
    assert reader.read("the cat sat", generate=3, next_tokens=True).next_tokens.generated == 1


def test_an_encoder_expects_nothing_and_nobody_is_asked_by_default(readers):
    assert readers["bert"].read("the cat", next_tokens=True).next_tokens is None
    assert readers["gpt2"].read("the cat").next_tokens is None


def test_saved_and_loaded_and_files_without_them(readers, tmp_path):
    seen = readers["gpt2"].read("the cat sat", generate=3, next_tokens=True)
    seen.save(tmp_path / "x.safetensors")
    again = regard.load(tmp_path / "x.safetensors").next_tokens
    assert [again.at(p) for p in range(len(again))] == [seen.next_tokens.at(p) for p in range(len(again))]
    assert torch.equal(again.own, seen.next_tokens.own)
    assert again.generated == 3
    # A file of an earlier version does not know the field.
    rewritten(tmp_path, lambda described, tensors: described.pop("next_tokens"))
    assert regard.load(tmp_path / "y.safetensors").next_tokens is None


@pytest.mark.parametrize("name", ["best", "own", "probabilities"])
def test_a_damaged_file_is_refused(readers, tmp_path, name):
    readers["gpt2"].read("the cat sat", next_tokens=True).save(tmp_path / "x.safetensors")

    def damage(described, tensors):
        tensors[f"next.{name}"] = tensors[f"next.{name}"] + 1000

    rewritten(tmp_path, damage)
    with pytest.raises(RecordingFileError, match="between 0 and 1"):
        regard.load(tmp_path / "y.safetensors")


def rewritten(folder, change):
    """The file x with its description or tensors changed, as y, with a digest that fits."""
    with safe_open(folder / "x.safetensors", framework="pt") as file:
        header = dict(file.metadata())
        tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
    described = json.loads(header["description"])
    change(described, tensors)
    header["description"] = json.dumps(described)
    header["digest"] = recording_file._digest(header["description"], tensors)
    save_file(tensors, folder / "y.safetensors", metadata=header)


def next_tokens(positions=3, **changed):
    parts = {
        "words": ("a", "b"),
        "best": torch.zeros(positions, 2, dtype=torch.int64),
        "probabilities": torch.full((positions, 2), 0.5),
        "own": torch.full((positions - 1,), 0.5),
    }
    return NextTokens(**{**parts, **changed})


def test_errors(readers):
    with pytest.raises(ShapeError, match=r"own one entry fewer\. Got best"):
        next_tokens(own=torch.ones(3))
    with pytest.raises(ArgumentError, match="name their words"):
        next_tokens(best=torch.full((3, 2), 7))
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        next_tokens(own=torch.tensor([float("nan"), 0.5]))
    with pytest.raises(ArgumentError, match=r"generated = 9"):
        next_tokens(generated=9)
    with pytest.raises(ArgumentError, match=r"position = 3"):
        next_tokens().at(3)
    seen = readers["gpt2"].read("the cat")
    with pytest.raises(ShapeError, match=r"every position of the text \(2\). Got 3 rows"):
        seen.next_tokens = next_tokens()


def test_the_translator_says_what_it_expected():
    from regard.translator import embedded, look

    seen = look(embedded(), "The cat sat on the mat.")
    found = seen.recording.next_tokens
    assert found.generated == 1
    assert len(found) == len(seen.recording.tokens[0])
    likely = [found.at(position)[0][0] for position in range(len(found) - 1)]
    # Beam search mostly writes what is likeliest, and in this sentence it does so nearly everywhere.
    assert sum(a == b for a, b in zip(likely, seen.translation)) >= len(seen.translation) - 2
