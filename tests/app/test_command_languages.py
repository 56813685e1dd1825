"""Errors and help of the command line in Chinese: complete, in columns, wherever --lang stands."""

import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.app.languages.click_errors import in_chinese
from regard.app.languages.line_breaks import wrap
from regard.app.languages.option import language_of
from regard.app.main import main
from regard.languages import columns_of
from regard.texts import read_table

COMMANDS = [(), *((name,) for name in main.commands)]
EXAMPLES = {
    f"  {line.strip()}".partition(" # ")[0]
    for one in main.commands.values()
    for line in re.findall(r"\x08\n((?:.*\S.*\n?)+)", one.help)[0].splitlines()
}
NEVER_FIRST = "，。、；：！？）》”…"
NAMES = {
    "regard", "train", "torch", "transformers", "hub", "model", "cpu", "cuda", "auto", "en", "zh", "N", "x",
    "JSON", "JSONL", "Parquet", "CSV", "GPU", "MB", "AI", "cc", "cedict",
}  # fmt: skip
"""What has no other name in Chinese: programs, formats, units, variables."""


def run(*arguments, width=80, **environment):
    # As wide as click itself takes it in such a terminal: the runner forgets the terminal.
    wide = max(min(width, 100) - 2, 50)
    return CliRunner(env=environment).invoke(main, arguments, prog_name="regard", terminal_width=wide)


def prose(shown):
    """The lines that are not examples: those stay as they are."""
    return [line for line in shown.splitlines() if line.partition(" # ")[0] not in EXAMPLES]


def english_words(shown):
    """The words of a Chinese help that are neither options, choices, quoted, files, code nor names."""
    text = "\n".join(prose(shown))
    text = re.sub(r"默认：[^；\]]*|环境变量：\w+|(?<![\w-])--?[a-z-]+|\"[^\"]*\"|\[[a-z|]+\]", " ", text)
    text = re.sub(r"[A-Za-z0-9_.:/-]*[0-9_./][A-Za-z0-9_.:/-]+", " ", text)  # files, addresses, W_q, float32
    text = re.sub(r"^  [a-z]+  ", "", text, flags=re.MULTILINE)  # the list of commands
    return set(re.findall("[A-Za-z]+", text)) - NAMES - set(main.commands)


# ---- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [50, 80, 120])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_chinese_fits_the_terminal_and_is_aligned(command, width):
    shown = run(*command, "--help", REGARD_LANG="zh", width=width).output
    assert width == 50 or english_words(shown) == set()  # a narrow line cuts words
    lines = prose(shown)
    assert max(map(cell_len, lines)) <= min(width, 100)
    assert not [line for line in lines if line.strip()[:1] in tuple(NEVER_FIRST)]
    assert len(lines) < len(shown.splitlines()) or not command  # examples stay
    sections = re.findall(r"^(?:选项|命令)：\n((?:  .*\n)+)", shown, re.MULTILINE)
    assert len(sections) == (1 if command else 2)
    for section in sections:
        rows = [re.fullmatch(r"(  \S+(?: \S+)*  +|   +)\S.*", line) for line in section.splitlines()]
        assert len({cell_len(row[1]) for row in rows if row}) == 1
        # An option too long for its column stands alone, and what it does begins in the next line.
        assert all(cell_len(line) > 30 for line, row in zip(section.splitlines(), rows) if row is None)


def test_the_check_for_english_would_notice():
    assert len(english_words(run("look", "--help").output)) > 30
    options = re.compile(r"--[a-z-]+|\.[a-z]{3,}\b")
    for english, chinese in read_table("help", "zh").items():
        assert set(options.findall(english)) == set(options.findall(chinese)), english


def test_the_language_may_stand_anywhere():
    for command in COMMANDS:
        wanted = run(*command, "--help", REGARD_LANG="zh").output
        assert wanted.startswith(" ".join(["用法：regard", *command]))
        assert run("--lang", "zh", *command, "--help").output == wanted
        assert run("--lang=zh", *command, "-h").output == wanted
        assert run(*command, "--help", "--lang", "zh").output == wanted
    for arguments in (["--lang", "zh", "look", "--lang", "en", "-h"], ["--lang", "en", "look", "-h"]):
        assert run(*arguments, REGARD_LANG="zh").output.startswith("Usage: ")
    for alone in (run(REGARD_LANG="zh"), run("--lang", "zh"), run("--lang=zh")):
        assert (alone.exit_code, alone.output) == (run().exit_code, run("--help", REGARD_LANG="zh").output)


