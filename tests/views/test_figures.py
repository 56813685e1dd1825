"""Figures: the numbers in the artists are the weights of the reference."""

import re
import subprocess
import sys
import tracemalloc
from io import BytesIO
from itertools import pairwise
from math import ceil

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.axes3d import Axes3D
from PIL import Image

import regard
from heads.synthetic_heads import recording_of
from regard import figures, heads, masks
from regard.errors import ArgumentError
from regard.kernels import reference
from regard.recording import Call, DenseCall, Recording, ScoredCall
from regard.views.figures.distance_bars import bin_of, shares_by_distance
from regard.views.figures.downsampling import reduced
from regard.views.figures.mask_picture import verdict_map
from regard.views.figures.token_lines import MOST, drawn_lines
from regard.views.figures.vector_geometry import THINNEST, WIDEST, Arrow3D, space_of
from regard.views.figures.weight_matrix import Matrix, matrices_of
from views.scenes import (
    HEADS,
    KEYS,
    QUERIES,
    attributed,
    call_and_weights,
    cut,
    learned,
    monitored,
    pictured,
    recording,
    softmax,
    swept,
    words,
)

CLOSE = {"atol": 2e-6, "rtol": 0}


@pytest.fixture(scope="module")
def seen_and_weights():
    return recording()


def image_of(axes):
    return axes.images[0].get_array()


def ticks(axes, side):
    labels = axes.get_xticklabels() if side == "x" else axes.get_yticklabels()
    return [label.get_text() for label in labels]


# ---- heat map ------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("head", [0, 5])
def test_a_heat_map_shows_the_weights_of_the_reference(seen_and_weights, head, batch):
    seen, weights = seen_and_weights
    axes = figures.heatmap(seen, layer=1, head=head, batch=batch).axes[0]
    np.testing.assert_allclose(image_of(axes).data, weights[1][batch, head], **CLOSE)
    assert ticks(axes, "x") == words(KEYS, "ab"[batch])
    assert ticks(axes, "y") == words(KEYS, "ab"[batch])[-QUERIES:]
    assert axes.get_title("left") == f"layer 1, head {head}"


def test_pairs_that_may_not_attend_show_the_paper(seen_and_weights):
    seen, _ = seen_and_weights
    axes = figures.heatmap(seen, layer=0, head=0, batch=1).axes[0]
    allowed = seen[0].mask.dense(QUERIES, KEYS)[1, 0].numpy()
    assert not allowed[0].any()
    np.testing.assert_array_equal(image_of(axes).mask, ~allowed)
    printed = [text for text in axes.texts if text.get_text() != "masked"]
    assert len(printed) == (image_of(axes).filled(0) >= 0.005).sum()  # no number where nobody looks
    assert [patch.get_hatch() for patch in axes.patches] == ["////"]


def test_bfloat16_and_dense_recordings():
    call, weights = call_and_weights(dtype=torch.bfloat16)
    axes = figures.heatmap(call, head=3).axes[0]
    np.testing.assert_allclose(image_of(axes).data, weights[0, 3], **CLOSE)
    own = DenseCall("attentions.0", "encoder", 0, torch.tensor(weights, dtype=torch.bfloat16))
    axes = figures.heatmap(own, head=3).axes[0]
    np.testing.assert_allclose(image_of(axes), weights[0, 3], atol=4e-3)


def test_few_cells_have_numbers_and_no_key_of_colours():
    weights = softmax(3, 3)
    figure = figures.heatmap(torch.tensor(weights), queries=["I", "love", "AI"])
    assert [text.get_text() for text in figure.axes[0].texts] == [f"{w:.2f}" for w in weights.ravel()]
    assert len(figure.axes) == 1
    assert len(figures.heatmap(weights, numbers=False).axes) == 2
    assert len(figures.heatmap(softmax(60, 60)).axes[0].texts) == 0
    assert ticks(figure.axes[0], "x") == ticks(figure.axes[0], "y") == ["I", "love", "AI"]


