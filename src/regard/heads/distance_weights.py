"""How far heads look: the weight of each query at distances 0, 1, 2–3, 4–7, … from its own position.

The weight within reach d is ``exp(lse(mask & window(d, d)) − lse)``, so each distance doubles the work of the
one before and all of them together cost about two passes of attention. No pair is looked at.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.masks import window
from regard.recording import Call


def first_distances(keys: int) -> tuple[int, ...]:
    """Where the bins begin: 0, 1, 2, 4, 8, … as far as the text goes.

    >>> first_distances(9)
    (0, 1, 2, 4, 8)
    """
    return (0, *(2**power for power in range(max(0, keys - 1).bit_length())))


@torch.no_grad()
def weight_by_distance(call: Call) -> Tensor | None:
    """``(batch, head, query, bin)``; None where queries and keys are two texts, or Q and K were not kept."""
    if call.kind == "cross" or not call.has_weights:
        return None
    reaches = [start - 1 for start in (*first_distances(call.keys)[1:], call.keys)]
    within = torch.stack([call.mass(window(reach, reach)) for reach in reaches], -1)
    return torch.diff(within, dim=-1, prepend=torch.zeros_like(within[..., :1])).clamp(min=0)