def test_the_language_before_a_command_is_handed_on():
    wanted = run("demo", "--lang", "zh").output
    assert re.search("[\u3400-\u9fff]", wanted)
    assert run("--lang", "zh", "demo", REGARD_LANG="en").output == wanted
    assert run("--lang", "zh", "demo", "--lang", "en").output == run("demo").output != wanted
    assert run("--lang", "en", "demo", REGARD_LANG="zh").output == run("demo").output


def test_which_language():
    assert language_of(["explain", "--", "--lang", "zh"]) == "en"
    assert language_of(["explain", "--lang"]) == "en"
    assert language_of(["explain", "--lang", "fr"]) == "en"
    assert "'fr' is not one of" in run("--lang", "fr", "demo").output


def test_in_a_terminal():
    # A process of its own asks for the size of its terminal; the runner does not.
    shown = subprocess.run(
        [sys.executable, "-m", "regard", "--lang", "zh", "explain", "--help"],
        capture_output=True,
        check=True,
        env={**os.environ, "COLUMNS": "90", "PYTHONIOENCODING": "utf-8"},
    ).stdout.decode("utf-8")
    assert 82 < max(cell_len(line) for line in prose(shown)) <= 90


# ---- lines ----------------------------------------------------------------------------------------


def test_lines_end_between_signs_but_not_before_a_comma_nor_inside_brackets():
    assert wrap("每个头在看什么，一行一个头。", 14) == ["每个头在看什", "么，一行一个", "头。"]
    assert wrap("写成 .png、.svg 或（别的）", 10) == ["写成", ".png、.svg", "或（别的）"]
    assert wrap("默认的数：12345", 12) == ["默认的", "数：12345"]
    assert wrap('例如写 "window(1, 1)"。', 18) == ["例如写", '"window(1, 1)"。']
    assert wrap("头数。  [默认：12；x>=1]", 20) == ["头数。", "[默认：12；x>=1]"]


@given(st.text(alphabet='头词元a b-c，。（）：[]"1e\u0301', max_size=80), st.integers(4, 40))
def test_no_line_is_too_wide_and_nothing_is_lost(text, width):
    lines = wrap(text, width)
    assert all(columns_of(line) == cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


# ---- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explain", "a", "--mask", "causal & widow(1)"], "您是想写 window 吗？"),
        (["explain", "a", "--vectors", "/nowhere"], "/nowhere: 没有这个文件或文件夹"),
        (["demo", "nonsense"], "演示须是 hand"),
    ],
)
def test_errors_of_regard(arguments, says):
    for shown in (
        run(*arguments, "--lang", "zh"),
        run(*arguments, "--lang=zh"),
        run(*arguments, REGARD_LANG="zh"),
    ):
        assert (shown.exit_code, shown.output[:3]) == (1, "错误：")
        assert says in shown.output
        assert "Got" not in shown.output
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
def test_errors_of_click(arguments, says):
    shown = run(*arguments, REGARD_LANG="zh")
    assert shown.exit_code == 2
    assert says in shown.output
    assert "Error" not in shown.output
    assert ("用法：" in shown.output) == ("Usage: " in run(*arguments).output)


def test_what_the_user_wrote_is_not_translated():
    said = in_chinese("Invalid value for '--lang': 'Missing command.' is not one of 'en', 'zh'.")
    assert said == "'--lang' 的值无效：'Missing command.' 不在可选的值之中：'en', 'zh'。"
    assert in_chinese("Another library says this.") == "Another library says this."


def test_a_usage_error_says_how_to_get_help_in_chinese():
    assert run("explain", "--lang", "zh").output.splitlines()[:3] == [
        "用法：regard explain [选项] 文本",
        "帮助：regard --lang zh explain --help",
        "",
    ]
    assert "帮助：regard explain --help\n" in run("explain", REGARD_LANG="zh").output