def test_numbers_can_be_read_on_their_colour():
    figure = figures.heatmap([[1.0, 0.01]])
    assert [text.get_color() for text in figure.axes[0].texts] == ["#222222", "white"]


def test_scales():
    weights = softmax(5, 5)
    weights[0, 0] = 0.0
    linear = figures.heatmap(weights, numbers=False).axes[0].images[0]
    assert linear.get_clim() == (0.0, weights.max())
    log = figures.heatmap(weights, scale="log", numbers=False).axes[0].images[0]
    assert isinstance(log.norm, LogNorm)
    assert not np.ma.is_masked(log.get_array())  # zero is a weight, not a hidden pair
    assert figures.heatmap(weights, largest=1.0).axes[0].images[0].get_clim() == (0.0, 1.0)


def test_scores_have_a_scale_around_zero_and_masked_ones_are_hidden():
    scores = np.array([[1.5, -np.inf], [-3.0, 0.5]])
    image = figures.heatmap(scores).axes[0].images[0]
    assert image.get_clim() == (-3.0, 3.0)
    np.testing.assert_array_equal(image.get_array().mask, [[False, True], [False, False]])


@pytest.mark.parametrize(("scale", "shape"), [("linear", (3, 3)), ("log", (1, 2)), ("log", (13, 7))])
def test_all_weights_zero(scale, shape):
    for weights in (np.zeros(shape), np.full(shape, -np.inf)):
        figure = figures.heatmap(weights, scale=scale)
        figure.savefig(_nowhere(), dpi=30)
        (image,) = figure.axes[0].images
        assert image.get_array().shape == shape
        assert np.isfinite(image.get_clim()).all()


def _nowhere():
    from io import BytesIO

    return BytesIO()


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 3), (13, 13), (60, 60), (7, 509), (509, 3)])
def test_no_labels_overlap_and_nothing_is_cut_off(queries, keys):
    figure = figures.heatmap(
        softmax(queries, keys), queries=words(queries, "token"), keys=words(keys, "word"), title="a title"
    )
    axes = figure.axes[0]
    figure.draw_without_rendering()
    paper = figure.bbox
    for labels, side in ((axes.get_yticklabels(), 1), (axes.get_xticklabels(), 0)):
        boxes = [label.get_window_extent() for label in labels]
        assert all(paper.x0 <= box.x0 and box.x1 <= paper.x1 for box in boxes)
        assert all(paper.y0 <= box.y0 and box.y1 <= paper.y1 for box in boxes)
        turned = labels[0].get_rotation() == 45
        starts = sorted(tuple(box.intervaly if side else box.intervalx) for box in boxes)
        # Slanted labels share columns but not lines.
        assert turned or all(before[1] <= after[0] + 1 for before, after in pairwise(starts))


def test_thinned_labels_say_where_they_stand():
    axes = figures.heatmap(softmax(508, 508), queries=words(508)).axes[0]
    assert ticks(axes, "y")[:3] == ["0 t0", "20 t20", "40 t40"]
    np.testing.assert_array_equal(axes.get_yticks()[:3], [0, 20, 40])


# ---- long texts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(101, 211), (13, 997), (64, 64)])
def test_blocks_hold_their_greatest_weight(shape):
    weights = softmax(*shape)
    (matrix,) = matrices_of(weights)
    small = reduced(matrix, rows=17, columns=19)
    tall, wide = ceil(shape[0] / 17), ceil(shape[1] / 19)
    assert (small.tall, small.wide) == (tall, wide)
    for row in range(small.values.shape[0]):
        for column in range(small.values.shape[1]):
            block = weights[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide]
            assert small.values[row, column] == block.max()
    assert small.extent == (
        -0.5,
        small.values.shape[1] * wide - 0.5,
        small.values.shape[0] * tall - 0.5,
        -0.5,
    )


def test_a_block_is_hidden_only_if_all_of_it_is():
    scores = np.full((4, 4), -np.inf)
    scores[0, 0] = -2.0
    small = reduced(*matrices_of(scores), rows=2, columns=2)
    assert small.values.mask.tolist() == [[False, True], [True, True]]
    assert small.values[0, 0] == -2.0


