"""The translator that comes with regard: how large, how good, how it aligns."""

import json
import subprocess
import sys

import pytest

import regard
from regard.errors import TextError
from regard.translator import (
    Recipe,
    TranslationAlignment,
    UnknownWordsWarning,
    development_sentences,
    embedded,
    embedded_alignment_head,
    everyday_sentences,
    look,
    measure_heads,
)
from regard.translator.built_in import FOLDER
from regard.translator.card import card
from regard.translator.exported_model import megabytes
from regard.translator.translation_judgement import GOOD, judge, judgements


def test_it_is_small():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 16e6


def test_the_sentence_of_the_lessons():
    found = regard.translate("The cat sat on the mat.")
    assert "猫" in found
    assert "坐" in found


@pytest.mark.parametrize(
    ("english", "part"),
    [
        ("I love playing football.", "足球"),
        ("She gave the apple to him.", "苹果"),
        ("Where is the station?", "车站"),
        ("My father is a doctor.", "医生"),
        ("It is raining.", "雨"),
        ("The soup tastes salty.", "咸"),
        ("The mat is on the floor.", "垫子"),
        ("The animal didn't cross the street because it was too tired.", "太累"),
        ("I love artificial intelligence.", "人工智能"),
        ("Our neighbour has a garden.", "邻居"),
    ],
)
def test_everyday_sentences(english, part):
    assert part in regard.translate(english)


def test_case_and_spaces_do_not_matter():
    assert regard.translate("  the CAT  sat on the mat. ") == regard.translate("The cat sat on the mat.")


def test_another_token_can_end_a_sentence():
    characters = embedded().vocabularies.chinese
    stop = characters.encode("。")[0]
    whole = regard.translate("The cat sat on the mat.")
    assert whole.endswith("。")
    assert regard.translate("The cat sat on the mat.", eos_token_id=stop) == whole.removesuffix("。")
    aligned = regard.translate("The cat sat on the mat.", eos_token_id=stop, align=True)
    assert aligned.translation == whole.removesuffix("。")


def test_its_cross_attention_aligns():
    heads = measure_heads(embedded())
    assert heads[0] == embedded_alignment_head()
    assert heads[0].pairs == 30
    assert heads[0].share >= 0.7


def test_the_alignment_of_a_translation():
    found = regard.translate("The cat sat on the mat.", align=True)
    assert isinstance(found, TranslationAlignment)
    assert found.translation == regard.translate("The cat sat on the mat.")
    assert found.words == ("The", "cat", "sat", "on", "the", "mat")
    assert found.weights.shape == (len(found.translation), 6)
    assert found.strongest(found.translation.index("猫")) == "cat"
    assert (found.weights.sum(1) <= 1 + 1e-5).all()


def test_the_card_is_that_of_the_scores():
    scores = json.loads((FOLDER / "scores.json").read_text(encoding="utf-8"))
    recipe = Recipe.read(FOLDER / "recipe.json")
    written = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert written == card(recipe, scores, megabytes(FOLDER))
    assert "CC BY 2.0 FR" in written
    assert f"| 16 beams | {scores['beam']['bleu']:.1f} |" in written
    assert scores["held_out_sentences"] == 1000
    assert scores["beam"]["bleu"] >= 46
    assert scores["beam"]["chrf"] >= 40


def test_everyday_translations_are_all_read():
    scores = json.loads((FOLDER / "scores.json").read_text(encoding="utf-8"))
    everyday = {one.english for one in everyday_sentences()}
    development = {one.english for one in development_sentences()}
    assert {english for english, _ in judgements()} == everyday | development
    assert set(sum(judgements().values(), ())) == {"good", "wrong"}
    for name, sentences in (("everyday", everyday), ("development", development)):
        read = judge(dict(pair for pair in judgements() if pair[0] in sentences))
        assert sum(row.judgement == GOOD for row in read) == scores[name]["good"]
        assert sum(len(row.readers) == 1 for row in read) == scores[name]["read_by_one"]
        assert scores[name]["unread"] == 0
    some = list(judgements())[::16]  # all of them take twenty seconds
    made = embedded().translate_all([english for english, _ in some])
    assert made == [chinese for _, chinese in some]  # the words that were judged


@pytest.mark.parametrize(
    ("english", "names"),
    [
        ("Lily dances better than her teacher.", {"Lily": "Lily"}),
        ("Maria works as a nurse in Madrid.", {"Maria": "玛丽亚"}),
        ("Peter and Anna met David.", {"Peter": "彼得", "Anna": "安娜", "David": "大卫"}),
        ("I gave Mark the book.", {"Mark": "马克"}),
        ("Tom and Mary went to Shanghai in May.", {}),  # which the model has learned
        ("Rose petals are red.", {}),
        ("May I come in?", {}),
        ("Will you come?", {}),
        ("Lily pads are green.", {}),
        ("Mark the page.", {}),
        ("Water is good for you.", {}),
        ("Yesterday was Monday.", {}),
    ],
)
def test_names_are_told_from_words(english, names):
    hidden = embedded().vocabularies.hide_names(english)
    assert {one.name: one.form for one in hidden.names} == names


def test_names_are_copied_and_other_unknown_words_are_named():
    assert regard.translate("Anna is my sister.").startswith("安娜")  # which the dictionary has
    found = regard.translate("Zoltan's cat is black. Xanthe ran.", align=True)
    assert found.weights.shape == (len(found.translation), len(found.words))
    assert found.words == ("Zoltan's", "cat", "is", "black", "Xanthe", "ran")
    assert found.strongest(0) == "Zoltan's"
    assert found.strongest(found.translation.index("Xanthe")) == "Xanthe"
    with pytest.warns(UnknownWordsWarning, match="never taught: blorf"):
        regard.translate("The blorf is red.")


def test_a_recording_names_the_names():
    seen = look(embedded(), "Zoltan is here.")
    assert seen.recording.source_tokens[0][0] == "Zoltan"
    assert seen.recording.tokens[0][1] == "Zoltan"
    assert len(seen.recording.tokens[0]) == seen.recording[-1].weights(0).shape[0]


def test_bad_input():
    for text, says in (("", "at least one word"), ("你好", "knows"), ("cat " * 200, "longest = 128")):
        for align in (False, True):
            with pytest.raises(TextError, match=says):
                regard.translate(text, align=align)


def test_nothing_else_is_imported_to_translate():
    code = "import regard, sys; regard.translate('Hi.'); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"matplotlib", "transformers", "sacrebleu", "opencc"} & set(modules.split())
