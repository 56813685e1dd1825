"""Labels that can be read: Chinese, emoji, blanks, dollars; and what is said where they cannot."""

import warnings
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import font_manager

from regard import figures
from regard.errors import FontError
from regard.views.figures import fonts
from regard.views.figures.figure_layout import shortened
from regard.views.figures.fonts import families_for, readable
from views.scenes import softmax

SENTENCE = ["我", "喜欢", "学习", "AI", "技术"]


@pytest.fixture
def only_latin(monkeypatch):
    """A machine with the font that matplotlib brings, and no other."""
    latin = [entry for entry in font_manager.fontManager.ttflist if entry.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", latin)
    monkeypatch.setattr(fonts.font_manager, "findSystemFonts", lambda: [])
    fonts._taken_in.cache_clear()
    yield
    fonts._taken_in.cache_clear()


def glyphs(family):
    path = font_manager.findfont(font_manager.FontProperties(family=[family]))
    return font_manager.get_font(path).get_charmap()


def test_latin_keeps_its_font_and_chinese_has_one():
    families = families_for(SENTENCE)
    assert families[0] == "DejaVu Sans"
    known = {sign for family in families for sign in glyphs(family)}
    assert {ord(sign) for word in SENTENCE for sign in word} <= known
    assert families_for(["I", "love", "AI"]) == ["DejaVu Sans"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_chinese_sentence_is_drawn_without_a_warning(suffix, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = figures.heatmap(softmax(5, 5), queries=SENTENCE, title="每个词看哪里")
        figures.save(figure, tmp_path / f"x.{suffix}")
    if suffix == "svg":
        text = (tmp_path / "x.svg").read_text(encoding="utf-8")
        assert all(f">{word}</text>" in text for word in SENTENCE)
        assert ">每个词看哪里</text>" in text


def test_chinese_letters_are_not_boxes():
    def picture(word):
        figure = figures.bars([1.0], [word])
        figure.canvas.draw()
        return np.asarray(figure.canvas.buffer_rgba())

    one, two = picture("技"), picture("术")
    assert one.shape == two.shape
    assert (one != two).any()  # boxes would look the same


def test_without_a_font_the_error_names_the_package(only_latin):
    with pytest.raises(
        FontError, match=r"Got '.*' and no installed font that has them. Install fonts-noto-cjk"
    ):
        figures.heatmap(softmax(5, 5), queries=SENTENCE)
    with pytest.raises(FontError, match=r"Got '注'"):
        figures.heatmap(softmax(2, 2), title="注")
    assert isinstance(FontError("x"), ValueError)


@pytest.mark.parametrize("word", ["かな", "한국어", "，"])
def test_so_it_is_for_other_east_asian_letters(only_latin, word):
    with pytest.raises(FontError, match=r"Chinese, Japanese or Korean"):
        figures.bars([1.0], [word])


def test_fonts_that_matplotlib_has_not_seen_yet_are_found(monkeypatch):
    # matplotlib keeps its list of fonts in a file, and a font may have been installed since.
    families = families_for(SENTENCE)
    path = font_manager.findfont(font_manager.FontProperties(family=families[1:2]))
    before = [entry for entry in font_manager.fontManager.ttflist if entry.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", before)
    monkeypatch.setattr(fonts.font_manager, "findSystemFonts", lambda: [str(path), "/no/such/font.ttf"])
    fonts._taken_in.cache_clear()
    fonts._signs_of.cache_clear()
    try:
        assert len(families_for(SENTENCE)) == 2
    finally:
        fonts._taken_in.cache_clear()
        fonts._signs_of.cache_clear()


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("plain", "plain"),
        ("", "∅"),
        (" ", "␣"),
        ("   ", "␣␣␣"),
        ("\n", "↵"),
        ("a\tb", "a⇥b"),
        ("\x07", "U+0007"),
        ("\u200d", "U+200D"),
        ("👩\u200d💻", "U+1F469+200D+1F4BB"),
        ("x\U000e0041y", "xU+E0041y"),
        ("\ud800", "U+D800"),
        ("$x$", "$x$"),
        ("Ġthe", "Ġthe"),
        ("שלום", "שלום"),
    ],
)
def test_what_has_no_glyph_becomes_its_number(only_latin, token, shown):
    assert readable([token], ["DejaVu Sans"]) == [shown]


HOSTILE = [
    *("$x", "$\\frac{1}{0}$", "a_b^c", "\\alpha", "%", "&", "<script>", "</script>", "\x00"),
    *("👩\u200d💻", "مرحبا", "\u202eabc", "नमस्ते", "", " ", "\n\n", "e\u0301", "\ud83d", "\ufffd", "Ω" * 90),
]


def test_hostile_tokens_are_drawn_without_a_warning(tmp_path):
    count = len(HOSTILE)
    weights = softmax(2, count, count)
    made = [
        figures.heatmap(weights[0], queries=HOSTILE, title=HOSTILE[0]),
        figures.grid(weights, queries=HOSTILE, title=HOSTILE[1]),
        figures.lines(weights, queries=HOSTILE, title=HOSTILE[2]),
        figures.bars(weights[0, 0], HOSTILE, title=HOSTILE[3]),
        figures.mask("causal", HOSTILE, title=HOSTILE[6]),
        figures.geometry(weights[0, 0], weights[0], HOSTILE, name=HOSTILE[7], title=HOSTILE[8]),
        figures.cost([1, 2], bytes={name: [1, 2] for name in HOSTILE}, title=HOSTILE[9]),
        figures.distance(weights, title=HOSTILE[10]),
    ]
    for number, figure in enumerate(made):
        # The tokens are the same in all, so one figure shows that the other formats can write them.
        for suffix in ("png", "svg", "pdf") if number == 0 else ("svg",):
            figures.save(figure, tmp_path / f"{number}.{suffix}")
    texts = [node.text for node in ElementTree.parse(tmp_path / "0.svg").iter() if node.tag.endswith("}text")]
    assert {"$x", "<script>", "</script>", "\\alpha", "U+0000", "∅"} <= set(texts)


def test_long_tokens_are_cut():
    assert shortened("a" * 19) == "a" * 17 + "…"
    assert shortened("a" * 18) == "a" * 18
    figure = figures.heatmap(softmax(3, 3), queries=["Donaudampfschifffahrtsgesellschaft", "b", "c"])
    assert figure.axes[0].get_yticklabels()[0].get_text() == "Donaudampfschifff…"
    assert figure.get_size_inches()[0] < 4
    figure.savefig(BytesIO())
