import json

import pytest
import torch

from regard.errors import ModelFileError, TextError
from regard.translator import load_translator, look
from regard.translator.alignment import (
    AlignedSentence,
    AlignmentHead,
    align,
    alignment_of,
    checked_sentences,
    cross_call,
    measure_heads,
    read_alignment_head,
    words_of,
)
from regard.translator.names import hide_names
from regard.translator.vocabulary import EnglishTokens


@pytest.fixture(scope="module")
def folder(learned_run, scores):
    return learned_run.folder / "model"


@pytest.fixture(scope="module")
def translator(folder):
    return load_translator(folder)


def test_the_words_of_a_text_in_pieces_of_a_bert():
    pieces = ["don", "'", "t", "cat", "##s", "s", "run", "-", "up", ".", "the"]
    english = EnglishTokens.of_word_pieces(pieces)
    found = words_of(english, "Don't the cats run-up. The cat’s cats.")
    assert [word.text for word in found] == [
        "Don't", "the", "cats", "run", "-", "up", ".", "The", "cat’s", "cats", ".",
    ]  # fmt: skip
    assert [(word.first, word.stop) for word in found][:4] == [(0, 3), (3, 4), (4, 6), (6, 7)]
    hidden = hide_names("Zoltan's cats", {"cats"})
    assert [word.text for word in words_of(english, "Zoltan's cats", hidden)] == ["Zoltan's", "cats"]


def test_a_look_records_what_the_model_computes(translator):
    seen = look(translator, "Tom like cats.")
    assert seen.translation == "汤姆喜欢猫。"
    assert seen.recording.tokens == [["[START]", *"汤姆喜欢猫。"]]
    assert seen.recording.source_tokens == [["▁tom", "▁like", "▁cats", ".", "[END]"]]
    assert [call.kind for call in seen.recording] == ["encoder", "decoder", "cross"]
    assert cross_call(seen.recording, 0).queries == 7


def test_reading_in_one_go_gives_the_rows_of_writing_step_by_step(translator):
    import regard
    from regard import nn

    source = torch.tensor([translator.encode("We eat tea.")])
    with regard.watch(translator.model) as stepwise:
        nn.generate(translator.model, source, start=1, eos_token_id=2, max_new_tokens=12)
    together = look(translator, "We eat tea.", num_beams=1).recording
    for kind in ("decoder", "cross"):
        one = next(call for call in stepwise if call.kind == kind)
        other = next(call for call in together if call.kind == kind)
        for head in range(2):
            torch.testing.assert_close(one.weights(head), other.weights(head), atol=1e-5, rtol=0)


def test_words_are_cut_and_spelled_as_they_were_typed():
    english = EnglishTokens.learn(["The cat sat.", "The cat can't ran."] * 9, 60)
    text = "  The cats, they CAN'T  sit…"
    words = words_of(english, text)
    assert [word.text for word in words if any(map(str.isalnum, word.text))] == [
        "The", "cats", "they", "CAN'T", "sit",
    ]  # fmt: skip
    assert [word.first for word in words[1:]] == [word.stop for word in words[:-1]]
    assert words[-1].stop == len(english.pieces(text))


def test_an_alignment_is_the_head_summed_over_the_pieces_of_words(translator):
    by = AlignmentHead(0, 1, 0, 1)
    seen = look(translator, "They want books.")
    found = alignment_of(seen, translator.vocabularies, by)
    weights = cross_call(seen.recording, 0).weights(1)
    assert found.words == ("They", "want", "books")
    words = words_of(translator.vocabularies.english, "They want books.")[:3]
    for place, word in enumerate(words):
        expected = weights[: len(found.translation), word.first : word.stop].sum(1)
        torch.testing.assert_close(found.weights[:, place], expected)
    assert found.strongest(0) == found.words[int(found.weights[0].argmax())]
    assert str(found).splitlines()[0] == found.translation
    assert len(str(found).splitlines()) == 1 + len(found.translation) - 1  # the full stop has no letters


def test_heads_are_counted_by_what_they_look_at(translator, monkeypatch):
    sentence = AlignedSentence(
        "Tom like cats.", "汤姆喜欢猫。", (("Tom", "汤姆"), ("cats", "猫"), ("like", "猫"))
    )
    columns = {"▁tom": 0, "▁like": 1, "▁cats": 2}

    def perfect(call, head, rows=slice(None), columns_=slice(None), batch=0):
        weights = torch.zeros(7, 5)
        weights[:, 4] = 0.6  # most is on the end, which is no word
        for row, piece in enumerate(["▁tom", "▁tom", "▁like", "▁like", "▁cats"]):
            weights[row, columns[piece] if head == 1 else 0] = 0.4
        return weights[rows]

    monkeypatch.setattr("regard.recording.Call.weights", perfect)
    best, other = measure_heads(translator, [sentence])
    assert best == AlignmentHead(0, 1, right=2, pairs=3)
    assert other == AlignmentHead(0, 0, right=1, pairs=3)
    assert best.share == pytest.approx(2 / 3)


def test_a_sentence_that_a_model_cannot_read_counts_as_wrong(translator):
    # The tiny model knows none of these characters.
    sentence = AlignedSentence("Zzz?", "嗡嗡", (("Zzz", "嗡嗡"),))
    assert {(found.right, found.pairs) for found in measure_heads(translator, [sentence])} == {(0, 1)}


def test_the_checked_sentences_are_what_they_claim():
    sentences = checked_sentences()
    assert len(sentences) == 15
    assert sum(len(sentence.pairs) for sentence in sentences) == 30
    for sentence in sentences:
        for english, chinese in sentence.pairs:
            assert sentence.english.rstrip(".").split().count(english) == 1
            assert sentence.chinese.count(chinese) == 1


def test_export_writes_the_best_head(folder, translator):
    assert read_alignment_head(folder) == measure_heads(translator)[0]
    scores = json.loads((folder / "scores.json").read_text())
    assert scores["alignment"]["pairs"] == 30


def test_translate_and_align_agree(folder, translator):
    found = align(translator, "I see dogs.", read_alignment_head(folder))
    assert found.translation == translator.translate("I see dogs.")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"layer": 1}', '{"layer": 1, "head": "x"}'])
def test_a_damaged_file_of_the_head(tmp_path, text):
    (tmp_path / "alignment.json").write_text(text)
    with pytest.raises(ModelFileError, match="alignment head must be a JSON object"):
        read_alignment_head(tmp_path)


def test_a_missing_file_of_the_head(tmp_path):
    with pytest.raises(ModelFileError, match="all of its files"):
        read_alignment_head(tmp_path)


def test_a_head_of_another_model(translator):
    with pytest.raises(ModelFileError, match="layer = 9"):
        align(translator, "I see dogs.", AlignmentHead(9, 0, 1, 1))


def test_a_translation_that_cannot_be_written(translator):
    for translation in ("", "嗡"):
        with pytest.raises(TextError, match="one character that the model knows"):
            look(translator, "I see dogs.", translation=translation)
    with pytest.raises(TextError, match="longest = 31"):
        look(translator, "I see dogs.", translation="猫" * 32)
