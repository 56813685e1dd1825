"""The weight of a region of the matrix, and the output without it, from Q, K and lse.

With ``lse_i(M)`` the log-sum-exp of row i over the keys of M alone, the weight on M is
``Σ_{j∈M} w_ij = exp(lse_i(M) − lse_i)``. One pass under the mask ``mask & M`` gives it: no weight is
computed, and only the pairs of M cost anything. A learned sink is part of ``lse_i``, not of
``lse_i(M)``.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.kernels import attention_with_lse
from regard.kernels.attention import attention
from regard.kernels.biases import Bias
from regard.masks import Mask, as_mask
from regard.masks.extent import Extent

ENTRIES = 1 << 24
"""Entries of a dense matrix that are looked at together."""


@torch.no_grad()
def mass_of_scores(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    region: object,
    *,
    mask: Mask,
    bias: Bias | None,
    scale: float,
    softcap: float | None,
) -> Tensor:
    """``exp(lse_i(mask & region) − lse_i)``, ``(batch, head, query)``.

    >>> from regard import masks
    >>> q = k = torch.zeros(1, 1, 4, 2)  # every visible key has the same weight
    >>> lse = torch.log(torch.arange(1.0, 5.0))[None, None]
    >>> options = {"mask": masks.causal(), "bias": None, "scale": 1.0, "softcap": None}
    >>> mass_of_scores(q, k, lse, masks.span(1, 3), **options)
    tensor([[[0.0000, 0.5000, 0.6667, 0.5000]]])
    """
    inside = mask & as_mask(region, Extent(q.shape[2], k.shape[2]))
    _, own = attention_with_lse(q, k, k, mask=inside, bias=bias, scale=scale, softcap=softcap)
    whole = lse.to(own.dtype)
    # Rounding may push the weight on all keys a little above 1.
    return torch.exp(own - torch.where(whole == -torch.inf, 0.0, whole)).clamp(max=1.0)


@torch.no_grad()
def mass_of_weights(weights: Tensor, region: object) -> Tensor:
    """``Σ_{j∈region} w_ij`` of a dense matrix ``(batch, head, query, key)``, some rows at a time."""
    batch, heads, queries, keys = weights.shape
    extent = Extent(queries, keys)
    mask = as_mask(region, extent)
    wide = torch.promote_types(weights.dtype, torch.float32)
    found = weights.new_zeros((batch, heads, queries), dtype=wide)
    step = max(1, ENTRIES // max(1, batch * heads * keys))
    for start in range(0, queries, step):
        positions = extent.query_positions()[start : start + step]
        allowed = torch.from_numpy(np.ascontiguousarray(mask.evaluate(extent, positions))).to(weights.device)
        found[:, :, start : start + step] = (weights[:, :, start : start + step] * allowed).sum(
            -1, dtype=wide
        )
    return found


@torch.no_grad()
def output_without(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    region: object,
    *,
    mask: Mask,
    bias: Bias | None,
    scale: float,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """``(O_i − Σ_{j∈region} w_ij v_j) / (1 − mass_i)``: the output if nobody could see the region.

    It is attention under ``mask & ~region``: the same number, without the difference of two that are almost
    equal. A query that sees nothing else gets 0. Shapes ``(batch, head, query, value channel)``.
    """
    outside = mask & ~as_mask(region, Extent(q.shape[2], k.shape[2]))
    return attention(q, k, v, mask=outside, bias=bias, scale=scale, softcap=softcap, sinks=sinks)
