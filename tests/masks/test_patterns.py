import numpy as np
import pytest
import torch

from regard import masks
from regard.errors import ArgumentError, DtypeError, MaskError, ShapeError


def table(mask, queries, keys=None):
    return mask.dense(queries, keys).int().tolist()


def brute(predicate, queries, keys):
    """The dense mask from a plain Python predicate over absolute positions."""
    return [[int(predicate(i + keys - queries, j)) for j in range(keys)] for i in range(queries)]


CASES = [
    (masks.causal(), lambda p, j: j <= p),
    (masks.causal().T, lambda p, j: j >= p),
    (masks.window(2, 1), lambda p, j: p - 2 <= j <= p + 1),
    (masks.window(2, 1).T, lambda p, j: p - 1 <= j <= p + 2),
    (masks.window(None, 1), lambda p, j: j <= p + 1),
    (masks.window(3, None), lambda p, j: j >= p - 3),
    (masks.prefix(3), lambda p, j: j < 3),
    (masks.prefix(3).T, lambda p, j: p < 3),
    (masks.span(2, 5), lambda p, j: 2 <= j < 5),
    (masks.span(2, 5).T, lambda p, j: 2 <= p < 5),
    (masks.span(3, 3), lambda p, j: False),
    (masks.span(4, 5).T & masks.span(1, 3), lambda p, j: p == 4 and 1 <= j < 3),
    (masks.every(3), lambda p, j: j % 3 == 0),
    (masks.every(3).T, lambda p, j: p % 3 == 0),
    (masks.local_global(3), lambda p, j: abs(p - j) <= 3 or j % 3 == 0 or p % 3 == 0),
    (masks.everything(), lambda p, j: True),
    (masks.nothing(), lambda p, j: False),
    (
        masks.causal() & ~masks.window(1, 0) | masks.prefix(1),
        lambda p, j: (j <= p and not p - 1 <= j <= p) or j < 1,
    ),
]


@pytest.mark.parametrize(
    ("mask", "predicate"), CASES, ids=lambda case: repr(case) if isinstance(case, masks.Mask) else ""
)
@pytest.mark.parametrize(("queries", "keys"), [(7, 7), (3, 7), (1, 7), (7, 5), (0, 4), (4, 0)])
def test_each_pattern_is_its_predicate(mask, predicate, queries, keys):
    assert table(mask, queries, keys) == brute(predicate, queries, keys)


@pytest.mark.parametrize("mask", [mask for mask, _ in CASES], ids=repr)
def test_one_query_at_the_end_of_a_cache_sees_what_the_last_row_sees(mask):
    assert torch.equal(mask.dense(1, 9), mask.dense(9, 9)[-1:])


def test_a_span_from_the_first_position_is_a_prefix():
    assert masks.span(0, 4) == masks.prefix(4)
    assert masks.span(2, 10**30) == masks.span(2, 10**31)  # longer than any sequence


def test_padding_takes_bools_tokenizer_integers_and_lengths():
    keep = torch.tensor([[1, 1, 0], [1, 0, 0]])
    from_bools = masks.padding(keep.bool())
    assert from_bools == masks.padding(keep) == masks.padding(keep.tolist()) == masks.padding(keep.numpy())
    assert from_bools.dense(2, 3).shape == (2, 1, 2, 3)
    assert from_bools.dense(1, 3).squeeze().tolist() == keep.bool().tolist()
    assert torch.equal(masks.padding(lengths=[2, 1]).dense(4, 3), from_bools.dense(4, 3))
    assert masks.padding([2, 3]) == masks.padding(lengths=[2, 3])
    assert masks.padding(lengths=4) == masks.prefix(4)


def test_transposed_padding_speaks_of_queries():
    keep = [True, False, True]
    assert table(masks.padding(keep).T, 3) == [[1, 1, 1], [0, 0, 0], [1, 1, 1]]
    assert table(masks.padding(keep).T, 3, 5) == [[1] * 5, [0] * 5, [1] * 5]  # one value per query
    assert table(masks.padding(keep).T, 2, 3) == [[0] * 3, [1] * 3]  # the last two of three positions


def test_documents_within_a_batch_and_between_two_sequences():
    ids = torch.tensor([[0, 0, 1], [5, 7, 7]])
    both = masks.documents(ids).dense(3)
    assert both[0, 0].int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert both[1, 0].int().tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert table(masks.documents([1, 2], [2, 1, 1]), 2, 3) == [[0, 1, 1], [1, 0, 0]]
    assert table(masks.documents([1, 2], [2, 1, 1]).T, 3, 2) == [[0, 1], [1, 0], [1, 0]]
    assert table(masks.documents([0, 0, 1]), 2, 3) == [[1, 1, 0], [0, 0, 1]]  # the last two queries


