"""Tokens as people read them."""

import pytest

from regard.errors import ShapeError
from regard.views.page.display_tokens import numbered, text_of


@pytest.mark.parametrize(
    ("tokens", "shown", "words"),
    [
        # WordPiece
        (
            ["[CLS]", "un", "##real", "##istic", "!", "[SEP]"],
            "[CLS] un real istic ! [SEP]",
            [-1, 0, 0, 0, 1, -1],
        ),
        (["##s", "a"], "s a", [0, 1]),
        (["##"], "##", [0]),
        # byte-level BPE
        (["The", "Ġc", "at", "Ġsat", "."], "The c at sat .", [0, 1, 1, 2, 3]),
        (["<|im_start|>", "user", "Ċ", "Ġdon", "'t"], "<|im_start|> user ⏎ don 't", [-1, 0, 1, 2, 2]),
        (["ä½ł", "å¥½", "Ġ"], "你 好 ␣", [0, 1, 2]),
        # sentencepiece
        (["<s>", "▁Hel", "lo", "▁", "world", "</s>"], "<s> Hel lo ␣ world </s>", [-1, 0, 0, 1, 2, -1]),
        (["▁我", "爱", "猫"], "我 爱 猫", [0, 1, 2]),
        (["▁a", "<0x0A>", "▁b"], "a ⏎ b", [0, 1, 2]),
        # ends marked, and joints marked
        (["low", "er</w>", "case</w>"], "low er case", [0, 0, 1]),
        (["low@@", "er", "case"], "low er case", [0, 0, 1]),
        # whole words, and text that looks like marks
        (["I", "love", "AI"], "I love AI", [0, 1, 2]),
        (["[MASK]", "[UNK]", "<unk>"], "[MASK] [UNK] <unk>", [0, 1, 2]),
        (["<b>", "</script>", "&amp;"], "<b> </script> &amp;", [0, 1, 2]),
        ([""], "∅", [0]),
        (["\n", "\t", "a\x00", "\u202eabc"], "⏎ ⇥ a⟨00⟩ ⟨202E⟩abc", [0, 1, 2, 3]),
        (["👩‍👩‍👧", "שלום", "\ud83d"], "👩‍👩‍👧 שלום \ud83d", [0, 1, 2]),
    ],
)
def test_conventions_of_tokenizers(tokens, shown, words):
    text = text_of(tokens)
    assert " ".join(text.tokens) == shown
    assert list(text.words) == words
    assert [word == -1 for word in words] == list(text.special)


def test_half_a_letter_is_shown_as_bytes():
    assert text_of(["Ġ", "ðŁĺ", "Ģ"]).tokens == ("␣", "⟨F0 9F 98⟩", "⟨80⟩")
    assert text_of(["▁a", "<0xE2>"]).tokens == ("a", "⟨E2⟩")


def test_tokens_as_they_are():
    text = text_of(["Ġcat", "##s"], prettify=False)
    assert text.tokens == ("Ġcat", "##s")


def test_words_that_the_user_knows():
    assert text_of(["a", "b", "c"], [0, 0, 1]).words == (0, 0, 1)
    with pytest.raises(ShapeError, match=r"\(tokens = 3\). Got 2 numbers. Use −1 for special tokens"):
        text_of(["a", "b", "c"], [0, 0])


def test_positions_where_there_are_no_tokens():
    assert numbered(2).words == (0, 1)
