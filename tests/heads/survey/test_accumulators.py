"""What adds up: any way of sharing out the values gives the same result."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.heads.survey import distance_bins
from regard.heads.survey.examples import Examples
from regard.heads.survey.moments import Moments
from regard.heads.survey.quantile_sketch import quantile, sketch

VALUES = st.lists(st.floats(0, 1e4, width=32), min_size=1, max_size=60)


@given(VALUES, st.lists(st.integers(0, 60), max_size=5), st.randoms())
def test_moments_do_not_depend_on_how_values_are_shared_out(values, cuts, chance):
    edges = [0, *sorted(cut for cut in cuts if cut < len(values)), len(values)]
    pieces = [values[a:b] for a, b in pairwise(edges) if a < b]
    chance.shuffle(pieces)
    total = Moments.blank()
    for piece in pieces:
        total.merge(Moments.of(torch.tensor(piece, dtype=torch.float32), dims=(0,)))
    exact = np.array(values, np.float64)
    assert int(total.count) == len(values)
    assert float(total.mean) == pytest.approx(exact.mean(), rel=1e-12, abs=1e-300)
    assert float(total.variance) == pytest.approx(
        exact.var(), rel=1e-9, abs=1e-20 * exact.max() ** 2 + 1e-300
    )
    assert float(total.least) == exact.min()
    assert float(total.greatest) == exact.max()


def test_a_small_variance_far_from_zero_is_kept():
    values = 1e6 + torch.arange(1000).double() / 1000
    total = Moments.blank()
    for piece in values.split(7):
        total.merge(Moments.of(piece, dims=(0,)))
    assert float(total.variance) == pytest.approx(
        float(values.var(unbiased=False)), rel=1e-7
    )  # Σ x² alone would lose 1e-4


def test_moments_leave_out_what_does_not_count():
    values = torch.tensor([[1.0, torch.nan, 3.0], [torch.nan, torch.nan, torch.nan]])
    found = Moments.of(values, ~values.isnan(), dims=(1,))
    assert found.count.tolist() == [2, 0]
    assert found.mean.tolist() == [2.0, 0.0]
    assert found.variance[0] == 1.0
    assert found.variance[1].isnan()


@given(VALUES, st.floats(0, 1))
def test_quantiles_are_within_their_bins(values, share):
    tensor = torch.tensor(values, dtype=torch.float32)
    rows, where = torch.zeros(len(values), dtype=torch.int64), torch.ones(len(values), dtype=torch.bool)
    counts = sketch(tensor, where, rows, 1)
    parts = sum(sketch(piece, where[: len(piece)], rows[: len(piece)], 1) for piece in tensor.split(3))
    assert torch.equal(counts, parts)
    exact = float(np.quantile(tensor.double().numpy(), share, method="lower"))
    found = float(quantile(counts, share)[0])
    assert found == pytest.approx(exact, rel=0.0225, abs=2.0**-19)


def test_a_sketch_of_nothing_has_no_quantiles():
    assert quantile(sketch(torch.ones(3), torch.zeros(3) > 0, torch.zeros(3).long(), 2), 0.5).isnan().all()


@pytest.mark.parametrize("first", [0, 5])
def test_sums_by_distance(first):
    sums = torch.rand(3, 7, 53)
    found = distance_bins.by_distance(sums, first)
    wanted = torch.zeros(3, distance_bins.count(), dtype=torch.float64)
    for query in range(7):
        for key in range(53):
            at = int(distance_bins.bin_of(np.array([key - query - first]))[0])
            wanted[:, at] += sums[:, query, key]
    assert torch.allclose(found, wanted, atol=1e-12)
    ranges = distance_bins.ranges()
    assert len(ranges) == distance_bins.count()
    assert ranges[distance_bins.count() // 2] == (0, 0)
    for low, high in ((0, 0), (1, 1), (-1, -1), (16, 19), (-19, -16)):
        assert (low, high) in ranges
        assert distance_bins.bin_of(np.array([low])) == distance_bins.bin_of(np.array([high]))


def example(score, document, ids=None):
    made = Examples.blank(1)
    ids = torch.tensor([document, 1, 2] if ids is None else ids)
    made.put(0, 0, score, (document, 0, 1, 2), torch.tensor([0.1, 0.2, 0.7]), ids)
    return made


def test_the_best_examples_in_any_order():
    given = [(0.5, 4), (0.9, 7), (0.9, 3), (0.1, 1), (0.7, 2)]
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        total = Examples.blank(1)
        for index in order:
            total.merge(example(*given[index]))
        assert total.score[0].tolist() == [0.9, 0.9, 0.7]
        assert total.place[0, :, 0].tolist() == [3, 7, 2]  # of equals the earlier document
    assert total.weight[0].tolist() == pytest.approx([0.7] * 3)
    assert total.bar.tolist() == [0.7]


def test_of_equal_texts_one_is_kept():
    for order in ([5, 2, 9], [9, 5, 2]):
        total = Examples.blank(1)
        for document in order:
            total.merge(example(0.5, document, ids=[8, 8, 8]))
        assert total.place[0, :, 0].tolist()[0] == 2
        assert torch.isinf(total.score[0, 1:]).all()


def test_long_texts_are_shown_around_the_pair():
    made = Examples.blank(1)
    weights, ids = torch.zeros(500), torch.arange(500)
    weights[310] = 0.6
    made.put(0, 0, 0.5, (0, 0, 300, 310), weights, ids)
    first = int(made.place[0, 0, 4])
    assert first <= 300
    assert first + 64 > 310
    assert made.tokens[0, 0].tolist() == list(range(first, first + 64))
    assert made.row[0, 0, 310 - first] == pytest.approx(0.6)
    assert made.pair[0, 0].tolist() == [300, 310]
