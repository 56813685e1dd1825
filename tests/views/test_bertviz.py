"""head_view and model_view: the arguments of BertViz, and what they show."""

import inspect
import sys

import numpy as np
import pytest
import torch

import regard
from regard.errors import ArgumentError, PackageError, ShapeError
from views.decoding import Decoded

TOKENS = ["[CLS]", "the", "cat", "##s", "[SEP]", "they", "sat"]
SOURCE = ["a", "b", "c", "d", "e"]


def weights(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def attention(layers=3, heads=2, queries=7, keys=7):
    """What a model returns with output_attentions=True."""
    return tuple(weights(1, heads, queries, keys, seed=layer) for layer in range(layers))


def decoded(made, tmp_path):
    return Decoded(made.save(tmp_path / "x.html"))


@pytest.mark.parametrize("view", ["head_view", "model_view"])
def test_the_arguments_are_those_of_bertviz(view):
    theirs = pytest.importorskip("bertviz", reason="pip install --no-deps bertviz")
    own = inspect.signature(getattr(regard, view)).parameters
    wanted = inspect.signature(getattr(theirs, view)).parameters
    assert list(own) == list(wanted)
    assert [p.default for p in own.values()] == [p.default for p in wanted.values()]


def test_heads_as_lines(tmp_path):
    given = attention()
    page = decoded(regard.head_view(given, TOKENS, layer=2, heads=[1], html_action="return"), tmp_path)
    assert page.header["start"] == {"view": "lines", "call": 2, "heads": [1]}
    assert page.header["texts"] == [
        {
            "tokens": ["[CLS]", "the", "cat", "s", "[SEP]", "they", "sat"],
            "special": [0, 4],
            "words": [-1, 0, 1, 1, -1, 2, 3],
            "spaces": "0110111",
        }
    ]
    for layer, wanted in enumerate(given):
        np.testing.assert_allclose(page.weights(layer), wanted[0], atol=2e-5)


def test_the_model_at_a_glance(tmp_path):
    page = decoded(
        regard.model_view(
            attention(heads=5),
            TOKENS,
            sentence_b_start=5,
            prettify_tokens=False,
            include_layers=[2, 0],
            include_heads=[4, 1],
            html_action="return",
        ),
        tmp_path,
    )
    assert page.header["start"] == {"view": "overview", "theme": "dark"}
    assert page.header["sentenceB"] == 5
    assert page.header["texts"][0]["tokens"] == TOKENS
    assert [(call["layer"], call["heads"]) for call in page.header["calls"]] == [(2, [4, 1]), (0, [4, 1])]
    np.testing.assert_allclose(page.weights(0), attention(heads=5)[2][0, [4, 1]], atol=2e-5)


def test_encoder_decoder_and_cross(tmp_path):
    made = regard.head_view(
        encoder_attention=attention(2, queries=5, keys=5),
        decoder_attention=[layer.tril() for layer in attention(2)],
        cross_attention=attention(2, keys=5),
        encoder_tokens=SOURCE,
        decoder_tokens=TOKENS,
        html_action="return",
    )
    page = decoded(made, tmp_path)
    assert [call["kind"] for call in page.header["calls"]] == ["encoder"] * 2 + ["decoder"] * 2 + [
        "cross"
    ] * 2
    sizes = [(call["queries"], call["keys"]) for call in page.header["calls"]]
    assert sizes == [(5, 5)] * 2 + [(7, 7)] * 2 + [(7, 5)] * 2
    assert [page.header["calls"][4][side] for side in ("queryText", "keyText")] == [1, 0]


def test_encoder_and_decoder_without_cross(tmp_path):
    made = regard.model_view(
        encoder_attention=attention(1, queries=5, keys=5),
        decoder_attention=attention(1),
        encoder_tokens=SOURCE,
        decoder_tokens=TOKENS,
        html_action="return",
    )
    texts = decoded(made, tmp_path).header["texts"]
    assert [len(text["tokens"]) for text in texts] == [5, 7]


@pytest.mark.parametrize(
    ("given", "layers"),
    [
        (weights(2, 7, 7), 1),  # TransformerLens: cache["pattern", 0][0]
        (weights(1, 2, 7, 7), 1),  # cache["pattern", 0]
        (weights(3, 2, 7, 7), 3),  # all layers in one tensor
        (weights(3, 1, 2, 7, 7), 3),
        ([weights(2, 7, 7)] * 4, 4),
        ([weights(1, 2, 7, 7).numpy()] * 2, 2),
        (weights(3, 2, 7, 7).bfloat16(), 3),
    ],
    ids=lambda value: str(getattr(value, "shape", value)),
)
def test_patterns_of_other_libraries(tmp_path, given, layers):
    page = decoded(regard.head_view(given, TOKENS, html_action="return"), tmp_path)
    assert [call["layer"] for call in page.header["calls"]] == list(range(layers))
    first = torch.as_tensor(given[0] if layers > 1 else given).float().reshape(-1, 7, 7)
    np.testing.assert_allclose(page.weights(0), first, atol=2e-5)


def test_kinds_by_what_is_seen(tmp_path):
    made = regard.head_view([weights(2, 7, 7).tril(), weights(2, 7, 7)], TOKENS, html_action="return")
    assert [call["kind"] for call in decoded(made, tmp_path).header["calls"]] == ["decoder", "encoder"]


# ---- how it is shown -----------------------------------------------------------------------------


def test_what_is_returned_can_be_written(tmp_path):
    made = regard.head_view(attention(), TOKENS, html_action="return")
    # As users of BertViz do it.
    (tmp_path / "x.html").write_text(made.data, encoding="utf-8")
    assert len(Decoded(tmp_path / "x.html").header["calls"]) == 3
    assert "save(path)" in repr(made)


def test_view_shows_it_in_the_notebook(monkeypatch):
    display = pytest.importorskip("IPython.display")
    shown = []
    monkeypatch.setattr(display, "display", shown.append)
    assert regard.head_view(attention(), TOKENS) is None
    assert shown[0]._repr_html_().startswith("<iframe")


def test_view_without_ipython(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(PackageError, match=r"Got no IPython. Use html_action='return', and save\(path\)"):
        regard.model_view(attention(), TOKENS)


# ---- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ArgumentError, "Weights are required. Got no attention"),
        (
            {"attention": attention()},
            ArgumentError,
            "attention needs tokens, a list of strings. Got no tokens",
        ),
        ({"attention": attention(), "tokens": "the cat"}, ArgumentError, "Got tokens = 'the cat'"),
        (
            {"attention": attention(), "tokens": TOKENS, "encoder_tokens": SOURCE},
            ArgumentError,
            "models with one stack.*Got attention and encoder_tokens. Pass one or the other",
        ),
        ({"encoder_attention": attention()}, ArgumentError, "encoder_attention needs encoder_tokens"),
        ({"decoder_attention": attention()}, ArgumentError, "decoder_attention needs decoder_tokens"),
        (
            {"cross_attention": attention(), "decoder_tokens": TOKENS},
            ArgumentError,
            "cross_attention needs encoder_tokens",
        ),
        (
            {"attention": attention(), "tokens": SOURCE},
            ShapeError,
            r"every position of attention \(queries = 7, keys = 7\). Got 5 and 5 tokens",
        ),
        (
            {"attention": weights(3, 2, 2, 7, 7), "tokens": TOKENS},
            ShapeError,
            r"attention\[0\] must be \(1, head, query, key\) or .* Got shape \(2, 2, 7, 7\)",
        ),
        ({"attention": weights(7, 7), "tokens": TOKENS}, ShapeError, r"Got shape \(7, 7\)"),
        (
            {"attention": [None, None], "tokens": TOKENS},
            ArgumentError,
            "Got NoneType. Load the model with attn_imp",
        ),
        ({"attention": [], "tokens": TOKENS}, ArgumentError, "at least one layer. Got none"),
        (
            {"attention": torch.randn(1, 2, 7, 7) * 9, "tokens": TOKENS},
            ArgumentError,
            "must contain weights, each between 0 and 1. Got -.*after the softmax",
        ),
        (
            {"attention": attention(), "tokens": TOKENS, "include_layers": [0, 3]},
            ArgumentError,
            r"include_layers must name layers of attention \(0 … 2\). Got include_layers = \[0, 3\]",
        ),
        (
            {"attention": attention(), "tokens": TOKENS, "include_layers": [0, 1], "layer": 2},
            ArgumentError,
            r"layer must be one of those on the page \(0, 1\). Got layer = 2",
        ),
        (
            {"attention": attention(), "tokens": TOKENS, "heads": [2]},
            ArgumentError,
            r"heads must be one of those on the page \(0, 1\). Got heads = 2",
        ),
        (
            {"attention": attention(), "tokens": TOKENS, "sentence_b_start": 7},
            ArgumentError,
            "the position of a token, after the first. Got sentence_b_start = 7",
        ),
        (
            {"attention": attention(), "tokens": TOKENS, "html_action": "save"},
            ArgumentError,
            "html_action must be view or return. Got html_action = 'save'",
        ),
    ],
)
def test_what_head_view_refuses(options, error, message):
    with pytest.raises(error, match=message):
        regard.head_view(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"include_heads": [2]},
            r"include_heads must name heads of attention \(0 … 1\). Got include_heads = \[2\]",
        ),
        ({"display_mode": "blue"}, "display_mode must be light or dark. Got display_mode = 'blue'"),
    ],
)
def test_what_model_view_refuses(options, message):
    with pytest.raises(ArgumentError, match=message):
        regard.model_view(attention(), TOKENS, **options)