def test_dense_broadcasts_and_transposes():
    column = torch.tensor([[True], [False]])
    assert table(masks.dense(column), 2, 3) == [[1, 1, 1], [0, 0, 0]]
    assert table(masks.dense(column).T, 3, 2) == [[1, 0]] * 3
    heads = torch.rand(2, 3, 4, 5) > 0.5
    assert torch.equal(masks.dense(heads).dense(4, 5), heads)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_additive_masks_mean_what_they_add(dtype):
    additive = torch.zeros(3, 3, dtype=dtype)
    additive[0, 1] = -torch.inf
    additive[1, 2] = torch.finfo(dtype).min  # what Hugging Face writes
    assert table(masks.as_mask(additive), 3) == [[1, 0, 1], [1, 1, 0], [1, 1, 1]]


def test_a_tensor_may_stand_on_either_side_of_an_operator():
    tensor = torch.ones(2, 2, dtype=torch.bool)
    assert tensor & masks.causal() == masks.dense(tensor) & masks.causal()
    assert masks.causal() | tensor.numpy() == masks.causal() | masks.dense(tensor)
    assert tensor.numpy() | masks.causal() == masks.dense(tensor) | masks.causal()


def test_masks_are_values():
    one, same = masks.window(3, 0) & masks.prefix(2), masks.window(3, 0) & masks.prefix(2)
    assert one == same
    assert hash(one) == hash(same)
    assert one != masks.prefix(2) & masks.window(2, 0)
    assert len({one, same, masks.causal(), masks.window(None, 0)}) == 2
    ids = torch.tensor([1, 2, 3])
    mask = masks.documents(ids)
    ids[0] = 9  # the mask keeps its own copy
    assert mask == masks.documents([1, 2, 3])
    with pytest.raises((AttributeError, TypeError)):
        one.parts = ()  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="read-only"):
        mask.query_ids.values[0] = 9  # type: ignore[attr-defined]


def test_operators_simplify():
    a, b, c = masks.causal(), masks.prefix(2), masks.every(3)
    assert (a & b) & c == a & (b & c)
    assert ~~a == a
    assert a & masks.everything() == a
    assert a | masks.everything() == masks.everything()
    assert a & masks.nothing() == masks.nothing()
    assert a & a == a
    assert a & b == (a & b).T.T


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (
            lambda: masks.window(-1, 0),
            ArgumentError,
            r"before must be a whole number, 0 or more. Got before = -1",
        ),
        (lambda: masks.window(1, 2.5), ArgumentError, "after must be a whole number"),
        (lambda: masks.every(0), ArgumentError, "1 or more. Got stride = 0"),
        (
            lambda: masks.prefix(True),
            ArgumentError,
            "length must be a whole number, 0 or more. Got length = True",
        ),
        (lambda: masks.local_global(0), ArgumentError, "Got stride = 0"),
        (lambda: masks.span(5, 3), ArgumentError, r"at least start \(start = 5\). Got stop = 3"),
        (lambda: masks.span(-1, 3), ArgumentError, "start must be a whole number, 0 or more. Got start = -1"),
        (lambda: masks.span(0, 2.0), ArgumentError, "stop must be a whole number"),
        (lambda: masks.padding(), ArgumentError, "keep or lengths"),
        (lambda: masks.padding([1, 0, 1]), MaskError, "could be truth values or lengths"),
        (lambda: masks.padding(lengths=[-1]), MaskError, "0 or more"),
        (lambda: masks.padding([[2, 3]]), DtypeError, "bools, 0 and 1"),
        (lambda: masks.padding([[True], [True, False]]), MaskError, "must have the same length"),
        (lambda: masks.documents([0.5]), MaskError, "whole numbers"),
        (lambda: masks.dense(torch.tensor([[0.5]])), MaskError, "bias="),
        (lambda: masks.dense(torch.tensor([[float("nan")]])), MaskError, "NaN"),
        (lambda: masks.dense(torch.zeros(2, 2, dtype=torch.complex64)), DtypeError, "complex64"),
        (lambda: masks.causal() & 3, MaskError, "Got int"),
        (lambda: bool(masks.causal()), MaskError, "& | ~"),
        (
            lambda: masks.padding([[True], [True]]) & masks.dense(np.ones((3, 1, 1, 1), bool)),
            MaskError,
            r"\(2, 1\) and \(3, 1\)",
        ),
        (lambda: masks.padding([True, True]).dense(2, 3), ShapeError, r"keys = 3\). Got 2 values"),
        (lambda: masks.padding([True] * 4).T.dense(2, 3), ShapeError, "Got 4 values for the queries"),
        (lambda: masks.documents([0, 1]).dense(3), ShapeError, "one id per position"),
        (lambda: masks.dense(torch.ones(2, 2, dtype=torch.bool)).dense(3), ShapeError, r"shape \(2, 2\)"),
        (lambda: masks.causal().dense(-1), ArgumentError, "queries = -1"),
        (lambda: masks.causal().dense(2.0), ArgumentError, "whole number"),
    ],
)
def test_bad_input_is_named(make, error, says):
    with pytest.raises(error, match=says):
        make()


