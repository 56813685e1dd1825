"""What the map shows besides weights: masked pairs, which axis is which, and where its text opens."""

from dataclasses import replace

import pytest

from app.served import serving, translation
from regard import biases, masks
from regard.recording import Recording
from views.exact_weights import made, with_lse
from views.visiting import Visitor

DRAWN = """(() => {
  const found = { words: [], hatched: 0 };
  const paper = new Proxy({}, { get: (_, name) => (...given) => {
    if (name === "text") found.words.push(given[2]);
    if (name === "hatch") found.hatched += given[0].length;
    if (name === "clip") given[4]();
  } });
  regard.app.view.drawAll(paper);
  return found;
})()"""
SEEN = """(() => {
  const place = document.querySelector('.map-text [data-token="%d"]')?.getBoundingClientRect();
  const sight = document.querySelector('.map-text .scroll').getBoundingClientRect();
  return place && place.top >= sight.top && place.bottom <= sight.bottom;
})()"""


def near():
    """Everything may be seen, but of head 0 far keys have weights that are too small for a number."""
    call = replace(made(1100, 1100, mask=masks.everything(), heads=8), bias=biases.alibi(8))
    return Recording("Near", [with_lse(call)])


@pytest.fixture(scope="module")
def base():
    with serving({"two": translation(), "near": near()}) as (_, address):
        yield address


@pytest.fixture
def visitor(tabs, base):
    found = Visitor(tabs, base, viewport={"width": 1200, "height": 800})
    yield found
    found.leave()
    assert not found.problems


def readout(visitor):
    return visitor.page.inner_text(".pair-readout")


def point(visitor, query, key):
    place = visitor.ask(
        f"(({{ viewport, canvas }}) => [canvas.getBoundingClientRect().left + viewport.x({key} + 0.5),"
        f" canvas.getBoundingClientRect().top + viewport.y({query} + 0.5)])(regard.app.view)"
    )
    visitor.page.mouse.move(*place)


@pytest.mark.parametrize("zoom", ["", "&zoom=500+505+8", "&zoom=500+505+40"], ids=["far", "near", "numbers"])
def test_masked_pairs_are_hatched_and_say_so(visitor, zoom):
    visitor.map("book", f"call=1&head=1{zoom}")
    drawn = visitor.ask(DRAWN)
    assert drawn["hatched"] > 0
    assert "masked" in drawn["words"]
    point(visitor, 500, 900 if not zoom else 506)
    visitor.until("document.querySelector('.pair-readout').innerText.includes('masked')")
    assert visitor.ask("document.querySelector('.pair-readout').dataset.weight") == "NaN"
    point(visitor, 500, 100 if not zoom else 499)
    visitor.until("Number(document.querySelector('.pair-readout').dataset.weight) > 0")
    assert "masked" not in readout(visitor)


def test_a_hidden_sink_is_not_masked(visitor):
    visitor.map("book", "call=1&head=1&sinks=first&zoom=500+3+20")
    point(visitor, 500, 0)
    visitor.until("document.querySelector('.pair-readout').dataset.weight === '0'")
    assert "masked" not in readout(visitor)


@pytest.mark.parametrize("zoom", ["", "&zoom=700+100+8", "&zoom=700+100+40"], ids=["far", "near", "numbers"])
@pytest.mark.parametrize("show", ["max", "mean"])
def test_a_weight_too_small_for_a_number_is_not_masked(visitor, zoom, show):
    visitor.map("near", f"call=0&head=0&show={show}{zoom}")
    drawn = visitor.ask(DRAWN)
    assert drawn["hatched"] == 0
    assert "masked" not in drawn["words"]
    point(visitor, 700, 100)
    visitor.until("document.querySelector('.pair-readout').dataset.weight === '0'")
    assert "masked" not in readout(visitor)


def test_without_masked_pairs_nothing_is_hatched(visitor):
    visitor.map("two", "call=0")
    drawn = visitor.ask(DRAWN)
    assert drawn["hatched"] == 0
    assert "masked" not in drawn["words"]


def test_the_axes_say_who_attends_to_whom(visitor):
    visitor.map("book", "call=0")
    assert (
        "Rows: queries, the tokens that attend. Columns: keys, the tokens they attend to."
        in (visitor.ask(DRAWN)["words"])
    )
    visitor.map("two", "call=2")
    assert (
        "Rows: queries, the tokens being written. Columns: keys, the tokens they attend to."
        in (visitor.ask(DRAWN)["words"])
    )
    visitor.page.set_viewport_size({"width": 390, "height": 780})
    visitor.until("regard.app.view.size.width < 400")
    words = visitor.ask(DRAWN)["words"]
    assert "Rows attend to columns." in words
    visitor.map("book", "call=0&scale=log")
    words = visitor.ask(DRAWN)["words"]
    assert {"10⁻⁴", "0.01", "1", "masked"} <= {*words}
    assert "10⁻³" not in words  # there is no room for it


def test_words_of_the_map_explain_themselves(visitor):
    visitor.map("book", "call=0&query=700&key=20")
    words = visitor.page.locator(".term").all_inner_texts()
    assert {"Sinks", "Query", "Key"} <= {*words}
    visitor.page.locator(".term", has_text="Sinks").hover()
    box = visitor.page.locator(".explanation")
    box.wait_for()
    assert "rest their weight" in box.inner_text()


def test_the_text_opens_where_the_pinned_token_is(visitor):
    visitor.map("book", "call=0&view=text&query=900")
    visitor.until("regard.app.text.line?.token === 900")
    visitor.until(SEEN % 900)
    # From the map too, and with another token.
    visitor.map("book", "call=0&query=400")
    visitor.page.keyboard.press("t")
    visitor.until("regard.app.text.line?.token === 400")
    visitor.until(SEEN % 400)
