"""Two recordings on one page: side by side with linked pointers, their difference, and what changed most."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import regard
from regard import masks
from regard.errors import ArgumentError
from regard.recording import Recording, ScoredCall
from views import stage
from views.axe import violations
from views.browser import Opened
from views.viewing import CLOSE, VIEWS, Page, words_of

EVIL = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>"]


def changed_stage(seed=0, **tokens):
    """The page with everything, but Q of some heads is another one; and its exact weights."""
    shown = stage.everything()
    chance = torch.Generator().manual_seed(seed)
    calls, weights = [], []
    for at, call in enumerate(shown.recording.calls):
        q = call.q.clone()
        if at in (0, 3):
            q[:, 2] += torch.randn(q[:, 2].shape, generator=chance)
        dense = regard.attention_weights(
            q.double(), call.k.double(), mask=call.mask, bias=call.bias, scale=call.scale,
            softcap=call.softcap, sinks=None if call.sinks is None else call.sinks.double(),
        )  # fmt: skip
        lse = regard.attention_statistics(
            q.double(), call.k.double(), mask=call.mask, bias=call.bias, scale=call.scale,
            softcap=call.softcap, sinks=None if call.sinks is None else call.sinks.double(),
        ).lse  # fmt: skip
        calls.append(replace(call, q=q, lse=lse.float()))
        weights.append(dense[0].numpy())
    other = Recording("Toy", calls)
    other.tokens = tokens.get("tokens", stage.TARGET)
    other.source_tokens = tokens.get("source_tokens", stage.SOURCE)
    return shown, other, weights


def open_compared(tabs, folder, one, other, *, screen=None, **options):
    path = regard.page(one, other, folder / "compared.html", **options)
    tab = tabs.take(viewport=screen or {"width": 1200, "height": 800}, reduced_motion="reduce")
    return Page(Opened(tab, path), None)


def close_compared(tabs, found):
    found.opened.check()
    found.opened.heard.stop()
    tabs.give_back(found.page)


@pytest.fixture
def compared(tabs, tmp_path):
    """Opens a page of two recordings for one test."""
    pages = []

    def compare(one, other, **options):
        pages.append(open_compared(tabs, tmp_path, one, other, **options))
        return pages[-1]

    yield compare
    for found in pages:
        close_compared(tabs, found)


@pytest.fixture(scope="module")
def _same(tabs, tmp_path_factory):
    shown, other, weights = changed_stage()
    folder = tmp_path_factory.mktemp("same")
    found = open_compared(tabs, folder, shown.recording, other, names=["plain", "edited"])
    found.stage, found.others = shown, weights
    return found


@pytest.fixture
def same(_same):
    """One text, two runs of which two heads differ."""
    _same.reset()
    yield _same
    _same.opened.check()


def language(tokens, heads=3, seed=0):
    """A causal recording of a text."""
    chance = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(1, heads, len(tokens), 4, generator=chance) * 2 for _ in range(2))
    lse = regard.attention_statistics(q, k, mask=masks.causal()).lse
    call = ScoredCall("layers.0", "decoder", 0, q, k, lse, mask=masks.causal(), scale=0.5)
    seen = Recording("Toy", [call])
    seen.tokens = tokens
    return seen


@pytest.fixture(scope="module")
def _apart(tabs, tmp_path_factory):
    one = language(["the", "cat", "sat", "on", "the", "mat"])
    other = language(["the", "old", *EVIL, "cat", "sat"], seed=1)
    return open_compared(tabs, tmp_path_factory.mktemp("apart"), one, other, names=["first", EVIL[1]])


@pytest.fixture
def apart(_apart):
    """Two texts with other tokens."""
    _apart.reset()
    yield _apart
    _apart.opened.check()


# ---- what the page begins with -------------------------------------------------------------------


def test_the_heads_that_changed_most_come_first(same):
    changed = same.run("regard.recording.changed")
    assert {tuple(one) for one in changed} == {(0, 2), (3, 2)}
    assert same.now("sort") == "change"
    assert [same.now("call"), same.now("head")] == changed[0]
    same.set(view="overview")
    for pane in ("regard.app", "regard.app.comparison.second"):
        first = same.run(f"{pane}.view.cards.slice(0, 2).map(({{ call, head }}) => [call.index, head])")
        assert first == changed
    assert same.page.locator(".side-pane").count() == 2
    assert same.page.locator(".side bdi").all_inner_texts() == ["plain", "edited"]


def test_a_head_that_was_asked_for_is_shown(compared):
    shown, other, _ = changed_stage()
    found = compared(shown.recording, other, kind="encoder", layer=1, head=3)
    assert [found.now("call"), found.now("head")] == [1, 3]


def test_cards_below_the_text_show_the_heads_that_changed(same):
    same.set(view="text")
    cards = same.page.locator(".side-pane:not(.second) .role-card")
    assert cards.count() == 2
    assert cards.nth(0).inner_text().startswith("Encoder · Layer 0 · head 2\n")
    same.page.locator(".second .role-card").nth(1).click()
    assert [same.now("call"), same.now("head")] == same.run("regard.recording.changed[1]")


# ---- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", range(6))
def test_differences_are_exact_and_masked_where_neither_sees(same, call):
    same.set(call=call, view="matrix", what="difference")
    for head in range(len(same.others[call])):
        rows, columns = same.others[call][head].shape
        found = same.run(f"Array.from(regard.app.look().values({head}, 0, {rows}, 0, {columns}))")
        found = np.array(found, float).reshape(rows, columns)
        wanted = same.others[call][head] - same.stage.weights(call, head)
        seen = ~np.isnan(found)
        assert np.abs(found[seen] - wanted[seen]).max() < CLOSE
        assert not wanted[~seen].any()
        assert (~seen).any() == (call in (2, 3))  # the causal ones


def test_thumbnails_of_differences_are_near_the_exact_ones(same):
    same.set(view="overview", what="difference")
    same.run("regard.ready()")
    for call, head in ((0, 2), (0, 1)):
        values = np.array(
            same.run(f"[...regard.recording.calls[{call}].thumbnail({head}, 'difference').values]")
        )
        wanted = same.others[call][head] - same.stage.weights(call, head)
        greatest = np.abs(wanted).max()
        strong = np.abs(wanted).ravel() > 0.02 * greatest
        if greatest > 1e-3:
            assert (np.sign(values[strong]) == np.sign(wanted.ravel()[strong])).all()
            assert values.argmax() == wanted.argmax()


def test_the_colours_of_a_difference_are_around_0(same):
    same.set(view="matrix", call=0, head=2, what="difference")
    shading = same.run(
        """(() => { const { shading } = regard.app.view;
        return [shading.signed, shading.place(0), shading.place(0.1), shading.place(-0.1)]; })()"""
    )
    assert shading[0] is True
    assert shading[1] == 0.5
    assert shading[2] - 0.5 == pytest.approx(0.5 - shading[3])
    assert shading[2] > 0.5


# ---- side by side ---------------------------------------------------------------------------------


def test_the_second_pane_follows_in_every_view(same):
    for view in VIEWS:
        same.set(view=view, call=1, head=3, query=4, key=2)
        assert same.page.locator(".side-pane .view").count() == 2
        there = same.run("regard.app.comparison.second.state.now")
        assert [there[name] for name in ("view", "call", "head", "query", "key")] == [view, 1, 3, 4, 2]


def test_the_first_pane_follows_the_second(same):
    same.set(view="text", call=0)
    same.page.locator(".second .token").nth(4).click()
    assert same.now("query") == 4
    same.page.keyboard.press("ArrowRight")
    assert same.now("query") == 5


def test_pointing_at_a_token_shades_both_texts(same):
    same.set(view="text", call=0, head=2, query=None)
    same.page.locator(".side-pane:not(.second) .token").nth(5).hover()
    same.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
    captions = same.page.locator(".text-caption").all_inner_texts()
    assert all("cats" in caption or "sat" in caption for caption in captions)
    assert captions[0] != captions[1]  # the head differs
    same.page.mouse.move(2, 2)
    same.wait("regard.app.comparison.second.view.pointed === null")


def test_pointing_at_a_pair_of_the_matrix_marks_it_in_both(same):
    same.set(view="matrix", call=0, head=2)
    same.point(3, 6)
    read = [
        [float(line.get_attribute(f"data-{name}")) for name in ("query", "key", "weight")]
        for line in same.page.locator(".readout").all()
    ]
    assert read[0][:2] == read[1][:2] == [3, 6]
    assert read[0][2] == pytest.approx(same.stage.weights(0, 2)[3, 6], abs=CLOSE)
    assert read[1][2] == pytest.approx(same.others[0][2][3, 6], abs=CLOSE)


def test_pointing_at_a_head_marks_it_in_both(same):
    same.set(view="overview")
    same.page.locator(".second .card").nth(3).hover()
    marked = same.run("regard.app.view.cards.findIndex(({ root }) => root.classList.contains('elsewhere'))")
    assert marked == 3


def test_lines_and_zoom_are_linked(same):
    same.set(view="lines", call=0, query=None)
    same.run("regard.app.view.point('key', 3)")
    assert same.run("regard.app.comparison.second.view.active.column") == 3
    same.set(view="matrix", zoom=[1, 1, 2])
    assert same.run("regard.app.comparison.second.state.now.zoom") == [1, 1, 2]


def test_scrolling_is_linked(same):
    same.set(view="overview", sort="")
    same.run("(regard.app.view.body.scrollTop = 120, 0)")
    same.wait("Math.abs(regard.app.comparison.second.view.body.scrollTop - 120) < 30")
    same.run("(regard.app.comparison.second.view.body.scrollTop = 40, 0)")
    same.wait("Math.abs(regard.app.view.body.scrollTop - 40) < 30")


def test_the_key_d_shows_the_difference_and_back(same):
    same.page.keyboard.press("d")
    assert same.now("what") == "difference"
    assert same.page.locator(".side-pane").count() == 1
    assert same.text(".side bdi") == "edited − plain"
    same.page.keyboard.press("d")
    assert same.page.locator(".side-pane .view").count() == 2
    assert same.now("what") == "weight"


def test_both_languages(same):
    same.set(language="zh", view="overview")
    assert "并排显示" in same.text(".controls")
    same.set(what="difference")
    assert "更大" in same.text(".side")
    assert same.page.locator(".second").count() == 0


def test_exports_hold_both_panes_or_the_difference(same):
    same.set(view="matrix", call=0, head=2)
    both = same.run("regard.exportSvg()")
    same.set(what="difference")
    alone = same.run("regard.exportSvg()")
    widths = [float(ElementTree.fromstring(svg).get("width")) for svg in (both, alone)]
    assert widths[0] == pytest.approx(widths[1], rel=0.2)  # two halves, or one whole
    assert {text.split("  ")[0] for text in words_of(both) if text and "Layer" in text} == {"plain", "edited"}
    assert any("edited − plain" in (text or "") for text in words_of(alone))


def test_the_address_keeps_what_is_compared(same):
    same.set(view="matrix", what="difference")
    same.wait("location.hash.includes('what=difference')")


# ---- other tokens ---------------------------------------------------------------------------------


def test_other_tokens_are_shown_side_by_side_only(apart):
    assert apart.run("regard.recording.what") == ["weight"]
    assert apart.text(".controls").startswith("Different tokens\n")
    apart.page.locator(".controls .term").first.hover()
    box = apart.page.locator(".explanation")
    box.wait_for()
    assert "only shown side by side" in box.inner_text()
    apart.page.mouse.move(2, 2)
    apart.page.keyboard.press("d")
    assert apart.now("what") == "weight"


def test_tokens_are_linked_by_their_partners(apart):
    apart.set(view="text", query=1)  # cat
    assert apart.run("regard.app.comparison.second.state.now.query") == 4
    apart.set(query=5)  # mat is only in the first text
    assert apart.run("regard.app.comparison.second.state.now.query") is None


def test_hostile_tokens_and_names_stay_text(apart):
    for view in VIEWS:
        apart.set(view=view, query=2)
    apart.set(view="text")
    assert EVIL[1] in apart.page.locator(".second .side").inner_text()
    assert apart.page.locator("img").count() == 0


def test_a_layer_that_the_other_lacks_says_so(compared):
    calls = [replace(call, layer=layer) for layer in range(3) for call in language(list("abcd")).calls]
    one, other = Recording("Deep", calls), Recording("Flat", calls[:2])
    found = compared(one, other)
    assert found.page.locator(".side bdi").all_inner_texts() == ["Deep", "Flat"]
    found.set(call=2)
    assert "no layer 2" in found.text(".side-pane.second .notice")
    found.set(what="difference", view="matrix")  # nothing to compare, and nothing breaks
    assert found.run("regard.app.look().values(0, 0, 4, 0, 4).every(Number.isNaN)")
    found.set(call=1, what="weight")
    assert not found.page.locator(".second .notice").is_visible()


def test_replaced_tokens_are_named_twice_in_a_difference(compared):
    one = language(["it", "was", "too", "tired"])
    other = language(["it", "was", "too", "wide"], seed=1)
    found = compared(one, other, view="text")
    assert "wide" not in found.text(".side-pane:not(.second) .running")
    found.set(what="difference")
    assert "tired / wide" in found.text(".running")
    found.set(view="matrix", query=3)
    assert found.run("regard.app.look().rowNames[3]") == "tired / wide"


# ---- nobody is kept out ---------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["weight", "difference"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_serious_violation(same, view, what):
    same.set(view=view, what=what, call=4, head=1, query=3, key=2)
    assert violations(same.page) == []


@pytest.mark.parametrize("view", VIEWS)
def test_no_serious_violation_in_the_dark(same, view):
    same.set(view=view, what="difference", theme="dark", call=0)
    assert violations(same.page, "color-contrast") == []


@pytest.fixture(scope="module")
def phone(tabs, tmp_path_factory):
    shown, other, _ = changed_stage()
    screen = {"width": 390, "height": 844}
    found = open_compared(tabs, tmp_path_factory.mktemp("phone"), shown.recording, other, screen=screen)
    yield found
    close_compared(tabs, found)


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_shows_both_above_each_other(phone, view):
    phone.set(view=view, query=2, key=1)
    assert phone.run("document.documentElement.scrollWidth") <= 390
    tops = phone.run("[...document.querySelectorAll('.side-pane')].map((one) => one.offsetTop)")
    assert tops[1] > tops[0] + 200
    assert violations(phone.page) == []
    phone.opened.check()


@pytest.mark.parametrize("others", [["[CLS]", "un", "##able", "cats", "[SEP]"], ["other", "words"]])
def test_the_controls_of_a_comparison_are_one_line(compared, others):
    words = ["[CLS]", "un", "##able", "cats", "[SEP]"]
    found = compared(language(words), language(others, seed=1))
    for width in (1024, 1200, 1400):
        found.page.set_viewport_size({"width": width, "height": 800})
        for sinks in ("show", "first"):
            for spoken in ("en", "zh"):
                found.set(sinks=sinks, language=spoken)
                assert controls_on_one_line(found), (width, sinks, spoken)


def controls_on_one_line(found):
    centres = found.run(
        "[...document.querySelectorAll('.controls > *')].filter((one) => one.offsetHeight)"
        ".map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => Math.round((top + bottom) / 2))"
    )
    assert len(centres) >= 6
    return max(centres) - min(centres) <= 2


def test_controls_follow_the_size_of_the_window(same):
    """In a narrow window they are set closer, and in the end the colours come below the others."""
    try:
        closeness = []
        for width in (1800, 1200, 800, 1800):
            same.page.set_viewport_size({"width": width, "height": 800})
            same.set(sinks="first")
            closeness.append(same.run("document.querySelector('.controls').dataset.close"))
            assert controls_on_one_line(same) == (width > 800), width
            assert same.run("document.documentElement.scrollWidth") <= width
        assert closeness == ["", "2", "2", ""]
        names = "getComputedStyle(document.querySelector('.push .name')).display"
        assert same.run(names) != "none"
        same.page.set_viewport_size({"width": 1200, "height": 800})
        same.wait(f"{names} === 'none'")
    finally:
        same.page.set_viewport_size({"width": 1200, "height": 800})


def test_steps_beside_each_other_fit(same):
    for width in (1200, 1400):
        same.page.set_viewport_size({"width": width, "height": 800})
        same.set(view="steps", call=0, head=2, query=3)
        cut = "[...document.querySelectorAll('.steps-table')].map((one) => one.parentElement)"
        assert same.run(f"{cut}.map((one) => one.scrollWidth - one.clientWidth)") == [0, 0]
    same.page.set_viewport_size({"width": 1200, "height": 800})


def test_an_encoder_beside_a_decoder(compared):
    decoder = language(["the", "cat", "sat", "on", "mats"])
    call = decoder.calls[0]
    lse = regard.attention_statistics(call.q, call.k, scale=call.scale).lse
    open_to_all = replace(call, kind="encoder", lse=lse, mask=masks.everything())
    encoder = Recording("Other", [replace(open_to_all, layer=layer) for layer in (0, 1)])
    encoder.tokens = decoder.tokens
    found = compared(encoder, decoder, names=["sees all", "sees the past"])
    for view in VIEWS:
        found.set(view=view, call=0, query=2, key=0)
        assert found.page.locator(".side-pane").count() == 2
    found.set(view="matrix", call=0, head=0, query=1, key=4)
    assert "masked" in found.text(".second .readout")
    assert "masked" not in found.text(".side-pane:not(.second) .readout")
    found.set(what="difference")
    later = -regard.attention_weights(call.q, call.k, scale=call.scale)[0, 0, 1, 4]
    assert found.readout()[2] == pytest.approx(float(later), abs=CLOSE)
    found.set(what="weight", call=1)
    assert "no layer 1 to compare with" in found.text(".second .notice")


# ---- what is refused ------------------------------------------------------------------------------


def test_what_cannot_be_compared_is_refused(tmp_path):
    one = language(list("abc"))
    cross = Recording("Other", [replace(call, kind="cross") for call in one.calls])
    with pytest.raises(ArgumentError, match=r"kind of attention in common. Got decoder and cross"):
        regard.page(one, cross, tmp_path / "x.html")
    with pytest.raises(ArgumentError, match=r"for pages of two recordings. Got one recording"):
        regard.page(one, tmp_path / "x.html", names=["a", "b"])
    with pytest.raises(ArgumentError, match=r"two texts, one for each recording. Got names = 'ab'"):
        regard.page(one, one, tmp_path / "x.html", names="ab")
    with pytest.raises(ArgumentError, match=r"then perhaps a second one.*Got 3"):
        regard.page(one, 3, tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


def test_two_recordings_in_a_notebook(tmp_path):
    one = language(list("abc"))
    shown = regard.show(one, language(list("abd"), seed=1), names=["c", "d"], compact=True)
    assert '"side":"c"' in shown.data
    assert '"side":"d"' in shown.data


def test_arrays_that_both_have_are_kept_once(tmp_path):
    one = language([f"w{i}" for i in range(60)], heads=8)
    sizes = [
        regard.page(*given, tmp_path / "x.html").stat().st_size
        for given in ([one], [one, one], [one, language([f"w{i}" for i in range(60)], heads=8, seed=1)])
    ]
    assert sizes[1] - sizes[0] < 0.3 * (sizes[2] - sizes[0])


@pytest.mark.parametrize(("width", "text"), [(390, "Rows attend"), (1200, "Rows: queries")])
def test_the_axes_of_the_matrix_are_named_in_full(compared, width, text):
    shown, other, _ = changed_stage()
    screen = {"width": width, "height": 844}
    found = compared(shown.recording, other, screen=screen)
    found.set(view="matrix", call=2, head=0)
    svg = ElementTree.fromstring(found.run("regard.exportSvg()"))
    said = [element for element in svg.iter("{http://www.w3.org/2000/svg}text") if element.text]
    axes = [element for element in said if element.text.startswith(text)]
    assert axes
    assert [element.text for element in axes if not element.text.endswith(".")] == []  # not cut off
    masked = [element for element in said if element.text == "masked"]
    room = found.run("regard.app.view.size.width")
    ends = [float(element.get("x")) + 40 for element in masked]
    assert ends
    margin = 32  # around the picture
    assert min(ends) < room + margin
    assert max(ends) < float(svg.get("width"))


def test_both_strips_of_steps_show_the_query(compared):
    words = [f"somewhat{number}" for number in range(40)]
    found = compared(language(words), language(words, seed=1), view="steps")
    found.set(view="text", query=30)
    found.set(view="steps")
    inside = """[...document.querySelectorAll(".token-strip .tokens")].map((list) => {
      const boxOf = (one) => one.getBoundingClientRect();
      const [box, chosen] = [list, list.querySelector("[aria-pressed=true]")].map(boxOf);
      return chosen.left >= box.left && chosen.right <= box.right;
    })"""
    assert found.run(inside) == [True, True]


def test_the_differences_of_a_row_add_up_to_nothing(same):
    same.set(view="steps", call=0, head=2, query=3, what="difference")
    total = same.page.locator(".steps-table tr.total td").all_inner_texts()
    assert "0" in total
    assert not any("e−" in text for text in total)
