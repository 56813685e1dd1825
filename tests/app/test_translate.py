import json
import re

import pytest
from click.testing import CliRunner

from regard.app.main import main
from regard.translator.built_in import FOLDER


def run(*arguments, **options):
    return CliRunner().invoke(main, ["translate", *arguments], **options)


def test_the_sentence_of_the_lessons():
    shown = run("The cat sat on the mat.")
    assert shown.exit_code == 0
    assert "猫" in shown.output
    assert "坐" in shown.output
    assert len(shown.output.splitlines()) == 1


def test_lines_are_translated_one_by_one(tmp_path):
    (tmp_path / "two.txt").write_text("I love you.\n\nWhere is the cat?\n", encoding="utf-8")
    shown = run(f"@{tmp_path / 'two.txt'}")
    assert len(shown.output.splitlines()) == 2
    assert "猫" in shown.output.splitlines()[1]
    assert run("-", input="I love you.\nWhere is the cat?").output == shown.output


def test_several_texts_are_several_lines():
    shown = run("I love you.", "Where is the cat?")
    assert shown.exit_code == 0
    assert shown.output == run("I love you.").output + run("Where is the cat?").output


def test_a_text_that_cannot_be_read_does_not_cost_the_others():
    shown = run("I love you.", "😀", "Where is the cat?")
    assert shown.exit_code == 1
    first, same, last = shown.stdout.splitlines()
    assert (first, same) == (run("I love you.").stdout.strip(), "😀")
    assert "猫" in last
    assert "at least one character that the model knows. Got '😀'" in shown.stderr
    assert run("😀").stdout == ""


def test_sentences_of_a_line_are_translated_one_by_one():
    one, other = run("I love you.").output.strip(), run("Where is the cat?").output.strip()
    assert run("I love you. Where is the cat?").output == f"{one}{other}\n"


def test_names_stay_names():
    shown = run("Xanthe is my sister.", "I like Zoltan's cat.", "I know Zoltan and Xanthe.")
    first, second, third = shown.output.splitlines()
    assert first.startswith("Xanthe")
    assert "Zoltan的猫" in second
    assert "Zoltan" in third
    assert "Xanthe" in third
    aligned = run("Xanthe is my sister.", "--align").output
    assert first in aligned


@pytest.mark.parametrize(
    ("text", "named"),
    [("The blorf is red.", "blorf"), ("I love 😀 you.", "😀"), ("I xqzzt wvvk you.", "xqzzt, wvvk")],
)
def test_what_was_never_taught_is_named(text, named):
    shown = run(text)
    assert shown.exit_code == 0
    assert f"never taught: {named}." in shown.stderr
    assert len(shown.stdout.splitlines()) == 1
    assert f"没有学过：{named}。" in run(text, "--lang", "zh").stderr
    assert run("The cat is red.").stderr == ""


def test_alignment_names_every_word_and_character():
    shown = run("The cat sat on the mat.", "--align")
    assert shown.exit_code == 0
    translation = run("The cat sat on the mat.").output.strip()
    for part in ("cat", "sat", "mat", *translation):
        assert part in shown.output
    assert "cross-attention of layer" in shown.output


def test_a_long_sentence_is_aligned_as_a_list():
    text = "I have a cat and a dog and you have a book and a pen and a car and a house."
    shown = run(text, "--align")
    assert shown.exit_code == 0
    assert "←" in shown.output
    assert "%" in shown.output


@pytest.mark.parametrize("text", ["The cat sat on the mat.", "I have a cat and a dog and you " * 2])
def test_alignment_in_chinese(text):
    shown = run(text, "--align", "--lang", "zh")
    assert shown.exit_code == 0
    assert "头的交叉注意力" in shown.output
    assert set(re.findall("[A-Za-z]+", shown.output)) <= set(re.findall("[A-Za-z]+", text))
    assert run(text, "--align", env={"REGARD_LANG": "zh"}).output == shown.output
    english = run(text, "--align", env={"COLUMNS": "200"}).output.splitlines()
    chinese = run(text, "--align", "--lang", "zh", env={"COLUMNS": "200"}).output.splitlines()
    assert [one for one in english if one not in chinese] == [
        english[1]
    ]  # the line that explains the numbers


def test_the_translation_itself_is_the_same_in_every_language():
    assert run("The cat sat on the mat.", "--lang", "zh").output == run("The cat sat on the mat.").output


@pytest.mark.parametrize("text", ["I love [/b] you.", "I [red] love :cat: you."])
@pytest.mark.parametrize("more", ["", " The cat and the dog sat on the mat and the man sat with you."])
def test_brackets_in_a_text_are_no_marks(text, more):
    shown = run(text + more, "--align", env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    assert text in shown.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([""], "at least one word"),
        ([" \n "], "at least one word"),
        (["猫坐在垫子上"], "at least one character that the model knows"),
        (["cat " * 200], "must fit into the model's positions (longest = 128)"),
        (["Hi.", "--model", "/nowhere"], "A model must be a folder with all of its files"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, says):
    for more in ([], ["--align"]):
        shown = run(*arguments, *more)
        assert shown.exit_code == 1
        assert says in shown.output
        assert "Traceback" not in shown.output


def test_damaged_weights_are_named(tmp_path):
    for file in FOLDER.iterdir():
        contents = bytearray(file.read_bytes())
        if file.suffix == ".safetensors":
            contents[len(contents) // 2] ^= 1
        (tmp_path / file.name).write_bytes(contents)
    shown = run("Hi.", "--model", str(tmp_path))
    assert shown.exit_code == 1
    assert "weights must be as regard wrote them" in shown.output


def test_cut_off_weights_are_named(tmp_path):
    for file in FOLDER.iterdir():
        contents = file.read_bytes()
        (tmp_path / file.name).write_bytes(contents[:-99] if file.suffix == ".safetensors" else contents)
    assert "weights must be as regard wrote them" in run("Hi.", "--model", str(tmp_path)).output


def test_another_recipe_than_that_of_the_weights(tmp_path):
    for file in FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    recipe = json.loads((FOLDER / "recipe.json").read_text())
    (tmp_path / "recipe.json").write_text(json.dumps(recipe | {"width": 2 * recipe["width"]}))
    shown = run("Hi.", "--model", str(tmp_path))
    assert shown.exit_code == 1
    assert "Traceback" not in shown.output
