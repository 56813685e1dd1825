"""Reading texts with transformers models, loaded from folders."""

import pytest
import torch

from regard.errors import ArgumentError, ModelFileError, TextError
from regard.recording import load_reader
from regard.recording.reader import Reader
from regard.recording.tokenizer_check import check_tokenizer, unknown_tokens
from small_models import WORDS


@pytest.fixture(scope="module")
def readers(model_folders):
    return {name: load_reader(folder) for name, folder in model_folders.items()}


def test_an_encoder_reads_one_text_or_two(readers):
    seen = readers["bert"].read("the cat sat")
    assert seen.tokens == [["the", "cat", "sat"]]
    assert len(seen) == 2
    assert seen[0].kind == "encoder"
    assert readers["bert"].read("the cat", pair="on mat").tokens == [["the", "cat", "on", "mat"]]


def test_what_is_recorded_is_what_the_model_computes(readers):
    model = readers["bert"].model
    seen = readers["bert"].read("the cat sat on")
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = model(torch.tensor([[4, 5, 6, 7]]), output_attentions=True).attentions
    for call, weights in zip(seen, own, strict=True):
        for head in range(3):
            assert torch.allclose(call.weights(head), weights[0, head], atol=1e-6)


def test_a_decoder_goes_on_with_the_text(readers):
    reader = readers["gpt2"]
    with torch.no_grad():
        expected = reader.model.generate(torch.tensor([[4, 5]]), max_new_tokens=5, do_sample=False)[0]
    seen = reader.read("the cat", generate=5)
    assert seen.tokens == [[WORDS[index] for index in expected[: seen[0].keys]]]
    assert seen[0].kind == "decoder"
    assert seen[0].queries == seen[0].keys >= 2


def test_an_encoder_decoder_answers_by_itself_or_with_a_given_text(readers):
    reader = readers["bart"]
    seen = reader.read("the cat sat", generate=4)
    assert {call.kind for call in seen} == {"encoder", "decoder", "cross"}
    assert seen.source_tokens == [["the", "cat", "sat"]]
    assert seen.tokens[0][0] == "[E]"  # this family's decoder begins with the end token
    given = reader.read("the cat sat", pair="on mat")
    assert given.tokens == [["[E]", "on", "mat"]]


def test_watch_options_reach_the_watch(readers):
    seen = readers["bert"].read("the cat", layers=1, heads=[0, 2], values=True)
    assert [call.layer for call in seen] == [1]
    assert seen[0].head_numbers == (0, 2)
    assert seen[0].v is not None


def test_only_the_logits_of_one_position_are_computed(readers):
    model = readers["gpt2"].model
    shapes = []
    hook = model.lm_head.register_forward_hook(lambda module, given, out: shapes.append(tuple(out.shape)))
    assert readers["gpt2"].read("the cat sat on")[0].keys == 4
    hook.remove()
    assert shapes == [(1, 1, len(WORDS))]


def test_how_many_positions_there_are(readers):
    assert {name: reader.longest for name, reader in readers.items()} == {
        "bert": 11,
        "roberta": 9,
        "gpt2": 13,
        "bart": 17,
        "classifier": 11,
        "masked": 11,
    }
    assert readers["roberta"].read("cat " * 9)[0].keys == 9


@pytest.mark.parametrize("text", ["", "  \n"])
def test_no_text(readers, text):
    with pytest.raises(TextError, match="at least one word"):
        readers["bert"].read(text)
    with pytest.raises(TextError, match="pair = "):
        readers["bert"].read("cat", pair=text)


def test_a_text_without_tokens(readers):
    reader = readers["bert"]
    silent = Reader(reader.model, lambda *_, **__: {"input_ids": torch.empty(1, 0, dtype=torch.long)}, "bert")
    with pytest.raises(TextError, match="at least one token that bert knows"):
        silent.read("猫")


def test_a_text_too_long(readers):
    with pytest.raises(TextError, match=r"longest = 11\). Got 12 tokens"):
        readers["bert"].read("cat " * 12)
    with pytest.raises(TextError, match="Got 14 tokens, 4 of them generated"):
        readers["gpt2"].read("cat " * 10, generate=4)


