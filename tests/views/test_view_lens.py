"""The lens: hiding, merging and removing sinks are those of NumPy."""

import numpy as np
import pytest

from views import stage
from views.viewing import CLOSE


def through_lens(weights, query_tokens, key_tokens, *, special, words, sinks):
    """The lens in NumPy: sinks removed and rows renormalised, then tokens hidden, then words merged."""

    def groups(tokens, gone):
        found = []
        for i, token in enumerate(tokens):
            if gone[i]:
                continue
            if words == "merge" and token.startswith("##"):
                found[-1].append(i)
            else:
                found.append([i])
        return found

    is_special = [np.array([t[0] in "[<…" for t in tokens]) for tokens in (query_tokens, key_tokens)]
    sink = np.zeros(len(key_tokens), bool)
    if sinks == "first":
        sink[0] = True
    if sinks == "special":
        sink = is_special[1]
    removed = weights[:, sink].sum(1)
    kept = np.where(removed > 1 - 1e-4, 0, weights.T / np.maximum(1 - removed, 1e-9)).T
    hide = special == "hide"
    rows = groups(query_tokens, is_special[0] & hide)
    columns = groups(key_tokens, (is_special[1] & hide) | sink)
    seen = np.array([[kept[np.ix_(i, j)].sum(1).mean() for j in columns] for i in rows])
    return seen, np.array([removed[i].mean() for i in rows])


@pytest.mark.parametrize("special", ["show", "hide"])
@pytest.mark.parametrize("words", ["apart", "merge"])
@pytest.mark.parametrize("sinks", ["show", "first", "special"])
def test_the_lens_is_that_of_numpy(page, special, words, sinks):
    lens = {"special": special, "words": words, "sinks": sinks}
    sides = {
        "encoder": (stage.SOURCE, stage.SOURCE),
        "decoder": (stage.TARGET, stage.TARGET),
        "cross": ([*stage.TARGET[1:], "…"], stage.SOURCE),  # rows are named by what they write
    }
    for call, head in ((1, 4), (2, 3), (3, 0), (4, 2)):
        page.set(call=call, head=head, **lens)
        kind = page.run("regard.state.call.kind")
        seen, removed = through_lens(page.shown.weights(call, head), *sides[kind], **lens)
        assert np.allclose(page.block(head), seen, atol=CLOSE)
        assert np.allclose(page.run(f"Array.from(regard.app.look().removed({head}))"), removed, atol=CLOSE)
        parts = page.run(f"Array.from(regard.app.look().weights({head}, 1, 3, 2, 4))")
        assert np.allclose(parts, seen[1:3, 2:4].ravel(), atol=CLOSE)


def test_controls_hide_merge_and_say_what_was_removed(page):
    page.set(view="matrix", call=0, head=2)
    page.page.check('[data-control="special"]')
    page.page.check('[data-control="words"]')
    names = page.run("regard.app.look().rowNames")
    assert names == ["unbelievable", "cats", "sat", "on", "the", "wallpaper"]
    page.page.select_option('select[data-control="sinks"]', "special")
    weights = page.shown.weights(0, 2)
    removed = weights[:, [0, 10]].sum(1)
    inner = [removed[1:4].mean(), *removed[4:8], removed[8:10].mean()]
    assert float(page.page.locator(".removed").get_attribute("data-removed")) == pytest.approx(
        np.mean(inner), abs=CLOSE
    )
    page.point(0, 1)
    wanted = (weights[1:4, 4] / (1 - removed[1:4])).mean()
    assert page.readout() == pytest.approx([0, 1, wanted], abs=CLOSE)
    assert f"{100 * inner[0]:.1f}% of this row removed" in page.text(".readout")


def test_a_pin_stays_on_its_token_through_the_lens(page):
    page.set(view="matrix", query=5, key=8)  # "sat" → "wall"
    page.set(special="hide", words="merge")
    assert page.readout()[:2] == [2, 5]
    page.set(special="show", words="apart")
    assert page.readout()[:2] == [5, 8]


def test_overview_pictures_follow_the_lens(page):
    page.set(view="overview")
    before = page.run("[regard.app.view.cards[0].canvas.width, regard.app.view.cards[0].canvas.height]")
    page.set(special="hide", words="merge")
    assert before == [11, 11]
    assert page.run("[regard.app.view.cards[0].canvas.width, regard.app.view.cards[0].canvas.height]") == [
        6,
        6,
    ]
