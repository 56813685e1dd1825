"""Overview and table of heads: every head, in any order, one click from its matrix."""

import numpy as np

from views.viewing import CLOSE


def test_the_overview_shows_every_head_by_kind_and_opens_one(page):
    page.set(view="overview")
    assert page.page.locator(".card").count() == 5 * 2 + 4 * 4
    assert page.page.locator(".block h2").all_inner_texts()[1].startswith("Decoder attention")
    page.page.click('.block:nth-child(3) .card[aria-label^="Layer 1, head 2"]')
    assert (page.now("view"), page.now("call"), page.now("head"), page.now("heads")) == ("matrix", 5, 2, [2])


def test_the_overview_paints_the_heads_in_sight_first(page):
    page.set(view="overview")
    page.page.set_viewport_size({"width": 900, "height": 420})
    order = page.run(
        """new Promise((done) => {
          const view = regard.app.view;
          view.body.scrollTop = view.body.scrollHeight;
          const inSight = view.cards.map(({ root }) => {
            const [card, body] = [root.getBoundingClientRect(), view.body.getBoundingClientRect()];
            return card.bottom > body.top && card.top < body.bottom;
          });
          const painted = [];
          const paint = view.paintCard;
          view.paintCard = (card, picture) => painted.push(inSight[view.cards.indexOf(card)]);
          view.paintAll();
          view.ready().then(() => ((view.paintCard = paint), done(painted)));
        })"""
    )
    page.page.set_viewport_size({"width": 1280, "height": 800})
    first = order[: 5 * 2 + 4 * 4]  # the thumbnails; finer pictures follow
    assert {True, False} == set(first)
    assert first == sorted(first, reverse=True)


def entropies(page):
    found = []
    for trace in page.shown.traces:
        weights = trace["weights"][0]
        found += [-np.sum(w * np.log(np.maximum(w, 1e-30)), -1).mean() for w in weights]
    return np.array(found)


def test_the_overview_sorts_by_a_statistic_and_shows_it(page):
    page.set(view="overview")
    page.page.select_option(".overview select", "entropy")
    numbers = [float(text) for text in page.page.locator(".caption .number").all_inner_texts()]
    assert np.allclose(numbers, np.sort(entropies(page))[::-1], atol=CLOSE)
    page.page.click("text=Largest first")
    numbers = [float(text) for text in page.page.locator(".caption .number").all_inner_texts()]
    assert np.allclose(numbers, np.sort(entropies(page)), atol=CLOSE)


def test_the_table_holds_the_statistics_and_sorts_and_opens(page):
    page.set(view="heads")
    shown = page.page.locator('td[data-name="entropy"]').all_inner_texts()
    assert np.allclose([float(text) for text in shown], entropies(page), atol=CLOSE)
    page.page.click('th button[data-sort="entropy"]')
    assert page.page.locator("th:has([data-sort=entropy])").get_attribute("aria-sort") == "descending"
    shown = [float(text) for text in page.page.locator('td[data-name="entropy"]').all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    page.page.click('th button[data-sort="entropy"]')
    first = page.page.locator("tbody tr").first
    at = int(np.argmin(entropies(page)))
    wanted = [
        (call, head)
        for call, trace in enumerate(page.shown.traces)
        for head in range(trace["weights"].shape[1])
    ][at]
    first.click()
    assert page.now("view") in ("matrix", "lines")
    assert (page.now("call"), page.now("head")) == wanted


def test_the_table_filters_by_words_and_kind(page):
    page.set(view="heads")
    page.page.fill(".view input[type=search]", "1.3")
    assert page.page.locator("tbody tr").count() == 3
    page.page.select_option(".heads select", "cross")
    assert page.page.locator("tbody tr").count() == 1
    assert page.text(".heads [role=status]") == "1 of 26 heads"
    page.page.fill(".view input[type=search]", "nothing like it")
    assert page.page.locator("text=No head matches this filter.").is_visible()


def test_the_overview_ordered_by_a_statistic_begins_at_its_beginning(page):
    page.set(view="text", call=5, head=3)
    for sort in ("entropy", "role"):
        page.set(view="overview", sort=sort)
        assert page.run("regard.app.view.body.scrollTop") == 0
        page.set(view="text")
    page.set(view="overview", sort="")  # by layer, the chosen head is brought into sight
    assert page.run("regard.app.view.body.scrollTop") > 0


def test_the_spread_of_weights_is_explained_in_its_columns(page):
    page.set(view="heads")
    said = page.page.locator('th button[data-sort="entropy"]').get_attribute("aria-description")
    assert "Whether a head looks at few tokens or at many" in said


def test_another_order_begins_at_its_beginning(page):
    page.page.set_viewport_size({"width": 900, "height": 420})
    page.set(view="overview", call=5, head=3)
    page.run("(regard.app.view.body.scrollTop = 1e6, 0)")
    assert page.run("regard.app.view.body.scrollTop") > 100
    page.page.select_option(".overview select", "entropy")
    assert page.run("regard.app.view.body.scrollTop") == 0
    page.set(call=0, head=0)
    page.run("(regard.app.view.body.scrollTop = 1e6, 0)")
    page.page.select_option(".overview select", "")
    assert page.run("regard.app.view.body.scrollTop") == 0
    page.page.set_viewport_size({"width": 1100, "height": 760})


def test_cards_of_heads_name_their_kind(page):
    page.set(view="text")
    places = page.page.locator(".role-card small").all_inner_texts()
    assert places
    assert {place.split(" · ")[0] for place in places} <= {"Encoder", "Decoder", "Cross"}
