"""The gallery: it shows every demonstration, and its pictures match the code beside them."""

import re
from io import BytesIO

import pytest
from matplotlib.figure import Figure
from PIL import Image

from docs.scripts import DOCS, script
from regard.lessons import demonstrations

PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")


def test_every_block_runs_and_gives_its_picture():
    maker, names, drawn = script("make_pictures"), {}, 0
    found = list(maker.blocks(maker.GALLERY))
    assert len(found) == PAGE.count("```python")
    for block in found:
        figure = maker.run(block, names)
        if block.picture is None:
            continue
        drawn += 1
        assert isinstance(figure, Figure)
        kept = Image.open(BytesIO((DOCS / block.picture).read_bytes()))
        made = Image.open(BytesIO(maker.png(figure)))
        # Fonts differ a little between machines; another call would make another size.
        assert all(abs(a - b) <= 0.05 * b + 4 for a, b in zip(made.size, kept.size)), block.picture
    assert drawn == PAGE.count("](pictures/")


def test_pictures_are_small_and_all_are_used():
    named = set(re.findall(r"\]\(pictures/([^)]+)\)", PAGE))
    assert named == {path.name for path in (DOCS / "pictures").glob("gallery-*.png")}
    for name in named:
        assert (DOCS / "pictures" / name).stat().st_size <= 100_000


@pytest.mark.parametrize("one", demonstrations(), ids=lambda one: one.name)
def test_every_demonstration_is_shown(one):
    assert f'demonstration("{one.name}")' in PAGE
    assert f"](pictures/gallery-{one.name}.png)" in PAGE
