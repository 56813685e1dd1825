"""Runs that SIGKILL ends at random moments, resumed until they are done, beside one that is left alone.

python -m fuzz.killed_process survey|training FOLDER ROUNDS

Everything is imported once; each run is a fork of this process, so that a kill costs no import.
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

    def run(out):
        return survey(reader, corpus, out, batch_tokens=60, checkpoint_every=0)

    # A folder that is done is read, not computed again.
    return run, lambda one, other: assert_equal(run(one), run(other))


def training_runs(folder):
    del folder
    from fuzz.test_trainings import outcome
    from regard.translator import train, training_log
    from translator import conftest

    recipe = conftest.tiny.__wrapped__()
    recipe = dataclasses.replace(recipe, steps=60, checkpoint_every=5, log_every=4)
    pairs = conftest.pairs.__wrapped__()
    training_log.draw = lambda *_: None

    def same(one, other):
        assert outcome(one, recipe) == outcome(other, recipe)

    return lambda out: train(pairs, out, recipe, resume=True), same


def forked(run, out, after=None):
    """Run in a process of its own, killed after so many seconds; whether it came to its end."""
    child = os.fork()
    if not child:
        try:
            run(out)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - whatever it is, the parent must see it
            import traceback

            traceback.print_exc()
            os._exit(1)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)  # one that has ended waits for us, so that its number is still its own
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    assert os.WEXITSTATUS(status) == 0, "a run ended with an error"
    return True


def main(kind, folder, rounds):
    run, same = {"survey": survey_runs, "training": training_runs}[kind](folder)
    start = time.monotonic()
    forked(run, folder / "undisturbed")
    usual = time.monotonic() - start
    chance, kills = random.Random(0), 0
    for number in range(rounds):
        out = folder / f"killed-{number}"
        while not forked(run, out, chance.uniform(0, usual / 2)):
            kills += 1
        same(out, folder / "undisturbed")
        assert not list(out.rglob(".*.part"))
    print(f"{kind}: {rounds} runs, {kills} kills, all with the numbers of the undisturbed run")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
