"""Surveys that are killed and whose files are damaged: the same numbers or an error, never other numbers."""

import collections
import json
import os
import shutil

import pytest

from fuzz.damage import Killed, contents_of, damaged, killed_at_writes, write_all
from fuzz.rounds import ROUNDS, cases, killed_again_and_again
from heads.survey.conftest import folders, readers, sentences  # noqa: F401 - fixtures
from heads.survey.test_survey_run import assert_equal, killer
from regard.errors import RegardError
from regard.heads.survey import Corpus, corpus_batches, survey


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch):
    monkeypatch.setattr(corpus_batches, "STRETCH_DOCUMENTS", 7)
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    lines = [json.dumps({"text": text}) for text in sentences(24)]
    lines[3], lines[9], lines[20] = "nonsense", '{"text": ""}', '{"other": 1}'
    path.write_text("\n".join(lines), encoding="utf-8")
    return Corpus.open(path)


def run(readers, corpus, folder, **options):  # noqa: F811 - pytest's way
    return survey(readers["bert"], corpus, folder, batch_tokens=60, checkpoint_every=0, **options)


def test_killed_at_any_write(readers, corpus, tmp_path, monkeypatch):  # noqa: F811
    wanted = run(readers, corpus, tmp_path / "undisturbed")
    kills = 0
    for number, chance in cases(2):
        folder = tmp_path / str(number)
        every = chance.choice([3, 6, 12])
        while True:
            try:
                with killed_at_writes(monkeypatch, chance, every=every):
                    found = run(readers, corpus, folder)
                break
            except Killed:
                kills += 1
        assert_equal(found, wanted)
        assert_equal(run(readers, corpus, folder), wanted)
        assert not list(folder.rglob(".*.part"))
        shutil.rmtree(folder)
    assert kills > 4
    print(f"{kills} ends at a write, all resumed to the same numbers")


def test_damage_to_any_file(readers, corpus, tmp_path):  # noqa: F811
    wanted = run(readers, corpus, tmp_path / "undisturbed")
    begun = tmp_path / "begun"
    for batch in (3, 2):  # a state with failures, then a part with failures that builds on it
        with pytest.raises(Killed):
            run(readers, corpus, begun, report=killer(batch))
    kept = contents_of(begun)
    assert {path.name for path in kept} == {
        "survey.json", ".lock", "state.safetensors", "failed-1.jsonl", "part-0.safetensors",
        "part-0.failed.jsonl",
    }  # fmt: skip
    outcomes = collections.Counter()
    for number, chance in cases(15):
        folder = tmp_path / str(number)
        write_all(folder, kept)
        path = chance.choice(sorted(kept))
        raw, kind = damaged(kept[path], chance)
        (folder / path).write_bytes(raw)
        try:
            found = run(readers, corpus, folder)
        except RegardError as error:
            assert path.name in str(error), (number, kind, error)  # noqa: PT017
            outcomes[f"{path.name}: error"] += 1
        else:
            assert_equal(found, wanted)
            outcomes[f"{path.name}: unharmed"] += 1
        shutil.rmtree(folder)
    assert outcomes["state.safetensors: error"]
    assert outcomes["part-0.safetensors: error"]
    print(dict(sorted(outcomes.items())))


@pytest.mark.skipif(ROUNDS == 1, reason="many processes; make fuzz runs it")
def test_killed_by_the_system_at_any_moment(tmp_path):
    print(killed_again_and_again("survey", tmp_path))
