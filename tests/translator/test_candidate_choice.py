"""Which candidate becomes the translation."""

import pytest

from regard.app.commands.train import train as train_command
from regard.app.commands.translate import translate as translate_command
from regard.nn.beam_search import BeamCandidate
from regard.translator import embedded
from regard.translator.candidate_choice import choose_candidate
from regard.translator.sentence_batches import EncodedPair
from regard.translator.translate_text import NUM_BEAMS
from regard.translator.translation_table import TranslationTable
from regard.translator.vocabulary import END


def candidates(*texts, chances=None, ended=None):
    return [
        BeamCandidate((*text, END), chances[place] if chances else -1.0, ended is None or place in ended)
        for place, text in enumerate(texts)
    ]


def test_the_one_that_agrees_with_the_others_wins():
    texts = [(9, 10, 11), (5, 6, 7), (5, 6, 8), (4, 6, 7)]
    assert choose_candidate((4, END), candidates(*texts), None) == 1
    far_more_probable = candidates(*texts, chances=[-1.0, -30.0, -30.0, -30.0])
    assert choose_candidate((4, END), far_more_probable, None) == 0


def test_of_equal_ones_the_most_probable_wins():
    assert choose_candidate((4, END), candidates((5,), (6,), chances=[-1.0, -1.0]), None) == 0
    assert choose_candidate((4, END), candidates((5, 6), (5, 6), chances=[-2.0, -1.0]), None) == 1


def test_one_that_was_cut_off_wins_only_if_all_were():
    texts = [(5, 6, 7), (5, 6, 7), (9,)]
    assert choose_candidate((4, END), candidates(*texts, ended={2}), None) == 2
    assert choose_candidate((4, END), candidates(*texts, ended=set()), None) == 0


def test_one_that_leaves_a_word_out_loses_by_the_table():
    table = TranslationTable.learn(
        [EncodedPair((7, END), (20, 21)), EncodedPair((8, END), (22, 23)), EncodedPair((9, END), (24,))],
        pieces=10,
    )
    texts = candidates((20, 21), (20, 21, 22, 23), chances=[-1.0, -2.0])
    assert choose_candidate((7, 8, END), texts, None) == 0
    assert choose_candidate((7, 8, END), texts, table) == 1


@pytest.mark.parametrize("num_beams", [2, 8])
def test_a_sentence_is_translated_alone_as_among_others(num_beams):
    texts = ["The dog is sleeping.", "He opened the window because it was hot.", "Yes.", "Where is Anna?"]
    together = embedded().translate_all(texts, num_beams=num_beams)
    assert together == [embedded().translate(text, num_beams=num_beams) for text in texts]


def test_commands_search_as_widely_as_the_library():
    for command in (train_command, translate_command):
        (option,) = [one for one in command.params if one.name == "num_beams"]
        assert option.default == NUM_BEAMS
