"""Runs that SIGKILL ends at random moments, resumed until they are done, beside one that is left alone.

python -m fuzz.killed_process survey|training FOLDER ROUNDS

Everything is imported once; each run is a fork of this process, so that a kill costs no import. A run reports
each step and waits to be heard, so that how far it comes does not depend on how busy the machine is.
"""

import dataclasses
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

torch.set_num_threads(1)


def survey_runs(folder):
    from transformers import BertConfig, BertModel

    from heads.survey.conftest import WORDS, sentences, tokenizer
    from heads.survey.test_survey_run import assert_equal
    from regard.heads.survey import Corpus, corpus_batches, survey
    from regard.recording.reader import load_reader

    corpus_batches.STRETCH_DOCUMENTS = 17
    torch.manual_seed(0)
    size = {"hidden_size": 24, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 3}
    model = BertModel(BertConfig(vocab_size=len(WORDS), max_position_embeddings=19, **size))
    model.save_pretrained(folder / "model")
    tokenizer(template=True).save_pretrained(folder / "model")
    lines = [json.dumps({"text": text}) for text in sentences(61)]
    lines[3], lines[20], lines[60] = "nonsense", '{"text": ""}', '{"other": 1}'
    (folder / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    reader, corpus = load_reader(folder / "model"), Corpus.open(folder / "corpus.jsonl")

    def run(out, report=None):
        return survey(reader, corpus, out, batch_tokens=60, checkpoint_every=0, report=report)

    # A folder that is done is read, not computed again.
    return run, lambda one, other: assert_equal(run(one), run(other))


def training_runs(folder):
    del folder

    from fuzz.test_trainings import outcome
    from regard.translator import train, training_log
    from translator import conftest

    recipe = conftest.tiny.__wrapped__()
    recipe = dataclasses.replace(recipe, width=8, hidden=8, steps=24, checkpoint_every=3, log_every=2)
    pairs = conftest.pairs.__wrapped__()
    training_log.draw = lambda *_: None

    def same(one, other):
        assert outcome(one, recipe) == outcome(other, recipe)

    return lambda out, report: train(pairs, out, recipe, resume=True, report=report), same


def forked(run, out, after=None, pause=0.0):
    """Run in a separate process, killed a moment after some report; how many there were, None if killed."""
    (heard, tell), (waits, answer) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(heard)
            os.close(answer)
            run(out, lambda _: (os.write(tell, b"."), os.read(waits, 1)))
            os._exit(0)
        except BaseException:  # noqa: BLE001 - whatever it is, the parent must see it
            import traceback

            traceback.print_exc()
            os._exit(1)
    os.close(tell)
    os.close(waits)
    reports = 0
    while os.read(heard, 1):
        reports += 1
        os.write(answer, b".")
        if reports == after:
            time.sleep(pause)
            os.kill(child, signal.SIGKILL)  # one that has ended waits for us: its number is still its own
            break
    _, status = os.waitpid(child, 0)
    os.close(heard)
    os.close(answer)
    if os.WIFSIGNALED(status):
        return None
    assert os.WEXITSTATUS(status) == 0, "a run ended with an error"
    return reports


def main(kind, folder, rounds):
    run, same = {"survey": survey_runs, "training": training_runs}[kind](folder)
    steps = forked(run, folder / "undisturbed")
    chance, kills = random.Random(0), 0
    for number in range(rounds):
        out = folder / f"killed-{number}"
        last = None
        while last is None:
            last = forked(run, out, chance.randint(1, steps // 2), chance.uniform(0, 0.01))
            kills += last is None
        assert last < steps  # it went on, not anew
        same(out, folder / "undisturbed")
        assert not list(out.rglob(".*.part"))
    assert kills >= rounds
    print(f"{kind}: {rounds} runs, {kills} kills, all with the numbers of the undisturbed run")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
