"""Reading texts with models of transformers, loaded from folders."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

from regard.errors import ArgumentError, ModelFileError, TextError
from regard.recording import load_reader
from regard.recording.reading import Reader

WORDS = ["[PAD]", "[UNK]", "[S]", "[E]", "the", "cat", "sat", "on", "mat", "dog"]
SIZES = {"vocab_size": len(WORDS)}


def tokenizer():
    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", bos_token="[S]", eos_token="[E]"
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    torch.manual_seed(0)
    small = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 8}
    kinds = {
        "bert": BertModel(BertConfig(**SIZES, **small, max_position_embeddings=11)),
        "roberta": RobertaModel(RobertaConfig(**SIZES, **small, max_position_embeddings=11)),
        "gpt2": GPT2LMHeadModel(
            GPT2Config(**SIZES, n_embd=12, n_layer=2, n_head=3, n_positions=13, eos_token_id=3)
        ),
        "bart": BartForConditionalGeneration(
            BartConfig(
                **SIZES,
                d_model=12,
                encoder_layers=2,
                decoder_layers=3,
                encoder_attention_heads=3,
                decoder_attention_heads=3,
                encoder_ffn_dim=8,
                decoder_ffn_dim=8,
                max_position_embeddings=17,
                pad_token_id=0,
                bos_token_id=2,
                eos_token_id=3,
                decoder_start_token_id=3,
                forced_eos_token_id=None,
            )
        ),
    }
    found = {}
    for name, model in kinds.items():
        found[name] = tmp_path_factory.mktemp("models") / name
        model.save_pretrained(found[name])
        tokenizer().save_pretrained(found[name])
    return found


@pytest.fixture(scope="module")
def readers(folders):
    return {name: load_reader(folder) for name, folder in folders.items()}


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


def test_how_many_positions_there_are(readers):
    assert {name: reader.longest for name, reader in readers.items()} == {
        "bert": 11,
        "roberta": 9,
        "gpt2": 13,
        "bart": 17,
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
    with pytest.raises(ArgumentError, match="number of tokens"):
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


def test_damaged_weights(folders, tmp_path):
    for file in folders["bert"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[: -9 if file.suffix == ".safetensors" else None])
    with pytest.raises(ModelFileError, match="deserializing"):
        load_reader(tmp_path)


def test_without_transformers(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ModelFileError, match="regard\\[hf\\]"):
        load_reader("bert-base-uncased")
