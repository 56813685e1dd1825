"""Tokens as words: pieces joined, punctuation with the word that it touches, scripts without spaces."""

import pytest

from regard.speech.word_grouping import group_words

SPECIAL = 1000


class Bytes:
    """A tokenizer whose token n is the n-th of some pieces of UTF-8."""

    def __init__(self, *pieces):
        self.pieces = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]

    def decode(self, tokens):
        return b"".join(self.pieces[token] for token in tokens).decode(errors="replace")


def words(*pieces):
    tokens = [SPECIAL if piece is None else at for at, piece in enumerate(pieces)]
    known = Bytes(*("" if piece is None else piece for piece in pieces))
    return [(word.text, word.places, word.spoken) for word in group_words(known, tokens, SPECIAL)]


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        ((" The", " cat", "s", "."), [("The", (0,), (0,)), ("cats.", (1, 2, 3), (1, 2))]),
        ((" didn", "'t"), [("didn't", (0, 1), (0, 1))]),
        ((" (", "yes", ")", " no"), [("(yes)", (0, 1, 2), (1,)), ("no", (3,), (3,))]),
        ((" A", None, None, "b"), [("A", (0,), (0,)), ("b", (3,), (3,))]),
        (("我", "们", "。", "好"), [("我", (0,), (0,)), ("们。", (1, 2), (1,)), ("好", (3,), (3,))]),
        ((" x", "ราคา"), [("x", (0,), (0,)), ("ราคา", (1,), (1,))]),
        ((" ...",), [("...", (0,), (0,))]),
        ((" ", None), []),
    ],
)
def test_words(pieces, wanted):
    assert words(*pieces) == wanted


def test_a_character_in_two_tokens_is_one_word():
    first, second = "猫".encode()[:2], "猫".encode()[2:]
    assert words(" a", first, second) == [("a", (0,), (0,)), ("猫", (1, 2), (1, 2))]


def test_broken_bytes_do_not_collect_for_ever():
    found = words(*[b"\xe7"] * 12)
    assert [places for _, places, _ in found] == [tuple(range(12))]
