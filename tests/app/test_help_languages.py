"""Help in Chinese: complete, in columns, and asked for wherever --lang stands."""

import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.app.languages import helping
from regard.app.languages.__main__ import compare_help
from regard.app.languages.asked import of_help
from regard.app.languages.wrapping import wrap
from regard.app.main import main
from regard.languages import columns_of

COMMANDS = [(), *((name,) for name in main.commands)]
WITH_LANG = [name for name, one in main.commands.items() if any(p.name == "lang" for p in one.params)]
EXAMPLES = {
    name: [f"  {line.strip()}" for line in re.findall(r"\x08\n((?:.*\S.*\n?)+)", one.help)[0].splitlines()]
    for name, one in main.commands.items()
}
NEVER_FIRST = "，。、；：！？）》”…"


def run(*arguments, width=80, **environment):
    # As wide as click itself takes it in such a terminal: the runner forgets the terminal.
    wide = max(min(width, 100) - 2, 50)
    return CliRunner(env=environment).invoke(main, arguments, prog_name="regard", terminal_width=wide)


def chinese_help(*command, width=80):
    shown = run(*command, "--help", REGARD_LANG="zh", width=width)
    assert shown.exit_code == 0
    return shown.output


def code(line):
    """An example without its comment."""
    return line.partition(" # ")[0]


def prose(shown):
    """The lines that are not examples: those stay as they are."""
    examples = {code(line) for lines in EXAMPLES.values() for line in lines}
    return [line for line in shown.splitlines() if code(line) not in examples]


# ---- complete


def test_no_help_exists_in_one_language_only():
    missing, stale = compare_help()
    assert missing == {}
    assert stale == []


def test_the_catalogue_would_notice(monkeypatch, tmp_path):
    known = json.loads(helping.FILE.read_text(encoding="utf-8"))
    known["Nobody says this."] = known.pop("Print CSV.")
    file = tmp_path / "help.json"
    file.write_text(json.dumps(known), encoding="utf-8")
    monkeypatch.setattr(helping, "FILE", file)
    assert compare_help() == ({"Print CSV.": "regard heads"}, ["Nobody says this."])


def test_every_text_is_asked_for():
    asked = of_help(main)
    for command in main.commands.values():
        for param in command.params:
            text = re.sub(r"\s*\[default: [\d ]+\]$", "", getattr(param, "help", None) or "")
            assert not text or text in asked
        assert command.epilog is None or command.epilog in asked
    assert "after a kill: exactly as if nothing had been" in asked


def test_chinese_is_chinese():
    for english, chinese in helping.texts().items():
        assert re.search("[\u3400-\u9fff、]", chinese), english
        assert re.findall(r"\{\d\}", english) == re.findall(r"\{\d\}", chinese)
        assert set(re.findall(r"--[a-z-]+|\.[a-z]{3,}\b", english)) == set(
            re.findall(r"--[a-z-]+|\.[a-z]{3,}\b", chinese)
        ), english
        assert english.endswith(".") == chinese.endswith("。"), english


NAMES = {
    "regard", "train", "torch", "transformers", "hub", "model", "cpu", "cuda", "auto", "en", "zh", "N", "x",
    "JSON", "JSONL", "Parquet", "CSV", "GPU", "MB", "AI",
}  # fmt: skip
"""What has no other name in Chinese: programs, formats, units, variables."""


def english_words(shown):
    """The words of a Chinese help that are neither options, choices, quoted, files, code nor names."""
    text = "\n".join(prose(shown))
    text = re.sub(r"默认：[^；\]]*|环境变量：\w+|(?<![\w-])--?[a-z-]+|\"[^\"]*\"|\[[a-z|]+\]", " ", text)
    text = re.sub(r"[A-Za-z0-9_.:/-]*[0-9_./][A-Za-z0-9_.:/-]+", " ", text)  # files, addresses, W_q, float32
    text = re.sub(r"^  [a-z]+  ", "", text, flags=re.MULTILINE)  # the list of commands
    return set(re.findall("[A-Za-z]+", text)) - NAMES - set(main.commands)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_english_is_left(command):
    for width in (80, 100):
        assert english_words(chinese_help(*command, width=width)) == set()


def test_english_that_is_left_would_be_noticed(monkeypatch):
    known = {english: said for english, said in helping.texts().items() if english != "Write no page."}
    monkeypatch.setattr(helping, "texts", lambda: known)
    assert english_words(chinese_help("look")) == {"Write", "no", "page"}
    assert len(english_words(run("look", "--help").output)) > 30


# ---- where the language is said


def test_the_language_may_stand_anywhere():
    wanted = chinese_help("look")
    assert wanted.startswith("用法：regard look [选项] 文本\n")
    for arguments in (
        ["--lang", "zh", "look", "--help"],
        ["--lang=zh", "look", "-h"],
        ["look", "--help", "--lang", "zh"],
        ["look", "--lang", "zh", "--help"],
        ["--lang", "en", "look", "--lang", "zh", "--help"],
    ):
        assert run(*arguments).output == wanted
    assert run("--lang", "zh", "look", "--lang", "en", "--help").output.startswith("Usage: ")
    assert run("--lang", "en", "look", "--help", REGARD_LANG="zh").output.startswith("Usage: ")


