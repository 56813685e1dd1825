"""One payload, four formats: what each shows, leaves out and escapes."""

import json
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

import regard
from regard.views.explanation import Explanation, Grid, Step, StrongestKeys
from regard.views.explanation.explanation_terminal import show_explanation

EVIL = "</style><script>alert(1)</script>|[bold]x[/]`*_"


def evil():
    grid = Grid(
        (EVIL, "b"), tuple(f"{EVIL}{number}" for number in range(40)), ((0.5,) * 40, (None,) * 40), EVIL
    )
    bars = Grid((EVIL, "b"), ("",), ((0.25,), (-float("inf"),)), "", True)
    step = Step("s", EVIL, EVIL, "w = <x_i>", (2, 40), (grid, bars))
    return Explanation(
        EVIL,
        (EVIL,),
        "en",
        (step,),
        EVIL,
        (StrongestKeys(EVIL, ((EVIL, 0.5),)), StrongestKeys("b", (), EVIL)),
    )


def drawn(explanation, width):
    console = Console(width=width, file=StringIO(), highlight=False)
    show_explanation(console, explanation)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_terminal_is_not_wider_than_it_is(width, lang):
    for found in (
        regard.explain("The cat sat on the mat because it was tired and warm .", mask="causal", lang=lang),
        evil(),
    ):
        lines = drawn(found, width).splitlines()
        assert max(map(cell_len, lines)) <= width
    text = drawn(regard.explain("a b c d e f g h i j k l m n", lang=lang), 80)
    assert "…" in text  # fourteen columns do not fit
    assert "…" not in drawn(regard.explain("a b c d", lang=lang), 80)


def test_markup_is_text_in_the_terminal():
    assert "[bold]x[/]" in drawn(evil(), 120)


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names, self.text, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        self.text.append(data)


def test_html_escapes_everything_and_loads_nothing():
    page = evil().to_html()
    read = Elements()
    read.feed(page)
    assert "script" not in read.names
    assert read.names.count("style") == 1
    assert read.links == ["data:,"]  # the empty icon
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    assert EVIL in read.text
    assert "<sub>i</sub>" in page
    assert page.count("0.500") == 40  # nothing is left out
    assert "--accent" in page  # the colours of the page
    assert '<html lang="zh-CN">' in regard.explain("a", lang="zh").to_html()


def test_markdown_escapes_and_says_what_it_leaves_out():
    text = str(evil())
    assert text == evil().to_markdown() == evil()._repr_markdown_()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert "…" in rows[0]
    for line in rows[:3]:
        assert line.replace("\\|", "").count("|") == 15
    assert "\\</style\\>" in text
    assert "<script>" not in text
    found = str(regard.explain("I love AI"))
    assert "## 8. dots" in found
    assert "`s = q kᵀ / √4` (1 × 3 × 3)" in found


def test_json_has_every_number():
    found = regard.explain("I love AI", mask="causal", width=20, heads=4)
    read = json.loads(found.to_json())
    assert set(read) == {"title", "about", "lang", "steps", "looks_title", "looks"}
    steps = {step["name"]: step for step in read["steps"]}
    assert steps["masked"]["grids"][0]["values"][0][1] == "-inf"
    assert len(steps["x"]["grids"][0]["values"][0]) == 20
    assert tuple(steps["weights"]["grids"][3]["values"][2]) == found["weights"].grids[3].values[2]
    assert json.loads(evil().to_json())["title"] == EVIL


def test_a_step_by_name():
    with pytest.raises(KeyError, match="no step 'nix'; there are x, w_q, queries"):
        regard.explain("a")["nix"]