def test_an_encoder_does_not_generate(readers):
    with pytest.raises(ArgumentError, match="Only a model with a decoder"):
        readers["bert"].read("cat", generate=3)


@pytest.mark.parametrize("generate", [-1, True, 1.5])
def test_a_wrong_number_to_generate(readers, generate):
    with pytest.raises(ArgumentError, match="generate must be a whole number, 0 or more"):
        readers["gpt2"].read("cat", generate=generate)


def test_a_given_answer_is_not_generated(readers):
    with pytest.raises(ArgumentError, match="not both"):
        readers["bart"].read("cat", pair="dog", generate=3)


@pytest.mark.parametrize("name", ["./nowhere", "a/b/c", "~nobody/x", "/nowhere/at/all"])
def test_no_such_folder_is_never_asked_of_the_hub(name, monkeypatch):
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", lambda _: pytest.fail("asked"))
    with pytest.raises(ModelFileError, match="which is neither"):
        load_reader(name)


def test_a_folder_that_is_no_model(tmp_path):
    with pytest.raises(ModelFileError, match="save_pretrained"):
        load_reader(tmp_path)


def test_damaged_weights(model_folders, tmp_path):
    for file in model_folders["bert"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[: -9 if file.suffix == ".safetensors" else None])
    with pytest.raises(ModelFileError, match="deserializing"):
        load_reader(tmp_path)


def test_without_transformers(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ModelFileError, match="regard\\[hf\\]"):
        load_reader("bert-base-uncased")


# ---- texts that the tokenizer does not know ------------------------------------------------------


def without_tokenizer(folder, tmp_path):
    for file in folder.iterdir():
        if "token" not in file.name:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.mark.parametrize(("name", "files"), [("bert", "vocab.txt"), ("gpt2", "vocab.json, merges.txt")])
def test_a_folder_without_a_tokenizer_is_refused_by_name(model_folders, tmp_path, name, files):
    # transformers itself makes an empty tokenizer there, which reads [UNK] throughout.
    folder = without_tokenizer(model_folders[name], tmp_path)
    with pytest.raises(ModelFileError, match=rf"files of its tokenizer \({files}, tokenizer.json\)"):
        load_reader(folder)


def test_a_tokenizer_of_special_tokens_alone_is_refused():
    class Empty:
        all_special_ids = (0, 1, 2)

        def __init__(self):
            self.vocab_files_names = {"vocab_file": "vocab.txt"}

        def __len__(self):
            return 3

    with pytest.raises(ModelFileError, match=r"more than its special tokens. Got 3 tokens of 'a/b', all of"):
        check_tokenizer(Empty(), "a/b", None)


def test_a_tokenizer_of_bytes_needs_no_files(tmp_path):
    from transformers import ByT5Tokenizer

    check_tokenizer(ByT5Tokenizer(), "bytes", tmp_path)


def test_a_text_of_unknown_tokens_is_refused(readers):
    reader = readers["bert"]
    assert reader.read("the cat zebra")[0].keys == 3  # one of three
    assert reader.read("cat zebra")[0].keys == 2  # half of them
    with pytest.raises(TextError, match=r"must know most tokens of a text. Got 2 of 3 tokens that"):
        reader.read("cat zebra lion")
    with pytest.raises(TextError, match="1 of 1 tokens"):
        readers["bart"].read("cat", pair="zebra")
    # Neither special tokens nor a bare space make a text known.
    ids = reader.tokenizer("cat zebra [S] [E] [S] lion")["input_ids"]
    assert unknown_tokens(reader.tokenizer, ids, {0, 1, 2, 3}) == (2, 3)


def test_a_model_without_an_end_token_stops_at_its_last_position(model_folders):
    reader = load_reader(model_folders["bart"])
    for config in (reader.model.generation_config, reader.model.config):
        config.eos_token_id = config.forced_eos_token_id = None
    seen = reader.read("cat dog")
    assert len(seen.tokens[0]) <= reader.longest
    assert seen.layer(0, kind="cross").queries == len(seen.tokens[0])
    with pytest.raises(TextError, match=r"longest = 17\). Got 18 tokens, 18 of them generated"):
        reader.read("cat dog", generate=18)
