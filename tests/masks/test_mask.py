"""Properties of random mask expressions."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import create_block_mask

from masks.strategies import expressions
from regard import masks
from regard.masks.extent import Extent, TiledAxis
from regard.masks.mask import ALL, NONE
from regard.masks.tiles import count_pairs, tile_rows

N = 11


@given(expressions(N), expressions(N))
def test_operators_are_those_of_truth_values(a, b):
    left, right = a.dense(N), b.dense(N)
    assert torch.equal((a & b).dense(N), left & right)
    assert torch.equal((a | b).dense(N), left | right)
    assert torch.equal((~a).dense(N), ~left)
    assert torch.equal(a.T.dense(N), left.T)
    assert torch.equal((~(a & b)).dense(N), (~a | ~b).dense(N))  # De Morgan
    assert torch.equal((~(a | b)).dense(N), (~a & ~b).dense(N))


@given(expressions(N))
def test_the_repr_is_the_text_form(mask):
    again = masks.parse(repr(mask))
    assert again == mask
    assert hash(again) == hash(mask)
    assert repr(again) == repr(mask)


@given(expressions(N), st.integers(1, 5), st.integers(1, 5))
def test_what_a_tile_promises_holds_for_its_pairs(mask, height, width):
    extent = Extent(N, N)
    rows, columns = TiledAxis.cut(np.arange(N), height), TiledAxis.cut(np.arange(N), width)
    verdicts = mask.tiles(rows, columns, extent)
    dense = mask.dense(N).numpy()
    for i, (top, bottom) in enumerate(zip(rows.starts, rows.stops)):
        for j, (left, right) in enumerate(zip(columns.starts, columns.stops)):
            tile = dense[top:bottom, left:right]
            assert verdicts[i, j] != ALL or tile.all()
            assert verdicts[i, j] != NONE or not tile.any()


@given(expressions(N), st.sets(st.integers(0, N - 1), min_size=1), st.sets(st.integers(0, N - 1), min_size=1))
def test_tiles_of_gathered_positions_promise_as_much(mask, some_queries, some_keys):
    q, k = np.array(sorted(some_queries)), np.array(sorted(some_keys))
    verdicts = mask.tiles(TiledAxis.cut(q, 3), TiledAxis.cut(k, 3), Extent(N, N))
    dense = mask.dense(N).numpy()[np.ix_(q, k)]
    for i, j in np.ndindex(*verdicts.shape):
        tile = dense[3 * i : 3 * i + 3, 3 * j : 3 * j + 3]
        assert verdicts[i, j] != ALL or tile.all()
        assert verdicts[i, j] != NONE or not tile.any()


@given(expressions(N), st.integers(1, 4))
def test_pairs_are_counted_exactly(mask, tile):
    extent = Extent(N, N)
    assert count_pairs(mask, np.arange(N), np.arange(N), extent, tile=tile) == int(mask.dense(N).sum())


@given(expressions(N))
def test_the_predicate_for_flex_attention_is_the_mask(mask):
    predicate = mask.mask_mod(N, N)
    zero = torch.tensor(0)
    found = [[predicate(zero, zero, torch.tensor(i), torch.tensor(j)) for j in range(N)] for i in range(N)]
    assert [[bool(cell) for cell in row] for row in found] == mask.dense(N).tolist()


def test_tile_rows_finds_every_tile_that_is_not_empty():
    # 70 tiles on a side: more than one coarse block.
    n, side = 70 * 4 - 1, 4
    mask = masks.window(9, 2) | masks.prefix(3) | masks.documents(np.arange(n) // 50) & masks.every(7)
    rows = TiledAxis.cut(np.arange(n), side)
    grid = np.zeros((len(rows), len(rows)), np.uint8)
    for stack in tile_rows(mask, rows, rows, Extent(n, n)):
        grid[np.ix_(stack.rows, stack.columns)] = stack.verdicts
    assert np.array_equal(grid, mask.tiles(rows, rows, Extent(n, n)))


def test_block_masks_equal_those_of_flex_attention():
    n = 300  # no multiple of the block
    for mask in (
        masks.causal(),
        masks.window(140, 3),
        masks.causal() & masks.documents(np.repeat([0, 1, 2], [40, 200, 60])),
        masks.window(5, 5) | masks.prefix(130),
        masks.padding(lengths=[200, 128]) & masks.causal(),
        masks.dense(np.arange(n * n * 2).reshape(1, 2, n, n) % 5 > 0),
    ):
        batch, heads = (1, 1, *mask.lead)[-2:]
        ours = mask.block_mask(n)
        theirs = create_block_mask(mask.mask_mod(n, n), batch, heads, n, n, device="cpu")
        assert torch.equal(ours.to_dense(), theirs.to_dense()), mask
        assert ours.sparsity() == theirs.sparsity()
