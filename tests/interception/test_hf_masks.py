"""Mask functions of transformers against the masks that transformers makes of them."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import masking_utils as hf

import regard
from regard import masks
from regard.errors import MaskError
from regard.interception.function_mask import FunctionMask
from regard.interception.hf_attention import TransformersMask, mask_function
from regard.masks.extent import Extent, TiledAxis
from regard.masks.mask import ALL, NONE
from regard.recording.step_masks import MaskRows, StackedMask

KEEP = torch.tensor([[1] * 13, [0] * 3 + [1] * 10, [1] * 9 + [0] * 4]).bool()
LEFT = torch.tensor([0, 3, 0])
IDS = torch.arange(13).expand(3, 13) // 5
BLOCKS = torch.tensor([[-1, 0, 0, 0, -1, -1, 1, 1, -1, -1, -1, 2, 2]] * 3)


def odd_one(batch, head, q, k):
    """A function that nobody knows."""
    return (q * 3 + k * 5 + batch) % 4 != 0


FUNCTIONS = {
    "causal": hf.causal_mask_function,
    "bidirectional": hf.bidirectional_mask_function,
    "sliding": hf.sliding_window_causal_mask_function(4),
    "sliding both ways": hf.sliding_window_bidirectional_mask_function(2),
    "chunks": hf.chunked_causal_mask_function(4, LEFT),
    "packed": hf.and_masks(hf.causal_mask_function, hf.packed_sequence_mask_function(IDS)),
    "blocks": hf.or_masks(hf.causal_mask_function, hf.blockwise_overlay(BLOCKS)),
    "padding inside": hf.and_masks(hf.causal_mask_function, hf.padding_mask_function(KEEP)),
    "unknown": odd_one,
    "unknown inside": hf.or_masks(hf.sliding_window_causal_mask_function(3), odd_one),
}


def dense_of_theirs(function, queries, keys, past, first_key, keep, one_by_one):
    return hf.sdpa_mask(
        3, queries, keys, past, first_key, function, keep, allow_is_causal_skip=False, use_vmap=one_by_one
    )


def placed(function, queries=13, keys=13, past=0, first_key=0, keep=None, one_by_one=False):
    return mask_function(3, queries, keys, past, first_key, function, keep, use_vmap=one_by_one)


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("keep", [None, KEEP], ids=["all", "padded"])
@pytest.mark.parametrize(
    ("queries", "keys", "past", "first_key"),
    [(13, 13, 0, 0), (1, 13, 12, 0), (4, 13, 9, 0), (4, 6, 9, 7), (1, 4, 8, 5), (5, 13, 0, 0), (6, 9, 2, 1)],
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_at_every_place(name, queries, keys, past, first_key, keep, one_by_one):
    function = FUNCTIONS[name]
    wanted = dense_of_theirs(function, queries, keys, past, first_key, keep, one_by_one)
    found = placed(function, queries, keys, past, first_key, keep, one_by_one).here()
    mine = found.dense(queries, keys)
    assert torch.equal(mine.expand(wanted.shape), wanted)
    lazy = past + queries == first_key + keys and "unknown" not in name
    assert not lazy or not any(isinstance(part, FunctionMask) for part in found.patterns())
    for batch in range(3):
        assert torch.equal(
            found.select((batch, 0)).dense(queries, keys).squeeze(), wanted[batch, 0].squeeze()
        )


def test_attention_under_a_function_nobody_knows():
    """Asked tile by tile, in a long text."""
    q = torch.randn(3, 2, 700, 8)
    keep = torch.ones(3, 700, dtype=torch.bool)
    keep[1, :99] = False
    function = hf.and_masks(hf.causal_mask_function, odd_one)
    mask = placed(function, 700, 700, keep=keep).here()
    wanted = dense_of_theirs(function, 700, 700, 0, 0, keep, False)
    assert torch.allclose(
        regard.attention(q, q, q, mask=mask), regard.attention(q, q, q, mask=wanted), atol=1e-6
    )


def test_to_a_model_that_computes_with_it_it_is_a_tensor():
    mask = placed(hf.causal_mask_function, keep=KEEP)
    wanted = dense_of_theirs(hf.causal_mask_function, 13, 13, 0, 0, KEEP, False)
    assert mask.shape == wanted.shape
    assert mask.ndim == 4
    assert torch.equal(mask[:, :, :4], wanted[:, :, :4])
    assert torch.equal(torch.cat([mask, wanted], 1), torch.cat([wanted, wanted], 1))
    assert torch.equal(torch.where(mask, 1.0, 0.0), wanted.float())
    assert mask.dtype == torch.bool
    assert torch.equal(mask + 0.0, wanted + 0.0)
    assert isinstance(mask.contiguous(), TransformersMask)


# ---- rows over rows ------------------------------------------------------------------------------


@st.composite
def stacks(draw):
    cuts = sorted(draw(st.sets(st.integers(1, 11), min_size=1, max_size=4)))
    bounds = [draw(st.integers(0, cuts[0] - 1)), *cuts, 12]
    steps = []
    for start, stop in pairwise(bounds):
        size = (stop - start) * stop
        table = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
        known = [masks.causal(), masks.window(2, 1), masks.everything()]
        mask = draw(st.sampled_from([*known, masks.dense(table.reshape(stop - start, stop))]))
        steps.append(MaskRows(start, stop, mask))
    return StackedMask(tuple(steps))


@given(stacks(), st.integers(1, 5))
def test_stacked_masks_answer_row_by_row_and_their_tiles_keep_their_word(mask, size):
    extent = Extent(12 - mask.steps[0].start, 12)
    mask.check(extent)
    found = mask.dense(*extent).numpy()
    row = 0
    for step in mask.steps:
        part = step.mask.dense(*step.extent).numpy()
        assert (found[row : row + len(part), : step.stop] == part).all()
        assert not found[row : row + len(part), step.stop :].any()
        row += len(part)
    rows, columns = TiledAxis.cut(extent.query_positions(), size), TiledAxis.cut(extent.key_positions(), size)
    said = mask.tiles(rows, columns, extent)
    for i, j in np.ndindex(said.shape):
        tile = found[rows.starts[i] : rows.stops[i], columns.starts[j] : columns.stops[j]]
        assert said[i, j] != ALL or tile.all()
        assert said[i, j] != NONE or not tile.any()


def test_stacked_masks_in_attention():
    mask = StackedMask(
        (
            MaskRows(0, 200, masks.causal()),
            MaskRows(200, 500, masks.window(30, 0)),
            MaskRows(500, 501, masks.everything()),
        )
    )
    q = torch.randn(2, 501, 8)
    wanted = regard.attention(q, q, q, mask=mask.dense(501))
    assert torch.allclose(regard.attention(q, q, q, mask=mask), wanted, atol=1e-6)
    with pytest.raises(regard.errors.MaskError, match=r"exactly their rows. Got queries = 5, keys = 5"):
        regard.attention(q[:, :5], q[:, :5], q[:, :5], mask=mask)


def test_a_mask_of_several_steps_is_not_transposed():
    mask = StackedMask((MaskRows(0, 2, masks.causal()), MaskRows(2, 3, masks.everything())))
    with pytest.raises(MaskError, match=r"can be transposed.*masks\.dense"):
        _ = mask.T
