"""Errors in Chinese: the catalogue has every template of the source, and each message finds its own."""

import json
import re

import pytest
from click.testing import CliRunner

from regard.app.languages import language_of
from regard.app.languages.__main__ import compare
from regard.app.languages.catalogue import FILES, entries, error_in_chinese, say_in_chinese
from regard.app.languages.templates import of_package, of_source
from regard.app.main import main
from regard.errors import MaskSyntaxError, RegardError

CATALOGUES = [json.loads(file.read_text(encoding="utf-8")) for file in FILES]
HAN = re.compile("[\u3400-\u9fff]")
SAME = {
    "--generate {0}", "key heads = {0}, value heads = {1}", "padding({0})", "causal=True", "None",
    "source_tokens",
    "batch = {0}, key heads = {1}, channels = {2}", "top = {0}, statistics = False",
    "every(stride): stride", "prefix(length): length", "local_global(stride): stride",
    "window(before, after): {0}", "kdim, vdim, add_bias_kv or add_zero_attn", "{0}: {1}", "{0} of {1} tokens",
}  # fmt: skip
"""Texts that are code, and so the same in every language."""


def run(*arguments, **environment):
    return CliRunner(env=environment).invoke(main, arguments, prog_name="regard")


def test_no_error_exists_in_one_language_only():
    missing, stale = compare()
    assert missing == {}
    assert stale == []


def test_the_catalogue_would_notice(tmp_path):
    (tmp_path / "new.py").write_text('raise ShapeError("Nobody wrote this yet.")', encoding="utf-8")
    assert of_package(tmp_path) == {"Nobody wrote this yet.": "new.py"}


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=["zh", "others"])
def test_places_are_the_same_and_chinese_is_chinese(catalogue):
    for english, chinese in catalogue.items():
        assert sorted(re.findall(r"\{\d+\}", english)) == sorted(re.findall(r"\{\d+\}", chinese)), english
        assert not HAN.search(english)
        if english not in SAME:
            assert re.search("[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]", chinese), english
        # A sentence stays a sentence, a piece a piece.
        if english.endswith(".") and english not in SAME:
            assert chinese.endswith("。"), english


def test_every_template_is_found_by_what_it_writes():
    wrong = []
    for entry in entries():
        if entry.letters < 4:
            continue  # {0} in {1}: others may be nearer
        written = re.sub(r"\{(\d+)\}", lambda place: str(71 + int(place[1])), entry.english)
        said = re.sub(r"\{(\d+)\}", lambda place: str(71 + int(place[1])), entry.chinese)
        if say_in_chinese(written) != said:
            wrong.append((written, say_in_chinese(written)))
    assert wrong == []


def test_templates_are_read_from_names_parameters_and_pieces():
    code = """
def check(name, must, why):
    hint = "Use less." if why else f"Use {name}."
    raise ShapeError(f"{must} and more.", got=f"an {why}" + " long", do=hint)
check("x", "Lengths are equal", "very good reason")
raise KeyError("not ours")
"""
    assert list(of_source(code)) == [
        "{0} and more.",
        "Lengths are equal",
        "an {0} long",
        "very good reason",
        "Use less.",
        "Use {0}.",
    ]


def test_an_error_in_three_parts():
    error = RegardError("The text has at least one word.", got="''", do='Try "I love AI".')
    assert error_in_chinese(error) == "文本至少要有一个词。实际为：''。可以试试 \"I love AI\"。"
    assert (error.must, error.got) == ("The text has at least one word.", "''")


def test_what_the_user_wrote_is_not_translated():
    error = RegardError("The text has at least one word.", got="'none in keys of 3 heads'", do="Shorten it.")
    assert "'none in keys of 3 heads'" in error_in_chinese(error)


def test_what_nobody_translated_stays():
    assert error_in_chinese(RegardError("Quite new.", got="so", do="Wait.")) == "Quite new.实际为：so。Wait."
    theirs = "'./model': Unrecognized model in ./model. Should have a key in its config.json"
    assert say_in_chinese(theirs) == theirs
    assert say_in_chinese("'./model': nothing in ./model").startswith("'./model'：")


def test_the_mark_under_a_mask_stays_in_its_place():
    error = MaskSyntaxError("Expected T after the dot. Got 'x'.", text="causal.x", position=7)
    first, text, mark = error_in_chinese(error).split("\n")
    assert first == "点号之后应为 T。实际为：'x'。"
    assert text[mark.index("^")] == "x"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explain", "x", "--heads", "3"], "错误：width 和 heads 须不小于 1"),
        (["explain", "a", "--mask", "causal & widow(1)"], "您是想写 window 吗？"),
        (["explain", "a", "--mask", "window(-3, 0)"], "before 须是不小于 0 的整数。实际为：-3。请数位置。"),
        (["explain", "a", "--vectors", "/nowhere"], "/nowhere：没有这个文件或文件夹"),
        (["demo", "nonsense"], "演示须是 hand"),
        (["cost", "--dtype", "int8"], "dtype 须是"),
    ],
)
def test_errors_of_the_command_line(arguments, says):
    for shown in (
        run(*arguments, "--lang", "zh"),
        run(*arguments, "--lang=zh"),
        run(*arguments, REGARD_LANG="zh"),
    ):
        assert shown.exit_code == 1
        assert says in shown.output
        assert "Got" not in shown.output
    assert run(*arguments).output.startswith("Error: ")
    assert run(*arguments, "--lang", "en", REGARD_LANG="zh").output.startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explain"], "缺少参数 '文本'。"),
        (["explain", "a", "--bogus"], "没有选项 '--bogus'"),
        (["explain", "a", "b"], "多出了参数（b）"),
        (["explain", "a", "--format", "x"], "'x' 不在可选的值之中"),
        (["explain", "a", "--heads", "x"], "'x' 不是整数。"),
        (["explain", "a", "--layer", "-1"], "-1 不在范围 x>=0 内。"),
        (["explain", "a", "--heads"], "选项 '--heads' 需要一个值。"),
        (["nonsense"], "没有命令 'nonsense'"),
        (["heads"], "请给出文本或 --recording，二者择一。"),
        (["heads", "a", "--layers", "3-x"], "'3-x' 既不是数字，也不是 3-5 这样的区间"),
    ],
)
def test_usage_errors_of_click(arguments, says):
    shown = run(*arguments, REGARD_LANG="zh")
    assert shown.exit_code == 2
    assert says in shown.output
    assert "Error" not in shown.output
    assert ("用法：" in shown.output) == ("Usage: " in run(*arguments).output)


def test_a_usage_error_says_how_to_get_help_in_chinese():
    usage, hint, nothing, error = run("explain", "--lang", "zh").output.splitlines()
    assert (usage, hint, nothing) == (
        "用法：regard explain [选项] 文本",
        "帮助：regard --lang zh explain --help",
        "",
    )
    assert error.startswith("错误：")
    assert "帮助：regard explain --help\n" in run("explain", REGARD_LANG="zh").output
    for name in ([], *([one] for one in main.commands)):
        hint = re.search(r"帮助：regard (.+)\n", run("--lang", "zh", *name, "--bogus").output)
        assert run(*hint[1].split()).output.startswith(" ".join(["用法：regard", *name]))


def test_which_language():
    assert language_of(["explain", "--", "--lang", "zh"]) == "en"
    assert language_of(["explain", "--lang"]) == "en"
    assert language_of(["explain", "--lang", "fr"]) == "en"