def test_the_axes_end_with_the_last_token():
    axes = figures.heatmap(softmax(1013, 1013)).axes[0]
    assert image_of(axes).shape == (507, 507)
    assert axes.get_xlim() == (-0.5, 1012.5)
    assert axes.get_ylim() == (1012.5, -0.5)


def test_long_texts_never_have_a_square_in_memory():
    length = 4096
    q = k = torch.randn(1, 1, length, 8)
    call = ScoredCall("long", "encoder", 0, q, k, torch.logsumexp(q @ k.mT, -1), scale=1.0)
    largest = 0
    inner = Call.weights

    def watched(self, *given, **named):
        nonlocal largest
        found = inner(self, *given, **named)
        largest = max(largest, found.numel())
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Call, "weights", watched)
        figure = figures.heatmap(call)
        tracemalloc.start()  # sees NumPy's memory; n×n would be 64 MB of it
        small = reduced(*matrices_of(call), rows=900, columns=900)
        shares = shares_by_distance(*matrices_of(call))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert largest <= 2**18 == length**2 / 64
    assert peak < 24 * 2**20
    assert small.values.shape == (820, 820)
    assert max(image_of(figure.axes[0]).shape) <= 6.3 * 150
    assert shares.sum() == pytest.approx(1.0)


# ---- grid ----------------------------------------------------------------------------------------


def test_a_grid_shows_every_head(seen_and_weights):
    seen, weights = seen_and_weights
    figure = figures.grid(seen, layer=2)
    panels = figure.axes[:HEADS]
    for head, axes in enumerate(panels):
        np.testing.assert_allclose(image_of(axes).data, weights[2][0, head], **CLOSE)
        assert axes.get_title("left") == f"head {head}"
        assert axes.images[0].get_clim() == panels[0].images[0].get_clim()
    assert ticks(panels[0], "y") == words(KEYS, "a")[-QUERIES:]
    assert ticks(panels[1], "y") == ticks(panels[0], "x") == []
    assert ticks(panels[-1], "x") == words(KEYS, "a")
    chosen = figures.grid(seen, layer=2, heads=[4, 1], columns=1)
    np.testing.assert_allclose(image_of(chosen.axes[0]).data, weights[2][0, 4], **CLOSE)