@pytest.mark.parametrize("name", WITH_LANG)
def test_a_command_with_the_option_takes_it_beside_help(name):
    assert run(name, "--help", "--lang", "zh").output == chinese_help(name)


def test_the_program_itself():
    wanted = chinese_help()
    assert "\n命令：\n" in wanted
    for name in main.commands:
        assert f"\n  {name} " in wanted
    for arguments in (["--lang", "zh", "--help"], ["--help", "--lang", "zh"], ["-h", "--lang=zh"]):
        assert run(*arguments).output == wanted


def test_without_a_command_help_is_shown():
    for alone in (run(), run("--lang", "en")):
        assert alone.output == run("--help").output
    for alone in (run(REGARD_LANG="zh"), run("--lang", "zh"), run("--lang=zh")):
        assert alone.exit_code == run().exit_code
        assert alone.output == chinese_help()


def test_the_language_before_a_command_is_handed_on():
    wanted = run("demo", "--lang", "zh").output
    assert re.search("[\u3400-\u9fff]", wanted)
    assert run("--lang", "zh", "demo").output == wanted
    assert run("--lang", "zh", "demo", REGARD_LANG="en").output == wanted
    assert run("--lang", "zh", "demo", "--lang", "en").output == run("demo").output != wanted
    assert run("--lang", "en", "demo", REGARD_LANG="zh").output == run("demo").output
    assert run("--lang", "zh", "demo", "nonsense").output.startswith("错误：")


def test_a_language_that_nobody_speaks_is_an_error():
    shown = run("--lang", "fr", "demo")
    assert shown.exit_code == 2
    assert "'fr' is not one of" in shown.output


# ---- columns


def test_chinese_signs_take_two_columns():
    for text in ("词元", "a词 b", "（x），。“”…→−∞", "ｅ", "e\u0301"):
        assert columns_of(text) == cell_len(text)


def test_a_line_ends_between_signs_but_not_before_a_comma():
    assert wrap("每个头在看什么，一行一个头。", 14) == ["每个头在看什", "么，一行一个", "头。"]
    assert wrap("写成 .png、.svg 或（别的）", 10) == ["写成", ".png、.svg", "或（别的）"]
    assert wrap("看（头）的图", 7) == ["看", "（头）", "的图"]
    assert wrap("默认的数：12345", 12) == ["默认的", "数：12345"]


def test_what_is_quoted_or_in_brackets_stays_in_one_line_where_it_can():
    assert wrap('例如写 "window(1, 1)"。', 18) == ["例如写", '"window(1, 1)"。']
    assert wrap("头数。  [默认：12；x>=1]", 20) == ["头数。", "[默认：12；x>=1]"]
    assert wrap("[默认：12；x>=1]", 10) == ["[默", "认：12；", "x>=1]"]


@given(st.text(alphabet='头词元a b-c，。（）：[]"1', max_size=80), st.integers(4, 40))
def test_no_line_is_too_wide_and_nothing_is_lost(text, width):
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("width", [50, 60, 80, 100, 120])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_the_terminal(command, width):
    lines = prose(chinese_help(*command, width=width))
    assert max(map(cell_len, lines)) <= min(width, 100)
    assert not [line for line in lines if line.strip()[:1] in tuple(NEVER_FIRST)]


@pytest.mark.parametrize("width", [50, 80, 100])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_columns_are_aligned(command, width):
    shown = chinese_help(*command, width=width)
    sections = re.findall(r"^(?:选项|命令)：\n((?:  .*\n)+)", shown, re.MULTILINE)
    assert len(sections) == (1 if command else 2)
    for section in sections:
        rows = [re.fullmatch(r"(  \S+(?: \S+)*  +|   +)\S.*", line) for line in section.splitlines()]
        starts = {cell_len(row[1]) for row in rows if row}
        assert len(starts) == 1
        # An option too long for its column stands alone, and what it does begins in the next line.
        alone = [line for line, row in zip(section.splitlines(), rows) if row is None]
        assert all(cell_len(line) > 30 for line in alone)


def test_examples_stay_as_they_are():
    for name, examples in EXAMPLES.items():
        shown = [code(line) for line in chinese_help(name).splitlines()]
        start = shown.index(code(examples[0]))
        assert shown[start : start + len(examples)] == [code(line) for line in examples]
    assert "# 被中断后继续" in chinese_help("train")


@pytest.mark.parametrize("width", [80, 100])
def test_in_a_terminal(width):
    # A process of its own asks for the size of its terminal; the runner does not.
    shown = subprocess.run(
        [sys.executable, "-m", "regard", "--lang", "zh", "explain", "--help"],
        capture_output=True,
        check=True,
        env={**os.environ, "COLUMNS": str(width), "PYTHONIOENCODING": "utf-8"},
    ).stdout.decode("utf-8")
    lines = [cell_len(line) for line in prose(shown)]
    assert width - 8 < max(lines) <= width
