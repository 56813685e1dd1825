"""``regard why``: what it prints, writes and refuses."""

import csv
import io
import json
import re

import pytest
import torch
from click.testing import CliRunner

import regard
from regard.app.main import main
from views.decoding import Decoded

CAT = "The cat sat on the mat."


def run(*arguments, **options):
    return CliRunner().invoke(main, ["why", *(str(part) for part in arguments)], **options)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)


def test_the_translator_is_explained_character_by_character():
    shown = run(CAT, "--most", 3)
    assert shown.exit_code == 0, shown.output
    translation = regard.translate(CAT)
    assert translation in shown.output
    lines = shown.output.splitlines()
    words = next(line for line in lines if "cat" in line and "mat" in line).split()
    cat = next(line for line in lines if line.startswith("猫 ")).split()
    numbers = [0 if number == "·" else int(number) for number in cat[1:]]
    assert words[numbers.index(max(numbers))] == "cat"
    assert "the heads that carried it" in shown.output
    assert "… and 69 more" in shown.output


def test_a_decoder_explains_its_next_token(model_folders):
    shown = run("the cat sat on the", "--model", model_folders["gpt2"])
    assert shown.exit_code == 0, shown.output
    answer, words, numbers = (shown.output.splitlines()[line] for line in (0, 3, 4))
    assert re.fullmatch(r'"\S+" +probability \d+\.\d%', answer)
    assert words.split() == ["the", "cat", "sat", "on", "the"]
    assert sum(int(number) for number in numbers.split() if number != "·") == pytest.approx(100, abs=3)


def test_signed_shares_can_be_read_without_colours(model_folders):
    options = ("--model", model_folders["gpt2"], "--target", "mat", "--against", "dog", "--method")
    for method in ("attribution", "gradient"):
        shown = run("the cat sat on the", *options, method)
        assert shown.exit_code == 0, shown.output
        assert '"mat"   rather than "dog": logits differ by' in shown.output
        numbers = shown.output.splitlines()[4].split()
        assert all(number == "·" or number[0] in "+−" for number in numbers)
        assert sum(int(number[1:]) for number in numbers if number != "·") == pytest.approx(100, abs=3)


def test_colours_are_two_and_tell_the_sign():
    from regard.views.terminal_answers import tint

    weak, strong, other = tint(0.1), tint(1.0), tint(-1.0)
    assert len({weak, strong, other}) == 3
    blue, orange = (re.findall(r"\d+", style) for style in (strong, other))
    assert int(blue[2]) > int(blue[0])
    assert int(orange[0]) > int(orange[2])


def test_a_classifier_explains_its_best_class(model_folders):
    shown = run("the cat sat", "--model", model_folders["classifier"], "--json")
    assert shown.exit_code == 0, shown.output
    answer = json.loads(shown.output)["answers"][0]
    assert answer["answer"] in ("bad", "so so", "good")
    assert answer["row"] == 0
    other = run("the cat sat", "--model", model_folders["classifier"], "--target", "so so", "--json")
    assert json.loads(other.output)["answers"][0]["target"] == 1
    wrong = run("the cat sat", "--model", model_folders["classifier"], "--target", "great")
    assert wrong.exit_code == 1
    assert "classes of the model (bad, so so, good). Got 'great'" in wrong.output


def test_a_masked_model_explains_the_word_at_its_mask(model_folders):
    shown = run("the [PAD] sat", "--model", model_folders["masked"], "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["answers"][0]["row"] == 1
    wrong = run("the cat sat", "--model", model_folders["masked"])
    assert wrong.exit_code == 1
    assert "exactly one mask ([PAD]) in the text. Got 0 of them" in wrong.output


def test_an_encoder_decoder_explains_what_it_writes(model_folders):
    shown = run("the cat sat", "--model", model_folders["bart"], "--pair", "the dog", "--json")
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.output)
    assert [answer["answer"] for answer in found["answers"]] == ["the", "dog"]
    assert {row["side"] for row in found["answers"][0]["tokens"]} == {"source", "text"}
    one = run("the cat sat", "--model", model_folders["bart"], "--pair", "the dog", "--row", 1, "--json")
    assert [answer["row"] for answer in json.loads(one.output)["answers"]] == [1]


def test_csv_and_json_agree(model_folders):
    options = ("the cat sat", "--model", model_folders["gpt2"], "--row", 1, "--method", "gradient")
    rows = list(csv.DictReader(io.StringIO(run(*options, "--csv").stdout)))
    found = json.loads(run(*options, "--json").stdout)
    assert [float(row["share"]) for row in rows] == [row["share"] for row in found["answers"][0]["tokens"]]
    assert {row["row"] for row in rows} == {"1"}
    assert len(found["heads"]) == 6
    assert set(found["heads"][0]) == {"kind", "layer", "head", "value", "share"}


def test_a_page_is_written(tmp_path):
    shown = run(CAT, "--out", "why.html", "--top", 1)
    assert shown.exit_code == 0, shown.output
    assert "why.html" in shown.output
    header = Decoded(tmp_path / "why.html").header
    assert header["start"]["view"] == "text"
    kind, layer, head = next(line.split()[:3] for line in shown.output.splitlines() if "█" in line)
    call = header["calls"][header["start"]["call"]]
    assert (call["kind"], call["layer"], header["start"]["head"]) == (kind, int(layer), int(head))
    assert header["start"]["what"] == "product"