def test_a_grid_of_all_layers(seen_and_weights):
    seen, weights = seen_and_weights
    panels = figures.grid(seen, batch=1).axes[:-1]
    assert len(panels) == 3 * HEADS
    for place, axes in enumerate(panels):
        np.testing.assert_allclose(image_of(axes).data, weights[place // HEADS][1, place % HEADS], **CLOSE)
    assert [axes.get_ylabel() for axes in panels if axes.get_ylabel()] == ["layer 0", "layer 1", "layer 2"]
    assert len(figures.grid(seen, heads=[5]).axes) == 3 + 1


def test_a_grid_of_an_array():
    weights = softmax(3, 5, 5)
    figure = figures.grid(weights, queries=words(5))
    np.testing.assert_allclose(image_of(figure.axes[2]), weights[2], atol=1e-7)
    assert [axes.get_title("left") for axes in figures.grid(weights[0]).axes[:1]] == [""]


# ---- lines ---------------------------------------------------------------------------------------


def test_lines_are_as_wide_as_the_weights(seen_and_weights):
    seen, weights = seen_and_weights
    axes = figures.lines(seen, layer=0, heads=[1, 4], least=0.05).axes[0]
    assert len(axes.collections) == 2
    for head, lines in zip((1, 4), axes.collections):
        expected = weights[0][0, head]
        assert len(lines.get_segments()) == (expected >= 0.05).sum()
        for (start, end), width in zip(lines.get_segments(), lines.get_linewidths()):
            query, key = round(start[1]), round(end[1])
            assert width == pytest.approx(5 * expected[query, key], abs=1e-5)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["head 1", "head 4"]
    tokens = [text.get_text() for text in axes.texts]
    assert tokens == words(KEYS, "a")[-QUERIES:] + words(KEYS, "a")


def test_lines_of_one_query(seen_and_weights):
    seen, weights = seen_and_weights
    (lines,) = figures.lines(seen, layer=0, heads=2, query=3, least=0).axes[0].collections
    assert {round(start[1]) for start, _ in lines.get_segments()} == {3}
    assert sum(lines.get_linewidths()) == pytest.approx(5 * weights[0][0, 2, 3].sum(), abs=1e-4)


def test_of_very_many_lines_the_strongest_are_drawn():
    weights = softmax(211, 223)
    drawn = drawn_lines(*matrices_of(weights), 0.0)
    assert len(drawn.weights) == MOST
    np.testing.assert_array_equal(drawn.weights, np.sort(weights.ravel())[-MOST:])
    np.testing.assert_array_equal(weights[drawn.queries, drawn.keys], drawn.weights)


def test_nothing_to_draw():
    assert len(figures.lines(np.zeros((3, 3))).axes[0].collections[0].get_segments()) == 0


# ---- bars ----------------------------------------------------------------------------------------


def test_bars_are_as_long_as_the_weights(seen_and_weights):
    seen, weights = seen_and_weights
    axes = figures.bars(seen, layer=1, head=2, query=4).axes[0]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], weights[1][0, 2, 4], **CLOSE)
    assert ticks(axes, "y") == words(KEYS, "a")
    assert axes.get_title("left") == "layer 1, head 2, query 4 “a8”"
    assert [text.get_text() for text in axes.texts] == [f"{w:.3f}" if w else "0" for w in weights[1][0, 2, 4]]


def test_numbers_beside_bars_are_0_only_if_the_weight_is():
    axes = figures.bars([0.9994, 0.0006, 0.0002, 0.0], list("abcd")).axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.999", "0.001", "<0.001", "0"]


def test_bars_with_values_say_what_is_mixed():
    weights, values = np.array([0.5, 0.3, 0.2]), np.array([[1.0, -2.0], [0.0, 10.0], [5.0, 0.0]])
    axes = figures.bars(weights, ["a", "b", "c"], values=values).axes[0]
    assert axes.get_title("left") == "Σ w v = [1.5, 2]"
    assert [text.get_text() for text in axes.texts] == [
        "0.500 × [1, −2]",
        "0.300 × [0, 10]",
        "0.200 × [5, 0]",
    ]


def test_many_bars_are_the_strongest_and_the_rest():
    weights = softmax(997)
    axes = figures.bars(weights, words(997), most=10).axes[0]
    widths = [bar.get_width() for bar in axes.patches]
    kept = np.sort(np.argsort(-weights)[:9])
    np.testing.assert_allclose(widths[:9], weights[kept])
    assert sum(widths) == pytest.approx(1.0)
    assert ticks(axes, "y")[:9] == [f"{i} t{i}" for i in kept]
    assert ticks(axes, "y")[9] == "988 others"


# ---- mask ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["causal & window(4, 0)", "everything", "nothing", "~causal | every(3)", "local_global(4)"]
)
def test_a_mask_is_drawn_as_it_is(text):
    axes = figures.mask(text, 7, 11).axes[0]
    dense = masks.parse(text).dense(7, 11).numpy()
    np.testing.assert_array_equal(axes.images[0].get_array(), np.where(dense, 2, 0))
    said = axes.get_title("left") + "".join(text.get_text() for text in axes.texts)
    assert f"{dense.sum()} of 77 pairs, {100 * dense.mean():.3g} %" in said
    assert repr(masks.parse(text)) in said


def test_a_mask_with_words_and_a_tensor():
    axes = figures.mask(torch.ones(3, 3, dtype=torch.bool).tril(), ["我", "喜欢", "AI"]).axes[0]
    assert ticks(axes, "x") == ticks(axes, "y") == ["我", "喜欢", "AI"]
    keep = torch.tensor([[True, True, False], [True, False, False]])
    axes = figures.mask(masks.padding(keep), 3, index=(1, 0)).axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), [[2, 0, 0]] * 3)


