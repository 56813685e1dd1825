import re

import pytest

from regard.errors import ArgumentError
from regard.translator import development_sentences, everyday_sentences, score
from regard.translator.sentence_pairs import sentence_key


def test_a_case_counted_by_hand():
    # 猫 坐 在 地 上 。 against 猫 坐 在 桌 上 。: 5 of 6, 3 of 5, 1 of 4, 0 of 3 n-grams; the last is
    # smoothed to 1/2 of one third. Equal length: no penalty. And 0 + 100 would be no mean of two cases.
    wanted = 100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25
    assert score(["猫坐在地上。"], [["猫坐在桌上。"]]).bleu == pytest.approx(wanted, abs=0.01)


def test_every_reference_counts_and_sentences_may_have_different_numbers():
    references = [["猫坐在桌上。", "猫坐在地上。"], ["狗跑得很快。"]]
    assert score(["猫坐在地上。", "狗跑得很快。"], references).bleu == pytest.approx(100)
    assert score(["猫坐在地上。", "狗跑得很快。"], [each[:1] for each in references]).bleu < 90


@pytest.mark.parametrize(("made", "references"), [([], []), (["猫"], []), (["猫"], [[]])])
def test_references_are_asked_for(made, references):
    with pytest.raises(ArgumentError, match="needs references"):
        score(made, references)


def test_everyday_sentences_are_four_hundred_with_references_in_simplified_chinese():
    assert len(everyday_sentences()) == len(development_sentences()) == 200
    sentences = (*everyday_sentences(), *development_sentences())
    assert len({sentence_key(sentence.english) for sentence in sentences}) == 400
    for sentence in sentences:
        assert sentence.english.isascii()
        assert 1 <= len(sentence.references) <= 3
        assert len(set(sentence.references)) == len(sentence.references)
        assert all(re.fullmatch(r"[\u4e00-\u9fff，、？。]+", chinese) for chinese in sentence.references)
