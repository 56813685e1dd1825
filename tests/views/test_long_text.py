"""The views of a text whose page cannot have the numbers of all layers: they come layer by layer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from app.served import serving
from regard import heads, masks
from regard.app.server import server_state as state_module
from regard.recording import Call, Recording
from regard.texts import read_table
from views.axe import violations
from views.exact_weights import blocks, exact, made, with_lse
from views.visiting import visitors

LAYERS, HEADS, LENGTH = 7, 3, 331


def layer_of(layer: int) -> Call:
    """Random heads; in layer 3 each token of head 1 attends to the one before it."""
    call = made(LENGTH, LENGTH, mask=masks.causal(), heads=HEADS, channels=5, size=1.7, seed=layer)
    if layer == 3:
        turns = torch.arange(-1, LENGTH)[:, None] * torch.tensor([1.0, 0.37])
        places = 6 * torch.cat([turns.cos(), turns.sin(), torch.zeros(LENGTH + 1, 1)], 1)
        call.q[0, 1], call.k[0, 1] = places[:-1], places[1:]
        call = with_lse(call)
    return replace(call, name=f"layers.{layer}", layer=layer)


def long_text() -> Recording:
    """A decoder of seven layers; every head of every layer is another one."""
    calls = [layer_of(layer) for layer in range(LAYERS)]
    seen = Recording("Toy", calls)
    seen.tokens = ["<s>", *(f"word{number % 60}" for number in range(1, LENGTH))]
    return seen


@pytest.fixture(scope="module")
def kept():
    return {}


@pytest.fixture(scope="module")
def base(kept):
    with serving({"long": long_text()}) as (kept["app"], address):
        yield address


@pytest.fixture(autouse=True)
def large(monkeypatch):
    monkeypatch.setattr(state_module, "WHOLE_PAGE", 1000)


@pytest.fixture
def arrive(tabs, base):
    with visitors(tabs, base) as visitor:

        def at(place="", **options):
            return visitor(**options).open(f"/look/{place}").until("window.regard?.app?.view")

        yield at


SUMMARISED = "regard.recording.layers.summaries?.done"


def overview(arrive, place="long", **options):
    """The Overview with all that is known of all heads."""
    visitor = arrive(f"{place}#view=overview", **options).until(SUMMARISED)
    visitor.ask("regard.ready()")
    return visitor


def calls_of(kept):
    return kept["app"].server_state.library.get("long").calls


# ---- all heads -----------------------------------------------------------------------------------


def test_the_overview_shows_the_heads_of_all_layers(arrive, kept):
    visitor = overview(arrive)
    assert visitor.ask("location.search") == "?call=0"
    assert visitor.page.locator(".card").count() == LAYERS * HEADS
    assert visitor.page.locator(".layer-name").count() == LAYERS
    assert visitor.page.locator(".card.waiting").count() == 0
    assert visitor.page.locator(".summary-progress").count() == 0
    assert f"{LAYERS} layers · {LAYERS * HEADS} heads" in visitor.page.inner_text(".block h2")
    step = -(-LENGTH // 64)
    for layer, call in enumerate(calls_of(kept)):
        for head, weights in enumerate(exact(call)[0]):
            rows, columns, *values = visitor.ask(
                f"(({{rows, columns, values}}) => [rows, columns, ...values])"
                f"(regard.recording.calls[{layer}].thumbnail({head}))"
            )
            wanted = blocks(weights, step, "max")
            assert (rows, columns) == wanted.shape
            np.testing.assert_allclose(np.reshape(values, wanted.shape) / 255, wanted, atol=0.5 / 255 + 1e-6)


def test_what_is_painted_is_the_picture_of_that_head(arrive):
    visitor = overview(arrive)
    pictures = visitor.ask(
        "regard.app.view.cards.map(({ canvas }) => {"
        "  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "  return [canvas.width, data.reduce((sum, value, at) => (sum * 31 + value * (at + 1)) % 99991, 7)];"
        "})"
    )
    assert {width for width, _ in pictures} == {-(-LENGTH // 6)}
    assert len({mark for _, mark in pictures}) == LAYERS * HEADS


def test_cards_have_roles_and_statistics_of_all_layers(arrive, kept):
    visitor = overview(arrive)
    seen = kept["app"].server_state.library.get("long").recording
    roles = [head.best for head in heads.roles(seen)]
    shown = visitor.ask(
        "regard.recording.calls.flatMap(({ roles }) => roles.map((found) => found?.role ?? null))"
    )
    assert shown == roles
    assert roles[3 * HEADS + 1] == "previous"
    badges = visitor.ask("regard.app.view.cards.filter(({ root }) => root.querySelector('.badge')).length")
    assert badges == sum(role is not None for role in roles)
    visitor.ask("regard.state.set({ sort: 'entropy' })")
    numbers = [row["entropy"] for row in heads.table(seen)]
    order = visitor.ask("regard.app.view.cards.map(({ call, head }) => call.index * 3 + head)")
    assert order == sorted(range(len(numbers)), key=lambda at: -numbers[at])
    first = visitor.page.locator(".card").first
    assert f"{max(numbers):.3f}" in first.inner_text()


def test_the_table_of_heads_has_all_layers(arrive, kept):
    visitor = arrive("long?call=2#view=heads").until(SUMMARISED)
    seen = kept["app"].server_state.library.get("long").recording
    wanted = [row["entropy"] for row in heads.table(seen)]
    cells = (
        "[...document.querySelectorAll('td[data-name=entropy]')].map(({ dataset }) => Number(dataset.value))"
    )
    np.testing.assert_allclose(visitor.ask(cells), wanted, rtol=1e-5)


def test_a_head_of_another_layer_opens_with_its_own_weights(arrive, kept):
    visitor = overview(arrive)
    card = visitor.page.locator(".card").nth(4 * HEADS + 1)
    assert card.get_attribute("aria-label").startswith("Layer 4, head 1: open")
    card.focus()
    visitor.page.keyboard.press("Enter")
    visitor.until("regard.state.now.view === 'matrix'")
    assert visitor.ask("[regard.state.now.call, regard.state.now.head, regard.state.call.present]") == [
        4,
        1,
        True,
    ]
    # The keyboard continues in the view.
    assert visitor.ask("regard.app.view.root.contains(document.activeElement)")
    row = visitor.ask("[...regard.state.call.weights(1, 200, 201, 0, 331)]")
    np.testing.assert_allclose(row, exact(calls_of(kept)[4])[0, 1, 200], atol=1e-3)
    # The address opens the same head again, and going back leads to the Overview.
    assert "call=4" in visitor.ask("location.hash")
    visitor.page.go_back()
    visitor.until("regard.state.now.view === 'overview'")
    assert visitor.page.locator(".card").count() == LAYERS * HEADS


def test_an_address_names_a_layer(arrive):
    visitor = arrive("long#view=matrix&call=5&head=2")
    assert visitor.ask("[location.search, regard.state.now.call, regard.state.now.head]") == ["?call=5", 5, 2]
    # Of a page of another layer too.
    visitor = arrive("long?call=5#view=matrix&call=3&head=1")
    visitor.until("regard.state.now.call === 3")
    assert visitor.ask("[regard.state.now.view, regard.state.now.head]") == ["matrix", 1]
    visitor.page.hover(".app-bar")
    assert visitor.page.locator(".app-tabs a").nth(1).get_attribute("href").startswith("/map/long#call=3")


def test_the_stepper_goes_through_all_layers(arrive):
    visitor = arrive("long#view=lines")
    for layer in (1, 2, 3):
        visitor.page.get_by_role("button", name="Next layer").click()
        visitor.until(f"regard.state.call.layer === {layer}")
    assert visitor.ask("regard.state.call.present")
    # Numbers of a few layers are kept; those used longest ago are dropped.
    for layer in (4, 5, 6):
        visitor.ask(f"regard.state.set({{ call: {layer} }})")
        visitor.until(f"regard.state.now.call === {layer}")
    assert visitor.ask("regard.recording.calls.map((call) => call.present)") == [False] * 3 + [True] * 4
    visitor.ask("regard.state.set({ call: 0 })")
    visitor.until("regard.state.now.call === 0")


def test_every_view_works_with_one_layer(arrive):
    visitor = arrive("long?call=6")
    for view in ("text", "overview", "lines", "matrix", "heads", "steps"):
        visitor.ask(f"regard.state.set({{ view: '{view}' }})")
        visitor.until(f"regard.state.now.view === '{view}'")
        visitor.ask("regard.ready()")
        visitor.ask("regard.exportSvg().then((text) => text.length)")
    visitor.until(SUMMARISED)
    visitor.ask("regard.state.set({ view: 'overview', sort: 'role' })")
    visitor.ask("regard.state.set({ view: 'text' })")
    # The cards are now those of all layers.
    visitor.page.locator(".role-card").first.wait_for()
    assert "Layer 3 · head 1" in visitor.page.locator(".role-card").first.inner_text()


def test_through_a_lens_other_layers_are_said_to_be_plain(arrive):
    visitor = overview(arrive)
    text = read_table("page", "en")["summaries.plain"]
    assert visitor.page.get_by_text(text).count() == 0
    visitor.ask("regard.state.set({ sinks: 'first' })")
    visitor.page.get_by_text(text).wait_for()
    visitor.ask("regard.ready()")
    assert visitor.page.locator(".card.waiting").count() == 0


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_both_languages_and_no_violations(arrive, locale):
    visitor = overview(arrive, locale=locale, bypass_csp=True)
    assert violations(visitor.page) == []


@pytest.mark.parametrize("layer", [3, 6])
def test_the_heading_stays_in_sight_of_the_layer_that_is_opened(arrive, layer):
    visitor = overview(arrive, f"long?call={layer}", viewport={"width": 1100, "height": 560})
    body, heading, card = (
        visitor.ask(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()")
        for selector in (".overview .scroll", ".block h2", ".card[aria-current=true]")
    )
    assert visitor.ask("document.querySelector('.overview .scroll').scrollTop") > 0
    assert heading["top"] >= body["top"]
    assert card["top"] >= heading["bottom"]
    assert card["bottom"] <= body["bottom"]


# ---- what goes wrong -----------------------------------------------------------------------------


def test_progress_is_shown_and_can_be_cancelled(arrive, kept, monkeypatch):
    state = kept["app"].server_state
    state.pages.drop(lambda place: True)
    visitor = arrive("long")
    held = []
    visitor.page.route("**/api/recordings/long/pages", lambda route: held.append(route))
    visitor.page.get_by_role("button", name="Next layer").click()
    line = visitor.page.locator(".layer-loading")
    line.wait_for()
    assert "Loading layer 1…" in line.inner_text()
    assert line.locator("progress").get_attribute("aria-label") == "Loading layer 1…"
    line.get_by_role("button", name="Cancel").click()
    line.wait_for(state="hidden")
    assert visitor.ask("regard.state.now.call") == 0
    for route in held:
        route.abort()
    visitor.page.unroute_all()
    visitor.problems = [one for one in visitor.problems if "ERR_FAILED" not in one]


def test_a_layer_that_does_not_come_is_told_of_and_the_old_one_stays(arrive):
    visitor = arrive("long")
    answer = {"status": 422, "json": {"error": "No room for this <b>layer</b>."}}
    visitor.page.route("**/api/recordings/long/pages", lambda route: route.fulfill(**answer))
    visitor.page.get_by_role("button", name="Next layer").click()
    alert = visitor.page.locator(".layer-loading [role=alert]")
    alert.wait_for()
    assert alert.inner_text() == "No room for this <b>layer</b>."
    assert visitor.ask("regard.state.now.call") == 0
    visitor.page.get_by_role("button", name="Close", exact=True).click()
    visitor.page.locator(".layer-loading").wait_for(state="hidden")
    visitor.problems = [one for one in visitor.problems if "422" not in one]


def test_pictures_that_do_not_come_are_told_of_and_asked_for_again(arrive):
    visitor = arrive("long")
    answer = {"status": 429, "json": {"error": "8 jobs are already waiting."}}
    visitor.page.route("**/api/recordings/long/summaries", lambda route: route.fulfill(**answer))
    visitor.ask("regard.state.set({ view: 'overview' })")
    visitor.page.locator(".view-bar [role=alert]").wait_for()
    assert visitor.page.inner_text(".view-bar [role=alert]") == "8 jobs are already waiting."
    visitor.page.unroute_all()
    visitor.ask("regard.state.set({ view: 'text' })")
    visitor.ask("regard.state.set({ view: 'overview' })")
    visitor.until(SUMMARISED)
    assert visitor.page.locator(".view-bar [role=alert]").count() == 0
    visitor.problems = [one for one in visitor.problems if "429" not in one]


def test_the_map_and_the_views_lead_to_each_other(arrive):
    visitor = arrive("long")
    visitor.open("/map/long#call=1&head=1&query=60&key=7").settled()
    visitor.page.click(".pair-links a")
    visitor.until("location.pathname === '/look/long' && window.regard?.state?.now.view === 'lines'")
    assert visitor.ask("[location.search, regard.recording.calls.length]") == ["?call=1", LAYERS]
    assert visitor.ask("[regard.state.call.layer, regard.state.now.head, regard.state.now.query]") == [
        1,
        1,
        60,
    ]
    visitor.page.hover(".app-bar")
    visitor.page.click(".app-tabs a:nth-child(2)")
    visitor.until("location.pathname === '/map/long'").settled()
    assert visitor.ask("[regard.state.now.call, regard.state.now.head, regard.state.now.query]") == [1, 1, 60]
