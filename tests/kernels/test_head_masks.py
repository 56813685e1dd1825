"""Masks that differ by head: cells with one mask are computed together, and all is as with the dense mask."""

import pytest
import torch

from parity import assert_close, definition, tensors
from regard.kernels import biases, head_masks
from regard.kernels.head_masks import cell_groups, cell_table, output_and_lse
from regard.kernels.inputs import prepare
from regard.masks import causal, padding, span, window

HEADS, BATCH, LENGTH = 6, 3, 23
BIASES = [None, biases.alibi(HEADS), biases.TensorBias(torch.randn(BATCH, 1, 1, LENGTH))]
HEADS_OF = {"one batch": [[0, 1, 0, 0, 1, 1]], "each": [[1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [1] * 6]}


def cells_of(name):
    return torch.tensor(HEADS_OF[name], dtype=torch.bool)


def masks_of(name):
    cells = cell_table(cells_of(name), (BATCH,))
    others = cell_table(~cells_of(name), (BATCH,))
    keep = torch.ones(BATCH, LENGTH, dtype=torch.bool)
    keep[1, :4] = False
    return {
        "block": causal() & ~(span(5, 9) & cells),
        "only with padding": causal() & padding(keep) & (window(3, 0) | ~cells),
        "two tables": causal() & ~(span(5, 9) & cells) & ~(span(2, 4) & others),
    }


@pytest.mark.parametrize(
    "bias", [None, biases.alibi(HEADS), biases.TensorBias(torch.randn(BATCH, 1, 1, LENGTH))]
)
@pytest.mark.parametrize("key_heads", [6, 2])
@pytest.mark.parametrize("case", ["block", "only with padding", "two tables"])
@pytest.mark.parametrize("cells", HEADS_OF)
@pytest.mark.parametrize("groups", [True, False], ids=["in groups", "in one call"])
def test_output_and_lse_are_those_of_the_definition(monkeypatch, cells, case, key_heads, bias, groups):
    if groups:
        monkeypatch.setattr(head_masks, "MAX_DENSE_ENTRIES", 0)
    q, k, v = tensors(BATCH, heads=HEADS, key_heads=key_heads, queries=LENGTH, channels=8, grad=True)
    mask = masks_of(cells)[case]
    inputs = prepare(q, k, v, mask=mask, bias=bias)
    found = list(cell_groups(inputs))
    assert bool(found) == groups
    output, lse = output_and_lse(inputs, with_lse=True)
    added = bias.values if isinstance(bias, biases.TensorBias) else bias
    wanted = definition(q, k, v, mask=mask, bias=added)
    assert_close(output, wanted.output, torch.float64)
    assert_close(lse, wanted["lse"], torch.float64)
    output.square().sum().backward()
    assert q.grad.isfinite().all()


def test_cells_without_the_edit_keep_the_mask_of_the_model(monkeypatch):
    monkeypatch.setattr(head_masks, "MAX_DENSE_ENTRIES", 0)
    q, k, v = tensors(BATCH, heads=HEADS, queries=LENGTH)
    inputs = prepare(q, k, v, mask=masks_of("one batch")["block"])
    by_mask = {group.mask: group.heads for group in cell_groups(inputs)}
    assert by_mask == {causal(): (0, 2, 3), causal() & ~span(5, 9): (1, 4, 5)}
    one_each = prepare(q, k, v, mask=masks_of("each")["block"])
    assert [(group.batch, group.heads) for group in cell_groups(one_each)] == [
        ((0,), (0,)),
        ((0,), (1, 2, 3, 4, 5)),
        ((1,), (0, 3, 4, 5)),
        ((1,), (1, 2)),
        ((2,), (0, 1, 2, 3, 4, 5)),
    ]


def test_tables_of_all_cells_or_none_are_constants():
    everywhere = torch.ones(1, 4, dtype=torch.bool)
    assert causal() & cell_table(everywhere, (2,)) == causal()
    assert causal() | cell_table(~everywhere, (2,)) == causal()
