import math

import pytest
import torch

from regard import biases
from regard.errors import ArgumentError, DtypeError, ShapeError


def test_alibi_slopes_for_powers_of_two_and_between():
    def slopes(heads):
        return [-float(value) for value in biases.alibi(heads).dense(1, 2)[:, 0, 0]]

    assert slopes(8) == [2.0**-i for i in range(1, 9)]
    assert slopes(1) == [2.0**-8]
    wanted = [2.0 ** (-2 * i) for i in (1, 2, 3, 4)] + [2.0**-1, 2.0**-3]
    assert slopes(6) == pytest.approx(wanted)


def test_relative_clips_at_the_ends_of_its_table():
    table = torch.arange(2 * 65.0).view(2, 65)  # clipped at ±32
    dense = biases.relative(table).dense(80, 80)
    for i, j in ((0, 0), (0, 79), (79, 0), (40, 50), (50, 40)):
        distance = min(max(j - i, -32), 32)
        assert dense[:, i, j].tolist() == table[:, 32 + distance].tolist()


@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_buckets_near_one_by_one_far_by_logarithm(bidirectional):
    table = torch.arange(32.0)[:, None]
    dense = biases.t5(table, bidirectional).dense(300, 300)[0]

    def bucket(distance):
        buckets, start = 32, 0
        if bidirectional:
            buckets, start = 16, 16 if distance > 0 else 0
            distance = abs(distance)
        else:
            distance = max(-distance, 0)
        exact = buckets // 2
        if distance < exact:
            return start + distance
        far = exact + int(math.log(distance / exact) / math.log(128 / exact) * (buckets - exact))
        return start + min(far, buckets - 1)

    # Distances 32, 64 and 128 lie on a boundary, where the last bit of a logarithm decides.
    for i in (0, 150, 299):
        for j in range(300):
            if abs(i - j) not in (16, 32, 64, 128):
                assert dense[i, j] == bucket(j - i), (i, j)


def test_the_position_of_queries_at_the_end_of_a_cache():
    for bias in (biases.alibi(2), biases.relative(torch.randn(2, 9)), biases.t5(torch.randn(8, 2))):
        assert torch.equal(bias.dense(2, 10), bias.dense(10, 10)[:, -2:])


def test_biases_add_up():
    one, two = biases.alibi(2), biases.relative(torch.randn(2, 5))
    assert torch.allclose((one + two).dense(4, 4), one.dense(4, 4) + two.dense(4, 4))


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: biases.alibi(0), ArgumentError, "1 or more. Got heads = 0"),
        (lambda: biases.alibi(2.0), ArgumentError, "whole number"),
        (lambda: biases.relative(torch.randn(2, 4)), ShapeError, "odd number of columns.*Got 4"),
        (lambda: biases.relative(torch.randn(5)), ShapeError, r"Got shape \(5,\)"),
        (lambda: biases.relative(torch.ones(2, 3, dtype=torch.long)), DtypeError, "int64"),
        (lambda: biases.relative([[1.0]]), DtypeError, "list"),
        (lambda: biases.t5(torch.randn(2, 2)), ArgumentError, "at least 4 buckets"),
        (lambda: biases.t5(torch.randn(32, 2), max_distance=4), ArgumentError, "max_distance = 4"),
    ],
)
def test_bad_input_is_named(make, error, says):
    with pytest.raises(error, match=says):
        make()
