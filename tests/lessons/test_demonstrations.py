"""Each demonstration's claim, held by its numbers; and all of them told and drawn in both languages."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from regard import masks
from regard.errors import ArgumentError, DataError, TextError
from regard.kernels import reference
from regard.lessons import demonstration, demonstrations
from regard.lessons.by_hand import calculate_by_hand
from regard.lessons.common_mistakes import find_mistakes
from regard.lessons.directions import point_keys
from regard.lessons.head_splitting import split_heads
from regard.lessons.learned_average import learn_averages
from regard.lessons.library_search import search_library
from regard.lessons.mask_gallery import show_masks
from regard.lessons.multi_head_parameters import BareMultiHead, compare_multiple
from regard.lessons.numpy_self_attention import attend_from_scratch
from regard.lessons.panels import Bars, Cells, Curves, draw
from regard.lessons.position_vectors import place_tokens
from regard.lessons.recurrent_comparison import compare_order
from regard.lessons.score_scaling import scale_scores
from regard.lessons.single_head import BareSelfAttention, LinearSelfAttention, compare_single
from regard.lessons.threshold_filter import filter_keys
from regard.lessons.word_attention import EXAMPLE, SENTENCE, attend_words, read_vectors
from regard.texts import LANGUAGES

SMALL = {"order": {"lengths": (8, 16), "width": 8, "rounds": 1}, "scaling": {"samples": 100}}


@pytest.mark.parametrize("one", demonstrations(), ids=lambda one: one.name)
def test_it_is_told_and_drawn_in_both_languages(one):
    found = one.show(**SMALL.get(one.name, {}))
    for lang in LANGUAGES:
        said = [fact.say(lang) for fact in found.facts()]
        assert said
        assert not any("{" in sentence for sentence in said)
        figure = one.draw(found, lang)
        assert isinstance(figure, Figure)
        if lang == "zh":  # the English ones are drawn in the tests of the gallery, which shows them all
            figure.draw_without_rendering()
        texts = [
            words.get_text() for words in figure.findobj(match=lambda artist: hasattr(artist, "get_text"))
        ]
        assert not any("mathdefault" in words for words in texts)


def test_names_are_unique_and_unknown_ones_are_named():
    names = [one.name for one in demonstrations()]
    assert len(set(names)) == len(names)
    with pytest.raises(ArgumentError, match=r"one of hand, .* Got 'nonsense'"):
        demonstration("nonsense")


# ---- the claims ----------------------------------------------------------------------------------


def test_scaling_keeps_variance_one_and_softmax_alive():
    found = scale_scores()
    for width, raw, scaled in zip(found.widths, found.variances, found.scaled_variances):
        assert raw == pytest.approx(width, rel=0.06)
        assert scaled == pytest.approx(1, rel=0.06)
    assert found.widths[-1] == 512
    assert found.peaks[-1] > 0.9
    assert max(found.scaled_peaks) < 0.4
    assert found.weights[2] == 1.0
    assert found.slope == 0.0  # nothing left to learn from
    assert found.scaled_slope > 0.02
    assert found.scaled_weights.sum() == pytest.approx(1)


def test_masks_combine_and_save():
    found = show_masks()
    both = found["padding"].allowed & found["causal"].allowed
    assert np.array_equal(found["both"].allowed, both)
    i, j = np.indices((16, 16))
    assert np.array_equal(found["causal"].allowed, j <= i)
    assert np.array_equal(found["padding"].allowed, j < 11)
    assert np.array_equal(found["window"].allowed, abs(i - j) <= 2)
    assert np.array_equal(found["sparse"].allowed, (abs(i - j) <= 5) | (i % 5 == 0) | (j % 5 == 0))
    assert found.long_pairs <= found.long_computed < found.long**2 / 15
    with pytest.raises(ArgumentError, match=r"kept must be a whole number from 1 to 4. Got kept = 5"):
        show_masks(4, kept=5)


def test_geometry_follows_angle_and_length():
    found = point_keys()
    assert (np.diff(found.angles) > 0).all()
    assert (np.diff(found.weights) < 0).all()
    assert found.longer_weights[1] > found.weights[1]
    assert found.longer_weights.argmax() == 1  # further aside, and still looked at most


@pytest.mark.parametrize("threshold", [0.0, 0.01, 0.02, 0.1, 0.45, 0.9, 1.0])
def test_the_filter_moves_the_output_by_no_more_than_its_bound(threshold):
    found = filter_keys(threshold)
    assert all((found.weights[key] >= threshold) == (key in found.kept) for key in range(6))
    if found.kept:
        assert abs(found.filtered - found.output) <= found.bound + 1e-12
    else:
        assert found.filtered == 0.0
    if threshold == 0:
        assert found.filtered == pytest.approx(found.output)


def test_a_threshold_is_a_weight():
    with pytest.raises(ArgumentError, match=r"threshold must be a number from 0 to 1. Got threshold = 2"):
        filter_keys(2)


@pytest.mark.parametrize(("length", "width", "heads"), [(1, 4, 1), (7, 15, 5), (11, 6, 6)])
def test_separate_heads_are_the_joint_projection(length, width, heads):
    found = split_heads(length, width=width, heads=heads)
    assert found.difference < 1e-12
    assert np.allclose(found.separate_weights, found.joint_weights, atol=1e-12)
    with pytest.raises(ArgumentError, match="heads must divide width"):
        split_heads(width=7, heads=2)


def test_a_learned_average_finds_what_a_plain_one_cannot():
    found = learn_averages()
    assert found.two_heads < 0.05 < 0.2 < found.one_head < found.plain
    assert {int(row.argmax()) for row in found.weights} == set(found.marks)
    assert torch.allclose(found.weights.sum(-1), torch.ones(2))


def test_positions_know_the_distance_alone():
    found = place_tokens(40, width=16)
    assert found.spread < 1e-4
    assert found.rotary_spread < 1e-4
    assert np.allclose(np.linalg.norm(found.table, axis=1), 8**0.5, atol=1e-5)
    assert found.products[0, 0] > found.products[0, 1] > found.products[0, 5]
    learned = np.random.default_rng(0).normal(size=(40, 16))
    from regard.lessons.position_vectors import _spread

    assert _spread(learned @ learned.T) > 1  # the measure would notice


def test_order_steps_paths_and_reach():
    found = compare_order((8, 64), width=16, rounds=1)
    for row in found.rows:
        assert (row.recurrent_steps, row.recurrent_path) == (row.length, row.length - 1)
        assert (row.attention_steps, row.attention_path) == (1, 1)
        assert row.recurrent_seconds > 0 < row.attention_seconds
    near, far = found.rows
    assert far.recurrent_reach < 1e-3 * near.recurrent_reach  # forgets by powers
    assert far.attention_reach > 1e-3
    assert found.shuffled < 1e-5


def test_reach_over_many_steps_is_small_but_not_zero():
    (row,) = compare_order((1024,), width=16, rounds=1).rows
    assert 0 < row.recurrent_reach < 1e-50  # in float32 it would be 0


def test_single_heads_are_equal_given_equal_weights():
    found = compare_single(7, width=11, channels=5)
    assert found.before > 0.01
    assert max(found.difference, found.masked_difference) < 1e-12
    assert torch.allclose(found.bare_weights, found.linear_weights)


def test_single_heads_follow_the_definition_and_see_nothing_as_zero():
    bare, linear = BareSelfAttention(6, 5).double(), LinearSelfAttention(6, 5).double()
    linear.take(bare)
    x = torch.randn(2, 7, 6, dtype=torch.float64)
    mask = masks.causal() & ~masks.window(0, 0)  # the first token sees nothing
    q, k, v = ((x @ weight).detach().numpy() for weight in (bare.w_q, bare.w_k, bare.w_v))
    wanted = reference.attention(q, k, v, mask=mask).output
    for module in (bare, linear):
        assert np.allclose(module(x, mask).detach().numpy(), wanted, atol=1e-12)
        assert not module(x, mask)[:, 0].any()
        module(x, mask).sum().backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in module.parameters())


def test_bare_multi_head_is_torchs():
    found = compare_multiple()
    assert found.output_difference < 1e-12
    assert found.weights_difference < 1e-12
    assert (found.average_shape, found.heads_shape) == ((2, 10, 10), (2, 8, 10, 10))
    assert found.shapes["q kᵀ"] == (2, 8, 10, 10)
    with pytest.raises(ArgumentError, match=r"heads must divide width. Got width = 10, heads = 3"):
        BareMultiHead(10, 3)


def test_the_library_and_she():
    found = search_library()
    assert found.weights.sum() == pytest.approx(1)
    assert (found.weights > 0).all()  # something from each, where a search takes one
    assert found.natures[int(found.she.argmax())] == "her"
    assert found.output == pytest.approx(found.weights @ [300, 450, 700, 200])


def test_by_hand():
    found = calculate_by_hand()
    assert found.dots.round(2).tolist() == [1.25, 1.10, 1.00]
    assert found.scores.round(2).tolist() == [0.88, 0.78, 0.71]
    assert found.weights.sum() == pytest.approx(1)
    assert np.allclose(found.output, found.weights @ np.array([[1.0, 0.5], [0.8, 0.6], [0.5, 1.0]]))


def test_from_scratch_with_seed_42():
    found = attend_from_scratch()
    assert found.weights[0].round(3).tolist() == [0.820, 0.026, 0.154]
    assert np.allclose(found.weights.sum(-1), 1)


def test_mistakes_are_mistakes():
    found = find_mistakes()
    assert np.isnan(found.overflow)
    assert found.no_overflow == 1.0
    assert np.isnan(found.whole_maximum).all()
    assert found.row_maximum.sum() == pytest.approx(1)
    assert np.isnan(found.masked_naive).all()
    assert not found.masked.any()
    assert found.padding_twice != found.padding_once == (2, 5, 5)
    assert np.allclose(np.diag(found.keys_similarity), 1)
    assert not np.allclose(np.diag(found.keys_product), 1)
    assert found.sparse_pairs * 15 < found.dense_pairs
    assert found.torch_shape != found.heads_shape


# ---- words ---------------------------------------------------------------------------------------


def test_the_shipped_words_and_their_top_three():
    found = attend_words()
    assert found.words == tuple(SENTENCE.split())
    for word, strongest in zip(found.words, found.strongest()):
        assert len(strongest) == 3
        assert strongest[0][0] == word
        assert [weight for _, weight in strongest] == sorted((w for _, w in strongest), reverse=True)
    assert found.strongest()[3][1][0] == "技术"
    assert not np.triu(attend_words(mask=masks.causal()).weights, 1).any()
    nothing = attend_words(mask=masks.causal() & ~masks.window(0, 0))
    assert nothing.facts()[0].say("en") == "我 sees nothing"


def test_unknown_words_are_named():
    with pytest.raises(TextError, match=r"unknown: 讨厌, 猫. Add them to the table"):
        attend_words("我 讨厌 猫")
    with pytest.raises(TextError, match="Did you mean cats → cat"):
        attend_words("cats sit", {"cat": (1.0,), "sit": (2.0,)})
    with pytest.raises(TextError, match="at least one word"):
        attend_words("  ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "an object with at least one word. Got list"),
        ("{}", "at least one word"),
        ('{"a": [1, 2], "b": [1]}', "Every word needs 2 finite numbers, like the first. Got 'b'"),
        ('{"a": "x"}', "Every word needs a vector of finite numbers. Got 'a'"),
        ('{"a": [NaN]}', "Every word needs a vector of finite numbers"),
        ('{"a": [true]}', "Every word needs a vector of finite numbers"),
        ('{"a": []}', "Every word needs a vector of finite numbers"),
        ("{", "JSON in UTF-8"),
    ],
)
def test_bad_tables_are_named(tmp_path, content, message):
    file = tmp_path / "vectors.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_vectors(file)


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"must be a readable file. Got .*nowhere.json: No such file"):
        read_vectors(tmp_path / "nowhere.json")
    assert json.loads(EXAMPLE.read_text(encoding="utf-8"))


# ---- panels --------------------------------------------------------------------------------------


def test_panels_do_not_overlap():
    figure = draw(
        Bars("bars", ["a long name of a key", "b"], [0.9, 0.1], least=0.5),
        Cells("cells\nin two lines", np.eye(3, dtype=bool), ["x", "y", "z"], sides=("rows", "columns")),
        Curves("curves", [1, 2, 4], {"one": [1, 2, 3], "two": [1e-9, 1, 9]}, logarithmic=True),
        title="title",
    )
    figure.canvas.draw()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_cells_print_their_numbers_on_request():
    values = np.array([[1.44, -0.25], [0.0, 1.0]])
    plain, printed = (draw(Cells("cells", values, numbers=numbers)).axes[0] for numbers in (False, True))
    assert [text.get_text() for text in plain.texts] == []
    assert [text.get_text() for text in printed.texts] == ["1.44", "−0.25", "1.00"]