@pytest.mark.parametrize(
    ("method", "shows"),
    [("relevance", "weight"), ("gradient", "product"), ("attribution", "contribution")],
)
def test_a_page_opens_on_what_the_method_reads(method, shows, model_folders, tmp_path):
    shown = run(
        "the cat sat", "--model", model_folders["gpt2"], "--method", method, "--out", "why.html", "--json"
    )
    assert shown.exit_code == 0, shown.output
    header = Decoded(tmp_path / "why.html").header
    assert header["start"].get("what", "weight") == shows
    assert ("relevance" in json.dumps(header["start"])) == (method == "relevance")


@pytest.fixture(scope="module")
def spaced_folder(model_folders, tmp_path_factory):
    """A decoder whose tokens keep the space in front of them, as those of GPT-2 do."""
    import shutil

    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("spaced") / "model"
    shutil.copytree(model_folders["gpt2"], folder)
    pieces = ["[PAD]", "[UNK]", "[S]", "[E]", "the", "Ġcat", "Ġsat", "cat", "-", "Ġthe"]
    made = Tokenizer(models.WordLevel({piece: number for number, piece in enumerate(pieces)}, "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", eos_token="[E]"
    ).save_pretrained(folder)
    return folder


def test_a_token_with_a_space_and_one_without_can_be_told_apart(spaced_folder, tmp_path):
    asked = ("the cat sat", "--model", spaced_folder, "--method", "attribution", "--against", "-")
    for target in ("cat", " cat"):
        shown = run(*asked, "--target", target, "--out", "why.html")
        assert shown.exit_code == 0, shown.output
        assert f'"{target}"   rather than "-": logits differ by' in shown.output
        title = Decoded(tmp_path / "why.html").header["title"]
        assert title == f'"{target}" − "-" ← the cat sat'
        assert json.loads(run(*asked, "--target", target, "--json").stdout)["answers"][0]["answer"] == target


def test_attribution_on_a_classifier_says_what_works_there(model_folders):
    asked = ("the cat sat", "--model", model_folders["classifier"], "--method")
    refused = run(*asked, "attribution")
    said = " ".join(refused.output.split())
    assert refused.exit_code == 1
    assert "Got BertForSequenceClassification, a classifier" in said
    assert "regard why --method relevance or gradient" in said
    assert "AutoModelForCausalLM" not in said
    chinese = " ".join(run(*asked, "attribution", "--lang", "zh").output.split())
    assert "BertForSequenceClassification，这是分类模型" in chinese
    assert "--method relevance 或 gradient" in chinese
    for method in ("relevance", "gradient"):
        assert run(*asked, method).exit_code == 0


def test_in_chinese(model_folders):
    shown = run("the cat sat", "--model", model_folders["gpt2"], "--lang", "zh", "--method", "gradient")
    assert shown.exit_code == 0, shown.output
    assert "每个词的权重 × 梯度（%）" in shown.output
    assert "承载该答案的头" in shown.output
    shown = run(CAT, "--target", "猫", "--lang", "zh")
    assert "请用 --row 指定位置" in shown.output


def test_a_long_text_shows_what_is_around_the_strongest_words():
    from rich.console import Console

    from regard.views.terminal_answers import AROUND, ShadedWord, _kept, _lines

    words = [ShadedWord(f"w{place}", 0.5 if place == 400 else 0.0, True) for place in range(900)]
    kept = [word.text for word in _kept(words, "en")]
    near = [f"w{place}" for place in range(400 - AROUND, 401 + AROUND)]
    assert kept == ["… 392 more …", *near, "… 491 more …"]
    lines = _lines(words, 0.5, False, 60, "en")
    console = Console(width=60)
    assert all(console.measure(line).maximum <= 60 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--csv", "--json"), 2, "Choose --csv or --json"),
        (("--target", "猫"), 1, "Got a target without a position"),
        (("--target", "cat", "--row", "0"), 1, "one Chinese character that the translator knows"),
        (("--row", "99"), 1, "row must be a position in the text"),
        (("--method", "attribution"), 1, "Attribution needs a model of the Llama or GPT-2 family"),
        (("--method", "magic"), 2, "is not one of"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, code, says):
    shown = run(CAT, *arguments)
    assert shown.exit_code == code, shown.output
    assert says in " ".join(shown.output.split())


def test_models_and_tokens_that_cannot_be_explained(model_folders):
    shown = run("the cat sat", "--model", model_folders["bert"])
    assert shown.exit_code == 1
    assert "Got BertModel, which has no language head and no classes" in shown.output
    shown = run("the cat", "--model", model_folders["gpt2"], "--target", "the mat")
    assert shown.exit_code == 1
    assert "exactly one token of the model" in shown.output


def test_an_encoder_decoder_that_writes_nothing(model_folders, tmp_path):
    """Its first token ends the text: there is nothing to explain, unless a row is chosen."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    silent = AutoModelForSeq2SeqLM.from_pretrained(model_folders["bart"])
    silent.final_logits_bias[0, silent.config.eos_token_id] = 100.0
    silent.save_pretrained(tmp_path / "silent")
    AutoTokenizer.from_pretrained(model_folders["bart"]).save_pretrained(tmp_path / "silent")
    shown = run("the cat sat", "--model", tmp_path / "silent")
    assert shown.exit_code == 1
    assert "Got a model that ended its text at once" in " ".join(shown.output.split())
    chosen = run("the cat sat", "--model", tmp_path / "silent", "--row", 0)
    assert chosen.exit_code == 0, chosen.output
