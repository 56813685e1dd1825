"""Several processes under torchrun, one of them killed, against one process that nothing disturbed."""

import json
import signal

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from heads.survey.conftest import sentences
from regard.app.commands.survey import told_of_an_end
from regard.app.main import main
from regard.heads.survey import Corpus, corpus_batches, survey
from regard.heads.survey.surveyed_model import SurveyedModel
from regard.recording.reader import load_reader
from torchrun_server import torchrun


@pytest.fixture
def together(tmp_path):
    with torchrun(tmp_path, "transformers.models.bert.modeling_bert", "regard.views.report") as run:
        yield run


def rows(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def assert_same_results(found, wanted):
    for name in ("heads", "distances", "examples"):
        mine, theirs = rows(found, name), rows(wanted, name)
        assert len(mine) == len(theirs), name
        for one, other in zip(mine, theirs):
            assert one.keys() == other.keys()
            for key, value in other.items():
                if isinstance(value, float):
                    assert one[key] == pytest.approx(value, rel=1e-9, abs=1e-15), (name, key)
                else:
                    assert one[key] == value, (name, key)
    assert (found / "failed.jsonl").read_text() == (wanted / "failed.jsonl").read_text()
    mine, theirs = (json.loads((folder / "summary.json").read_text()) for folder in (found, wanted))
    assert {**mine, "seconds": 0} == {**theirs, "seconds": 0}


def test_a_killed_process_ends_the_run_and_four_others_finish_it(folders, tmp_path, together, monkeypatch):
    lines = [json.dumps({"text": text}) for text in sentences(90)]
    lines[5], lines[50] = "{}", "nonsense"
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(lines))
    options = (
        corpus,
        "--model",
        folders["bert"],
        "--batch-tokens",
        60,
        "--checkpoint-every",
        0,
        "--pages",
        1,
    )

    code, _, errors = together("killed", 2, "survey", *options, "--out", tmp_path / "four", dying=1, after=4)
    assert code != 0
    # By torchrun's signal or by the lost connection, whichever comes first.
    assert "Finished work is kept: start again" in errors
    assert not (tmp_path / "four" / "report.html").exists()
    assert sorted(path.name for path in (tmp_path / "four" / "checkpoint").glob("part-*.safetensors"))

    code, said, errors = together("finished", 4, "survey", *options, "--out", tmp_path / "four")
    assert code == 0, errors
    assert said.count("report.html") == 1  # one process speaks

    monkeypatch.setattr(corpus_batches, "STRETCH_DOCUMENTS", 17)
    alone = CliRunner().invoke(main, ["survey", *map(str, options), "--out", str(tmp_path / "one")])
    assert alone.exit_code == 0, alone.output
    assert_same_results(tmp_path / "four", tmp_path / "one")
    assert (tmp_path / "four" / "report.html").exists()


def test_being_ended_is_not_taken_for_a_failure_of_the_text(folders, tmp_path, monkeypatch, capsys):
    """torchrun ends the others by a signal, which may come in the middle of a batch."""
    real, read = SurveyedModel.read, []

    def ended(self, parts, bar):
        read.append(parts)
        signal.raise_signal(signal.SIGTERM)
        return real(self, parts, bar)

    monkeypatch.setattr(SurveyedModel, "read", ended)
    reader, folder = load_reader(folders["bert"]), tmp_path / "out"
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(sentences(9)))
    with pytest.raises(SystemExit), told_of_an_end(2):
        survey(reader, Corpus.open(corpus), folder)
    assert len(read) == 1
    assert "Error: The survey was stopped from outside (SIGTERM)" in capsys.readouterr().err
    assert not list((folder / "checkpoint").glob("*.safetensors"))
    monkeypatch.undo()
    assert survey(reader, Corpus.open(corpus), folder).counts["failed"] == 0
