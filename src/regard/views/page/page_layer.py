"""What a page carries of a call for the steps behind its heads: W_O with its bias, and the residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.recording import Call, ScoredCall
from regard.views.page.array_packing import ArrayStore
from regard.views.page.quantisation import Quantised, quantise

PROJECTED = 1 << 20
"""Numbers in all W_O of a page up to which it carries them, for the last steps of a calculation."""

RESIDUALS = 1 << 21
"""Numbers in all residuals of a page up to which it carries them."""

ROUNDED = 1e-3
"""How far a residual on a page may be from the exact one, as a share of its mean size."""


@dataclass(frozen=True)
class CarriedLayers:
    """Whether a page has W_O of each of its calls, and the residuals that were found."""

    projections: bool
    residuals: bool


def carried_layers(calls: Sequence[Call]) -> CarriedLayers:
    """What a page of these calls has: all must be recorded, with all heads, and they must be small."""
    scored = [call for call in calls if isinstance(call, ScoredCall) and call.has_all_heads]
    weights = [
        call.projection.numel() for call in scored if call.projection is not None and call.v is not None
    ]
    projections = len(weights) == len(calls) > 0 and sum(weights) <= PROJECTED
    residuals = sum(call.residual[0].numel() for call in scored if call.residual is not None)
    return CarriedLayers(projections, projections and 0 < residuals <= RESIDUALS)


def layer_bytes(calls: Sequence[Call]) -> int:
    """About how many bytes of a page these take, before they become text."""
    carried = carried_layers(calls)
    found = 0
    for call in calls:
        if carried.projections:
            found += 2 * call.scored().projections.numel()
        if carried.residuals and isinstance(call, ScoredCall) and call.residual is not None:
            found += 2 * call.residual[0].numel()
    return found


def carried_layer(call: ScoredCall, carried: CarriedLayers) -> Callable[[ArrayStore], dict[str, Any]]:
    """W_O, its bias and the residual of a call of one sequence, ready for the page."""
    if not carried.projections:
        return lambda arrays: {}
    weight = quantise(call.projections.double().numpy(), 16, short_scales=True)
    bias = None if call.projection_bias is None else call.projection_bias.float().numpy()
    residual = None
    if call.residual is not None and carried.residuals:
        residual = _rounded(call.residual.double().numpy())
    return lambda arrays: {
        "projection": arrays.put_rows(weight),
        "projectionBias": None if bias is None else arrays.put(bias),
        "residual": None if residual is None else arrays.put_rows(residual),
        "residualFound": call.residual is not None,
    }


def _rounded(exact: NDArray[np.float64]) -> Quantised:
    """Residuals as few bits as keep them exact enough; a few channels of some models are very large."""
    for bits in (16, 24):
        found = quantise(exact, bits)
        if np.abs(found.decoded() - exact).max(initial=0.0) <= ROUNDED * np.abs(exact).mean():
            break
    return found
