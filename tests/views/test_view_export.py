"""SVG and PNG of every view."""

from xml.etree import ElementTree

import pytest

from views.viewing import SVG, VIEWS, words_of


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_exported_as_svg(page, view):
    page.set(view=view, call=4, head=2, query=3)
    picture = page.run("regard.exportSvg()")
    words = words_of(picture.encode())
    assert "var(" not in picture
    assert any(word.startswith("A page") for word in words)
    if view in ("lines", "matrix"):
        assert {"猫", "坐", "</s>", "cats", "believ", "[CLS]"} <= words
    if view == "text":
        assert {"猫", "坐", "</s>", "cats", "believ", "[CLS]"} <= words
    if view == "steps":
        assert {"cats", "[CLS]", "1.0000", "3  地"} <= words
    if view == "heads":
        assert {"cross.1.attention", "Entropy"} <= words
    if view == "overview":
        assert "Cross attention" in words
        assert picture.count("<image") == 26


def test_the_matrix_is_exported_as_cells(page):
    page.set(view="matrix", call=3, head=1)
    root = ElementTree.fromstring(page.run("regard.exportSvg()").encode())
    cells = [one for one in root.iter(f"{SVG}rect") if one.get("rx")]
    assert len(cells) == 7 * 8 // 2  # the causal half


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_exported_as_png_twice_as_dense(page, view):
    page.set(view=view, query=3)
    size, start, area = page.run(
        """(async () => { const blob = await regard.exportPng();
        const picture = await createImageBitmap(blob);
        const { width, height } = regard.app.view.pictureSize();
        return [blob.size, [picture.width, picture.height], [Math.ceil(width), Math.ceil(height)]]; })()"""
    )
    assert size > 2000
    assert start == [2 * (area[0] + 48), 2 * (area[1] + 78)]


def test_the_buttons_give_files(page):
    page.set(view="matrix", call=4, head=2)
    for text, name in (
        ("SVG", "regard-matrix-layer-0-head-2.svg"),
        ("PNG", "regard-matrix-layer-0-head-2.png"),
    ):
        with page.page.expect_download() as waiting:
            page.page.click(f'button:text-is("{text}")')
        assert waiting.value.suggested_filename == name
        assert waiting.value.path().stat().st_size > 2000
