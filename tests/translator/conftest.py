import itertools

import pytest

from regard.translator import Pair, Recipe

WHO = [("I", "我"), ("You", "你"), ("Tom", "汤姆"), ("Mary", "玛丽"), ("We", "我们"), ("They", "他们")]
DOES = [("like", "喜欢"), ("see", "看见"), ("eat", "吃"), ("want", "想要"), ("buy", "买")]
WHAT = [("apples", "苹果"), ("cats", "猫"), ("dogs", "狗"), ("tea", "茶"), ("books", "书")]


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