@pytest.mark.parametrize("text", ["causal & window(40, 0)", "prefix(31) | every(64)", "local_global(50)"])
def test_a_pixel_of_a_long_mask_is_true_of_its_block(text):
    mask, tall, wide = masks.parse(text), 7, 5
    dense = mask.dense(101, 103).numpy()
    verdicts = verdict_map(mask, masks.extent.Extent(101, 103), tall, wide)
    for (row, column), verdict in np.ndenumerate(verdicts):
        block = dense[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide]
        assert verdict == 1 or block.all() == block.any() == (verdict == 2)
    assert (verdicts == 1).any()


def test_a_very_long_mask_is_counted_exactly():
    n = 100_003
    axes = figures.mask("causal", n).axes[0]
    assert f"{n * (n + 1) // 2:,} of {n * n:,} pairs" in axes.get_title("left")
    assert max(axes.images[0].get_array().shape) <= 945


# ---- geometry ------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 3, 17])
def test_arrows_are_as_wide_as_the_weights_of_all_channels(channels):
    chance = np.random.default_rng(0)
    query, keys = chance.normal(size=channels), chance.normal(size=(5, channels))
    figure = figures.geometry(query, torch.tensor(keys), words(5))
    space, chart = figure.axes
    assert isinstance(space, Axes3D)
    weights = reference.attention(query[None], keys, keys)["weights"][0]
    arrows = [artist for artist in space.get_children() if isinstance(artist, Arrow3D)]
    np.testing.assert_allclose([a.get_linewidth() for a in arrows[:5]], THINNEST + WIDEST * weights)
    np.testing.assert_allclose([bar.get_width() for bar in chart.patches], weights)
    if channels <= 3:
        np.testing.assert_array_equal([a.tip[:channels] for a in arrows], [*keys, query])


def test_the_projection_says_how_much_it_shows():
    chance = np.random.default_rng(1)
    query, keys = chance.normal(size=17), chance.normal(size=(5, 17))
    space = space_of(query, keys)
    arrows = np.vstack([query, keys])
    values = np.linalg.svd(arrows, compute_uv=False) ** 2
    assert space.share == pytest.approx(values[:3].sum() / values.sum())
    # No three directions hold more, and inner products are those of the projections.
    shown = np.vstack([space.query, space.keys])
    assert (shown**2).sum() == pytest.approx(values[:3].sum())
    texts = [text.get_text() for text in figures.geometry(query, keys).axes[0].texts]
    assert f"3 of 17 dimensions, with {100 * space.share:.0f} % of the squared lengths" in texts


def test_geometry_of_nothing():
    figures.geometry(np.zeros(5), np.zeros((1, 5))).savefig(_nowhere())


# ---- cost ----------------------------------------------------------------------------------------


def test_costs_are_drawn_as_given():
    lengths = [512, 2048, 8192]
    operations = {"dense": [1e9, 16e9, 256e9], "linear": [1e8, 4e8, None]}
    figure = figures.cost(lengths, operations=operations, bytes={"linear": [2**20, 2**22, 2**24]})
    left, right = figure.axes
    assert (left.get_xscale(), left.get_yscale()) == ("log", "log")
    np.testing.assert_array_equal(left.lines[0].get_ydata(), operations["dense"])
    np.testing.assert_array_equal(left.lines[1].get_ydata(), [1e8, 4e8, np.nan])
    assert ticks(left, "x") == ["512", "2,048", "8,192"]
    assert ticks(left, "y") == ["100 M", "1 G", "10 G", "100 G", "1 T"]
    assert ticks(right, "y") == ["1 MiB", "2 MiB", "4 MiB", "8 MiB", "16 MiB"]
    assert right.lines[0].get_color() == left.lines[1].get_color()
    assert {text.get_text() for text in left.texts} == {"dense", "linear"}


# ---- distance ------------------------------------------------------------------------------------


