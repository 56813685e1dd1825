"""Sketches: histograms over logarithmic bins, from which every quantile is read within 2.2 %.

A sketch holds counts alone. Counts add up exactly, in any order, so that a sketch of a corpus does not
depend on how the corpus was shared out (the idea of DDSketch, Masson et al. 2019, with fixed bounds).
"""

from __future__ import annotations

import torch
from torch import Tensor

PER_DOUBLING = 16
"""Bins from one power of two to the next: the middle of a bin is within 2^(1/32) − 1 = 2.2 % of its edges."""

REACH = 20
"""Values from 2^−20 to 2^20 have their own bins; less counts as 0."""

BINS = 2 * REACH * PER_DOUBLING + 1
"""The first bin is for 0."""


def bins_of(values: Tensor) -> Tensor:
    """The bin of every value, which is 0 or more.

    >>> bins_of(torch.tensor([0.0, 1e-9, 1.0, 1.04, 1.05]))
    tensor([  0,   0, 321, 321, 322])
    """
    bins = torch.log2(values.clamp(min=2.0 ** -(REACH + 1))).mul_(PER_DOUBLING).floor_().long()
    return bins.add_(REACH * PER_DOUBLING + 1).clamp_(0, BINS - 1)


def sketch(values: Tensor, where: Tensor, rows: Tensor, count: int) -> Tensor:
    """Counts ``(count, BINS)`` of the values where ``where`` holds, each in the row that ``rows`` names."""
    index = rows * BINS + bins_of(values)
    # What does not count goes into one more row, which is left out.
    index = torch.where(where, index, count * BINS)
    return torch.bincount(index.flatten(), minlength=count * BINS + 1)[: count * BINS].view(count, BINS)


def quantile(counts: Tensor, share: float) -> Tensor:
    """The value below which a ``share`` of each row of counts ``(..., BINS)`` lies; NaN where all are 0.

    >>> counts = sketch(torch.arange(1.0, 102.0), torch.ones(101) > 0, torch.zeros(101).long(), 1)
    >>> [round(float(quantile(counts, share)[0]), 1) for share in (0.0, 0.5, 1.0)]  # really 1, 51, 101
    [1.0, 50.4, 100.9]
    """
    total = counts.sum(-1, keepdim=True)
    rank = share * (total - 1).clamp(min=0)
    bins = (counts.cumsum(-1) <= rank).sum(-1).clamp(max=BINS - 1)
    middle = torch.exp2((bins - REACH * PER_DOUBLING - 0.5).double() / PER_DOUBLING)
    found = torch.where(bins == 0, 0.0, middle)
    return torch.where(total[..., 0] > 0, found, torch.nan)
