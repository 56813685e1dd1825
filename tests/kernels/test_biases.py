import math

import pytest
import torch

from regard import biases
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.masks.extent import Extent


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


# ---- parts of a bias -------------------------------------------------------------------------

BATCH, HEADS, EXTENT = 2, 3, Extent(5, 7)


def every_kind():
    tensor = biases.TensorBias(torch.randn(BATCH, HEADS, *EXTENT))
    shared = biases.TensorBias(torch.randn(1, 1, 1, EXTENT.keys))
    relative, t5 = biases.relative(torch.randn(HEADS, 9)), biases.t5(torch.randn(8, HEADS))
    return [biases.alibi(HEADS), relative, t5, tensor, shared, relative + tensor + shared]


def values(bias, extent=EXTENT):
    """All values, ``(batch, head, query, key)``, by the tile that covers everything."""
    q, k = (torch.from_numpy(x) for x in (extent.query_positions(), extent.key_positions()))
    return bias.tile(bias.tables, q, k, extent).expand(BATCH, HEADS, *extent)


@pytest.mark.parametrize("bias", every_kind(), ids=lambda bias: type(bias).__name__)
def test_the_parts_of_a_bias_are_those_of_its_matrix(bias):
    whole = values(bias)
    assert torch.equal(values(bias.select(heads=torch.tensor([2, 0, 2]))), whole[:, [2, 0, 2]])
    assert torch.equal(values(bias.select(batch=torch.tensor([1, 1]))), whole[[1, 1]])
    chosen = bias.select(batch=slice(1, 2), heads=slice(1, 3))
    assert torch.equal(values(chosen.select(heads=slice(0, 1)))[0, 0], whole[1, 1])
    assert torch.equal(sum(values(term) for term in bias.terms()), whole)
    i, j = torch.tensor([0, 4, 2, 2]), torch.tensor([6, 0, 3, 3])
    for batch in range(BATCH):
        at = bias.at(batch, i, j, EXTENT)
        assert at.shape in ((HEADS, 4), (1, 4))
        assert torch.equal(at.expand(HEADS, 4), whole[batch][:, i, j])
    # The first 3 queries end at the fifth key, so they have the same positions as before.
    assert torch.equal(values(bias.crop(slice(0, 3), 5), Extent(3, 5)), whole[:, :, :3, :5])


@pytest.mark.parametrize("bias", every_kind(), ids=lambda bias: type(bias).__name__)
def test_a_detached_bias_is_not_trained(bias):
    for table in bias.tables:
        table.requires_grad_()
    before, detached = values(bias).detach(), bias.detach()
    assert not any(table.requires_grad for table in detached.tables)
    assert torch.equal(values(detached), before)
    if not bias.can_forbid and len(list(bias.terms())) == 1:
        with torch.no_grad():
            bias.tables[0].zero_()
        assert torch.equal(values(detached), before)


def test_biases_of_steps_are_joined():
    whole = torch.randn(BATCH, HEADS, 5, 7)
    first, later = biases.TensorBias(whole[:, :, :3, :5]), biases.TensorBias(whole[:, :, 3:])
    joined = first.concat(later, 3)
    assert torch.equal(joined.values[:, :, :3, :5], whole[:, :, :3, :5])
    assert torch.equal(joined.values[:, :, 3:], whole[:, :, 3:])
    alibi, relative = biases.alibi(HEADS), biases.relative(torch.randn(HEADS, 9))
    assert alibi.concat(relative, 3) is relative  # the distance is all that matters
    constant = biases.TensorBias(torch.randn(1, HEADS, 1, 1))
    assert constant.concat(constant, 3) is constant
    for before, after in ((alibi, first), (first, alibi), (alibi + first, alibi + later)):
        assert before.concat(after, 3) is None


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
