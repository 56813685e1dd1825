import pytest

from regard.errors import ModelFileError
from regard.translator.name_evidence import ALWAYS, NameEvidence
from regard.translator.names import (
    PLACEHOLDERS,
    TAUGHT,
    HiddenNames,
    StandIn,
    hide_names,
    is_unknown,
    without_inflected,
)
from regard.translator.sentence_splitting import split_sentences

WORDS = {"i", "saw", "and", "cat", "is", "here", "smile", "the", "puppy"}
TOM, MARY = StandIn("Tom", "汤姆"), StandIn("Mary", "玛丽")


def test_names_are_hidden_and_restored():
    hidden = hide_names("Xanthe's cat and Zoltan.", WORDS, [TOM, MARY])
    assert hidden.text == "Tom's cat and Mary."
    assert hidden.restore("汤姆的猫和玛丽。") == "Xanthe的猫和Zoltan。"
    assert hidden.hide("Xanthe的猫和Zoltan。") == "汤姆的猫和玛丽。"
    assert hidden.parts("汤姆的猫") == [("Xanthe", 2), ("的", 1), ("猫", 1)]
    for one in hidden.names:
        assert {hidden.text[first:stop] for first, stop in one.spans} == {one.stand_in.english}
    assert [hidden.shown_at(*span) for span in ((0, 3), (1, 3), (0, 5), (2, 5))] == [
        "Xanthe",
        "",
        "Xanthe's",
        "'s",
    ]
    assert hidden.shown_at(3, 5) is None


def test_a_stand_in_that_the_text_has_already_is_not_used():
    hidden = hide_names("Tom's cat saw Xanthe.", {*WORDS, "tom"}, [TOM, MARY])
    assert hidden.text == "Tom's cat saw Mary."
    assert hide_names("Tom and Mary saw Xanthe.", {*WORDS, "tom", "mary"}, [TOM, MARY]).names == ()


def test_what_is_no_unknown_name():
    for text in (
        "the cat is here",
        "The Cat IS here",
        "a blorf is here",
        "I saw.",
        "Puppies smiled.",
        "X is here.",
    ):
        assert hide_names(text, WORDS, [TOM]) == HiddenNames(text)
    assert hide_names("Xanthe is here.", set(), [TOM]).names == ()


def test_placeholders_in_a_text_are_removed():
    assert hide_names(f"I saw {PLACEHOLDERS[0]}.", WORDS, TAUGHT).text == "I saw ."
    assert HiddenNames("").restore(f"猫{PLACEHOLDERS[0]}。") == "猫。"


def test_more_names_than_stand_ins():
    hidden = hide_names("Aa Bb Cc Dd Ee", WORDS, TAUGHT)
    assert [one.name for one in hidden.names] == ["Aa", "Bb", "Cc", "Dd"]
    assert hidden.text.endswith(" Ee")


@pytest.mark.parametrize(
    ("word", "unknown"),
    [
        ("cat", False), ("Cats", False), ("puppies", False), ("smiling", False), ("blorf", True),
        ("猫", True), ("cat-blorf", True),
    ],
)  # fmt: skip
def test_unknown_words(word, unknown):
    assert is_unknown(word, WORDS) == unknown


EVIDENCE = NameEvidence(
    {"lily": 1.0, "maria": ALWAYS, "mark": 0.0},
    {"_ has": 2.0, "_ the": -3.0, "_ . are": -1.0, "the _": -9.0},
    {"maria": "玛丽亚"},
    frozenset({"AI"}),
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Lily has it.", ["Lily"]), ("Lily pads are green.", []), ("Mark the page.", []), ("the lily", []),
        ("I am here. Mark the page.", []), ("I know Mark.", ["Mark"]), ("the Lily is here", []),
        ("I saw Mr. Mark there", ["Mark"]), ("MARIA has it", []), ("Maria's here", ["Maria"]),
        ("They Sang Lily Songs", []), ("They Met Maria Here", ["Maria"]), ("Soup has it.", []),
        ("I love AI.", ["AI"]), ("Ai has it.", []), ("AI HAS IT.", []),
    ],
)  # fmt: skip
def test_names_by_the_words_beside_them(text, names):
    assert EVIDENCE.names(text) == names


def test_a_name_of_the_dictionary_becomes_its_chinese_form():
    words = {*WORDS, "maria", "lily", "has"}
    hidden = hide_names("Maria saw Lily.", words, [TOM, MARY], EVIDENCE)
    assert hidden.text == "Tom saw Mary."
    assert hidden.restore("汤姆看见了玛丽。") == "玛丽亚看见了Lily。"
    assert hidden.hide("玛丽亚看见了Lily。") == "汤姆看见了玛丽。"
    assert hidden.parts("汤姆看") == [("玛丽亚", 2), ("看", 1)]
    assert hidden.shown_at(0, 3) == "Maria"


def test_evidence_is_kept_as_text():
    assert NameEvidence.from_json(EVIDENCE.to_json()) == EVIDENCE
    for text in ("", "[]", '{"format": "other"}', EVIDENCE.to_json().replace("1.0", '"much"')):
        with pytest.raises(ModelFileError, match="evidence of names"):
            NameEvidence.from_json(text)


def test_inflected_words_are_known_without_being_stored():
    words = {"cat", "cats", "puppy", "puppies", "smile", "smiled", "smiling", "glass", "is"}
    kept = without_inflected(words)
    assert kept == {"cat", "puppy", "smile", "smiling", "glass", "is"}
    assert not any(is_unknown(word, kept) for word in words)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("I am here.", ["I am here."]),
        ("Who? Me! I am.", ["Who?", "Me!", "I am."]),
        ('He said, "Go." Then he left.', ['He said, "Go."', "Then he left."]),
        ("Mr. Smith met Dr. J. R. Hill at 5 p.m. today.", ["Mr. Smith met Dr. J. R. Hill at 5 p.m. today."]),
        ("It costs 2.50 dollars. 3 of us paid.", ["It costs 2.50 dollars.", "3 of us paid."]),
        ("wait... what", ["wait... what"]),
        ("  ", [""]),
        ("No. I will not.", ["No.", "I will not."]),
    ],
)  # fmt: skip
def test_sentences(text, sentences):
    assert split_sentences(text) == sentences