def test_shares_by_distance_are_those_of_the_reference(seen_and_weights):
    seen, weights = seen_and_weights
    axes = figures.distance(seen, layer=1, batch=1).axes[0]
    positions = np.arange(QUERIES) + KEYS - QUERIES
    far = np.abs(positions[:, None] - np.arange(KEYS))
    for head, line in enumerate(axes.lines):
        one = weights[1][1, head]
        edges = [(0, 0), (1, 1), (2, 3), (4, 7), (8, 15)]
        expected = [one[(far >= low) & (far <= high)].sum() / one.sum() for low, high in edges]
        np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-6)
    assert ticks(axes, "x") == ["0", "1", "2–3", "4–7", "8–15"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"head {h}" for h in range(HEADS)]


def test_distance_with_more_queries_than_keys_and_with_nothing_seen():
    weights = softmax(7, 3)
    shares = shares_by_distance(*matrices_of(weights))
    far = np.abs(np.arange(7)[:, None] - 4 - np.arange(3))
    np.testing.assert_allclose(shares, [weights[bin_of(far) == b].sum() / 7 for b in range(4)])
    assert shares_by_distance(*matrices_of(np.zeros((3, 3)))).tolist() == [0.0, 0.0, 0.0]


# ---- which call is meant -------------------------------------------------------------------------


def test_kinds_and_runs():
    made = [
        call_and_weights(kind="encoder", queries=7, keys=7, seed=1),
        call_and_weights(kind="decoder", queries=5, keys=5, seed=2),
        call_and_weights(kind="cross", queries=5, keys=7, seed=3),
    ]
    seen = Recording("Seq2Seq", [call for call, _ in made])
    seen.tokens, seen.source_tokens = words(5), words(7, "s")
    axes = figures.heatmap(seen, head=0, kind="cross").axes[0]
    np.testing.assert_allclose(image_of(axes).data, made[2][1][0, 0], **CLOSE)
    assert (ticks(axes, "y"), ticks(axes, "x")) == ([*words(5)[1:], "…"], words(7, "s"))
    assert axes.get_title("left") == "layer 0, head 0 (cross)"
    twice = [call_and_weights(run=run, seed=run) for run in range(2)]
    seen = Recording("Model", [call for call, _ in twice])
    axes = figures.heatmap(seen, head=0, run=1).axes[0]
    np.testing.assert_allclose(image_of(axes).data, twice[1][1][0, 0], **CLOSE)


# ---- the house -----------------------------------------------------------------------------------


def every_figure():
    weights = softmax(2, 5, 5)
    return {
        "effects": lambda: figures.effects(swept("head"), title="t0"),
        "eviction": lambda: figures.eviction(cut(), title="t0"),
        "importance": lambda: figures.importance(heads.importance(learned()), title="t0"),
        "relevance": lambda: figures.relevance(heads.relevance(learned(), row=-1), words(5), title="t0"),
        "attribution": lambda: figures.attribution(attributed(), title="t0"),
        "heatmap": lambda: figures.heatmap(weights[0], queries=words(5)),
        "grid": lambda: figures.grid(weights, queries=words(5)),
        "lines": lambda: figures.lines(weights, queries=words(5)),
        "bars": lambda: figures.bars(weights[0, 0], words(5)),
        "mask": lambda: figures.mask("causal", words(5)),
        "geometry": lambda: figures.geometry(weights[0, 0], weights[0], words(5)),
        "cost": lambda: figures.cost([1, 2], operations={"t0": [1, 2]}),
        "alignment": lambda: figures.alignment(
            regard.align(recording_of(torch.tensor(weights[0]).log(), kind="cross"), method="argmax"),
            title="t0",
        ),
        "picture": lambda: figures.picture(pictured(), layer=0, head=0, title="t0"),
        "monitor": lambda: figures.monitor(monitored(), title="t0"),
        "distance": lambda: figures.distance(weights),
        "divergence": lambda: figures.divergence(
            heads.Divergence(((0, 0), (0, 1)), np.array([[0, 0.5], [0.5, 0]]), ((0, 1, 0.5),)), title="t0"
        ),
    }


