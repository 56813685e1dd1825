"""The running text: a token shades what it attends to, and the page opens with one worth seeing."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image, ImageColor

from regard import masks
from regard.recording import Recording, ScoredCall
from regard.recording.next_tokens import NextTokens
from views import stage
from views.viewing import CLOSE, open_stage

SENTENCE = [
    "[CLS]",
    "the",
    "animal",
    "did",
    "not",
    "cross",
    "the",
    "street",
    "because",
    "it",
    "was",
    "tired",
    ".",
    "[SEP]",
]
IT, TIRED, STREET = SENTENCE.index("it"), SENTENCE.index("tired"), SENTENCE.index("street")


def told(pairs, *, strength=6.0, heads=3):
    """A recording of one layer whose last head attends as told, and whose first head rests on [CLS]."""
    n = len(SENTENCE)
    q = torch.zeros(1, heads, n, n)
    k = torch.eye(n).expand(1, heads, n, n).clone()
    q[0, 0, :, 0] = 9.0
    for query, key in pairs:
        q[0, -1, query, key] = strength
    scores = q @ k.mT
    call = ScoredCall("layer", "encoder", 2, q, k, scores.logsumexp(-1), scale=1.0)
    recording = Recording("Toy", [call])
    recording.tokens = SENTENCE
    return stage.Stage(recording, [{"weights": scores.softmax(-1).numpy()}])


@pytest.fixture(scope="module")
def _sentence(browser, tmp_path_factory):
    shown = told([(IT, TIRED), (STREET, 2), (TIRED, TIRED + 1)])
    return open_stage(browser, tmp_path_factory.mktemp("text"), shown, view=None)


@pytest.fixture
def sentence(_sentence):
    _sentence.reset()
    yield _sentence
    _sentence.opened.check()


def token(page, place, side="key"):
    return page.page.locator(f'.text-block.{side} [data-unit="{place}"]')


def caption(page):
    return page.text(".text-caption").replace("\n", " ")


def shades(page):
    return page.run("Array.from(regard.app.view.blocks.key.tones)")


def settled(page):
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")


def test_the_page_opens_with_something_worth_seeing(sentence):
    weights = sentence.shown.weights(0, 2)
    assert (sentence.now("view"), sentence.now("call"), sentence.now("head")) == ("text", 0, 2)
    # Of the told pairs, one is shown; special tokens, neighbours and the sink are not.
    query = sentence.now("query")
    assert query in (IT, STREET)
    share = round(100 * weights[query].max())
    key = SENTENCE[weights[query].argmax()]
    assert caption(sentence).startswith(f"Layer 2 · head 2: {SENTENCE[query]} → {key} {share}%")
    assert token(sentence, query).get_attribute("aria-selected") == "true"


def test_pointing_shades_by_what_a_token_attends_to_and_leaving_returns_to_the_pin(sentence):
    sentence.set(query=STREET)
    token(sentence, IT).hover()
    settled(sentence)
    weights = sentence.shown.weights(0, 2)[IT]
    tones = np.array(shades(sentence))
    assert tones.argmax() == TIRED
    found = float(sentence.page.locator(".text-caption").get_attribute("data-weight"))
    assert abs(found - weights[TIRED]) < CLOSE
    sentence.page.mouse.move(2, 2)
    settled(sentence)
    assert np.array(shades(sentence)).argmax() == 2
    assert sentence.now("query") == STREET


def test_a_pinned_token_leaves_the_next_one_readable(sentence):
    """Punctuation stands so close that anything above it would hide it."""
    sentence.set(query=TIRED)
    on_top = """(() => {
      const box = document.querySelector(".running .token.here + .token").getBoundingClientRect();
      return document.elementFromPoint(box.left + 1, (box.top + box.bottom) / 2).textContent;
    })()"""
    assert sentence.run(on_top) == "."


def test_the_shade_of_the_next_token_leaves_the_ring_whole(sentence):
    sentence.set(query=TIRED)
    settled(sentence)
    assert np.array(shades(sentence)).argmax() == TIRED + 1
    ring = Image.open(BytesIO(sentence.page.locator(".running .token.here").screenshot())).convert("RGB")
    wanted = ImageColor.getrgb(sentence.run("regard.app.inks.accent"))
    row = np.asarray(ring).astype(int)[ring.height // 2]
    near = np.abs(row - wanted).max(1) < 40
    assert near[:3].sum() >= 2
    assert near[-3:].sum() >= 2


def test_the_caption_in_chinese(sentence):
    sentence.set(query=IT, language="zh")
    assert caption(sentence).startswith("第 2 层 · 头 2：it → tired ")


def test_who_attends_to_a_token(sentence):
    sentence.set(query=TIRED)
    sentence.page.click('.segments >> text="Attended to by"')
    assert (sentence.now("query"), sentence.now("key")) == (None, TIRED)
    assert np.array(shades(sentence)).argmax() == IT
    assert "it → tired" in caption(sentence)


def test_a_click_pins_and_a_second_click_releases(sentence):
    sentence.set(query=None)
    assert "Point at a token" in caption(sentence)
    token(sentence, IT).click()
    assert sentence.now("query") == IT
    sentence.page.mouse.move(2, 2)
    settled(sentence)
    assert "it → tired" in caption(sentence)
    token(sentence, IT).click()
    assert sentence.now("query") is None


def test_arrows_walk_through_the_text_and_leave_heads_alone(sentence):
    sentence.set(query=IT)
    sentence.page.focus(".running")
    sentence.page.keyboard.press("ArrowRight")
    assert (sentence.now("query"), sentence.now("head")) == (IT + 1, 2)
    sentence.page.keyboard.press("Home")
    assert sentence.now("query") == 0
    sentence.page.keyboard.press("ArrowLeft")
    assert sentence.now("query") == 0
    assert sentence.page.get_attribute(".running", "aria-activedescendant") == "key-0"
    sentence.page.locator(".text-caption").click()
    sentence.run("document.activeElement.blur()")
    sentence.page.keyboard.press("ArrowLeft")
    assert sentence.now("head") == 1


def test_sinks_are_quiet_until_they_are_asked_for(sentence):
    sentence.set(head=0, query=IT)
    assert max(shades(sentence)) <= 6
    assert shades(sentence)[0] == 0
    assert "rests on sinks" in caption(sentence)
    sentence.page.click("text=Quiet sinks")
    assert shades(sentence)[0] == 24
    assert "it → [CLS]" in caption(sentence)


def test_the_mean_of_the_heads(sentence):
    sentence.set(head=2, query=IT, group="mean", quiet="off")
    mean = np.mean([sentence.shown.weights(0, head)[IT] for head in range(3)], axis=0)
    found = float(sentence.page.locator(".text-caption").get_attribute("data-weight"))
    assert abs(found - mean.max()) < CLOSE
    assert "mean of 3 heads" in caption(sentence)


def test_running_text_has_spaces_where_people_write_them(sentence):
    assert "because it was tired." in sentence.run("document.querySelector('.running').textContent")


def test_a_translation_is_two_blocks_and_each_points_at_the_other(page):
    page.set(view="text", call=5, head=1, query=3, key=None, quiet="off")
    weights = page.shown.weights(5, 1)
    assert np.array(shades(page)).argmax() == weights[3].argmax()
    page.set(query=None, key=4)
    tones = np.array(page.run("Array.from(regard.app.view.blocks.query.tones)"))
    assert tones.argmax() == weights[:, 4].argmax()
    token(page, 2, "query").click()
    assert (page.now("query"), page.now("key")) == (2, None)
    assert page.run("regard.app.view.links.width") > 300


def test_word_pieces_are_one_word_where_they_are_merged(page):
    page.set(view="text", call=0, words="merge", query=1)
    text = page.text(".running")
    assert "unbelievable cats" in text
    assert "wallpaper" in text
    row = page.shown.weights(0, page.now("head"))[1:4].mean(0)
    assert page.run("regard.app.view.now.weights[4]") == pytest.approx(row[6], abs=CLOSE)


def test_a_text_from_right_to_left(browser, tmp_path):
    shown = stage.long(5)
    shown.recording.tokens = ["<s>", "החתול", "ישב", "על", "Toy"]
    page = open_stage(browser, tmp_path, shown, view="text")
    assert page.page.get_attribute(".running", "dir") == "rtl"
    page.set(query=1)
    page.page.focus(".running")
    page.page.keyboard.press("ArrowLeft")
    assert page.now("query") == 2
    page.opened.check()
    page.page.context.close()


def test_roles_are_cards_badges_a_column_and_a_filter(browser, tmp_path):
    n = 48
    q, k = torch.zeros(1, 3, n, n), torch.eye(n).expand(1, 3, n, n).clone()
    for query in range(1, n):
        q[0, 1, query, query - 1] = 9.0
    q[0, 2, :, 0] = 9.0
    lse = (q @ k.mT).masked_fill(~torch.ones(n, n).tril().bool(), -torch.inf).logsumexp(-1)
    call = ScoredCall("layer", "decoder", 0, q, k, lse, mask=masks.causal(), scale=1.0)
    recording = Recording("Toy", [call])
    recording.tokens = [f"w{i * i % 97}" for i in range(n)]
    page = open_stage(browser, tmp_path, stage.Stage(recording, []), view="text")
    cards = page.page.locator(".role-card")
    assert "Each token attends to the one before it." in cards.first.inner_text()
    cards.first.click()
    assert (page.now("head"), page.now("view")) == (1, "text")
    assert "head 1" in caption(page)
    page.page.click("text=All 3 heads")
    badges = page.page.locator(".overview .badge").all_inner_texts()
    assert badges.count("Previous token") == 1
    page.page.select_option(".overview .role-choice", "previous")
    assert page.page.locator(".overview .card:not(.other)").count() == 1
    page.set(view="heads")
    assert page.page.locator(".heads tbody tr").count() == 1
    assert "Previous token" in page.text(".heads tbody tr")
    page.opened.check()
    page.page.context.close()


def test_a_page_without_bars_for_other_documents(sentence):
    bars = sentence.page.locator(".top, .controls, .facts, .text-bar")
    sentence.run("(location.hash = 'embed', 0)")
    sentence.wait("regard.state.now.embed")
    assert not any(bar.is_visible() for bar in bars.all())
    assert sentence.page.locator(".running").is_visible()
    sentence.set(embed=False)
    assert all(bar.is_visible() for bar in bars.all())


def test_the_alignment_plays_once_and_hands_over(browser, tmp_path):
    page = open_stage(browser, tmp_path, stage.everything(), view=None)
    assert page.run("regard.state.call.kind") == "cross"
    page.wait("regard.app.view.pointed?.side === 'query'")
    token(page, 5).hover()
    settled(page)
    assert not page.run("regard.app.view.play.running")
    page.opened.check()
    page.page.context.close()
    context = browser.new_context(reduced_motion="reduce")
    from views.browser import Opened

    still = Opened(context.new_page(), tmp_path / "page.html")
    still.page.wait_for_selector(".running")
    assert not still.page.evaluate("regard.app.view.play.running")
    context.close()


def expecting(generated):
    """The sentence with what a model expected: after each token, "<b>" with 0.6 and "tired" with 0.3."""
    shown = told([(IT, TIRED)])
    n = len(SENTENCE)
    best = torch.tensor([[0, 1]]).expand(n, 2)
    own = torch.linspace(0.9, 0.001, n - 1)
    shown.recording.next_tokens = NextTokens(
        ("<b>", "tired"), best, torch.tensor([[0.6, 0.3]]).expand(n, 2), own, generated
    )
    return shown


def test_what_was_expected_next_and_how_likely_the_text_was(browser, tmp_path):
    page = open_stage(browser, tmp_path, expecting(IT), view=None)
    page.set(query=TIRED - 1)
    said = page.text(".next-tokens").split("\n")
    assert said[0] == "Expected next"
    assert " ".join(said[1:]).split()[:4] == ["<b>", "60%", "tired", "30%"]
    assert page.text(".next-tokens .actual").split() == ["tired", "30%"]
    own = float(page.shown.recording.next_tokens.own[TIRED - 2])
    assert f"itself expected with {100 * own:.0f}%" in " ".join(said)
    assert page.page.locator(".running [class*=likely-]").count() == len(SENTENCE) - IT
    assert page.page.locator(".book.likely").count() == 0
    page.page.click("text=Generated tokens by probability")
    assert page.page.locator(".book.likely").count() == 1
    assert page.page.locator(".likely-legend span").count() == 5
    last = page.page.locator(f'.running [data-unit="{len(SENTENCE) - 1}"]')
    assert "likely-4" in last.get_attribute("class")
    page.set(query=None)
    assert page.page.locator(".next-tokens").is_hidden()
    page.opened.check()


def test_a_page_without_next_tokens_says_nothing_of_them(sentence):
    assert sentence.page.locator(".next-tokens").is_hidden()
    assert sentence.page.locator("text=by probability").count() == 0


def test_the_shading_of_joined_tokens_ends_where_the_next_letter_begins(sentence):
    overlaps = sentence.run(
        """[...document.querySelectorAll('.running .token')].flatMap((token) => {
        const before = token.previousSibling;
        if (!before?.matches?.('.token') || before.offsetTop !== token.offsetTop) return [];
        const letters = (element) => {
          const range = document.createRange();
          range.selectNodeContents(element);
          return range.getBoundingClientRect();
        };
        return [
          letters(before).right - token.getBoundingClientRect().left,
          before.getBoundingClientRect().right - letters(token).left,
        ]; })"""
    )
    assert overlaps
    assert max(overlaps) < 0.5
