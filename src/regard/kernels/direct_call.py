"""Calls that torch's SDPA computes in one call, recognised without checking everything else first.

    q, k, v, mask → output, or None if the call needs the general path

Short calls and dense mask tensors are as fast as SDPA itself only if almost nothing happens before it.
Anything unusual about a call, errors included, is left to the general path.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Parameter

from regard.kernels.mask_parts import TILE, Run
from regard.kernels.planner import DENSE_FRACTION, Plan, plan_extent
from regard.kernels.precision import FLOATS, STEEP
from regard.masks import Mask, MaskLike
from regard.masks.extent import Extent

MAX_CACHED_ENTRIES = 1 << 20
"""Dense masks with at most this many entries, one byte each, are cached for the next call."""

MIN_SAMPLED_PAIRS = 1 << 19
"""Below this many pairs, tiles gain less than planning a tensor costs."""

SAMPLES = 4
"""Samples along each side of a tile."""

PLAIN = (Tensor, Parameter)

LOWEST = {dtype: 0.99 * torch.finfo(dtype).min for dtype in FLOATS}
"""What counts as −∞ in an additive mask."""


def direct_call(q: Tensor, k: Tensor, v: Tensor, mask: MaskLike | None, scale: float | None) -> Tensor | None:
    """The output if one call of SDPA computes it best; None if that needs a closer look."""
    if not _ordinary(q, k, v, scale):
        return None
    causal = False
    if mask is not None:
        if isinstance(mask, Mask):
            found = _lazy(q, k, mask)
            if found is None:
                return None
            (start, stop), mask, causal = found
            if stop - start < k.shape[2]:
                k, v = k[:, :, start:stop], v[:, :, start:stop]
        elif type(mask) in PLAIN and fits_sdpa(mask, q, k):  # type: ignore[arg-type]
            mask = mask[None] if mask.ndim == 3 else mask  # its fused kernel takes two axes or four
        else:
            return None
    return F.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=cast("Tensor | None", mask),
        is_causal=causal,
        scale=scale,
        enable_gqa=q.shape[1] != k.shape[1],
    )


def _ordinary(q: Tensor, k: Tensor, v: Tensor, scale: float | None) -> bool:
    """Whether the tensors have four axes, fit together and need no conversion."""
    if type(q) not in PLAIN or type(k) not in PLAIN or type(v) not in PLAIN:
        return False
    q_shape, k_shape = q.shape, k.shape
    return (
        len(q_shape) == 4 == len(k_shape)
        and v.shape == k_shape
        and q_shape[0] == k_shape[0]
        and q_shape[3] == k_shape[3]
        and 0 not in q_shape
        and 0 not in k_shape
        and q_shape[1] % k_shape[1] == 0
        and q.dtype is k.dtype is v.dtype
        and q.dtype in FLOATS
        and q.device == k.device == v.device
        and q.stride(3) == k.stride(3) == v.stride(3) == 1
        and (scale is None or (type(scale) is float and 1e-30 < scale <= STEEP))
        and (device := q.device.type) != "meta"
        and not torch.is_autocast_enabled(device)
    )


# ---- lazy masks ------------------------------------------------------------------------------


def _lazy(q: Tensor, k: Tensor, mask: Mask) -> tuple[Run, Tensor | None, bool] | None:
    """The range of keys, the mask over them and whether it is causal; None unless one call does it."""
    extent, lead = Extent(q.shape[2], k.shape[2]), mask.lead
    if lead and (len(lead) > 2 or any(a not in (1, b) for a, b in zip(lead[::-1], q.shape[1::-1]))):
        return None
    plan = plan_extent(mask, extent)
    run = plan.single
    if run is None or (plan.path == "masked" and prod(lead) * prod(extent) > MAX_CACHED_ENTRIES):
        return None
    if not plan.needs_mask:
        return run, None, plan.path == "causal"
    return run, _cached_additive(mask, extent, run, q.device, q.dtype), False


def allowed_by(plan: Plan, run: Run, device: torch.device) -> Tensor | None:
    """The mask that SDPA needs for a range of keys; None if it needs none."""
    return dense_mask(plan.mask, plan.extent, run, device) if plan.needs_mask else None


def dense_mask(mask: Mask, extent: Extent, run: Run, device: torch.device) -> Tensor | None:
    """The mask over a range of keys ``(..., query or 1, key or 1)``; None if it allows everything."""
    entries = prod(mask.lead) * extent.queries * (run[1] - run[0])
    evaluate = _cached_dense if entries <= MAX_CACHED_ENTRIES else _new_dense
    return evaluate(mask, extent, run, device)


def _new_dense(mask: Mask, extent: Extent, run: Run, device: torch.device) -> Tensor | None:
    # Never an inference tensor: it is cached, and the next call may need it for a backward pass.
    with torch.inference_mode(False):
        allowed = mask.evaluate(extent, k=extent.key_positions()[slice(*run)])
        if allowed.all():
            return None
        found = torch.from_numpy(allowed.copy()).to(device)
        return found[None] if found.ndim == 3 else found


# All layers of a model use the same mask; the next batch uses another one.
_cached_dense = lru_cache(maxsize=16)(_new_dense)


@lru_cache(maxsize=16)
def _cached_additive(
    mask: Mask, extent: Extent, run: Run, device: torch.device, dtype: torch.dtype
) -> Tensor | None:
    """The mask as 0 and −∞: SDPA would convert a bool mask in every call."""
    allowed = dense_mask(mask, extent, run, device)
    if allowed is None:
        return None
    with torch.inference_mode(False):
        return torch.zeros(allowed.shape, dtype=dtype, device=device).masked_fill_(~allowed, -torch.inf)


# ---- tensors ---------------------------------------------------------------------------------


def fits_sdpa(mask: Tensor, q: Tensor, k: Tensor) -> bool:
    """Whether SDPA takes this tensor unchanged, means the same by it, and tiles would gain nothing."""
    full = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    shape = mask.shape
    return (
        2 <= len(shape) <= 4
        and all(own in (1, size) for own, size in zip(shape[::-1], full[::-1]))
        and mask.device == q.device
        and not mask.requires_grad
        and (mask.dtype is torch.bool or (mask.dtype is q.dtype and _additive(mask)))
        and not may_skip_tiles(mask)
    )


def _additive(mask: Tensor) -> bool:
    """Whether SDPA treats an additive mask as regard does: no NaN, no +∞, no row of lowest numbers.

    Hugging Face writes the lowest finite number for −∞. Where every key of a row has it, SDPA would give
    all of them the same weight instead of none. All three show in the greatest number of each row.
    """
    least, greatest = mask.amax(-1).aminmax()
    # In Python: for a short call, three more operations of torch would take as long as attention.
    return LOWEST[mask.dtype] < least.item() and greatest.item() < torch.inf


def may_skip_tiles(mask: Tensor) -> bool:
    """Whether a sample of a large mask tensor suggests that many of its tiles are empty.

    Every 16th entry of every 16th row is read, 16 of each tile of 64 × 64.

    >>> may_skip_tiles(torch.ones(1024, 1024, dtype=torch.bool).tril())
    True
    >>> may_skip_tiles(torch.rand(1024, 1024) > 0.5)
    False
    """
    queries, keys = mask.shape[-2:]
    if queries * keys < MIN_SAMPLED_PAIRS or mask.numel() > queries * keys or min(queries, keys) < TILE:
        return False
    step = TILE // SAMPLES
    sample = mask.detach().reshape(queries, keys)[step // 2 :: step, step // 2 :: step]
    if sample.dtype is not torch.bool:
        sample = sample > 0.99 * torch.finfo(sample.dtype).min
    tiles = F.max_pool2d(sample[None].float(), SAMPLES)
    return bool(tiles.mean() <= DENSE_FRACTION)
