"""Figures in Chinese: nothing that a figure says of itself is left in English."""

import functools
import re

import matplotlib.text
import numpy as np
import pytest

import regard
from regard import figures
from regard.ablation.sweep import PLACES
from regard.errors import ArgumentError
from regard.heads import divergence
from regard.heads.monitor_file import NUMBERS
from regard.translator import embedded, look
from regard.views.figures.figure_texts import TEXTS
from regard.views.page.display_tokens import text_of
from views.scenes import attributed, cut, learned, monitored, pictured, swept

WORD = re.compile(r"[A-Za-z]{2,}")
NAMES = {"Jensen", "logit", "dO", "nat", "Shannon", "causal", "Seq", "MiB", "KiB", "loss"}
NAMES |= {"recent", "received", "observed", "norm", "oracle"}
"""Names of people, masks, models, units, metrics and policies, which are the same in both languages."""


@pytest.fixture(scope="module")
def seen():
    return look(embedded(), "The quick brown fox.").recording


def rows(*shape):
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), shape[:-1])


FIGURES = {
    "importance": lambda seen, **lang: figures.importance(regard.heads.importance(learned()), **lang),
    "relevance": lambda seen, **lang: figures.relevance(regard.relevance(learned(), row=-1), **lang),
    "attribution": lambda seen, **lang: figures.attribution(attributed(), **lang),
    "attribution of tokens": lambda seen, **lang: figures.attribution(attributed(), by="token", **lang),
    **{f"effects by {by}": lambda seen, by=by, **lang: figures.effects(swept(by), **lang) for by in PLACES},
    "effects of one kind": lambda seen, **lang: figures.effects(swept("head"), kind="cross", **lang),
    "effects of layers of one kind": lambda seen, **lang: figures.effects(
        swept("layer"), kind="cross", **lang
    ),
    "eviction": lambda seen, **lang: figures.eviction(cut(), **lang),
    **{
        f"monitor of {number}": lambda seen, number=number, **lang: figures.monitor(
            monitored(), number, **lang
        )
        for number in NUMBERS
    },
    "monitor of one kind": lambda seen, **lang: figures.monitor(monitored(), kind="cross", **lang),
    **{
        f"alignment by {method}": lambda seen, method=method, **lang: figures.alignment(
            regard.align(seen, method=method), **lang
        )
        for method in ("dtw", "argmax", "mutual")
    },
    "alignment by several heads": lambda seen, **lang: figures.alignment(
        regard.align(seen, [(0, 0), (1, 1)]), **lang
    ),
    "picture": lambda seen, **lang: figures.picture(pictured(), layer=0, head=0, **lang),
    "heatmap": lambda seen, **lang: figures.heatmap(seen, kind="encoder", layer=1, head=2, **lang),
    "heatmap cross": lambda seen, **lang: figures.heatmap(seen, kind="cross", layer=0, head=1, **lang),
    "heatmap masked": lambda seen, **lang: figures.heatmap(seen, kind="decoder", layer=0, head=1, **lang),
    "grid": lambda seen, **lang: figures.grid(seen, kind="encoder", layer=0, **lang),
    "grid cross": lambda seen, **lang: figures.grid(seen, kind="cross", layer=1, heads=[0, 3], **lang),
    "grid of all": lambda seen, **lang: figures.grid(seen, kind="encoder", heads=[0, 3], **lang),
    "grid of many tokens": lambda seen, **lang: figures.grid(rows(2, 60, 60), **lang),
    "lines": lambda seen, **lang: figures.lines(seen, kind="encoder", layer=0, heads=[0, 1], **lang),
    "lines of one": lambda seen, **lang: figures.lines(seen, kind="cross", layer=0, heads=1, **lang),
    "bars": lambda seen, **lang: figures.bars(seen, kind="encoder", layer=0, head=0, query=1, **lang),
    "bars without tokens": lambda seen, **lang: figures.bars(seen[0], head=0, query=1, **lang),
    "bars of many": lambda seen, **lang: figures.bars(rows(90), most=5, **lang),
    "distance": lambda seen, **lang: figures.distance(seen, kind="encoder", layer=0, **lang),
    "divergence": lambda seen, **lang: figures.divergence(divergence(seen, kind="encoder"), **lang),
    "mask": lambda seen, **lang: figures.mask("causal", 8, **lang),
    "mask in two lines": lambda seen, **lang: figures.mask("causal", 4, size=1.0, **lang),
    "geometry": lambda seen, **lang: figures.geometry(rows(5), rows(20, 5), **lang),
    "cost": lambda seen, **lang: figures.cost(
        [512, 2048], operations={"a": [1e9, 2e9]}, bytes={"a": [1e6, 2e6]}, **lang
    ),
}


def said(figure):
    """All that stands on a figure."""
    found = [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_visible()]
    found.append(figure.alt)
    return [text for text in found if text.strip()]


@pytest.fixture(scope="module")
def words(seen):
    """What stands on a figure in a language; each is made once, and drawn where letters might be missing."""

    @functools.cache
    def words(name, lang):
        figure = FIGURES[name](seen, lang=lang)
        if lang == "zh":
            figure.draw_without_rendering()
        return said(figure)

    return words


@pytest.mark.parametrize("name", FIGURES)
def test_no_english_is_left(seen, words, name):
    tokens = {*seen.tokens[0], *text_of(seen.source_tokens[0]).tokens}
    for text in words(name, "zh"):
        for token in sorted(tokens, key=len, reverse=True):
            text = text.replace(token, " ")
        assert not set(WORD.findall(text)) - NAMES, text


@pytest.mark.parametrize("name", FIGURES)
def test_both_languages_say_as_much(words, name):
    english, chinese = words(name, "en"), words(name, "zh")
    assert len(english) == len(chinese)
    assert english != chinese


@pytest.mark.parametrize("name", ["heatmap", "mask", "effects by head"])
def test_english_is_the_default(seen, words, name):
    assert said(FIGURES[name](seen)) == words(name, "en")


def test_the_texts_all_stand_on_some_figure(words):
    """Each text of the table is seen in one of these figures, so none has gone untried."""
    everything = "\n".join(line for name in FIGURES for line in words(name, "zh"))
    everything += "\n" + "\n".join(said(figures.heatmap(rows(1, 3, 3), head=0, lang="zh")))
    for key, text in TEXTS.table("zh").items():
        parts = [part for part in re.split(r"\{[^}]*\}", text) if part.strip()]
        assert all(part.strip() in everything for part in parts), key


def test_chinese_letters_have_a_font(seen):
    figure = FIGURES["lines"](seen, lang="zh")
    for text in figure.findobj(matplotlib.text.Text):
        if re.search("[\u3400-\u9fff]", text.get_text()):
            assert len(text.get_fontfamily()) > 1, text.get_text()


def test_an_unknown_language():
    with pytest.raises(ArgumentError, match=r"lang must be one of en, zh. Got lang = 'de'"):
        figures.heatmap([[1.0]], lang="de")


def test_what_the_user_names_stays_as_it_is():
    figure = figures.geometry([1.0, 0.0], [[1.0, 0.0]], ["along"], name="mine", title="told", lang="zh")
    assert {"mine", "along", "told"} <= set(said(figure))


def test_roles_in_chinese(seen):
    for head in regard.heads.roles(seen):
        words = head.in_words("zh")
        assert re.search("[\u3400-\u9fff]", words)
        assert not WORD.search(words)
