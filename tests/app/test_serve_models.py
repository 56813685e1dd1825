"""Models behind the server: transformers from a folder, and a translator; named, checked, stopped."""

import json
import shutil

import pytest
import torch
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as kinds
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from app.served import client, finished, served
from regard.app.server import served_models
from regard.app.server.api_types import ReadingRequest
from regard.app.server.jobs import JobStoppedError
from regard.app.server.limits import Limits
from regard.app.server.served_models import EXAMPLES, ReaderModel, TranslatorModel, load_models
from regard.errors import ArgumentError, ModelFileError, TextError
from regard.translator import ChineseCharacters, EnglishTokens, Pair, Recipe, Translator, Vocabularies
from regard.translator.translate_text import build_model

WORDS = ["[UNK]", "the", "cat", "sat", "on", "mat"]


def hears(share, stage=None):
    """Somebody who lets it go on."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("secret") / "little-gpt"
    sizes = {"vocab_size": len(WORDS), "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 40}
    GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).save_pretrained(path)
    made = Tokenizer(kinds.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]").save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(folder):
    (found,) = [one for one in load_models([str(folder)]) if isinstance(one, ReaderModel)]
    return found


@pytest.fixture(scope="module")
def translator():
    pairs = [Pair("The cat sat.", "猫坐。"), Pair("The dog sat.", "狗坐。")]
    recipe = Recipe(
        encoder_layers=1, decoder_layers=1, width=16, heads=2, hidden=16, length=24, english_tokens=60
    )
    english = EnglishTokens.learn([pair.english for pair in pairs], 60)
    chinese = ChineseCharacters.learn([pair.chinese for pair in pairs], least=1)
    vocabularies = Vocabularies(english, chinese)
    torch.manual_seed(0)
    return TranslatorModel(Translator(build_model(recipe, vocabularies).eval(), vocabularies))


def test_a_model_is_called_by_its_name_and_not_by_the_folder_that_says_nothing(folder, tmp_path):
    config = json.loads((folder / "config.json").read_text())

    def kept(place, **changed):
        path = tmp_path / place
        shutil.copytree(folder, path)
        (path / "config.json").write_text(json.dumps({**config, **changed}))
        return str(path)

    places = [
        kept("small/model"),
        kept("tuned/model", _name_or_path="openai-community/gpt2-medium"),
        kept("models/model", _name_or_path="openai-community/gpt2-medium"),
        kept("output/model", _name_or_path="/home/somebody/private/tiny-gpt/model"),
        kept("run/checkpoint-20", _name_or_path="gpt2"),
        kept("run/checkpoint-40"),
        kept("output/checkpoint-60", _name_or_path="gpt2"),
        kept(f"models--our--hub-gpt/snapshots/{'0a' * 20}", _name_or_path="gpt2"),
        kept("again/small/model"),
    ]
    wanted = ["small", "tuned", "gpt2-medium", "tiny-gpt"]
    wanted += ["run · checkpoint-20", "run · checkpoint-40", "gpt2 · checkpoint-60", "hub-gpt", "small (2)"]
    found = [one for one in load_models(places) if isinstance(one, ReaderModel)]
    assert [one.label for one in found] == wanted
    assert [one.reader.name for one in found] == wanted


def test_a_decoder_keeps_what_comes_next_for_texts_of_moderate_length(model, monkeypatch):
    seen = model.read(ReadingRequest(model.id, "the cat sat", generate=3), Limits(), hears)
    assert seen.next_tokens is not None
    assert seen.next_tokens.best.shape[0] == len(seen.tokens[0])
    monkeypatch.setattr(served_models, "VALUES_UP_TO", 5)
    assert (
        model.read(ReadingRequest(model.id, "the cat sat", generate=3), Limits(), hears).next_tokens is None
    )


def test_a_model_of_a_folder_reads_over_http(model, folder):
    assert model.described() == {
        "id": "model-0",
        "label": "little-gpt",
        "architecture": "GPT2LMHeadModel",
        "parameters": sum(one.numel() for one in model.reader.model.parameters()),
        "kind": "decoder",
        "longest": 40,
        "pair": True,
        "examples": EXAMPLES["decoder"],
    }
    with client(served(models=[model])) as http:
        body = {"model": "model-0", "text": "the cat sat on the mat", "generate": 4}
        job = finished(http, http.post("/api/readings", json=body).json()["job"])
        assert job["state"] == "done", job
        entry = http.app.server_state.library.get(job["result"]["recording"])
        wanted = model.reader.read("the cat sat on the mat", generate=4)
        assert entry.recording.tokens == wanted.tokens
        assert entry.calls[1].v is not None
        torch.testing.assert_close(entry.calls[1].weights(2), wanted[1].weights(2))
        # What goes wrong is said without a word on where the model lies.
        long = finished(http, http.post("/api/readings", json={**body, "text": "cat " * 50}).json()["job"])
        assert long["state"] == "failed"
        assert "must fit the positions of the model" in long["error"]
        assert "secret" not in str(long) + http.get("/api/state").text


def test_progress_runs_to_the_end_and_a_reading_stops_inside(model):
    shares = []
    model.read(ReadingRequest("any", "the cat"), Limits(), lambda share, stage=None: shares.append(share))
    assert shares == sorted(shares)
    assert len(shares) > 10
    assert shares[-1] > 0.8

    def stops(share, stage=None):
        if share > 0.5:
            raise JobStoppedError

    with pytest.raises(JobStoppedError):
        model.read(ReadingRequest("any", "the cat"), Limits(), stops)
    assert not model._lock.locked()
    assert model.read(ReadingRequest("any", "the cat"), Limits(), hears).tokens == [["the", "cat"]]


def test_texts_and_recordings_that_are_too_large(model, monkeypatch):
    with pytest.raises(TextError, match=r"A text can have at most 5 tokens on this server\. Got 6"):
        model.read(ReadingRequest("any", "the cat sat", generate=3), Limits(tokens=5), hears)
    with pytest.raises(TextError, match=r"A recording can take at most 0\.0 GB on this server"):
        model.read(ReadingRequest("any", "the cat sat"), Limits(recording_bytes=100), hears)
    monkeypatch.setattr(served_models, "VALUES_UP_TO", 2)
    assert model.read(ReadingRequest("any", "the cat sat"), Limits(), hears)[0].v is None


def test_a_model_that_is_not_there(tmp_path):
    with pytest.raises(ModelFileError, match="A model must be a folder"):
        load_models([str(tmp_path / "none")])


def test_a_translator_reads_and_writes(translator):
    with client(served(models=[translator])) as http:
        said = http.get("/api/state").json()["models"][0]
        assert (said["kind"], said["longest"]) == ("translator", 24)
        body = {"model": "translator", "text": "The cat\n sat.", "pair": "猫坐。"}
        job = finished(http, http.post("/api/readings", json=body).json()["job"])
        assert job["state"] == "done", job
        name = job["result"]["recording"]
        found = http.get(f"/api/recordings/{name}").json()
        assert [call["kind"] for call in found["calls"]] == ["encoder", "decoder", "cross"]
        texts = http.get(f"/api/recordings/{name}/texts").json()["texts"]
        cross = found["calls"][2]
        assert "".join(texts[cross["queryText"]]["tokens"]) == "猫坐。…"  # what each row writes
        assert texts[cross["keyText"]]["tokens"][-1] == "[END]"
        begun = http.post(f"/api/recordings/{name}/pages", json={}).json()["job"]
        assert finished(http, begun)["state"] == "done"


def test_the_translator_writes_its_whole_translation(translator):
    with pytest.raises(ArgumentError, match="The built-in translator always writes its whole translation"):
        translator.read(ReadingRequest("any", "The cat sat.", generate=3), Limits(), hears)
    with pytest.raises(TextError, match="at most 2 tokens on this server"):
        translator.read(ReadingRequest("any", "The cat sat."), Limits(tokens=2), hears)
