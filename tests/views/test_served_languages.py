"""In which language the pages of the server begin, and that they speak it alone."""

import re
from pathlib import Path

import pytest

from app.served import Words, running, served, translation
from regard.app.server.assets import assets, document
from regard.app.server.safety import ServerAddress
from regard.texts import read_table
from views.visiting import visitors

SPOKEN = "document.documentElement.lang"
SAID = """(() => {
  const said = [];
  const walk = (node) => {
    if (node.nodeType === 3) { said.push(node.data); return; }
    if (node.nodeType !== 1 || node.getAttribute("translate") === "no") return;
    if (["SCRIPT", "STYLE", "NOSCRIPT", "CANVAS"].includes(node.tagName)) return;
    for (const name of ["aria-label", "title", "placeholder"]) said.push(node.getAttribute(name) ?? "");
    node.childNodes.forEach(walk);
  };
  walk(document.body);
  return said.filter((text) => text.trim()); })()"""
NAMES = re.compile(r"\b(English|Words|TransformerEncoder|PNG|SVG|UTF-8|book)\b|--model|--recording")


@pytest.fixture(scope="module", params=[None, "zh", "en"], ids=["nothing told", "zh", "en"])
def told(request):
    """A server, and what it was told."""

    def app_of(port):
        app = served(
            models=[Words(), Words("translator", "English → Chinese (built-in)")],
            server_address=ServerAddress(port=port),
            lang=request.param,
        )
        app.server_state.library.give(Path("two.safetensors"), translation())
        return app

    with running(app_of) as address:
        yield address, request.param


@pytest.fixture
def visit(tabs, told):
    with visitors(tabs, told[0]) as visitor:
        yield lambda locale: visitor(locale=locale)


def open_page(visitor, page):
    ready = {
        "/": "window.regard?.home",
        "/map/two": "window.regard?.app",
        "/look/two": "window.regard?.state",
    }
    return visitor.open(page).until(ready[page])


# Each page with what each server was told, and in each language that the reader asks for.
@pytest.mark.parametrize(
    ("told", "locale", "pages"),
    [
        (told, locale, pages)
        for place, told in enumerate([None, "zh", "en"])
        for locale, pages in zip(
            ["en-GB", "zh-CN"] if place % 2 else ["zh-CN", "en-GB"], [["/map/two"], ["/", "/look/two"]]
        )
    ],
    indirect=["told"],
)
def test_the_first_language(visit, told, locale, pages):
    wanted = told[1] or locale[:2]
    visitor = visit(locale)
    for page in pages:
        open_page(visitor, page)
        assert visitor.ask(SPOKEN) == {"en": "en", "zh": "zh-CN"}[wanted], page
    # Nothing of this is a choice of the reader's.
    assert visitor.ask("localStorage.getItem('regard.look')") is None


# From each page once; all three are looked at after the choice.
@pytest.mark.parametrize(
    ("told", "where"), [(None, "/"), ("zh", "/map/two"), ("en", "/look/two")], indirect=["told"]
)
def test_what_the_reader_chooses_holds_everywhere(visit, told, where):
    visitor = open_page(visit("en-GB"), where)
    other = "en" if told[1] == "zh" else "zh"
    visitor.page.click("text=English" if other == "en" else "text=中文")
    visitor.until(f"{SPOKEN}.startsWith('{other}')")
    visitor.page.wait_for_timeout(50)
    for page in ("/", "/map/two", "/look/two"):
        open_page(visitor, page)
        assert visitor.ask(SPOKEN).startswith(other), page
    assert visitor.ask("JSON.parse(localStorage.getItem('regard.look'))") == {"language": other}


def test_an_address_with_a_language_is_no_choice(visit, told):
    visitor = visit("en-GB").open("/look/two#language=zh").until("window.regard?.state")
    visitor.until(f"{SPOKEN} === 'zh-CN'")
    assert visitor.ask("localStorage.getItem('regard.look')") is None


@pytest.mark.parametrize("told", [None], indirect=True)  # the reader's choice comes before it
@pytest.mark.parametrize("page", ["/", "/map/two", "/look/two"])
def test_in_chinese_no_english_is_left(visit, page):
    visitor = visit("zh-CN").open("/")
    visitor.ask("localStorage.setItem('regard.look', JSON.stringify({language: 'zh'}))")
    said = open_page(visitor, page).ask(SAID)
    assert len(said) > 10
    assert not [text for text in said if re.search("[A-Za-z]{2,}", NAMES.sub("", text))]


def test_the_waiting_page_speaks(visit, told):
    visitor = visit("zh-CN")
    visitor.page.route("**/api/recordings/two/pages", lambda route: route.abort())
    visitor.open("/look/two?call=1").until("document.querySelector('.notice')")
    said = visitor.ask("document.querySelector('.notice').textContent")
    assert said == ("The server does not answer." if told[1] == "en" else "服务器没有回应。")
    visitor.problems.clear()  # the browser complains of the request that was stopped


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_errors_of_the_server_are_in_the_language_of_the_page(visit, told, locale):
    visitor = visit(locale).open("/map/none").until("document.querySelector('.notice')")
    said = visitor.ask("document.querySelector('.notice').textContent")
    english = (told[1] or locale[:2]) == "en"
    assert said == (
        "The server does not have this recording. Read the text again."
        if english
        else "这里已经没有这份记录。请重新读入文本。"
    )
    visitor.problems.clear()  # the browser complains of the status


def test_documents_say_what_the_server_was_told():
    for name in ("home", "map", "wait"):
        assert b'<html lang="en">' in document(name)
        assert b'<html lang="zh-CN" data-first="zh">' in document(name, "zh")
        assert b'<html lang="en" data-first="en">' in document(name, "en")


def test_nothing_in_the_modules_speaks_for_itself():
    """Every word of the app is in its tables, so a sentence in a module would be in one language only."""
    sentence = re.compile(r'"[A-Z][a-z]+ [a-z]+[^"]*"|"[^"]*[\u3400-\u9fff][^"]*"|`[A-Z][a-z]+ [a-z]')
    known = {'"中文"'}
    found = {
        (name, one)
        for name, asset in assets().items()
        if name.endswith(".js") and not name.startswith("page/")
        for one in sentence.findall(re.sub(r"^\s*//.*$", "", asset.content.decode(), flags=re.M))
        if one not in known
    }
    assert found == set()
    assert sentence.findall(assets()["page/languages.js"].content.decode())  # the check would notice


def test_keys_put_together_have_their_words():
    for key in (
        *(f"stage.{stage}" for stage in ("waiting", "reading", "saving", "mapping", "writing")),
        *(f"kind.{kind}.model" for kind in ("encoder", "decoder", "translator")),
        *(f"home.pair.{kind}" for kind in ("encoder", "translator")),
    ):
        assert key in read_table("app", "zh"), key
