import numpy as np
import pytest

from regard import masks
from regard.errors import ArgumentError
from regard.lessons.sentence_explanation import attend_sentence, words_of


def test_words_in_english_and_chinese():
    assert words_of("The cat's mat.") == ("The", "cat's", "mat", ".")
    assert words_of("我喜欢AI") == ("我", "喜", "欢", "AI")
    assert words_of("我 喜欢 AI") == ("我", "喜欢", "AI")


def test_rows_sum_to_one_and_the_same_word_has_the_same_vector():
    trace = attend_sentence("the cat the dog", heads=2, width=6).trace
    assert np.allclose(trace["weights"].sum(-1), 1)
    assert np.array_equal(trace["x"][0], trace["x"][2])
    assert trace["weights"].shape == (2, 4, 4)
    masked = attend_sentence("the cat the dog", mask=masks.causal()).trace["weights"]
    assert not np.triu(masked[0], 1).any()


def test_bad_input_is_named():
    with pytest.raises(ArgumentError, match="at least one word"):
        attend_sentence("  ")
    with pytest.raises(ArgumentError, match="width = 4, heads = 3"):
        attend_sentence("a", heads=3)
