"""``regard play``: which files it writes, with what in them, and what it refuses."""

import pytest

from app.command_line import run
from regard.app.commands import play as command
from regard.views.play import PLAYABLES

pytestmark = pytest.mark.usefixtures("elsewhere")

FILES = ["play-one-query.html", "play-sentence.html", "play-masks.html", "play-transformer.html"]


@pytest.fixture(autouse=True)
def browser_calls(monkeypatch):
    """The addresses that a desktop would open."""
    calls = []
    monkeypatch.setattr(command.webbrowser, "open", calls.append)
    monkeypatch.setattr(command, "has_desktop", lambda: False)
    return calls


def test_all_pages_link_to_each_other(tmp_path):
    shown = run("play", "--out", "site")
    assert shown.exit_code == 0, shown.output
    assert sorted(file.name for file in (tmp_path / "site").iterdir()) == sorted(FILES)
    for file in FILES:
        text = (tmp_path / "site" / file).read_text(encoding="utf-8")
        assert all(f'"{other}"' in text for other in FILES)
        assert 50_000 < len(text.encode()) < 900_000
        assert "http://" not in text.replace("http://www.w3.org/", "")
        assert "https://" not in text


@pytest.mark.parametrize("name", ["query", "sentence", "masks"])
def test_one_page_has_no_links(tmp_path, name):
    shown = run("play", name)
    assert shown.exit_code == 0, shown.output
    (file,) = tmp_path.iterdir()
    assert file.name == PLAYABLES[name].file
    assert '"links":[]' in file.read_text(encoding="utf-8")
    assert PLAYABLES[name].title() in shown.output


def test_a_page_links_to_those_that_are_there_already(tmp_path):
    run("play", "masks")
    run("play", "sentence", "--out", "own.html")
    assert '"links":[["sentence","play-sentence.html"],["masks","play-masks.html"]]' in (
        tmp_path / "own.html"
    ).read_text(encoding="utf-8")


def test_the_name_of_the_page_is_accepted_too(tmp_path):
    assert run("play", "one-query").exit_code == 0
    assert (tmp_path / "play-one-query.html").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [("sentence", "We like cats"), ("masks", "window(3, 1)"), ("transformer", "I love you.")],
)
def test_a_page_begins_with_the_text(tmp_path, name, text):
    shown = run("play", name, text, "--out", "own.html", "--lang", "zh")
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "own.html").read_text(encoding="utf-8")
    assert f'"text":"{text}"' in page
    assert '<html lang="zh-CN">' in page
    assert PLAYABLES[name].title("zh") in shown.output


def test_a_desktop_opens_the_first_page(tmp_path, browser_calls, monkeypatch):
    run("play", "masks")
    assert browser_calls == []
    monkeypatch.setattr(command, "has_desktop", lambda: True)
    run("play", "masks", "--no-open")
    assert browser_calls == []
    run("play", "masks")
    assert browser_calls == [(tmp_path / "play-masks.html").resolve().as_uri()]


def test_a_text_cannot_become_markup(tmp_path):
    run("play", "masks", "</script><script>alert(1)</script>", "--out", "x.html")
    assert "<script>alert" not in (tmp_path / "x.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("query", "a text"), "One query has no text to begin with. Got 'a text'."),
        (("--out", "x.html"), "All pages together need a folder. Got --out x.html."),
        (("sentence", " "), "The text must have at least one word."),
        (("circle",), "is not one of 'query', 'sentence', 'masks', 'transformer'"),
        (("query", "a text", "--lang", "zh"), "“一个查询”没有可以开始的文字。"),
    ],
)
def test_what_is_refused(tmp_path, arguments, said):
    shown = run("play", *arguments)
    assert shown.exit_code != 0
    assert said in " ".join(shown.output.split())
    assert not any(tmp_path.iterdir())
