"""A survey from end to end in one process: kills, failures, long documents, folders of others."""

import contextlib
import gc
import json
import os
import tracemalloc

import pytest
import torch

from fuzz.damage import Killed, run_on_a_full_disk
from heads.survey.conftest import sentences
from regard.errors import ArgumentError, DataError, FileError, SurveyError
from regard.heads.survey import Corpus, corpus_batches, survey
from regard.heads.survey.accumulators import Accumulators
from regard.heads.survey.corpus_batches import Failure
from regard.heads.survey.survey_folder import FailureLog, SurveyFolder
from regard.heads.survey.surveyed_model import SurveyedModel


@pytest.fixture(scope="module", autouse=True)
def _short_stretches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_batches, "STRETCH_DOCUMENTS", 17)
        patch.setattr(os, "fsync", lambda _: None)  # a hundred checkpoints, and no power fails here
        yield


def run(readers, corpus, folder, **options):
    reader = readers[options.pop("model", "bert")]
    opened = options.pop("opened", None) or Corpus.open(corpus)
    return survey(reader, opened, folder, **{"batch_tokens": 60, "checkpoint_every": 0, **options})


def assert_equal(found, wanted):
    """Counts and sketches exactly, the rest to 1e-9."""
    assert found.counts == wanted.counts
    mine, theirs = found.found.tensors(), wanted.found.tensors()
    for name, tensor in theirs.items():
        if tensor.dtype == torch.int64:
            assert torch.equal(mine[name], tensor), name
        else:
            torch.testing.assert_close(mine[name], tensor, rtol=1e-9, atol=1e-12, msg=name)
    assert found.table.columns == wanted.table.columns
    assert list(found.failed()) == list(wanted.failed())


def killer(after):
    """A listener that ends the run after a number of batches."""
    seen = 0

    def listen(state):
        nonlocal seen
        seen += 1
        if seen > after:
            raise Killed

    return listen


@pytest.fixture(scope="module")
def difficult(tmp_path_factory):
    """A corpus with texts that cannot be read here and there."""
    path = tmp_path_factory.mktemp("difficult") / "corpus.jsonl"
    lines = [json.dumps({"text": text}) for text in sentences(37)]
    lines[3], lines[20], lines[36] = "nonsense", '{"text": ""}', '{"other": 1}'
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def wanted(readers, difficult, tmp_path_factory):
    """What a survey of it finds that nothing disturbs."""
    return run(readers, difficult, tmp_path_factory.mktemp("undisturbed") / "out")


def test_killed_again_and_again_it_ends_with_the_same_numbers(readers, difficult, wanted, tmp_path):
    assert wanted.counts["documents"] == 34
    assert wanted.counts["failed"] == 3
    folder, kills = tmp_path / "killed", 0
    while True:
        try:
            # Sometimes before the first checkpoint, sometimes later.
            found = run(readers, difficult, folder, report=killer((0, 1, 2, 4)[kills % 4]))
            break
        except Killed:
            kills += 1
            assert kills < 40
    assert kills > 3
    assert_equal(found, wanted)


