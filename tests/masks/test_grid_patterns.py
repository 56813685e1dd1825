"""Neighbourhoods on a grid: against their definition point by point, their text, and their errors."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard import masks
from regard.errors import ArgumentError, MaskError, MaskSyntaxError, ShapeError
from regard.kernels.planner import plan_extent
from regard.masks.extent import Extent

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3)


def by_definition(shape, radius, shifted):
    """One pair of points at a time."""
    points = list(itertools.product(*map(range, shape)))

    def sees(q, k):
        for a, b, r, size in zip(q, k, radius, shape):
            first = a - r
            if shifted:  # moved inside; an axis that is too short is seen whole
                first = max(0, min(first, size - 2 * r - 1))
                if size <= 2 * r + 1:
                    continue
            if not first <= b <= first + 2 * r:
                return False
        return True

    return [[sees(q, k) for k in points] for q in points]


@given(SHAPES, st.data(), st.booleans())
def test_every_pair_of_points(shape, data, shifted):
    radius = data.draw(st.lists(st.integers(0, 6), min_size=len(shape), max_size=len(shape)))
    mask = masks.neighbourhood(shape, radius, shifted=shifted)
    points = int(np.prod(shape))
    wanted = by_definition(shape, [min(r, size - 1) for r, size in zip(radius, shape)], shifted)
    assert mask.dense(points).tolist() == wanted
    assert mask.T.dense(points).tolist() == torch.tensor(wanted).mT.tolist()
    assert masks.parse(repr(mask)) == mask
    assert masks.parse(repr(mask.T)) == mask.T
    # The last queries of a cache see what they see in the square.
    assert mask.dense(1, points).tolist() == wanted[-1:]


def test_shifted_neighbourhoods_are_all_equally_large():
    assert masks.neighbourhood((6, 7), (1, 2), shifted=True).dense(42).sum(-1).tolist() == [15] * 42
    assert masks.neighbourhood((6, 7), (1, 2)).dense(42).sum(-1).min() == 6


def test_text():
    assert repr(masks.neighbourhood((64, 64), 6)) == "neighbourhood([64, 64], 6)"
    assert repr(masks.neighbourhood(np.array([4, 8, 8]), [1, 2, 2])) == "neighbourhood([4, 8, 8], [1, 2, 2])"
    assert repr(masks.neighbourhood([5, 5], 1, shifted=True).T) == "neighbourhood([5, 5], 1, shifted=True).T"
    with pytest.raises(MaskSyntaxError, match="Did you mean neighbourhood"):
        masks.parse("neighborhood([4, 4], 1)")


def test_a_radius_beyond_the_grid_is_all_of_it():
    mask = masks.neighbourhood((3, 4), 10**6)
    assert mask.dense(12).all()
    assert regard.plan(mask, 12).path == "full"


def test_blocks_of_an_image_are_calls_of_their_own():
    mask = masks.neighbourhood((64, 64), 6)
    plan = regard.plan(mask, 4096)
    assert plan.path == "gathered"
    assert plan.calls == 64
    assert plan.computed < 1.5e6  # 17 million pairs without a mask, 3.4 million if cut along its rows
    assert plan.pairs == int(mask.dense(4096).sum())
    assert plan_extent(masks.causal() & mask, Extent(4096, 4096)).computed < plan.computed


def test_wrong_arguments():
    with pytest.raises(ShapeError, match=r"one key for every point of its grid \(3 × 4: keys = 12\)"):
        masks.neighbourhood((3, 4), 1).dense(13)
    with pytest.raises(ShapeError, match="no more queries than keys"):
        masks.neighbourhood((3, 4), 1).dense(13, 12)
    with pytest.raises(MaskError, match="one radius for all or for each"):
        masks.neighbourhood((3, 4), (1, 2, 3))
    with pytest.raises(MaskError, match="1 to 8 axes"):
        masks.neighbourhood((), 1)
    with pytest.raises(MaskError, match="shape must be a list of whole numbers"):
        masks.neighbourhood(9, 1)
    with pytest.raises(MaskError, match="at most 1,073,741,824 points"):
        masks.neighbourhood((2**20, 2**20), 1)
    with pytest.raises(ArgumentError, match="radius must be a whole number"):
        masks.neighbourhood((3, 4), -1)
    with pytest.raises(ArgumentError, match="shape must be a whole number"):
        masks.neighbourhood((3, 4.5), 1)


def test_shifted_is_one_truth_value():
    with pytest.raises(MaskError, match=r"shifted must be True or False\. Got shifted = array\(\[1, 2\]\)"):
        masks.neighbourhood((3, 3), 1, shifted=np.array([1, 2]))
    with pytest.raises(MaskSyntaxError, match=r"shifted must be True or False"):
        masks.parse("neighbourhood([3, 3], 1, shifted=[1, 2])")
