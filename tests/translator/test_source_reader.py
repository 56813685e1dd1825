"""The built-in translator's encoder in a survey."""

import json

import pytest
import torch
from click.testing import CliRunner

from regard.app.main import main
from regard.heads.survey import Corpus, survey
from regard.recording import watch
from regard.translator import embedded, look
from regard.translator.source_reader import source_reader
from regard.translator.vocabulary import END

SENTENCES = [
    "The cat sat on the mat.",
    "I love you.",
    "Where is the station, and when does the next train leave?",
    "She gave the apple to him.",
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(SENTENCES), encoding="utf-8")
    return Corpus.open(path)


def test_ids_and_tokens_are_those_of_a_translation():
    translator, reader = embedded(), source_reader()
    for sentence in SENTENCES:
        ids = reader.tokenizer(sentence)["input_ids"]
        assert ids == translator.encode(sentence)
        seen = look(translator, sentence).recording
        assert reader.tokenizer.convert_ids_to_tokens(ids) == seen.source_tokens[0]


def test_padding_changes_nothing():
    reader = source_reader()
    ids = torch.tensor([reader.tokenizer(SENTENCES[1])["input_ids"]])
    padded = torch.cat([ids, torch.full((1, 3), 7)], 1)  # a token that would be read without a mask
    real = torch.ones_like(padded)
    real[:, ids.shape[1] :] = 0
    with torch.no_grad():
        alone, filled = reader.model(ids, torch.ones_like(ids)), reader.model(padded, real)
    torch.testing.assert_close(filled[:, : ids.shape[1]], alone)


def test_a_survey_measures_the_heads_of_the_encoder(corpus, tmp_path):
    translator = embedded()
    found = survey(source_reader(), corpus, tmp_path / "out")
    with torch.no_grad(), watch(translator.model) as seen:
        translator.model.encode(torch.tensor([[5, END]]))
    assert {kind for _, kind, _, _ in found.places} == {"encoder"}
    assert len(found.places) == sum(call.heads for call in seen)
    assert found.counts["documents"] == len(SENTENCES)
    assert found.counts["tokens"] == sum(len(translator.encode(one)) for one in SENTENCES)
    # The same entropy as in recordings of the single sentences.
    rows = [look(translator, one).recording.layer(0, kind="encoder").statistics() for one in SENTENCES]
    entropies = torch.cat([one.entropy[0] for one in rows], dim=-1).mean(-1)
    measured = [row["entropy_mean"] for row in found.table if row["layer"] == 0]
    assert measured == pytest.approx(entropies.tolist(), abs=1e-4)


def test_the_command(corpus, tmp_path):
    out = tmp_path / "out"
    options = ["--model", "translator", "--out", str(out), "--pages", "1"]
    done = CliRunner().invoke(main, ["survey", str(corpus.path), *options])
    assert done.exit_code == 0, done.output
    assert json.loads((out / "summary.json").read_text(encoding="utf-8"))["model"] == "translator"
    assert "encoder" in (out / "report.html").read_text(encoding="utf-8")
    assert len(list((out / "examples").iterdir())) == 1
