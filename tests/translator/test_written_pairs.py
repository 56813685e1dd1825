import collections
import importlib
import re

import pytest

from regard.errors import TrainingError
from regard.translator import (
    Pair,
    Recipe,
    development_sentences,
    everyday_sentences,
    split,
    written_pairs,
)
from regard.translator.sentence_pairs import sentence_key
from regard.translator.training_folder import begin_run, open_run
from regard.translator.training_split import split_by

SIMILAR = 0.7
"""The share of common words above which two sentences are nearly the same."""


def words(english):
    return frozenset(re.findall(r"[a-z0-9']+", english.lower()))


def test_the_file_is_clean():
    pairs = written_pairs()
    assert len({sentence_key(pair.english) for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert re.fullmatch(r"[ -~]+[.?!]", pair.english), pair
        assert re.fullmatch(r"[\u4e00-\u9fffA-Za-z0-9，、：；。？！“”‘’（）《》—…·%.-]+", pair.chinese), pair
        assert re.search(r"[\u4e00-\u9fff]", pair.chinese), pair


def test_no_pair_is_nearly_a_sentence_that_measures():
    written = [(pair.english, words(pair.english)) for pair in written_pairs()]
    having = collections.defaultdict(list)
    for number, (_, own) in enumerate(written):
        for word in own:
            having[word].append(number)
    for one in (*everyday_sentences(), *development_sentences()):
        asked = words(one.english)
        common = collections.Counter(number for word in asked for number in having[word])
        near = [
            written[number][0]
            for number, count in common.items()
            if count >= SIMILAR * len(asked | written[number][1])
        ]
        assert near == [], one.english


def test_further_pairs_are_trained_on_and_never_kept_out(pairs):
    plain = split(pairs, held_out=20, validation=5, seed=5)
    measured = [plain.held_out[0].english.upper(), plain.validation[0].english]
    further = [Pair("Never seen.", "从未见过。"), *(Pair(one, "另一个。") for one in measured), pairs[0]]
    corpus = split(pairs, held_out=20, validation=5, seed=5, further=further)
    assert (corpus.held_out, corpus.validation) == (plain.held_out, plain.validation)
    assert set(corpus.training) - set(plain.training) <= {further[0], pairs[0]}
    assert corpus.further == len(corpus.training) - len(plain.training)
    assert split(pairs, held_out=20, seed=5).further == 0


def test_a_recipe_with_written_pairs_trains_on_them(pairs):
    plain, more = Recipe(held_out=20), Recipe(held_out=20, written_pairs=True)
    assert set(split_by(more, pairs).training) == {*split_by(plain, pairs).training, *written_pairs()}


def test_a_run_with_written_pairs_remembers_which(pairs, tiny, tmp_path, monkeypatch):
    room = importlib.import_module("regard.translator.training_split")
    monkeypatch.setattr(room, "written_pairs", lambda: (Pair("Never seen.", "从未见过。"),))
    recipe = Recipe.from_json(tiny.to_json().replace('"written_pairs": false', '"written_pairs": true'))
    begin_run(tmp_path, pairs, recipe)
    assert open_run(tmp_path, pairs, recipe).corpus.further == 1
    monkeypatch.setattr(room, "written_pairs", lambda: (Pair("Never heard.", "从未听过。"),))
    with pytest.raises(TrainingError, match="must continue with the options"):
        begin_run(tmp_path, pairs, recipe, resume=True)
