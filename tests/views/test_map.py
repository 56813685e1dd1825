"""Tiles, levels and margins of a matrix, against the definition in NumPy."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from regard import biases, masks
from regard.errors import ArgumentError, RecordingError, ShapeError
from regard.recording import DenseCall
from regard.views.map import ByteCache, HeadMatrix, build, encoded, hidden_keys, peak, tile
from views.exact_weights import blocks, exact, made, with_lse
from views.recordings import CASES

SPECIAL = [True, *[False] * 5, True]


def special_of(keys: int) -> list[bool]:
    return (SPECIAL * keys)[:keys]


@pytest.mark.parametrize("hiding", ["show", "first", "special"])
@pytest.mark.parametrize("name", CASES)
def test_a_tile_at_full_zoom_is_the_definition(name, hiding):
    call = with_lse(CASES[name]()[0][0])
    hidden = hidden_keys(hiding, special_of(call.keys))
    wanted = exact(call, hidden)
    bound = 2e-4 if name == "very large scores" else 1e-5
    for head in (0, call.heads - 1):
        found = tile(HeadMatrix(call, head, batch=1, hidden=hidden), level=0, row=0, column=0)
        assert found.dtype == np.float32
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, wanted[1, head], atol=bound)
        assert (found[:, hidden] == 0).all()
        assert (found[wanted[1, head] == 0] < 1e-30).all()


def test_hidden_sinks_are_exact_where_they_take_nearly_everything():
    call = made(11, 11, mask=masks.causal(), size=1.0)
    call.k[:, :, 0] = 0
    call.q[..., 0], call.k[:, :, 0, 0] = 1.0, 40.0  # the first key takes all but 1e-9 of every row
    call = with_lse(call)
    assert call.weights(0)[1:, 0].min() > 1 - 1e-6
    hidden = hidden_keys("first", [False] * 11)
    found = tile(HeadMatrix(call, 0, hidden=hidden), level=0, row=0, column=0)
    np.testing.assert_allclose(found, exact(call, hidden)[0, 0], atol=1e-5)
    # The first query saw nothing else; the others share out everything among the rest.
    np.testing.assert_allclose(found.sum(1), [0] + [1] * 10, atol=1e-5)


def test_hidden_keys_of_a_dense_matrix_leave_rows_that_sum_to_one_or_nothing():
    weights = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    call = DenseCall("a", "encoder", 0, weights[None, None])
    found = tile(HeadMatrix(call, 0, hidden=[True, False, False]), level=0, row=0, column=0)
    np.testing.assert_array_equal(found, [[0, 0.5, 0.5], [0, 0, 0], [0, 0, 0]])


@given(st.data())
def test_every_tile_is_its_blocks(data):
    queries, keys = (data.draw(st.sampled_from([1, 5, 255, 257, 293, 521])) for _ in range(2))
    documents = masks.documents(np.arange(max(queries, keys)) // 100)
    known = [
        masks.everything(),
        masks.causal(),
        masks.window(60, 9),
        masks.every(7),
        masks.nothing(),
        documents,
    ]
    mask = data.draw(st.sampled_from(known[: 6 if queries == keys else 4]))
    call = made(queries, keys, mask=mask)
    hidden = hidden_keys(data.draw(st.sampled_from(["show", "first", "special"])), special_of(keys))
    matrix = HeadMatrix(call, 0, hidden=hidden)
    level = data.draw(st.integers(0, matrix.coarsest))
    kind = data.draw(st.sampled_from(["max", "mean"]))
    wanted = blocks(exact(call, hidden)[0, 0], 2**level, kind)
    for row in range(-(-wanted.shape[0] // 256)):
        for column in range(-(-wanted.shape[1] // 256)):
            found = tile(matrix, level=level, row=row, column=column, kind=kind)
            part = wanted[row * 256 : (row + 1) * 256, column * 256 : (column + 1) * 256]
            assert found.shape == part.shape
            np.testing.assert_allclose(found, part, atol=1e-5)


@pytest.mark.parametrize(
    ("queries", "keys", "mask"),
    [(2311, 1033, masks.causal()), (263, 4099, masks.everything()), (2311, 523, masks.window(300, 7))],
    ids=str,
)
@pytest.mark.parametrize("hiding", ["show", "special"])
def test_kept_levels_and_margins_are_the_definition(queries, keys, mask, hiding):
    call = made(queries, keys, mask=mask)
    hidden = hidden_keys(hiding, special_of(keys))
    matrix = HeadMatrix(call, 0, hidden=hidden)
    shares = []
    levels = build(matrix, shares.append)
    wanted = exact(call, hidden)[0, 0]
    assert levels.base == 3
    for level in range(levels.base, matrix.coarsest + 1):
        for kind in ("max", "mean"):
            found = tile(matrix, level=level, row=0, column=0, kind=kind, levels=levels)
            whole = blocks(wanted, 2**level, kind)
            np.testing.assert_allclose(found, whole[:256, :256], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(levels.received, wanted.sum(0), rtol=1e-4, atol=1e-5)
    logs = np.log(np.where(wanted > 0, wanted, 1))
    np.testing.assert_allclose(levels.entropy, -(wanted * logs).sum(1), atol=1e-4)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert levels.nbytes > 0


@pytest.mark.parametrize(
    "mask",
    [
        masks.causal(),
        masks.causal() & masks.every(7),
        masks.documents([0] * 500 + [1] * 600),
        masks.dense(torch.arange(1100 * 1100).reshape(1100, 1100) % 5 > 1),
    ],
    ids=["causal", "causal & every", "documents", "dense"],
)
@pytest.mark.parametrize("hiding", ["show", "first"])
def test_masked_cells_are_told_from_weights_that_are_too_small(mask, hiding):
    call = made(1100, 1100, mask=mask, heads=8)
    call = with_lse(replace(call, bias=biases.alibi(8)))  # of head 0, far keys have weights below any number
    matrix = HeadMatrix(call, 0, hidden=hidden_keys(hiding, [False] * 1100))
    levels = build(matrix)
    seen = mask.dense(1100, 1100).numpy()
    for level in range(matrix.coarsest + 1):
        for kind in ("max", "mean"):
            found = tile(matrix, level=level, row=0, column=0, kind=kind, levels=levels)
            visible = blocks(seen, 2**level, "max")[:256, :256]
            np.testing.assert_array_equal(np.signbit(found), ~visible)
            assert (found[~visible] == 0).all()
        assert (found[visible] == 0).any() or level > 1  # otherwise nothing is told apart


def test_hidden_keys_of_a_dense_matrix_are_not_masked():
    weights = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    matrix = HeadMatrix(DenseCall("a", "encoder", 0, weights[None, None]), 0, hidden=[True, False, False])
    found = tile(matrix, level=0, row=0, column=0)
    assert np.signbit(found).tolist() == [[False, False, True], [False, True, True]]
    assert peak(matrix, level=0, row=1, column=0).weight == 0


def test_levels_and_tiles_of_a_large_part_come_from_the_same_weights():
    call = made(2311, 2311, mask=masks.causal())
    matrix = HeadMatrix(call, 0)
    levels = build(matrix)
    finest_kept = tile(matrix, level=3, row=0, column=1, levels=levels)
    below = tile(matrix, level=2, row=0, column=2)
    np.testing.assert_array_equal(blocks(below, 2, "max")[:, :33], finest_kept[:128, :33])


def test_margins_equal_the_statistics():
    call = made(293, 293, mask=masks.causal())
    levels, told = build(HeadMatrix(call, 0)), call.statistics()
    np.testing.assert_allclose(levels.received, told.received[0, 0], atol=1e-5)
    np.testing.assert_allclose(levels.entropy, told.entropy[0, 0], atol=1e-5)
    assert levels.sums == ()  # everything is near enough to be computed when it is looked at


def test_a_pass_can_be_stopped():
    class StopError(Exception):
        pass

    heard = []

    def report(share):
        heard.append(share)
        if len(heard) == 2:
            raise StopError

    with pytest.raises(StopError):
        build(HeadMatrix(made(2311, 2311, mask=masks.everything()), 0), report)
    assert len(heard) == 2


def test_the_peak_of_a_cell():
    call = made(523, 293, mask=masks.everything())
    wanted = exact(call)[0, 0]
    matrix = HeadMatrix(call, 0)
    found = peak(matrix, level=1, row=261, column=100)
    block = wanted[522:524, 200:202]
    assert (found.query, found.pairs) == (522, 2)  # the last row has no neighbour
    assert found.weight == pytest.approx(block.max(), abs=1e-6)
    assert found.weight == pytest.approx(wanted[found.query, found.key], abs=1e-6)
    assert found.mean == pytest.approx(block.mean(), abs=1e-6)


def test_a_query_that_sees_nothing_has_no_weights_and_no_entropy():
    call = made(300, 300, mask=masks.nothing())
    matrix = HeadMatrix(call, 0)
    levels = build(matrix)
    assert not tile(matrix, level=1, row=0, column=0, kind="mean").any()
    assert not levels.entropy.any()
    assert not levels.received.any()


# ---- bytes ---------------------------------------------------------------------------------------


def test_cells_as_numbers_and_as_a_picture():
    cells = np.linspace(0, 1, 7 * 11, dtype=np.float32).reshape(7, 11)
    np.testing.assert_array_equal(np.frombuffer(encoded(cells), "<f4").reshape(7, 11), cells)
    halves = np.frombuffer(encoded(cells, "float16"), "<f2").reshape(7, 11)
    np.testing.assert_allclose(halves, cells, atol=5e-4)
    tones = np.frombuffer(encoded(cells, "uint8"), np.uint8).reshape(7, 11)
    np.testing.assert_array_equal(tones, np.rint(255 * cells))
    for scale in ("linear", "log"):
        picture = Image.open(BytesIO(encoded(cells, "png", scale)))
        wanted = np.frombuffer(encoded(cells, "uint8", scale), np.uint8).reshape(7, 11)
        np.testing.assert_array_equal(np.asarray(picture), wanted)


def test_kept_is_bounded_and_the_newest_stays():
    kept = ByteCache(100, len)
    kept.put("large", "x" * 500)
    assert kept.get("large") is not None
    kept.put("small", "x")
    assert kept.get("large") is None
    assert kept.nbytes == 1
    kept.put("small", "xx")
    assert kept.nbytes == 2
    kept.drop(lambda key: key == "small")
    assert (len(kept), kept.nbytes) == (0, 0)


# ---- errors --------------------------------------------------------------------------------------


def test_errors():
    call = made(300, 260, mask=masks.everything())
    matrix = HeadMatrix(call, 0)
    with pytest.raises(
        ArgumentError, match=r"A tile must be one of this level's \(rows = 2, columns = 2\)\. Got row = 2"
    ):
        tile(matrix, level=0, row=2, column=0)
    with pytest.raises(ArgumentError, match=r"level must be between 0 and 1, .* Got level = 2"):
        tile(matrix, level=2, row=0, column=0)
    with pytest.raises(ArgumentError, match="kind must be one of max, mean"):
        tile(matrix, level=0, row=0, column=0, kind="least")
    with pytest.raises(
        ArgumentError, match=r"A cell must be one of this level's \(rows = 300, columns = 260\)"
    ):
        peak(matrix, level=0, row=0, column=260)
    with pytest.raises(ArgumentError, match="sinks must be one of show, first, special"):
        hidden_keys("none", [False])
    with pytest.raises(
        ShapeError, match=r"hidden must have one truth value .* \(keys = 260\)\. Got 2 truth values"
    ):
        HeadMatrix(call, 0, hidden=[True, False])
    with pytest.raises(ArgumentError, match="head must be one of the recorded heads"):
        HeadMatrix(call, 1)
    with pytest.raises(ArgumentError, match="batch must be one of the recorded sequences"):
        HeadMatrix(call, 0, batch=1)
    with pytest.raises(RecordingError, match="only its statistics"):
        HeadMatrix(call.summary(0), 0)
    with pytest.raises(ArgumentError, match="type must be one of"):
        encoded(np.zeros((1, 1), np.float32), "jpeg")
    with pytest.raises(ArgumentError, match="scale must be one of"):
        encoded(np.zeros((1, 1), np.float32), "png", "square")
    long = HeadMatrix(made(1, 2311, mask=masks.everything()), 0)
    with pytest.raises(RecordingError, match=r"Levels from 3 on need one pass .* level = 3 before it"):
        tile(long, level=3, row=0, column=0)
