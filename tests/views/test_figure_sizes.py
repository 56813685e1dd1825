"""Sizes of text in figures: the house style by default, and what the user has set in matplotlib."""

import functools
from itertools import pairwise

import matplotlib as mpl
import pytest
from matplotlib.text import Text
from PIL import Image

from regard import figures
from regard.views.figures.figure_layout import planned
from regard.views.figures.style import house_style
from regard.views.figures.text_sizes import text_sizes
from views.test_animation import written
from views.test_figures import every_figure, softmax

HOUSE = {9.0, 10.0, 10.5}


def drawn(figure):
    """Every text that is on the paper, with its size."""
    figure.draw_without_rendering()
    return [
        (text.get_text(), text.get_fontsize())
        for text in figure.findobj(Text)
        if text.get_text().strip() and text.get_visible()
    ]


@functools.cache
def sizes_of(name, **settings):
    with mpl.rc_context({key.replace("_", "."): value for key, value in settings.items()}):
        return drawn(every_figure()[name]())


def heat_map(**settings):
    """Sizes of a heat map with room for large labels."""
    with mpl.rc_context({key.replace("_", "."): value for key, value in settings.items()}):
        figure = figures.heatmap(softmax(4, 4), queries=list("abcd"), keys=list("efgh"), title="Title")
    axes = figure.axes[0]
    return {
        "x": axes.get_xticklabels()[0].get_fontsize(),
        "y": axes.get_yticklabels()[0].get_fontsize(),
        "axis": axes.xaxis.label.get_fontsize(),
        "numbers": axes.texts[0].get_fontsize(),
    }


def with_left_title(figure):
    return figure.axes[0]._left_title.get_fontsize()


DEFAULT = {"x": 9.0, "y": 9.0, "axis": 9.0, "numbers": 9.0}


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ({}, {}),
        ({"font_size": 9.0}, {}),
        ({"font_size": 12.0}, {"x": 12.0, "y": 12.0, "axis": 12.0, "numbers": 12.0}),
        ({"font_size": 6.0}, {"x": 6.0, "y": 6.0, "axis": 6.0, "numbers": 6.0}),
        ({"xtick_labelsize": 7.0}, {"x": 7.0}),
        ({"ytick_labelsize": 13.0}, {"y": 13.0}),
        ({"axes_labelsize": 14.0}, {"axis": 14.0}),
        ({"font_size": 12.0, "xtick_labelsize": 8.0}, {"x": 8.0, "y": 12.0, "axis": 12.0, "numbers": 12.0}),
        (
            {"font_size": 12.0, "ytick_labelsize": "small"},
            {"x": 12.0, "y": 9.996, "axis": 12.0, "numbers": 12.0},
        ),
    ],
)
def test_each_setting_changes_its_own_text_of_a_heat_map(settings, changed):
    found = heat_map(**settings)
    assert found == pytest.approx({**DEFAULT, **changed})


@pytest.mark.parametrize(
    ("settings", "size"), [({}, 10.5), ({"axes.titlesize": 16.0}, 16.0), ({"font.size": 12.0}, 14.0)]
)
def test_titles_follow_their_setting_and_the_size_of_text(settings, size):
    with mpl.rc_context(settings):
        figure = figures.heatmap(softmax(3, 3), title="Title")
    assert with_left_title(figure) == pytest.approx(size)
    with mpl.rc_context(settings), house_style():
        assert text_sizes().title == pytest.approx(size)


@pytest.mark.parametrize("name", every_figure())
def test_all_text_of_every_figure_follows_the_size_of_text(name):
    usual, large = sizes_of(name), sizes_of(name, font_size=12.0)
    # Texts that had all the room they wanted are larger by a third, unless labels are close together.
    grown = [size for _, size in large if any(size == pytest.approx(4 / 3 * one) for one in HOUSE)]
    assert len(grown) >= len(large) / 2, large
    assert min(size for _, size in large) >= min(size for _, size in usual)
    # Nothing is larger than the title.
    assert max(size for _, size in large) <= 14.0 + 1e-6


@pytest.mark.parametrize("name", every_figure())
def test_by_default_sizes_are_those_of_the_house_style(name):
    for text, size in sizes_of(name):
        assert size <= 10.5, text
        assert size in HOUSE or size < 9.0, (text, size)


@pytest.mark.parametrize("name", ["bars", "lines", "heatmap", "mask", "cost", "distance"])
def test_large_text_stays_on_the_paper(name):
    with mpl.rc_context({"font.size": 18.0}):
        figure = every_figure()[name]()
        figure.draw_without_rendering()
        paper = figure.bbox
        for text in figure.findobj(Text):
            if text.get_text().strip() and text.get_visible() and text.get_in_layout():
                box = text.get_window_extent()
                if text.axes is not None or box.width:
                    assert box.x0 >= paper.x0 - 1, text.get_text()
                    assert box.x1 <= paper.x1 + 1, text.get_text()
                    assert box.y0 >= paper.y0 - 1, text.get_text()
                    assert box.y1 <= paper.y1 + 1, text.get_text()


def test_large_names_beside_bars_do_not_overlap():
    with mpl.rc_context({"font.size": 20.0}):
        figure = figures.bars([0.5, 0.3, 0.2], ["one", "two", "three"])
    figure.draw_without_rendering()
    boxes = sorted(
        (text.get_window_extent() for text in figure.axes[0].get_yticklabels()), key=lambda box: box.y0
    )
    assert [text.get_fontsize() for text in figure.axes[0].get_yticklabels()] == [20.0] * 3
    assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(boxes))


def test_labels_that_are_close_together_are_smaller_or_fewer():
    assert planned(30, 0.21, 14.0).size == pytest.approx(0.86 * 0.21 * 72)
    assert planned(500, 0.0126, 14.0).step * 0.0126 * 72 >= 1.2 * 14
    # Who wants small labels gets all of them.
    assert planned(60, 0.085, 9.0).step > 1
    assert planned(60, 0.085, 5.0).step == 1


def test_an_animation_follows_the_size_of_text(tmp_path):
    seen = written()
    sizes = []
    for size in (10.0, 20.0):  # 10 is matplotlib's own
        with mpl.rc_context({"font.size": size}):
            path = figures.animate(seen, tmp_path / f"{size}.gif", layer=3)
        with Image.open(path) as picture:
            sizes.append(picture.size)
    assert sizes[0][0] == sizes[1][0]
    assert sizes[1][1] > 1.5 * sizes[0][1]
