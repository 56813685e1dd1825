"""The two READMEs: the same headings, code, tables, links and pictures, in two languages."""

import re

import pytest

from docs.scripts import DOCS
from regard.app.main import main

ROOT = DOCS.parent
ENGLISH, CHINESE = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md"))
ALIKE = {
    "headings": r"^(#+) ",
    "code": r"^```.*?^```$",
    "pictures": r"!\[[^\]]*\]\(([^)]+)\)",
    "links to pages": r"\]\((docs/[^)]+|benchmarks[^)]*|C[^)]+)\)",
    "makes": r"`make [a-z-]+`",
    "commands": r"`(regard [^`]+)`",
    "first cells that are code": r"^\| (`[^`]+`)",
}


@pytest.mark.parametrize("what", ALIKE)
def test_both_have_the_same(what):
    here, there = (re.findall(ALIKE[what], text, re.MULTILINE | re.DOTALL) for text in (ENGLISH, CHINESE))
    assert here
    # Comments in code are in the language of the page.
    here, there = ([re.sub(r" +# .*", "", one) for one in found] for found in (here, there))
    # A page that exists in both languages is linked in the language of the README.
    assert [in_chinese(one) for one in here] == there


def in_chinese(path):
    other = path.removesuffix(".md") + ".zh-CN.md"
    return other if path.startswith("docs/") and (ROOT / other).exists() else path


def test_a_page_in_chinese_is_linked_in_chinese():
    assert in_chinese("docs/commands.md") == "docs/commands.zh-CN.md"
    assert in_chinese("docs/gallery.md") == "docs/gallery.md"
    assert "zh-CN" not in ENGLISH.replace("README.zh-CN.md", "")


def test_comments_in_code_are_in_the_language_of_the_page():
    here, there = (
        [
            comment
            for code in re.findall(ALIKE["code"], text, re.MULTILINE | re.DOTALL)
            for comment in re.findall(r" # .*", code)
        ]
        for text in (ENGLISH, CHINESE)
    )
    assert len(here) == len(there)
    assert all(re.search("[\u4e00-\u9fff]", comment) for comment in there)
    # A number that was measured is the same in both.
    assert [re.findall(r"\d+", comment) for comment in here] == [
        re.findall(r"\d+", comment) for comment in there
    ]


def test_tables_have_the_same_rows_and_what_was_measured_the_same_numbers():
    here, there = (
        [line for line in text.splitlines() if line.startswith("|")] for text in (ENGLISH, CHINESE)
    )
    assert len(here) == len(there)
    measured = 0
    for english, chinese in zip(here, there):
        if re.search(r"\d (ms|s|MB|GB)\b", english):
            measured += 1
            numbers = [sorted(re.findall(r"\d[\d,.]*", row)) for row in (english, chinese)]
            assert numbers[0] == numbers[1]
    assert measured > 5


def test_each_links_to_the_other():
    assert "(README.zh-CN.md)" in ENGLISH.partition("##")[0]
    assert "(README.md)" in CHINESE.partition("##")[0]


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_links_lead_to_files_that_exist(text):
    for path in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_command_named_exists(text):
    for name in re.findall(r"`regard ([a-z]+)", text):
        assert name in main.commands
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([a-z-]+)`", text):
        assert f"\n{target}:" in makefile
