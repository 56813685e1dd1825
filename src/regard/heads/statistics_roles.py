"""Roles that need only statistics: broad attention, and alignment between two texts."""

from __future__ import annotations

import numpy as np
import torch

from regard.heads.role_inputs import RoleInputs
from regard.heads.role_tally import RoleTally
from regard.heads.significance import RowPeaks, of_distinct


def broadly(inputs: RoleInputs) -> RoleTally:
    """``(e^entropy − 1) / (visible − 1)``: the share of its visible keys that a row spreads over."""
    tally = RoleTally(inputs.call.heads)
    tally.testable = False  # it does not depend on where the weights are, so shuffling cannot test it
    for batch in inputs.batches:
        rows = inputs.rows(batch)
        at = torch.from_numpy(rows).to(inputs.found.entropy.device)
        visible = inputs.visible(batch, rows)
        spread = torch.expm1(inputs.found.entropy[batch][:, at].double()) / (visible - 1).clamp(min=1)
        tally.add(spread, torch.zeros_like(spread), visible > 1)
    return tally


def aligned(inputs: RoleInputs) -> RoleTally:
    """``Σ_j max_{i looks most at j} peak_i / min(queries, keys)``: pairs of words, each key once.

    Even weights have the peak of every row at one key.
    """
    tally = RoleTally(inputs.call.heads)
    sums, peaks = np.zeros(inputs.call.heads), []
    for batch in inputs.batches:
        rows = inputs.rows(batch)
        at = torch.from_numpy(rows).to(inputs.found.peak.device)
        peak = inputs.found.peak[batch][:, at].double()  # (head, row)
        winner = inputs.found.peak_key[batch][:, at]
        sees = winner >= 0
        if not bool(sees.any()):
            continue
        highest = peak.new_zeros(len(peak), inputs.call.keys)
        highest.scatter_reduce_(1, winner.clamp(min=0), torch.where(sees, peak, 0.0), "amax")
        pairs = sees.sum(-1).clamp(1, int(inputs.shown[batch].sum()))
        chance = inputs.even(batch, rows).amax(-1) / pairs
        tally.add((highest.sum(-1) / pairs)[:, None], chance[:, None], sees.any(-1, keepdim=True))
        tally.offer(batch, rows, winner.cpu().numpy(), peak, torch.where(sees, peak, -torch.inf))
        sums += (highest.sum(-1) / pairs).cpu().numpy()
        peaks.append(RowPeaks(torch.where(sees, peak, 0.0), len(inputs.keys(batch)), pairs.double()))
    if peaks:
        tally.p = of_distinct(sums, peaks)
    return tally
