"""Themes, ramps, languages, and the state in the address."""

import json
import re

import numpy as np
import pytest

from regard.views.page.page_html import ASSETS
from views import stage
from views.viewing import VIEWS, open_stage


def background(page):
    return sum(
        int(part)
        for part in re.findall(r"\d+", page.run("getComputedStyle(document.body).backgroundColor"))[:3]
    )


def test_light_and_dark_switch_and_follow_the_system(page):
    light = background(page)
    page.page.click('[aria-label^="Light or dark"]')
    assert page.now("theme") == "dark"
    assert background(page) < 120 < 700 < light
    page.set(theme="auto")
    page.page.emulate_media(color_scheme="dark")
    page.wait("document.documentElement.dataset.theme === 'dark'")
    assert background(page) < 120
    page.page.emulate_media(color_scheme="light")
    page.wait("document.documentElement.dataset.theme === 'light'")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("palette", ["blue", "viridis", "cividis"])
def test_ramps_grow_evenly_in_lightness(page, theme, palette):
    page.set(theme=theme, palette=palette)
    ramp = np.array(page.run("Array.from(regard.app.inks.ramp)")).reshape(256, 3) / 255
    light = ramp**2.2 @ [0.2126, 0.7152, 0.0722]
    steps = np.diff(light[::15]) * (1 if theme == "dark" else -1)
    assert (steps > -0.005).all()
    assert steps.sum() > 0.5


KNOWN_SIGNS = re.compile(r"watch\(model, values=True\)|\blse\b|\blog\b|\bexp\b|\bSVG\b|\bPNG\b|\bq\b|\bk\b")
SPEAKING = """(() => {
  const said = [];
  const walk = (node) => {
    if (node.nodeType === 3) { said.push(node.data); return; }
    if (node.nodeType !== 1 || node.getAttribute("translate") === "no" || node.tagName === "CANVAS") return;
    for (const name of ["aria-label", "title", "placeholder"]) said.push(node.getAttribute(name) ?? "");
    node.childNodes.forEach(walk);
  };
  walk(document.getElementById("regard"));
  return said; })()"""


@pytest.mark.parametrize("view", VIEWS)
def test_in_chinese_no_english_is_left(page, view):
    page.set(view=view, language="zh", call=2, query=4, key=1, sinks="first", words="merge")
    page.set(sort="entropy")
    page.page.keyboard.press("?")
    page.page.mouse.move(500, 500)
    said = page.run(SPEAKING)
    assert "总览" in said
    left = [text for text in said if re.search("[A-Za-z]{2,}", KNOWN_SIGNS.sub("", text))]
    assert not left
    # And the other way round.
    page.set(language="en")
    assert not [text for text in page.run(SPEAKING) if re.search("[\u4e00-\u9fff]", text)]


def test_formulas_are_signs_in_every_language(page):
    page.set(view="steps", language="zh", call=2, query=4)
    page.page.keyboard.press("?")
    found = page.run("[...document.querySelectorAll('code, th small')].map((node) => node.textContent)")
    assert any("exp(s − lse)" in formula for formula in found)
    words = {word for formula in found for word in re.findall("[A-Za-z]{2,}", formula)}
    assert words <= {"exp", "lse", "log", "tanh", "regard", "watch", "model", "values", "True"}


def test_every_text_that_is_used_exists(page):
    texts = page.run("regard.texts")
    source = "\n".join(file.read_text(encoding="utf-8") for file in ASSETS.rglob("*.js"))
    used = set(re.findall(r'say\("([\w.]+)"', source)) | set(
        re.findall(r'"((?:help|lines|steps|matrix)\.[\w.]+)"', source)
    )
    assert used <= texts["en"].keys()


def test_the_address_restores_the_view(page):
    page.set(
        view="steps",
        call=5,
        head=2,
        query=4,
        words="merge",
        scale="log",
        theme="dark",
        language="zh",
        heads=[0, 2],
    )
    address = page.run("location.hash")
    page.reset()
    assert page.now("view") == "overview"
    page.run("(location.hash = given, 0)", address)
    page.wait("regard.state.now.view === 'steps'")
    now = page.run("regard.state.now")
    wanted = {
        "call": 5,
        "head": 2,
        "query": 4,
        "words": "merge",
        "scale": "log",
        "theme": "dark",
        "language": "zh",
        "heads": [0, 2],
    }
    assert {name: now[name] for name in wanted} == wanted
    page.page.reload()
    page.wait("window.regard?.app")
    assert {name: page.run("regard.state.now")[name] for name in wanted} == wanted


def test_back_and_forward(page):
    page.page.click('[data-view="heads"]')
    page.page.click('[data-view="matrix"]')
    page.page.go_back()
    page.wait("regard.state.now.view === 'heads'")
    page.page.go_forward()
    page.wait("regard.state.now.view === 'matrix'")


@pytest.mark.parametrize(
    "nonsense",
    [
        "view=sideways&call=99&head=-1",
        "call=1e9&heads=a b&zoom=x",
        "%%%&=&&__proto__=1&constructor=2",
        "query=&key=NaN&sort=evil",
    ],
)
def test_nonsense_in_the_address_is_ignored(page, nonsense):
    page.go_to(nonsense)
    assert json.dumps(page.run("regard.state.now")) == json.dumps(page.run("regard.state.first"))


def test_a_page_opens_where_python_says(browser, tmp_path):
    page = open_stage(browser, tmp_path, stage.everything(), view="matrix", layer=1, head=3, lang="zh")
    assert (page.now("view"), page.now("call"), page.now("head"), page.now("language")) == (
        "matrix",
        1,
        3,
        "zh",
    )
    assert page.page.title() == "A page · regard"
    page.opened.check()
    page.page.context.close()