@pytest.mark.parametrize("moment", ["part", "state", "failed", "merged"])
def test_killed_while_it_writes(readers, difficult, wanted, tmp_path, monkeypatch, moment):
    from regard import atomic
    from regard.heads.survey import survey_run

    folder, count = tmp_path / "killed", 0
    write, close = atomic.write_bytes, survey_run.close_generation

    def dies(path, contents):
        """Half a file is written when the end comes."""
        nonlocal count
        count += path.name.startswith(moment)
        if path.name.startswith(moment) and count in (1, 2, 5, 9):
            path.with_name(f".{path.name}.part").write_bytes(contents[: len(contents) // 2])
            raise Killed
        write(path, contents)

    def dies_before(*arguments):
        """Everything is done, but not yet in one state."""
        nonlocal count
        count += 1
        if count < 3:
            raise Killed
        close(*arguments)

    if moment == "merged":
        monkeypatch.setattr(survey_run, "close_generation", dies_before)
    else:
        monkeypatch.setattr(atomic, "write_bytes", dies)
    found = None
    for _ in range(12):
        # A run that is ended after a few batches, then one that would go to the end.
        for report in (killer(3), None):
            with contextlib.suppress(Killed):
                found = found or run(readers, difficult, folder, report=report)
    assert count > 2
    assert_equal(found, wanted)
    assert not list(folder.rglob(".*.part"))  # what was half written is gone


def test_done_is_done(readers, corpus, tmp_path, monkeypatch):
    first = run(readers, corpus, tmp_path / "out")
    monkeypatch.setattr(SurveyedModel, "read", None)  # nothing is read again
    assert_equal(run(readers, corpus, tmp_path / "out"), first)
    assert sorted(path.name for path in (tmp_path / "out" / "checkpoint").iterdir()) == [
        ".lock",
        "failed-1.jsonl",
        "state.safetensors",
    ]


def test_what_is_saved(readers, difficult, tmp_path):
    import pyarrow.parquet as pq

    reader = readers["bert"]
    found = run(readers, difficult, tmp_path / "out")
    found.save(tmp_path / "out", reader.tokenizer.convert_ids_to_tokens)
    heads = pq.read_table(tmp_path / "out" / "heads.parquet")
    assert heads.num_rows == 6
    assert heads.column("layer").to_pylist() == [0, 0, 0, 1, 1, 1]
    assert heads.column("entropy_mean").to_pylist() == found.table.column("entropy_mean")
    examples = pq.read_table(tmp_path / "out" / "examples.parquet").to_pylist()
    assert len(examples) == 18
    assert examples[0]["tokens"][0] == "[CLS]"
    assert len(examples[0]["tokens"]) == len(examples[0]["weights"])
    assert examples[0]["query_token"] == examples[0]["tokens"][examples[0]["query"]]
    distances = pq.read_table(tmp_path / "out" / "distances.parquet")
    assert distances.column("pairs").to_pylist()[0] > 0
    failed = [json.loads(line) for line in (tmp_path / "out" / "failed.jsonl").read_text().splitlines()]
    assert [one["document"] for one in failed] == [3, 20, 36]
    assert failed[0]["where"] == "corpus.jsonl:4"
    assert failed[1]["reason"] == "empty"
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["documents"], summary["failed"], summary["heads"]) == (34, 3, 6)


def test_a_document_that_the_model_cannot_read_is_left_out_alone(readers, corpus, tmp_path, monkeypatch):
    good = Corpus.open(corpus)
    texts = [document.text for document in good]
    bad = next(number for number, text in enumerate(texts) if text.split().count("tree") >= 2)
    without = tmp_path / "without.txt"
    without.write_text("\n".join(text for number, text in enumerate(texts) if number != bad))
    model = readers["bert"].model
    real, marked = model.forward, torch.tensor(readers["bert"].tokenizer(texts[bad]).input_ids)

    def raises(input_ids, **options):
        if any(torch.equal(row[: len(marked)], marked) for row in input_ids):
            raise ValueError("no such trees\nand more of it")
        return real(input_ids=input_ids, **options)

    monkeypatch.setattr(model, "forward", raises)
    found = run(readers, corpus, tmp_path / "out")
    assert [(one["document"], one["reason"]) for one in found.failed()] == [
        (bad, "ValueError: no such trees")
    ]
    assert found.counts["documents"] == 36
    wanted = run(readers, without, tmp_path / "other")
    # Read one by one instead of padded together: equal to rounding.
    for name in ("entropy_mean", "previous_variance", "peak_max", "positional"):
        assert found.table.column(name) == pytest.approx(wanted.table.column(name), rel=1e-4)
    assert found.table.column("queries") == wanted.table.column("queries")


def test_attention_that_is_not_finite_is_a_failure(readers, corpus, tmp_path, monkeypatch):
    real = Accumulators.add

    def broken(self, at, call, texts, parts, bar):
        if any(part.document == 7 for part in parts):
            call.lse[:] = torch.nan
        real(self, at, call, texts, parts, bar)

    monkeypatch.setattr(Accumulators, "add", broken)
    found = run(readers, corpus, tmp_path / "out")
    assert [(one["document"], one["reason"]) for one in found.failed()] == [
        (7, "ArithmeticError: attention weights that are not finite")
    ]


def test_long_documents_and_how_they_are_counted(readers, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text(" ".join(["cat"] * 40) + "\nthe dog ran\n")
    cut = run(readers, path, tmp_path / "cut")
    assert {name: cut.counts[name] for name in ("documents", "parts", "tokens", "truncated")} == {
        "documents": 2, "parts": 2, "tokens": 19 + 5, "truncated": 1
    }  # fmt: skip
    split = run(readers, path, tmp_path / "split", long="split")
    assert (split.counts["parts"], split.counts["divided"], split.counts["tokens"]) == (4, 1, 46 + 5)
    short = run(readers, path, tmp_path / "short", longest=6)
    assert short.counts["tokens"] == 6 + 5


def test_memory_does_not_grow_with_the_corpus(readers, tmp_path):
    """As many tensors late in a long corpus as early in it."""
    held, ticks = [], 0

    def count(state):
        nonlocal ticks
        ticks += 1
        if ticks % 4 == 0:
            gc.collect()
            held.append(sum(type(one) is torch.Tensor for one in gc.get_objects()))

    path = tmp_path / "long.txt"
    path.write_text("\n".join(sentences(150)))
    run(readers, path, tmp_path / "out", batch_tokens=120, report=count)
    assert len(held) >= 3
    assert max(held) <= held[0] + 2


# ---- bad input -------------------------------------------------------------------------------


def test_a_folder_of_another_survey_is_refused_and_kept(readers, corpus, tmp_path):
    run(readers, corpus, tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    other = tmp_path / "other.txt"
    other.write_text("the cat sat\n")
    for options, says in (
        ({"model": "llama"}, "Got model = "),
        ({"batch_tokens": 70}, r"\(batch_tokens = 60 in .*\). Got batch_tokens = 70"),
        ({"layers": [1]}, r"Got layers = \[1\]"),
        ({"long": "split"}, "Got long = split"),
        ({"opened": Corpus.open(other)}, "Got corpus = other.txt"),
        ({"opened": Corpus.open(corpus, limit=5)}, "Got limit = 5"),
    ):
        with pytest.raises(SurveyError, match=says):
            run(readers, corpus, tmp_path / "out", **options)
    corpus.write_text("the cat sat\n")
    with pytest.raises(SurveyError, match="Got texts = "):
        run(readers, corpus, tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before


def test_other_weights_are_another_model(readers, corpus, tmp_path, monkeypatch):
    run(readers, corpus, tmp_path / "out")
    weight = readers["bert"].model.encoder.layer[0].attention.self.query.weight
    before = weight.detach().clone()
    with torch.no_grad():
        weight += 1e-3
    try:
        with pytest.raises(SurveyError, match="Got weights = "):
            run(readers, corpus, tmp_path / "out")
    finally:
        with torch.no_grad():
            weight.copy_(before)


def test_a_folder_that_cannot_be_written_to(readers, corpus, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SurveyError, match=r"Got (FileExists|NotADirectory)Error at"):
        run(readers, corpus, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_folder_in_which_another_runs(readers, corpus, tmp_path):
    run(readers, corpus, tmp_path / "out", batch_tokens=400)
    says = "Only one survey can run in a folder at a time. Got another one running"
    with SurveyFolder(tmp_path / "out", {}).locked(), pytest.raises(SurveyError, match=says):
        run(readers, corpus, tmp_path / "out", batch_tokens=400)
    run(readers, corpus, tmp_path / "out", batch_tokens=400)


def test_files_that_are_not_ours(readers, corpus, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "survey.json").write_text("[]")
    with pytest.raises(
        SurveyError, match="without one, from an earlier version of regard or another program"
    ):
        run(readers, corpus, folder)
    (folder / "survey.json").unlink()
    run(readers, corpus, folder)
    (folder / "checkpoint" / "state.safetensors").write_bytes(b"nonsense")
    with pytest.raises(SurveyError, match="A checkpoint must be as the survey wrote it"):
        run(readers, corpus, folder)


def begun(readers, corpus, folder):
    """A survey that ended early and has a part and failures."""
    with contextlib.suppress(Killed):
        run(readers, corpus, folder, report=killer(3))
    return folder / "checkpoint"


def flip(path, at=-9):
    contents = bytearray(path.read_bytes())
    contents[at] ^= 1
    path.write_bytes(contents)


def test_one_flipped_bit_in_the_state_is_noticed(readers, difficult, tmp_path):
    run(readers, difficult, tmp_path / "out")
    state = tmp_path / "out" / "checkpoint" / "state.safetensors"
    flip(state)
    with pytest.raises(SurveyError, match=r"differ from what was written in .*state\.safetensors"):
        run(readers, difficult, tmp_path / "out")
    state.write_bytes(state.read_bytes()[:-1])
    with pytest.raises(
        SurveyError, match=r"state\.safetensors\. Delete the folder .*checkpoint to start over"
    ):
        run(readers, difficult, tmp_path / "out")


def test_a_damaged_part_costs_only_its_own_texts(readers, difficult, wanted, tmp_path):
    checkpoint = begun(readers, difficult, tmp_path / "out")
    flip(checkpoint / "part-0.safetensors")
    with pytest.raises(SurveyError, match=r"part-0\.safetensors\. Delete this file and start again"):
        run(readers, difficult, tmp_path / "out")
    (checkpoint / "part-0.safetensors").unlink()
    assert_equal(run(readers, difficult, tmp_path / "out"), wanted)


def test_damaged_failures_are_noticed(readers, difficult, wanted, tmp_path):
    checkpoint = begun(readers, difficult, tmp_path / "out")
    failed = checkpoint / "part-0.failed.jsonl"
    flip(failed)
    with pytest.raises(SurveyError, match=r"part-0\.failed\.jsonl\. Delete part-0\.safetensors beside it"):
        run(readers, difficult, tmp_path / "out")
    failed.unlink()
    with pytest.raises(SurveyError, match=r"No such file or directory in .*part-0\.failed\.jsonl"):
        run(readers, difficult, tmp_path / "out")
    (checkpoint / "part-0.safetensors").unlink()
    assert_equal(run(readers, difficult, tmp_path / "out"), wanted)
    flip(checkpoint / "failed-1.jsonl", 3)
    with pytest.raises(SurveyError, match=r"contents that differ from what was written in .*failed-1\.jsonl"):
        run(readers, difficult, tmp_path / "out")


def test_a_damaged_description_is_removed_and_nothing_is_lost(readers, difficult, tmp_path, monkeypatch):
    wanted = run(readers, difficult, tmp_path / "out")
    flip(tmp_path / "out" / "survey.json", 30)
    with pytest.raises(SurveyError, match=r"survey\.json\. Delete only this file"):
        run(readers, difficult, tmp_path / "out")
    (tmp_path / "out" / "survey.json").unlink()
    with pytest.raises(SurveyError, match="the numbers of another survey"):
        run(readers, difficult, tmp_path / "out", batch_tokens=70)
    (tmp_path / "out" / "survey.json").unlink()
    monkeypatch.setattr(SurveyedModel, "read", None)  # nothing is read again
    assert_equal(run(readers, difficult, tmp_path / "out"), wanted)


def test_parts_whose_state_is_gone_are_not_counted(readers, difficult, tmp_path):
    begun(readers, difficult, tmp_path / "out")
    checkpoint = begun(readers, difficult, tmp_path / "out")
    (checkpoint / "state.safetensors").unlink()
    with pytest.raises(SurveyError, match=r"none that part-0\.safetensors builds on"):
        run(readers, difficult, tmp_path / "out")


def test_a_full_disk_ends_a_run_and_the_next_goes_on(readers, difficult, wanted, tmp_path, monkeypatch):
    found, ends = run_on_a_full_disk(monkeypatch, lambda: run(readers, difficult, tmp_path / "out"))
    assert len(ends) > 2
    assert all("No space left on device" in said for said in ends)
    assert all("the survey continues from its last checkpoint" in said for said in ends)
    assert_equal(found, wanted)


def test_failures_that_the_disk_does_not_take(tmp_path, monkeypatch):
    notes = FailureLog(tmp_path / "failed.jsonl")
    notes.add([Failure(0, 0, "caf\udce9.txt:1", "empty")])
    assert json.loads((notes.sync(), tmp_path / "failed.jsonl")[1].read_bytes())["where"] == "caf\udce9.txt:1"

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"failed\.jsonl must be writable\. Got No space left on device"):
        notes.sync()
    notes.close()


def test_a_line_without_end_costs_no_memory(readers, tmp_path):
    path = tmp_path / "long.txt"
    with path.open("wb") as file:
        file.write(b"the cat sat\n")
        for _ in range(24):
            file.write(b"the dog ran " * 87_000)  # 25 MB in all
        file.write(b"\n" + bytes(range(256)) * 9 + b"\nthe bird saw the tree\n" + b"\0" * 70 + b"\n")
    tracemalloc.start()
    found = run(readers, path, tmp_path / "out")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000
    assert (found.counts["documents"], found.counts["truncated"]) == (3, 1)
    reasons = {one["reason"].split(":")[0] for one in found.failed()}
    assert reasons == {"not UTF-8", "no token that the model knows"}


def test_a_corpus_without_a_text(readers, tmp_path):
    path = tmp_path / "c.txt"
    path.write_text("\n\n  \n")
    with pytest.raises(SurveyError, match=r"needs at least one document that can be read. Got none of 0 in"):
        run(readers, path, tmp_path / "empty")
    path = tmp_path / "c.jsonl"
    path.write_text('{"body": "the cat"}\n')
    with pytest.raises(
        SurveyError, match=r"none of 1 in .*, the first at c.jsonl:1: no text in field 'text'"
    ):
        run(readers, path, tmp_path / "out")
    with pytest.raises(DataError, match="which does not exist"):
        Corpus.open(tmp_path / "none")


def test_options_out_of_range(readers, corpus, tmp_path):
    for options, says in (
        ({"long": "drop"}, "Got long = 'drop'"),
        ({"batch_tokens": 0}, "Got batch_tokens = 0"),
        ({"longest": 20}, "from 4 to 19, the positions of the model. Got longest = 20"),
        ({"longest": 3}, "Got longest = 3"),
        ({"layers": [2]}, r"Got layers = \[2\]"),
    ):
        with pytest.raises(ArgumentError, match=says):
            run(readers, corpus, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
