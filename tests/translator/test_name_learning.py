"""What tells names from words, counted in sentences."""

from regard.translator.dictionary import DictionaryEntry, Gloss
from regard.translator.name_learning import LEAST, _beside, _names_in, _spelling


def test_names_are_read_from_a_dictionary():
    entries = [
        DictionaryEntry("玛丽", (Gloss("Mary", sense=0, person=True),)),
        DictionaryEntry("纽约", (Gloss("New York", sense=0), Gloss("Gotham", sense=1))),
        DictionaryEntry("汤", (Gloss("soup", sense=0),)),
    ]
    assert _names_in(entries) == ({"mary": {"玛丽"}}, {"gotham"}, {"new", "york"}, {"soup"})


def test_a_capital_counts_inside_a_sentence_only():
    found = _spelling(["Soup is hot. Soup, Mary's soup."])
    assert found.inside == {"mary": 1}
    assert found.lower["soup"] == 1


def test_words_beside_names_are_counted_against_those_beside_words():
    sentences = ["Mary has it.", "I know Mary here.", "The soup is hot."] * LEAST
    found = _beside(sentences, {"mary"}, {"soup", "hot"})
    assert found["know _"] > 0 > found["the _"]
