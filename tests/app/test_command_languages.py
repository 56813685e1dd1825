"""Errors and help of the command line in Chinese: complete, in columns, wherever --lang stands."""

import re

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.app.languages import ChineseFormatter
from regard.app.languages.__main__ import SAME
from regard.app.main import main
from regard.texts import read_table

COMMANDS = [(), *((name,) for name in main.commands)]
EXAMPLES = {
    f"  {line.strip()}".partition(" # ")[0]
    for one in main.commands.values()
    for line in re.findall(r"\x08\n((?:.*\S.*\n?)+)", one.help)[0].splitlines()
}
NAMES = {
    "regard", "torch", "transformers", "Transformer", "Whisper", "hub", "cpu", "cuda", "auto", "GPU", "AI",
    "cc", "cedict", "JSON", "JSONL", "CSV", "Parquet", "BLEU", "chrF", "MB", "Ctrl", "SIGTERM", "en", "zh",
}  # fmt: skip
"""What is called the same in Chinese: programs, devices, formats, measures, units."""


def english_in(text):
    """The English words of a Chinese text, except names and code."""
    return set(re.findall("[A-Za-z]{2,}", SAME.sub(" ", text))) - NAMES - set(main.commands)


def run(*arguments, **environment):
    return CliRunner(env=environment).invoke(main, arguments, prog_name="regard")


@pytest.mark.parametrize("width", [50, 60, 80, 90, 120, 140])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_chinese_as_wide_as_the_terminal_and_aligned(command, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit):  # not with the runner, which has a width of its own
        main(["--lang=zh", *command, "--help"], prog_name="regard")
    shown = capsys.readouterr().out
    lines = [line for line in shown.splitlines() if line.partition(" # ")[0] not in EXAMPLES]
    assert width < 80 or not english_in("\n".join(lines))  # a narrow line cuts words
    assert 0 <= min(width, 100) - max(map(cell_len, lines)) < (width if command else 6)
    assert not re.search("^ *[，。、；：！？）》”…]", shown, re.MULTILINE)
    assert len(lines) < len(shown.splitlines()) or not command  # examples stay
    sections = re.findall(r"^(?:选项|命令)：\n((?:  .*\n)+)", shown, re.MULTILINE)
    assert len(sections) == (1 if command else 2)
    for section in sections:
        rows = [re.fullmatch(r"(  \S+(?: \S+)*  +|   +)\S.*", line) for line in section.splitlines()]
        assert len({cell_len(row[1]) for row in rows if row}) == 1
        # An option too long for its column stands alone, and what it does begins in the next line.
        assert all(cell_len(line) > 30 for line, row in zip(section.splitlines(), rows) if row is None)


@given(st.text(alphabet='头词元a b-c，。（）：[]"1e\u0301', max_size=80), st.integers(12, 40))
def test_no_line_is_too_wide_and_nothing_is_lost(text, width):
    formatter = ChineseFormatter(width=width)
    formatter.write_text(text)
    assert max(map(cell_len, formatter.getvalue().splitlines()), default=0) <= width
    assert re.sub(r"\s", "", formatter.getvalue()) == text.replace(" ", "")


def test_lines_end_between_signs_but_not_before_a_comma_nor_inside_brackets():
    formatter = ChineseFormatter(width=51)
    formatter.write_dl([("", "头的数（在此处）。写成 (a, b)，写在这里，或那里（里面）。  [默认：12; x>=1]")])
    lines = ["头的数（在此处）。写成 (a, b)，写在这里，或那里", "（里面）。  [默认：12；x>=1]"]
    assert re.findall(r"\S.*", formatter.getvalue()) == lines


@pytest.mark.parametrize("subject", ["help", "click"])
def test_no_english_word_is_left(subject):
    assert {word for said in read_table(subject, "zh").values() for word in english_in(said)} == set()
    assert english_in('请写 the file（--file、"a b"、W_q、{n:d}）') == {"the", "file"}


@pytest.mark.parametrize("arguments", [["demo"], *([*one, "-h"] for one in COMMANDS)], ids=" ".join)
def test_the_language_may_stand_anywhere_and_the_last_one_counts(arguments):
    english, chinese = run(*arguments).output, run(*arguments, REGARD_LANG="zh").output
    assert english_in(chinese) < english_in(english)
    assert chinese.startswith(" ".join(["用法：regard", *arguments])[:-2]) or arguments == ["demo"]
    for before, after in (["--lang", "zh"], []), (["--lang=zh"], []), (["--lang=en"], ["--lang", "zh"]):
        assert run(*before, *arguments, *after, REGARD_LANG="en").output == chinese
    for before, after in (["--lang=en"], []), (["--lang=zh"], ["--lang=en"]):
        assert run(*before, *arguments, *after, REGARD_LANG="zh").output == english


def test_a_language_alone_an_unknown_one_and_one_that_is_text():
    assert run("--lang", "zh").output == run(REGARD_LANG="zh").output == run("--lang=zh", "-h").output
    assert "'fr' is not one of" in run("--lang", "fr", "demo").output
    assert run("explain", "a", "--bogus", "--", "--lang", "zh").output.startswith("Usage: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explain", "a", "--mask", "causal & widow(1)"], "您是想写 window 吗？"),
        (["explain", "a", "--vectors", "/nowhere"], "/nowhere: 没有这个文件或文件夹"),
        (["demo", "nonsense"], "演示须是 hand"),
        (["explain"], "缺少参数 '文本'。\n"),
        (["explain", "a", "--bogus"], "没有选项 '--bogus'"),
        (["explain", "a", "--haed"], "没有选项 '--haed'。（您是想写其中之一吗：'--head', '--heads'"),
        (["explain", "a", "b"], "多出了参数（b）"),
        (["explain", "a", "--format", "x"], "'--format' 的值无效：'x' 不在可选的值之中：'terminal'"),
        (["explain", "a", "--heads", "integer"], "'--heads' 的值无效：'integer' 不是整数。"),
        (["explain", "a", "--layer", "-1"], "-1 不在范围 x>=0 内。"),
        (["explain", "a", "--heads"], "选项 '--heads' 需要一个值。"),
        (["explain", "a", "--out", "/"], "文件 '/' 其实是文件夹。"),
        (["File"], "没有命令 'File'"),
        (["heads"], "请给出文本或 --recording，二者择一。"),
        (["heads", "a", "--layers", "3-x"], "'3-x' 既不是数字，也不是 3-5 这样的区间"),
    ],
)
def test_errors(arguments, says):
    english, *shown = (run(*arguments), run("--lang=zh", *arguments), run(*arguments, REGARD_LANG="zh"))
    for one in shown:
        assert says in one.output
        assert not re.search("Got|Error|Usage|Invalid", one.output)
        assert one.exit_code == english.exit_code > 0
        assert ("用法：" in one.output) == ("Usage: " in english.output)
        assert ("要看帮助，请运行 regard" in one.output) == ("Usage: " in english.output)
    assert run("--lang=en", *arguments, REGARD_LANG="zh").output == english.output
