"""The gallery: it shows every demonstration, and its pictures match the code beside them."""

import re

import pytest

from docs.pictures import assert_pictures_are_current
from docs.scripts import DOCS, script
from regard.lessons import demonstrations

PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")


def test_every_block_runs_and_gives_its_picture():
    maker = script("make_pictures")
    assert_pictures_are_current(maker, maker.GALLERY, {})


def test_pictures_are_small_and_all_are_used():
    named = set(re.findall(r"\]\(pictures/([^)]+)\)", PAGE))
    assert named == {path.name for path in (DOCS / "pictures").glob("gallery-*.png")}
    for name in named:
        assert (DOCS / "pictures" / name).stat().st_size <= 100_000


@pytest.mark.parametrize("one", demonstrations(), ids=lambda one: one.name)
def test_every_demonstration_is_shown(one):
    assert f'demonstration("{one.name}")' in PAGE
    assert f"](pictures/gallery-{one.name}.png)" in PAGE
