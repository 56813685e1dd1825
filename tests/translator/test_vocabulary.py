import pytest

from regard.errors import ModelFileError
from regard.translator import ChineseCharacters, EnglishTokens
from regard.translator.vocabulary import SPECIALS, UNKNOWN


@pytest.fixture(scope="module")
def english():
    return EnglishTokens.learn(["I don't see the cat.", "You don't see the dog, do you?"] * 5, 90)


def test_english_is_cut_at_words_and_punctuation_in_any_case(english):
    assert english.pieces("You DON’T see the cat, do you?") == [
        "▁you", "▁don't", "▁see", "▁the", "▁cat", ",", "▁do", "▁you", "?",
    ]  # fmt: skip
    assert english.encode("The cat.") == english.encode("the  cat. ".replace("  ", " "))
    assert english.encode_all(["the cat", "a"]) == [english.encode("the cat"), english.encode("a")]


def test_vocabularies_survive_their_files(english):
    again = EnglishTokens.from_json(english.to_json())
    assert again.encode("I see a dog.") == english.encode("I see a dog.")
    assert len(again) == len(english) <= 90
    chinese = ChineseCharacters.learn(["猫坐在垫子上。"] * 2)
    assert ChineseCharacters.from_json(chinese.to_json()) == chinese
    assert chinese.decode(chinese.encode("猫在垫子上坐。")) == "猫在垫子上坐。"


def test_specials_come_first_and_unknown_characters_are_unknown(english):
    assert [english.tokenizer.token_to_id(special) for special in SPECIALS] == [0, 1, 2, 3]
    assert UNKNOWN in english.encode("猫")
    chinese = ChineseCharacters.learn(["猫猫狗"], least=2)
    assert len(chinese) == len(SPECIALS) + 1
    assert chinese.encode("猫狗") == [4, UNKNOWN]
    assert chinese.decode([1, 4, UNKNOWN, 2, 0]) == "猫"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other", "characters": "猫"}'])
def test_other_files_are_refused(text):
    with pytest.raises(ModelFileError, match="Export the model again"):
        ChineseCharacters.from_json(text)
    with pytest.raises(ModelFileError, match="Export the model again"):
        EnglishTokens.from_json(text)
