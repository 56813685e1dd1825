import gzip
from dataclasses import replace

import pytest

from regard.errors import DataError
from regard.translator import Pair, lexicon, read_dictionary
from regard.translator.dictionary import digest_of_dictionary, parse_line
from regard.translator.lexicon import learn_lexicon, learned_names, plural, taught_words, verb_forms

LINES = """\
# CC-CEDICT
墊子 垫子 [dian4 zi5] /cushion; mat; pad/
墊 垫 [dian4] /pad/cushion/mat/to pad out/to fill a gap/
茵褥 茵褥 [yin1 ru4] /mat/
鹹 咸 [xian2] /salted/salty/stingy/
老鼠 老鼠 [lao3 shu3] /rat/mouse/CL:隻|只[zhi1]/
桌子 桌子 [zhuo1 zi5] /table/desk/CL:張|张[zhang1],套[tao4]/
床 床 [chuang2] /bed/CL:張|张[zhang1]/
湯姆 汤姆 [Tang1 mu3] /Tom (name)/
安娜 安娜 [An1 na4] /Anna (name)/
咀嚼 咀嚼 [ju3 jue2] /to chew/to think over/
么 么 [yao1] /variant of 幺[yao1]/
"""


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    file = tmp_path_factory.mktemp("words") / "cedict.u8"
    file.write_text(LINES, encoding="utf-8")
    return read_dictionary(file)


def test_only_plain_meanings_are_read(entries, tmp_path):
    assert [entry.chinese for entry in entries] == [
        "垫子", "垫", "茵褥", "咸", "老鼠", "桌子", "床", "汤姆", "安娜", "咀嚼",
    ]  # fmt: skip
    assert [gloss.english for gloss in entries[0].glosses] == ["cushion", "mat", "pad"]
    assert entries[5].measures == ("张", "套")
    for meaning in (
        "surname Mao",
        "(idiom) to be lost in a very deep wood",
        "abbr. for 北京[Bei3 jing1]",
        "CL:個|个[ge4]",
    ):
        assert parse_line(f"貓 猫 [mao1] /{meaning}/") is None
    packed = tmp_path / "cedict.gz"
    packed.write_bytes(gzip.compress(LINES.encode()))
    assert read_dictionary(packed) == entries
    assert digest_of_dictionary(entries) != digest_of_dictionary(entries[1:])


def test_bad_dictionaries(tmp_path):
    with pytest.raises(DataError, match="format of CC-CEDICT"):
        read_dictionary(tmp_path / "none")
    (tmp_path / "empty").write_text("nothing\n")
    with pytest.raises(DataError, match="at least one entry"):
        read_dictionary(tmp_path / "empty")
    (tmp_path / "damaged.gz").write_bytes(gzip.compress(LINES.encode())[:40])
    with pytest.raises(DataError, match="format of CC-CEDICT"):
        read_dictionary(tmp_path / "damaged.gz")


def test_the_common_translation_is_taught(entries):
    best = {word.english: word.chinese for word in learn_lexicon(entries, []).best}
    assert best["mat"] == "垫子"
    assert best["salty"] == "咸"
    # Sentence pairs decide against frequency.
    pairs = [
        Pair("A mat.", "茵褥。"),
        Pair("The mat is red.", "茵褥是红的。"),
        Pair("My mats.", "我的茵褥。"),
        *[Pair(f"Mat {number}.", f"茵褥{number}。") for number in range(9)],
        *[Pair(f"It is {number}.", f"是{number}。") for number in range(30)],
    ]
    assert learn_lexicon(entries, pairs).by_english["mat"][0].chinese == "茵褥"


def test_a_word_inside_a_longer_one_is_not_counted(tmp_path):
    (tmp_path / "two.u8").write_text(
        "鼠 鼠 [shu3] /mouse/\n老鼠 老鼠 [lao3 shu3] /mouse/\n", encoding="utf-8"
    )
    pairs = [Pair("A mouse!", "老鼠！")] * 9
    first, second = learn_lexicon(read_dictionary(tmp_path / "two.u8"), pairs).by_english["mouse"]
    assert (first.chinese, second.chinese) == ("老鼠", "鼠")


def test_common_words_weigh_more(entries):
    weights = {word.english: word.weight for word in learn_lexicon(entries, []).best}
    assert weights["table"] > weights["salty"] > 0
    assert lexicon._weight("marmoset") == 0.0 < lexicon._weight("take off") < lexicon._weight("take")


def test_common_words_of_a_vocabulary():
    found = lexicon.common_words(["neighbour", "marmoset", "##s", "1899", "of", "naïve", "the"])
    assert list(found) == ["neighbour", "the"]
    assert found["the"] > found["neighbour"] > 0


def test_words_that_sentences_teach_are_drawn_less_often(entries):
    salty = {word.english: word for word in learn_lexicon(entries, []).best}["salty"]
    assert lexicon.untaught_weight(salty) == salty.weight
    seen = replace(salty, seen=60)
    assert lexicon.untaught_weight(seen) == pytest.approx(salty.weight / 4)


def test_kinds(entries):
    kinds = {word.english: word.kind for word in learn_lexicon(entries, []).best}
    wanted = {"table": "noun", "salty": "adj", "chew": "verb", "Tom": "person", "mouse": "noun"}
    assert {english: kinds[english] for english in wanted} == wanted


def test_forms():
    assert plural("mouse") == "mice"
    assert plural("blorf") == "blorfs"
    assert verb_forms("take off") == ("take off", "took off", "taken off", "taking off", "takes off")


def test_words_that_were_taught(entries):
    pairs = [Pair("Tom's cats sat.", "汤姆的猫坐着。")] * 3
    words = taught_words(pairs, learn_lexicon(entries, pairs))
    assert {"tom", "cats", "sat", "anna", "mats", "tables"} <= words
    assert "dog" not in words
    assert taught_words(pairs, None) == {"tom", "cats", "sat"}


def test_names_that_can_stand_in(entries, monkeypatch):
    monkeypatch.setattr("regard.translator.lexicon.OFTEN", 3)
    pairs = [Pair("Tom sat.", "汤姆坐着。")] * 4 + [Pair("Anna sat.", "她坐着。")] * 4
    assert learned_names(pairs, learn_lexicon(entries, pairs)) == (("Tom", "汤姆"),)
