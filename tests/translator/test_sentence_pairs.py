import random

import pytest

from regard.errors import ArgumentError, DataError
from regard.translator import Pair, read_pairs, split
from regard.translator.sentence_pairs import digest


def written(folder, contents):
    file = folder / "pairs.tsv"
    file.write_bytes(contents if isinstance(contents, bytes) else contents.encode("utf-8"))
    return file


WANTED = [Pair("Hi.", "嗨。"), Pair("Who?", "谁？"), Pair("I know.", "我知道。")]


@pytest.mark.parametrize(
    "text",
    [
        "Hi.\t嗨。\tCC\nWho?\t誰？\tCC\nI know.\t我知道。\tCC\n",
        "english\tchinese\tattribution\nHi.\t嗨。\tCC\nWho?\t誰？\tCC\nI know.\t我知道。\tCC",
        "attribution\tchinese\tenglish\r\nCC\t嗨。\tHi.\r\nCC\t誰？\tWho?\r\n\r\nCC\t我知道。\tI know.\r\n",
        "\ufeffHi.\t嗨。\nWho?\t誰？\n I know. \t 我知道。\n",
    ],
    ids=["cmn.txt", "header", "other order", "two columns"],
)
def test_both_formats_are_read_and_folded_to_simplified_script(tmp_path, text):
    assert read_pairs(written(tmp_path, text)) == WANTED


def test_words_are_folded_and_not_only_characters(tmp_path):
    assert read_pairs(written(tmp_path, "A\t乾淨的頭髮\n"))[0].chinese == "干净的头发"


def test_chinese_is_as_it_is_printed_on_the_mainland(tmp_path):
    text = "A\t她睡著了!\nB\t「他寫了一本著名的書?」\nC\t10:30 到, 好嗎?\n"
    chinese = [pair.chinese for pair in read_pairs(written(tmp_path, text))]
    assert chinese == ["她睡着了！", "“他写了一本著名的书？”", "10:30到，好吗？"]


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        ("Hi.\t嗨。\nalone\n", "'alone' in line 2"),
        ("Hi.\t嗨。\nHi.\t \tCC\n", "line 2"),
        ("english\tattribution\nHi.\tCC\n", "english, attribution in line 1"),
        ("english\tchinese\nHi.\t嗨。\nWho?\n", "line 3"),
        ("Hi.\t嗨。\nWho?\t".encode() + "你是谁".encode("gb18030") + b"\n", "in line 2"),
        (b"\xef\xbb\xbfHi.\tx\n\n\xff\n", "byte 0xff in line 3"),
        ("", "at least one pair"),
        ("english\tchinese\n", "at least one pair"),
        ("Hi.\tHola.\n", "The second column must be Chinese"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, contents, says):
    with pytest.raises(DataError, match=says):
        read_pairs(written(tmp_path, contents))


def test_no_file_is_said_so(tmp_path):
    with pytest.raises(DataError, match="which is not a file"):
        read_pairs(tmp_path)


def test_the_split_keeps_sentences_apart_with_all_their_references(pairs):
    more = [*pairs, *(Pair(pair.english.upper(), "另一个。") for pair in pairs)]
    corpus = split(more, held_out=20, seed=5)
    held_out = {sentence.english.casefold() for sentence in corpus.held_out}
    assert len(held_out) == 20
    assert not held_out & {pair.english.casefold() for pair in corpus.training}
    assert all(len(sentence.references) == 2 for sentence in corpus.held_out)
    assert len(corpus.training) + 2 * 20 == len(more)


def test_the_split_depends_on_the_seed_alone(pairs):
    shuffled = [*pairs, *pairs[:7]]
    random.Random(1).shuffle(shuffled)
    assert split(pairs, held_out=20, seed=5) == split(shuffled, held_out=20, seed=5)
    assert split(pairs, held_out=20, seed=5) != split(pairs, held_out=20, seed=6)
    assert digest(pairs) == digest(shuffled) != digest(pairs[1:])


@pytest.mark.parametrize("held_out", [0, 150, 200])
def test_something_is_left_on_both_sides(pairs, held_out):
    with pytest.raises(ArgumentError, match=f"Got held_out = {held_out}"):
        split(pairs, held_out=held_out)