# ---- numbers larger than any text ----------------------------------------------------------------

HUGE = [2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 10**30]


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.parametrize(
    ("pattern", "predicate"),
    [
        (lambda n: masks.window(n, 0), lambda p, j: j <= p),
        (lambda n: masks.window(1, n), lambda p, j: j >= p - 1),
        (lambda n: masks.window(n, n), lambda p, j: True),
        (masks.every, lambda p, j: j == 0),
        (lambda n: masks.every(n).T, lambda p, j: p == 0),
        (masks.prefix, lambda p, j: True),
        (lambda n: masks.span(2, n), lambda p, j: j >= 2),
        (lambda n: masks.span(n - 1, n).T, lambda p, j: False),
        (masks.local_global, lambda p, j: True),
        (lambda n: masks.padding(lengths=n), lambda p, j: True),
    ],
)
def test_huge_numbers_mean_what_they_say(huge, pattern, predicate):
    from regard.kernels.planner import plan

    try:
        mask = pattern(huge)
    except MaskError as error:
        assert huge >= 2**64
        assert "64-bit whole numbers" in str(error)  # noqa: PT017
        return
    for queries, keys in ((5, 5), (2, 5), (5, 2)):
        wanted = brute(predicate, queries, keys)
        assert table(mask, queries, keys) == wanted
        assert plan(mask, queries, keys).pairs == sum(map(sum, wanted))
        allowed = mask.mask_mod(queries, keys)
        indices = torch.arange(queries)[:, None], torch.arange(keys)
        for kind in (torch.int32, torch.int64):
            zero = torch.zeros((), dtype=kind)
            found = allowed(zero, zero, *(index.to(kind) for index in indices))
            assert found.expand(queries, keys).int().tolist() == wanted
        assert mask.block_mask(queries, keys).to_dense().shape[-2:] == (1, 1)
    assert masks.parse(repr(mask)) == mask


@pytest.mark.parametrize("huge", HUGE)
def test_huge_lengths_of_a_batch(huge):
    mask = masks.padding(
        lengths=np.array([huge, 1], object).astype(np.uint64) if huge < 2**64 else [2**62, 1]
    )
    assert table(mask, 1, 3) == [[[[1, 1, 1]]], [[[1, 0, 0]]]]
    assert table(mask.select((0, 0)), 1, 3) == [[1, 1, 1]]
    assert masks.parse(repr(mask)) == mask


def test_ids_beyond_64_bits_are_refused():
    with pytest.raises(MaskError, match="64-bit whole numbers"):
        masks.documents(np.array([2**63], np.uint64))
    with pytest.raises(MaskError, match="64-bit whole numbers"):
        masks.documents([10**30])


def test_documents_of_two_batches_are_refused():
    with pytest.raises(MaskError, match=r"the same batch size\. Got \(2,\) and \(3,\)"):
        masks.documents([[0], [1]], [[0], [1], [2]])


def test_more_positions_than_can_be_counted_are_refused():
    with pytest.raises(ArgumentError, match="from 0 to 1,073,741,824"):
        masks.causal().dense(2**31)
    with pytest.raises(ArgumentError, match="from 0 to 1,073,741,824"):
        masks.causal().mask_mod(1, 2**31)


def test_a_mask_in_another_process_has_its_own_hash():
    """Hashes of strings differ between processes, so that a kept one must not travel."""
    import pickle

    mask = ~(masks.causal() & masks.documents([0, 1]))
    hash(mask)
    assert "_hash" not in str(pickle.dumps(mask))
    assert pickle.loads(pickle.dumps(mask)) == mask