def test_a_height_that_is_none():
    from views.recordings import case

    with pytest.raises(ArgumentError, match=r"height must be a whole number, 1 or more. Got height = 0"):
        regard.show(case()[0], height=0)


def test_a_pair_of_sentences_can_be_seen_from_one_to_the_other(opened, tmp_path):
    given = attention()
    made = regard.head_view(given, TOKENS, sentence_b_start=5, html_action="return")
    page = opened(made.save(tmp_path / "x.html"))
    page.page.wait_for_function("window.regard?.app")
    sides = {"a": slice(0, 5), "b": slice(5, 7)}
    for pair in ("aa", "ab", "ba", "bb"):
        page.page.select_option("select[data-control=pair]", pair)
        look = page.ask(
            "(({rowNames, columnNames, ...look}) => [rowNames, columnNames])(window.regard.app.look())"
        )
        shown = ["[CLS]", "the", "cat", "s", "[SEP]", "they", "sat"]
        assert look == [shown[sides[pair[0]]], shown[sides[pair[1]]]]
        count = len(look[0]), len(look[1])
        seen = page.ask(f"Array.from(window.regard.app.look().weights(1, 0, {count[0]}, 0, {count[1]}))")
        wanted = given[0][0, 1, sides[pair[0]], sides[pair[1]]]
        np.testing.assert_allclose(seen, wanted.ravel(), atol=2e-3)
    page.page.select_option("select[data-control=pair]", "all")
    assert page.ask("window.regard.app.look().plain")


def test_one_sentence_has_no_choice_of_sentences(opened, tmp_path):
    page = opened(regard.head_view(attention(), TOKENS, html_action="return").save(tmp_path / "x.html"))
    page.page.wait_for_function("window.regard?.app")
    assert page.page.query_selector("select[data-control=pair]") is None
    page.ask("window.regard.state.set({pair: 'ab'})")
    assert page.ask("window.regard.state.now.pair") == "all"