@pytest.mark.parametrize("name", every_figure())
def test_figures_leave_matplotlib_alone(name):
    before = dict(mpl.rcParams)
    with mpl.rc_context({"axes.grid": True, "figure.facecolor": "black", "font.family": ["serif"]}):
        during = dict(mpl.rcParams)
        figure = every_figure()[name]()
        assert isinstance(figure, Figure)
        figure.savefig(_nowhere(), dpi=30)
        assert dict(mpl.rcParams) == during
    assert dict(mpl.rcParams) == before
    assert figure.get_facecolor() == (0.0, 0.0, 0.0, 1.0)  # the user's settings go over the style
    assert all(
        text.get_fontfamily()[0] in ("DejaVu Serif", "serif") for text in figure.findobj(mpl.text.Text)
    )
    assert every_figure()[name]().get_facecolor() == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("name", every_figure())
def test_the_same_figure_is_the_same_file(name, tmp_path):
    with mpl.rc_context({"savefig.facecolor": "black"}):
        first = every_figure()[name]()
    second = every_figure()[name]()
    # A PDF embeds its fonts anew each time, most of what it costs: text, an image and lines are enough.
    suffixes = ("png", "svg", "pdf") if name in ("heatmap", "lines") else ("png", "svg")
    for suffix in suffixes:
        one, two = (tmp_path / f"{place}.{suffix}" for place in ("one", "two"))
        with mpl.rc_context({"savefig.facecolor": "black"}):
            assert figures.save(first, one) == one
        figures.save(second, two)
        assert one.read_bytes() == two.read_bytes()
        assert one.stat().st_size > 1000
    assert (tmp_path / "one.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "pdf" not in suffixes or (tmp_path / "one.pdf").read_bytes()[:5] == b"%PDF-"
    if name != "distance":
        assert ">t0</text>" in (tmp_path / "one.svg").read_text(encoding="utf-8")


def _fonts_of_pdf(figure):
    with BytesIO() as file:
        figure.savefig(file, format="pdf")
        return set(re.findall(rb"/Subtype /(Type3|CIDFontType2)", file.getvalue()))


def test_matplotlibs_own_savefig_embeds_truetype_fonts_and_honours_the_user():
    figure = every_figure()["heatmap"]()
    before = dict(mpl.rcParams)
    assert _fonts_of_pdf(figure) == {b"CIDFontType2"}
    assert dict(mpl.rcParams) == before
    # Settings of files are the user's, also those set after the figure was made.
    with mpl.rc_context({"savefig.dpi": 50}):
        small = BytesIO()
        figure.savefig(small, format="png")
    large = BytesIO()
    figure.savefig(large, format="png")
    widths = [Image.open(file).width for file in (small, large)]
    assert widths[0] == pytest.approx(50 * figure.get_figwidth(), abs=1)
    assert widths[1] > widths[0]


def test_a_notebook_shows_the_figure():
    assert every_figure()["bars"]()._repr_png_()[:4] == b"\x89PNG"


def test_the_public_names():
    shown = {name for name in figures.__all__ if callable(getattr(figures, name))}
    assert shown == {*every_figure(), "save", "animate"}  # an animation is a file, not a figure


@pytest.mark.parametrize(
    ("code", "free_of"),
    [
        ("import regard, regard.views", ["matplotlib", "torch", "numpy"]),
        ("import regard; regard.figures.bars([1.0])", ["matplotlib.pyplot"]),
    ],
)
def test_matplotlib_waits_until_it_is_needed(code, free_of):
    check = f"import sys; {code}; print([name for name in {free_of!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_matrix_is_read_from_first_to_last_row():
    weights = softmax(11, 3)
    (matrix,) = matrices_of(weights)
    assert isinstance(matrix, Matrix)
    np.testing.assert_array_equal(np.concatenate([block.values for block in matrix.blocks(4)]), weights)
    assert [block.stop for block in matrix.blocks(4)] == [4, 8, 11]


def test_zeros_are_not_printed():
    figure = figures.heatmap([[0.996, 0.004], [0.5, 0.5]])
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.00", "0.50", "0.50"]


def test_a_pdf_has_truetype_fonts(tmp_path):
    figures.save(figures.heatmap(softmax(3, 3), queries=["I", "love", "AI"]), tmp_path / "a.pdf")
    written = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type42" in written or b"/FontFile2" in written
    assert b"/Subtype /Type3" not in written


def test_the_marks_of_tokenizers_are_not_shown():
    call, _ = call_and_weights(queries=3, keys=3)
    seen = Recording("GPT", [call])
    seen.tokens = ["The", "Ġcat", "Ġsat"]
    assert ticks(figures.heatmap(seen, head=0).axes[0], "x") == ["The", "cat", "sat"]


def test_colour_maps_are_chosen():
    weights = softmax(3, 4, 4)
    assert figures.heatmap(weights[0], cmap="Greys").axes[0].images[0].get_cmap().name == "Greys"
    assert figures.grid(weights, cmap="magma").axes[0].images[0].get_cmap().name == "magma"
    with mpl.rc_context({"image.cmap": "cividis"}):
        assert figures.heatmap(weights[0]).axes[0].images[0].get_cmap().name == "cividis"
    with pytest.raises(ArgumentError, match=r"cmap must be a colour map of matplotlib. Got 'nonsense'"):
        figures.heatmap(weights[0], cmap="nonsense")


@pytest.mark.parametrize(("width", "inches"), [("column", 3.3), ("page", 6.9), (5.0, 5.0)])
def test_figures_have_the_width_of_a_column(width, inches):
    names = words(9, "a long token ")
    heads = softmax(4, 9, 9)
    for figure in (
        figures.heatmap(heads[0], queries=names, width=width),
        figures.grid(heads, queries=names, width=width),
        figures.lines(heads, queries=names, width=width),
        figures.bars(heads[0, 0], names, width=width),
        figures.picture(
            regard.Picture(np.zeros((40, 60)), grid=(4, 6), tokens=slice(24)),
            heads[0, :4, :6],
            title="",
            width=width,
        ),
    ):
        assert figure.get_size_inches()[0] == pytest.approx(inches, abs=0.06)
    long = "The weights of one head, under a title that is longer than a column of a paper is wide"
    figure = figures.heatmap(heads[0], title=long, width="column")
    assert figure.axes[0].get_title("left").replace("\n", " ") == long
    assert figure.get_size_inches()[0] == pytest.approx(3.3, abs=0.06)
    assert figure.axes[0].get_position().width * 3.3 > 1.5
    with pytest.raises(ArgumentError, match=r'width must be a number of inches, "column" or "page"'):
        figures.heatmap(heads[0], width="wide")


def test_files_say_in_words_what_they_show(tmp_path):
    figure = figures.heatmap([[0.25, 0.75], [0.5, 0.5]], queries=["it", "<tired>"], title="One head")
    assert figure.alt == ("One head: attention of 2 queries to 2 keys; the strongest is it → <tired>, 0.75")
    figures.save(figure, tmp_path / "a.svg")
    assert "strongest is it → &lt;tired&gt;, 0.75</title>" in (tmp_path / "a.svg").read_text("utf-8")
    figures.save(figure, tmp_path / "a.png")
    assert b"strongest is it" in (tmp_path / "a.png").read_bytes()


def test_axes_say_who_attends_to_whom():
    call, _ = call_and_weights(kind="cross", queries=7, keys=7)
    axes = figures.heatmap(call, head=0).axes[0]
    assert axes.get_ylabel() == "query: the token being written"
    assert axes.get_xlabel() == "key: the token it attends to"
    causal = np.where(np.tri(9, dtype=bool), 1.0, -np.inf)
    axes = figures.heatmap(causal, numbers=False).axes[0]
    assert axes.get_ylabel() == "query: the token that attends"
    assert [text.get_text() for text in axes.texts] == ["masked"]
