"""Sentences joined by conjunctions: in the order of each language, and never one that is measured on."""

import dataclasses
import random
import re

import pytest

from regard.translator import CorpusSplit, HeldOut, Pair, Recipe
from regard.translator.epoch_pairs import EpochPairs
from regard.translator.joined_sentences import CONJUNCTIONS, JoinedSentences, is_clause

SHORT = [
    Pair("I went home.", "我回家了。"),
    Pair("The cat is hungry.", "猫很饿。"),
    Pair("We have no money.", "我们没有钱。"),
    Pair("He likes Mary.", "他喜欢玛丽。"),
]


@pytest.mark.parametrize(
    ("start", "wanted"),
    [
        ("{0} because", ("The cat is hungry because I went home.", "猫很饿，因为我回家了。")),
        ("Because", ("Because the cat is hungry, I went home.", "因为猫很饿，所以我回家了。")),
        ("{0}, so", ("The cat is hungry, so I went home.", "猫很饿，所以我回家了。")),
        ("{1} if", ("I went home if the cat is hungry.", "如果猫很饿，我回家了。")),
        ("{1} although", ("I went home although the cat is hungry.", "虽然猫很饿，但我回家了。")),
        ("When", ("When the cat is hungry, I went home.", "猫很饿的时候，我回家了。")),
    ],
)
def test_clauses_are_in_the_order_of_each_language(start, wanted):
    conjunction = next(one for one in CONJUNCTIONS if one.english.startswith(start))
    assert JoinedSentences.join(conjunction, SHORT[1], SHORT[0]) == Pair(*wanted)


@pytest.mark.parametrize(
    ("english", "chinese", "simple"),
    [
        ("The cat is hungry.", "猫很饿。", True),
        ("I'm hungry.", "我饿了。", True),
        ("Open the door.", "开门。", False),  # a command
        ("Is the cat hungry?", "猫饿了吗？", False),
        ("I know that he left because he was tired.", "我知道他累了就走了。", False),
        ("The cat is hungry.", "猫，很饿。", False),
        ("The cat is hungry.", "因为猫饿了。", False),
        ("We met at 10 today.", "我们今天十点见了面。", False),
    ],
)
def test_only_short_statements_are_joined(english, chinese, simple):
    assert is_clause(Pair(english, chinese)) is simple


def test_all_conjunctions_are_drawn_and_every_clause_comes_from_the_sentences():
    found = JoinedSentences(SHORT).draw(500, random.Random(0))
    assert len(found) == 500
    clauses = {pair.chinese[:-1] for pair in SHORT}
    for pair in found:
        parts = re.split("，", pair.chinese[:-1])
        assert len(parts) == 2
        own = [re.sub("^(因为|所以|但是|但|如果|虽然)|的时候$", "", part) for part in parts]
        assert set(own) <= clauses
        assert own[0] != own[1]
        assert "了的时候" not in pair.chinese
    words = "because|Because|, so|, but| but|If| if |Although|although|When|when"
    for word in words.split("|"):
        assert any(word in pair.english for pair in found), word


def test_a_measured_sentence_is_never_joined():
    measured = "i went home BECAUSE the cat is hungry."
    found = JoinedSentences(SHORT[:2], excluded=[measured]).draw(300, random.Random(0))
    assert 0 < len(found) < 300
    assert "I went home because the cat is hungry." not in {pair.english for pair in found}


def test_fewer_than_two_clauses_cannot_be_joined():
    assert JoinedSentences(SHORT[:1]).draw(9, random.Random(0)) == []


def test_epochs_have_them_from_the_one_that_the_recipe_names():
    measured = HeldOut("We have no money because I went home.", ("我们没有钱，因为我回家了。",))
    corpus = CorpusSplit(tuple(SHORT), (measured,))
    recipe = Recipe(joined=5.0, joined_from=3)
    drawn = EpochPairs(corpus, recipe, None)
    assert drawn.draw(2) == SHORT
    later = drawn.draw(3)
    assert later[: len(SHORT)] == SHORT
    assert 10 < len(later) - len(SHORT) <= 20
    assert later == drawn.draw(3) != drawn.draw(4)
    assert measured.english not in {pair.english for pair in later}
    assert EpochPairs(corpus, dataclasses.replace(recipe, joined=0.0), None).draw(3) == SHORT
