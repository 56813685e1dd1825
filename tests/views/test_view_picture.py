"""The picture on a page: patches are shaded by the weights of the token that is pointed at or pinned."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from heads.synthetic_heads import recording_of
from views.axe import RULES, violations
from views.browser import until

ROWS, COLUMNS, HOSTILE = 2, 3, "</script><b>"


@pytest.fixture(scope="module")
def seen():
    generator = torch.Generator().manual_seed(7)
    found = recording_of(*(2 * torch.randn(8, 8, generator=generator) for _ in range(2)))
    found.tokens = [
        "[CLS]",
        *(f"{row},{column}" for row in range(ROWS) for column in range(COLUMNS)),
        HOSTILE,
    ]
    image = np.random.default_rng(1).integers(0, 256, (40, 60, 3), np.uint8)
    found.picture = regard.Picture(image, grid=(ROWS, COLUMNS), tokens=slice(1, 7))
    return found


@pytest.fixture
def page(opened, seen, tmp_path):
    path = regard.page(seen, tmp_path / "picture.html", title=HOSTILE)
    found = opened(path)
    found.page.wait_for_function("window.regard?.app?.view?.grey")
    return found.page


def shown(page):
    return page.evaluate("() => [...window.regard.app.view.shown.patches]")


def percent(share):
    """As the pages write it."""
    hundredths = 100 * float(share)
    return f"{hundredths:.0f}%" if hundredths >= 9.95 else f"{hundredths:.1f}%"


def at(page, row, column):
    box = page.locator(".picture-canvas").bounding_box()
    return box["x"] + box["width"] * (column + 0.5) / COLUMNS, box["y"] + box["height"] * (row + 0.5) / ROWS


def test_it_opens_on_the_picture_and_shades_the_weights(page, seen):
    assert page.locator('[role="tab"][aria-selected="true"]').inner_text().endswith("Picture")
    wanted = seen.picture.fold(seen[0].weights(0, rows=0))[0].flatten()
    assert np.allclose(shown(page), wanted, atol=1e-4)
    caption = page.inner_text(".picture-caption")
    assert f"{100 * float(wanted.sum()):.0f}%" in caption
    # Every weight is in per cent, as in the text.
    assert caption.endswith(f": {percent(wanted.max())}")
    beside = [percent(weight) for weight in seen[0].weights(0, rows=0)[0, [0, 7]]]
    assert page.locator(".picture-token .number").all_inner_texts() == beside


def test_pointing_shows_a_patch_and_clicking_pins_it(page, seen):
    page.mouse.move(*at(page, 1, 2))
    wanted = seen.picture.fold(seen[0].weights(0, rows=6))[0].flatten()
    assert np.allclose(shown(page), wanted, atol=1e-4)
    page.mouse.click(*at(page, 1, 2))
    page.mouse.move(2, 2)
    assert page.evaluate("() => window.regard.app.state.now.query") == 6
    page.evaluate("() => window.regard.app.state.set({ head: 1 })")
    assert np.allclose(shown(page), seen.picture.fold(seen[0].weights(1, rows=6))[0].flatten(), atol=1e-4)


def test_other_tokens_stand_beside_it(page, seen):
    others = page.locator(".picture-token")
    assert others.count() == 2
    others.nth(1).click()
    assert page.evaluate("() => window.regard.app.state.now.query") == 7
    assert np.allclose(shown(page), seen.picture.fold(seen[0].weights(0, rows=7))[0].flatten(), atol=1e-4)


def coloured(page):
    """How far the canvas is from grey."""
    file = BytesIO(page.locator(".picture-canvas").screenshot())
    pixels = np.asarray(Image.open(file).convert("RGB")).astype(int)[20:-20, 20:-20]
    return np.abs(pixels[..., 0] - pixels[..., 2]).max()


def test_only_attention_has_colour(page):
    page.evaluate("() => window.regard.app.view.choose({ strength: 0 })")
    page.mouse.move(2, 2)
    assert coloured(page) <= 2
    page.evaluate("() => window.regard.app.view.choose({ strength: 1, borders: true })")
    assert coloured(page) > 40


def test_it_is_exported_and_speaks_chinese(page):
    with page.expect_download() as download:
        page.get_by_text("SVG", exact=True).click()
    text = download.value.path().read_text(encoding="utf-8")
    assert "<image" in text
    page.evaluate("() => window.regard.app.state.set({ language: 'zh' })")
    page.wait_for_function("window.regard.app.view.grey")
    assert "的权重给了图像" in page.inner_text(".picture-caption")


def test_a_picture_in_a_text_opens_at_the_first_word_that_sees_it(opened, tmp_path):
    """Nothing of the picture can be seen from tokens before it, and no token sees those after it."""
    generator = torch.Generator().manual_seed(7)
    found = recording_of(torch.randn(9, 9, generator=generator), kind="decoder")
    found.tokens = ["<s>", *["<image>"] * 6, "what", "?"]
    found.picture = regard.Picture(np.zeros((40, 60, 3), np.uint8), grid=(ROWS, COLUMNS), tokens=slice(1, 7))
    page = opened(regard.page(found, tmp_path / "seen.html")).page
    page.wait_for_function("window.regard?.app?.view?.grey")
    assert "what gives" in page.inner_text(".picture-caption")
    values = page.locator(".picture-token .number").all_inner_texts()
    assert [float(value.strip("%")) > 0 for value in values[:2]] == [True, True]
    assert values[2] == "masked"
    page.evaluate("() => window.regard.app.state.set({ query: 5 })")
    assert "the patch at 1, 1 gives" in page.inner_text(".picture-caption")


def test_a_page_without_a_picture_has_no_such_view(opened, tmp_path):
    path = regard.page(recording_of(torch.zeros(3, 3)), tmp_path / "plain.html")
    assert opened(path).page.locator('[data-view="picture"]').count() == 0


# ---- through all layers --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def deep():
    """A small encoder of eight tokens, six of them patches, with a loss read at the class token."""
    torch.manual_seed(3)
    layer = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    with regard.watch(model, gradients=True) as found:
        model(torch.randn(1, 8, 16))[0, 0].square().sum().backward()
    found.tokens = ["[CLS]", *(f"p{patch}" for patch in range(6)), "[REG]"]
    image = np.zeros((40, 60, 3), np.uint8)
    found.picture = regard.Picture(image, grid=(ROWS, COLUMNS), tokens=slice(1, 7))
    return found


@pytest.fixture
def flowing(opened, deep, tmp_path):
    found = opened(regard.page(deep, tmp_path / "deep.html"))
    found.page.wait_for_function("window.regard?.app?.view?.grey")
    return found.page


def test_rollout_of_every_token(flowing, deep):
    flowing.select_option(".picture-tools select", "rollout")
    flow = regard.heads.rollout(deep).own
    for query in (0, 3, 7):
        flowing.evaluate("(query) => regard.state.set({ query })", query)
        assert np.allclose(shown(flowing), deep.picture.fold(flow[query]).flatten(), atol=1e-4)
    assert flowing.inner_text(".picture-caption").startswith("Rollout: ")
    values = flowing.locator(".picture-token .number").all_inner_texts()
    assert values == [percent(share) for share in flow[7, [0, 7]]]


def test_relevance_of_the_position_that_the_loss_was_read_at(flowing, deep):
    flowing.select_option(".picture-tools select", "relevance")
    wanted = regard.relevance(deep, row=0).own
    assert np.allclose(shown(flowing), deep.picture.fold(wanted).flatten(), rtol=1e-3, atol=1e-6)
    flowing.mouse.move(*at(flowing, 1, 1))  # there is none for this patch, so it stays
    assert np.allclose(shown(flowing), deep.picture.fold(wanted).flatten(), rtol=1e-3, atol=1e-6)
    # Relevance has no sum of its own: the share is that of all tokens but [CLS] itself, where it begins as 1.
    share = percent(wanted[1:7].sum() / wanted[1:].sum())
    assert f"Relevance for [CLS]: {share} lies on the picture" in flowing.inner_text(".picture-caption")


def test_the_mean_of_the_heads(flowing, deep):
    flowing.evaluate("() => regard.state.set({ group: 'mean', query: 2, call: 1 })")
    wanted = (deep[1].weights(0, rows=2) + deep[1].weights(1, rows=2)) / 2
    assert np.allclose(shown(flowing), deep.picture.fold(wanted).flatten(), atol=1e-4)
    assert "mean of 2 heads" in flowing.inner_text(".picture-caption")


def test_rollout_is_left_to_the_picture(flowing):
    flowing.evaluate("() => regard.state.set({ group: 'rollout', view: 'text', query: 2 })")
    assert flowing.locator(".text-bar select").input_value() == "head"


def test_some_layers_have_no_rollout(opened, deep, tmp_path):
    page = opened(regard.page(deep, tmp_path / "some.html", layers=[1])).page
    page.wait_for_function("window.regard?.app?.view?.grey")
    assert "rollout" not in page.locator(".picture-tools option").evaluate_all(
        "(all) => all.map((one) => one.value)"
    )


def test_nobody_is_kept_out(flowing):
    for group in ("head", "rollout"):
        flowing.evaluate("(group) => regard.state.set({ group })", group)
        assert violations(flowing) == []
        flowing.evaluate("() => regard.state.set({ theme: 'dark' })")
        assert violations(flowing, *RULES["dark"]) == []
        flowing.evaluate("() => regard.state.set({ theme: 'light' })")
    flowing.set_viewport_size({"width": 390, "height": 844})
    until(flowing, "document.documentElement.scrollWidth <= 390")
    assert violations(flowing) == []


def test_the_tab_of_the_view_is_in_sight_on_a_phone(opened, seen, tmp_path):
    path = regard.page(seen, tmp_path / "phone.html")
    page = opened(path, viewport={"width": 390, "height": 844}).page
    until(page, "window.regard?.app")
    tab, row = (page.locator(where).bounding_box() for where in ('.tabs [aria-selected="true"]', ".tabs"))
    assert tab["x"] >= row["x"]
    assert tab["x"] + tab["width"] <= row["x"] + row["width"] + 1
