import dataclasses
import itertools
import os

import pytest
import torch

from regard.translator import (
    Pair,
    Recipe,
    TrainingRun,
    development_sentences,
    everyday_sentences,
    export,
    measured_model,
    train,
    training_log,
)

WHO = [("I", "我"), ("You", "你"), ("Tom", "汤姆"), ("Mary", "玛丽"), ("We", "我们"), ("They", "他们")]
DOES = [("like", "喜欢"), ("see", "看见"), ("eat", "吃"), ("want", "想要"), ("buy", "买")]
WHAT = [("apples", "苹果"), ("cats", "猫"), ("dogs", "狗"), ("tea", "茶"), ("books", "书")]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """No test looks at its plot of a loss or ends by a power failure; trainings of fixtures have both."""
    monkeypatch.setattr(training_log, "draw", lambda *_: None)
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    """A hundred and fifty sentences of a language that a tiny model can learn."""
    return [
        Pair(f"{who} {does} {what}.", f"{whom}{tut}{was}。")
        for (who, whom), (does, tut), (what, was) in itertools.product(WHO, DOES, WHAT)
    ]


@pytest.fixture(scope="session")
def data(pairs, tmp_path_factory):
    """The same as a file."""
    file = tmp_path_factory.mktemp("data") / "cmn.txt"
    lines = [f"{pair.english}\t{pair.chinese}\tCC-BY 2.0\n" for pair in pairs]
    file.write_text("".join(lines), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def tiny() -> Recipe:
    return Recipe(
        encoder_layers=1,
        decoder_layers=1,
        width=32,
        heads=2,
        hidden=64,
        length=32,
        english_tokens=80,
        dropout=0.1,
        steps=24,
        warm_up=6,
        learning_rate=5e-3,
        tokens_per_batch=240,
        checkpoint_every=5,
        log_every=4,
        averaged=3,
        held_out=10,
        seed=3,
    )


@pytest.fixture(scope="session")
def learning(tiny) -> Recipe:
    """Learns the language of ``pairs``."""
    return dataclasses.replace(
        tiny, steps=90, warm_up=15, learning_rate=0.01, checkpoint_every=20, dropout=0.0
    )


@pytest.fixture(scope="session")
def learned_run(pairs, learning, tmp_path_factory) -> TrainingRun:
    """A translator of that language, to be copied by who changes its folder."""
    torch.set_num_threads(1)
    return train(pairs, tmp_path_factory.mktemp("run"), learning)


@pytest.fixture(scope="session")
def scores(learned_run):
    """What ``export`` says of it."""
    with pytest.MonkeyPatch.context() as patch:
        measure_few(patch)
        return export(learned_run)


@pytest.fixture
def few_everyday(monkeypatch):
    measure_few(monkeypatch)


def measure_few(patch):
    """Nine sentences of both everyday sets instead of 200: such models translate none of them."""
    patch.setattr(measured_model, "everyday_sentences", lambda: everyday_sentences()[:9])
    patch.setattr(measured_model, "development_sentences", lambda: development_sentences()[:9])
