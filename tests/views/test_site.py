"""The site of the documentation: pages, links, languages, search and equations, all without a network."""

import base64
import doctest
import json
import re
import warnings
from html import unescape
from urllib.parse import unquote

import pytest

from docs.scripts import script
from regard.texts import read_table
from regard.views.play import PLAYABLES

OUTSIDE = re.compile(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["']?https?:""")


def write_one_playable(folder, lang):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "play-one-query.html").write_text(f"{lang}", encoding="utf-8")
    return {"play-one-query.html"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Everything but the results of lessons and the reference from docstrings, which have their own tests."""
    folder, made = tmp_path_factory.mktemp("site") / "docs", script("make_site")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jieba and MkDocs use what later versions of Python drop
        patch.setattr(made, "write_reference", lambda folder: None)
        patch.setattr(made, "write_playables", write_one_playable)
        made.main(folder, execute=False)
    return folder


def read(path):
    return path.read_text(encoding="utf-8")


def test_every_lesson_is_a_page_in_its_language(site):
    for lang, folder, wanted in (("en", "lessons/en", "en"), ("zh", "zh/lessons/zh", "zh-CN")):
        for lesson in script("make_site").lessons(lang):
            assert f'<html lang="{wanted}"' in read(site / folder / f"{lesson.stem}.html")


def test_equations_are_mathml(site):
    page = read(site / "lessons" / "en" / "02-step-by-step.html")
    assert page.count("<math") > 5
    assert "arithmatex" not in page
    assert "<msqrt>" in page


def test_answers_are_folded(site):
    page = read(site / "zh" / "lessons" / "zh" / "01-one-query.html")
    assert page.count('<details class="success">') == 4
    assert "<summary>答案</summary>" in page


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not OUTSIDE.search(read(page)), page


def test_links_lead_somewhere(site):
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', read(page))) for page in site.rglob("*.html")}
    checked = 0
    for page in anchors:
        if page.name == "404.html":
            continue
        for link in re.findall(r'<a [^>]*?href="([^"?]+)"', read(page)):
            path, _, anchor = unquote(unescape(link)).partition("#")
            if not re.match(r"[a-z]+:", link) and not path.startswith(("api/", "../api/", "../../api/")):
                there = (page.parent / path).resolve() if path else page
                # The reference and notebooks are not made here.
                assert there.exists(), (page.name, link)
                assert not anchor or anchor in anchors[there], (page.name, link)
                checked += bool(anchor)
    assert checked > 100


def test_pages_are_named_by_their_titles(site):
    index = read(site / "index.html")
    assert '<a href="why.html">Why</a>' in index
    assert not re.search(r">\w+\.md</a>", index)


def test_a_playable_is_linked_where_it_was_written(site):
    page = read(site / "lessons" / "en" / "01-one-query.html")
    assert '<a href="../../play-one-query.html"><code>regard play one-query</code></a>' in page
    assert "<code>regard play masks</code>" in read(site / "lessons" / "en" / "04-masks.html")
    assert "play-masks.html" not in read(site / "lessons" / "en" / "04-masks.html")


@pytest.mark.parametrize(("folder", "lang"), [("", "en"), ("zh", "zh")])
def test_a_playable_links_back_to_its_lessons(site, folder, lang):
    course = script("make_site").course_of("masks", lang)
    assert [title for title, _ in course.lessons["en"]] == ["4 · Masks", "9 · Long texts"]
    assert [title for title, _ in course.lessons["zh"]] == ["4 · 掩码", "9 · 长文本"]
    for other, wanted in (("en", "en"), ("zh", "zh-CN")):
        for address in (course.home[other], *(address for _, address in course.lessons[other])):
            assert f'<html lang="{wanted}"' in read(site / folder / address)


@pytest.mark.parametrize("playable", PLAYABLES.values(), ids=lambda one: one.page)
def test_a_playable_names_the_lessons_that_use_it(playable):
    course = script("make_site").course_of(playable.page, "en")
    assert course.lessons["en"]
    for lang, lessons in course.lessons.items():
        texts, say = read_table("play", lang), {"en": "{} · {}", "zh": "第 {} 课 {}"}[lang]
        titles = [say.format(*title.split(" · ")) for title, _ in lessons]
        assert titles == [texts[f"lesson.{number}"] for number in playable.lessons]


@pytest.mark.parametrize(("folder", "lang"), [("", "en"), ("zh", "zh")])
def test_each_language_has_its_playables(site, folder, lang):
    assert read(site / folder / "play-one-query.html") == lang


@pytest.mark.parametrize(("folder", "word"), [("", "rotary"), ("zh", "旋转")])
def test_the_search_knows_every_page(site, folder, word):
    index = json.loads(read(site / folder / "search" / "search_index.json"))
    assert any(word in entry["text"].lower().replace("\u200b", "") for entry in index["docs"])
    assert len({entry["location"].partition("#")[0] for entry in index["docs"]}) >= 12
    assert (site / folder / "search" / "search_index.js").exists()  # for pages on a disk


@pytest.mark.parametrize(("folder", "word", "title"), [("", "rotary", "Positions"), ("zh/", "键值头", "头")])
def test_search_works_from_a_disk(site, browser, folder, word, title):
    page, elsewhere = browser.new_page(), []
    page.on("request", lambda request: elsewhere.append(request.url))
    for _ in range(25):  # on a busy machine, a click before the scripts have started opens no search
        page.goto((site / f"{folder}glossary.html").as_uri())
        page.click("input.md-search__input")
        page.keyboard.type(word)
        for _ in range(30):
            page.wait_for_timeout(50)
            if page.locator(".md-search-result__item").count():
                break
        else:
            continue
        break
    assert title in page.inner_text(".md-search-result__list")
    assert [url for url in elsewhere if not url.startswith(("file:", "data:"))] == []
    page.close()


def test_no_line_of_code_is_cut_off_on_a_laptop(site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    for lesson in ("05-heads", "07-transformer"):
        page.goto((site / "lessons" / "en" / f"{lesson}.html").as_uri())
        cut = page.locator("pre code").evaluate_all(
            "(all) => all.filter((code) => code.scrollWidth > code.clientWidth).map((code) => code.innerText)"
        )
        assert cut == []
    page.close()


def test_a_lesson_links_to_its_notebook(tmp_path, monkeypatch):
    made = script("make_site")
    monkeypatch.setattr(made, "run", lambda lesson: made.jupytext.read(lesson))
    (tmp_path / "zh").mkdir()
    made.stage(made.sites()["zh"], tmp_path / "zh", tmp_path / "outputs", {"play-masks.html"})
    for lesson in made.lessons("zh"):
        page = read(tmp_path / "zh" / "lessons" / "zh" / lesson.name)
        assert f"[本课的笔记本]({lesson.stem}.ipynb)" in page
        assert (tmp_path / "outputs" / "zh" / "lessons" / "zh" / f"{lesson.stem}.ipynb").exists()
    kept = made.nbformat.read(tmp_path / "outputs" / "zh" / "lessons" / "zh" / "04-masks.ipynb", as_version=4)
    shown = "\n".join(cell.source for cell in kept.cells if cell.cell_type == "markdown")
    for link in (
        "[课程目录](index.html)",
        "[5 · 多个头](05-heads.ipynb)",
        "[English](../../../lessons/en/04-masks.ipynb)",
        "[`regard play masks`](../../play-masks.html)",
        "[所有掩码](../../../masks.html)",
    ):
        assert link in shown
    assert ".md" not in shown


def test_the_steps_of_an_explanation_are_blocks_of_their_own(tmp_path):
    made = script("make_site")
    cell = made.nbformat.v4.new_code_cell("regard.explain(…)")
    text = "# I love AI\n\n## 1. x\n\n| | 0 |\n|---|---|\n| a | 1 |\n\n## 2. W_q\n\nA matrix."
    cell.outputs = [made.nbformat.v4.new_output("display_data", data={"text/markdown": text})]
    page = made.with_results(made.nbformat.v4.new_notebook(cells=[cell]), "small", tmp_path)
    assert '#### I love AI\n\n<div class="steps narrow" markdown>' in page
    assert page.count('<div class="step" markdown>\n\n##### ') == 2
    assert page.count("<div") == page.count("</div>") == 3


def test_the_examples_of_the_program_hold():
    found = doctest.testmod(script("make_site"))
    assert found.attempted
    assert not found.failed


def test_a_picture_has_a_name_and_can_be_opened_alone(tmp_path):
    made = script("make_site")
    cell = made.nbformat.v4.new_code_cell('title = f"{share:.0%} on “[CLS]”"\nfigures.bars(w, title=title)')
    cell.outputs = [made.nbformat.v4.new_output("display_data", data={"image/png": "iVBORw0KGgo="})]
    page = made.with_results(made.nbformat.v4.new_notebook(cells=[cell]), "small", tmp_path)
    assert (tmp_path / "small-0-0.png").read_bytes() == b"\x89PNG\r\n\x1a\n"
    linked = '<a class="picture" href="small-0-0.png"><img alt="… on “[CLS]”" src="small-0-0.png"></a>'
    assert page.endswith(linked)
    site = made.sites()["en"]
    lesson = "docs/lessons/en/08-real-models.md"
    assert made.relink(page, lesson, site, made.sites()).endswith(linked)


@pytest.mark.parametrize(("pixels", "scrolled"), [(600, False), (1200, True)])
def test_a_wide_picture_keeps_its_size_on_a_phone(tmp_path, pixels, scrolled):
    made = script("make_site")
    png = b"\x89PNG\r\n\x1a\n" + bytes(4) + b"IHDR" + pixels.to_bytes(4, "big")
    data = {"image/png": base64.b64encode(png).decode()}
    shown = made._result(made.nbformat.v4.new_output("display_data", data=data), "a", tmp_path / "a.png")
    assert ('class="picture wide" style="--readable: 640px"' in shown) is scrolled


def test_what_a_cell_prints_in_pieces_is_one_block(tmp_path):
    made = script("make_site")
    cell = made.nbformat.v4.new_code_cell("print()")
    pieces = [("stdout", "1\n"), ("stdout", "2\n"), ("stderr", "a warning\n"), ("stdout", "3\n")]
    cell.outputs = [made.nbformat.v4.new_output("stream", name=name, text=text) for name, text in pieces]
    page = made.with_results(made.nbformat.v4.new_notebook(cells=[cell]), "small", tmp_path)
    assert page.count(".result") == 2
    assert "1\n2\n```" in page


@pytest.mark.parametrize(
    ("tex", "wanted"),
    [
        (r"\log 12", '<mi>log</mi><mspace width="0.17em" /><mn>12</mn>'),
        (r"w_j \log w_j", '</msub><mspace width="0.17em" /><mi>log</mi><mspace width="0.17em" /><msub>'),
        (r"\cos(a - b)", '<mi>cos</mi><mo stretchy="false">'),
        ("x' + 1", '<mrow><mi>x</mi><mo lspace="0" rspace="0">&#x02032;</mo></mrow>'),
    ],
)
def test_equations_have_the_spaces_of_a_book(tex, wanted):
    assert wanted in script("make_site").mathml(tex)
