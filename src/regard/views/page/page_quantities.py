"""What a page shows of a call besides its weights: gradients, and what keys give to the output.

With V and dO the browser computes ``∂L/∂w_ij = dO_i · v_j`` and ``w_ij · ∂L/∂w_ij``. With one number per key
and head it computes ``c_ij = w_ij · c_j``: what key j gave along a direction u, ``c_j = (v_j W_O) · u``, or
without a direction how much it gave at all, ``c_j = ‖v_j W_O‖``. V and dO are rounded like Q and K. The
greatest error of each quantity is measured by decoding them again; where that of gradients exceeds the bound,
they get more bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import ArgumentError, RecordingError
from regard.heads.head_importance import gate_gradients
from regard.heads.value_norms import value_weighted
from regard.kernels.plain_kernel import weights_of
from regard.recording import Call, ScoredCall
from regard.views.page.array_packing import ArrayStore
from regard.views.page.head_groups import HeadSlice
from regard.views.page.quantisation import Quantised, quantise
from regard.views.page.rounding_error import exact_weights, rows_to_compare, softmax_of
from regard.views.page.thumbnails import block_size

QUANTITIES = ("weight", "gradient", "product", "contribution")
"""What a page can show of a pair, as ``what`` names it."""

BOUND = 1e-3
"""No gradient on a page may be further from the exact one, as a share of the greatest of its call."""

AT_ONCE = 1 << 19
"""Pairs that a thread holds at one time."""

MASKED = -128
"""In a thumbnail: a block in which no query may see a key."""

DECADES = 5
"""In a thumbnail, numbers that are this many powers of ten below the greatest, or more, are 0."""


@dataclass(frozen=True, eq=False)
class CarriedQuantities:
    """V, dO and what keys have to give, as the browser will have them, and what is known of each quantity."""

    v: Quantised | None
    output_gradient: Quantised | None
    given: NDArray[np.float32] | None  # (head, key): c_j
    errors: dict[str, float]  # the greatest |shown − exact| of each quantity
    pictures: dict[str, QuantityPicture]

    def described(self, arrays: ArrayStore) -> dict[str, Any]:
        """Its part of a call's description."""
        return {
            "outputGradient": None if self.output_gradient is None else arrays.put_rows(self.output_gradient),
            "given": None if self.given is None else arrays.put(self.given),
            "quantities": {
                name: {
                    "error": self.errors[name],
                    "greatest": arrays.put(picture.greatest),
                    "thumbnails": arrays.put(picture.tones),
                }
                for name, picture in self.pictures.items()
            },
        }


@dataclass(frozen=True, eq=False)
class QuantityPicture:
    """Of every head the number that is furthest from 0 in each block of pairs, and in all of them."""

    tones: NDArray[np.int8]  # (head, block of queries, block of keys): logarithms, or MASKED
    greatest: NDArray[np.float32]  # (head,): the greatest size


def quantities_of(calls: Sequence[Call]) -> list[str]:
    """What a page of these calls can show: what all of them have.

    >>> quantities_of([])
    ['weight']
    """
    scored = [call for call in calls if isinstance(call, ScoredCall)]
    if not scored or len(scored) < len(calls):
        return ["weight"]
    found = ["weight"]
    if all(call.has_gradient and call.v is not None for call in scored):
        found += ["gradient", "product"]
    if all(call.projection is not None and call.v is not None for call in scored):
        found.append("contribution")
    return found


def check_what(what: str, known: Sequence[str]) -> str:
    """The quantity, if the calls of a page have it."""
    if what in known:
        return what
    raise ArgumentError(
        "what must be one of those that the page can show ({known}).",
        got="what = {what!r}",
        do="Record with watch(model, {missing}=True)." if what in QUANTITIES else "Choose one of them.",
        known=", ".join(known),
        what=what,
        missing="projections" if what == "contribution" else "gradients",
    )


def given_by_keys(call: ScoredCall, direction: Tensor | None) -> Tensor:
    """``c_j`` of each head and key, ``(head, key)``: along a direction, or the size without one."""
    if direction is None:
        return value_weighted(call).norms[0]
    call.contribution(call.head_numbers[0], slice(0, 0), direction=direction)  # raises if its shape is wrong
    return call.given_by_keys(direction)[0].double()


def carried_quantities(
    call: ScoredCall,
    pieces: Sequence[HeadSlice],
    shown: Sequence[HeadSlice],
    lse: Tensor,
    what: Sequence[str],
    direction: Tensor | None,
) -> CarriedQuantities | None:
    """The quantities of one sequence, rounded and measured; None if there are weights alone.

    ``pieces`` are the heads of the call, ``shown`` the same as the page has them, with their ``lse``.
    """
    named = [name for name in what if name != "weight"]
    if not named:
        return None
    gradients = "gradient" in named
    exact = _QuantityInputs(
        call.gradients[0] if gradients else None,
        call.values[0] if gradients else None,
        given_by_keys(call, direction) if "contribution" in named else None,
    )
    rows = rows_to_compare(call.gradients[0] if gradients else call.q[0], call.keys)
    rounded, v, output_gradient, errors = exact, None, None, dict.fromkeys(named, 0.0)
    for bits in (16, 24, 32):
        if gradients:
            output_gradient, v = (
                quantise(x[0].double().numpy(), bits, short_scales=True)
                for x in (call.gradients, call.values)
            )
            rounded = _QuantityInputs(_decoded(output_gradient), _decoded(v), exact.given)
        errors, greatest = _errors(pieces, shown, lse, exact, rounded, rows, named)
        if not gradients or errors["gradient"] <= BOUND * greatest["gradient"]:
            break
    for name, error in errors.items():
        if not math.isfinite(error):
            raise RecordingError(
                "A page needs finite numbers, but {name} of {call_name} has others.",
                got="NaN or infinity",
                do="Check the model: its numbers overflowed.",
                name=name,
                call_name=call.name,
            )
    return CarriedQuantities(
        v,
        output_gradient,
        None if exact.given is None else exact.given.float().numpy(),
        errors,
        _pictures(pieces, exact, named),
    )


def _decoded(rounded: Quantised) -> Tensor:
    """The numbers as the browser has them."""
    return torch.from_numpy(rounded.decoded())


def head_numbers(
    call: ScoredCall, what: Sequence[str], direction: Tensor | None
) -> dict[str, NDArray[np.float32]]:
    """One number per head for each quantity: importance, and what the head gives to a query on average."""
    found = {}
    if "gradient" in what:
        found["importance"] = gate_gradients(call)[0].abs().float().numpy()
    if "contribution" in what:
        given = given_by_keys(call, direction)  # (head, key)
        received = call.statistics().received[0].double().cpu()  # (head, key): Σ_i w_ij
        found["contribution"] = ((received * given).sum(-1) / max(1, call.queries)).float().numpy()
    return found


# ---- parts of the matrices -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _QuantityInputs:
    """What the quantities are computed from."""

    output_gradient: Tensor | None  # (head, query, value channel)
    v: Tensor | None  # (key head, key, value channel)
    given: Tensor | None  # (head, key)

    def values(
        self, piece: HeadSlice, weights: Tensor, rows: Tensor, names: Sequence[str]
    ) -> Iterator[tuple[str, Tensor]]:
        """The quantities ``(head, row, key)`` of some queries, from their weights."""
        gradient = None
        if self.output_gradient is not None and self.v is not None:
            group = (piece.heads.stop - piece.heads.start) // (piece.key_heads.stop - piece.key_heads.start)
            v = self.v[piece.key_heads].to(weights).repeat_interleave(group, 0)
            gradient = self.output_gradient[piece.heads][:, rows].to(weights) @ v.mT
        for name in names:
            if name == "contribution":
                assert self.given is not None
                yield name, weights * self.given[piece.heads].to(weights)[:, None]
            else:
                assert gradient is not None
                yield name, gradient if name == "gradient" else weights * gradient


def _errors(
    pieces: Sequence[HeadSlice],
    shown: Sequence[HeadSlice],
    lse: Tensor,
    exact: _QuantityInputs,
    rounded: _QuantityInputs,
    rows: Tensor,
    names: Sequence[str],
) -> tuple[dict[str, float], dict[str, float]]:
    """``max |shown − exact|`` and ``max |exact|`` of each quantity over some rows, in float64."""
    errors, greatest = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for piece, own in zip(pieces, shown):
        for some in rows.split(max(1, AT_ONCE // max(1, len(piece.q) * piece.extent.keys))):
            wanted = exact_weights(piece, some)
            found = weights_of(own.scores(some, torch.float64), lse[piece.heads][:, some, None].double())
            pairs = zip(
                exact.values(piece, wanted, some, names),
                rounded.values(piece, found.float().double(), some, names),
            )
            for (name, right), (_, other) in pairs:
                if right.numel():
                    errors[name] = max(errors[name], float((other.float() - right).abs().max()))
                    greatest[name] = max(greatest[name], float(right.abs().max()))
    return errors, greatest


def _pictures(
    pieces: Sequence[HeadSlice], exact: _QuantityInputs, names: Sequence[str]
) -> dict[str, QuantityPicture]:
    """A small picture of each quantity, a few rows at a time."""
    parts: dict[str, list[Tensor]] = {name: [] for name in names}
    for piece in pieces:
        heads, (queries, keys) = len(piece.q), piece.extent
        height, width = block_size(queries), block_size(keys)
        step = max(1, AT_ONCE // max(1, heads * keys * height)) * height
        own: dict[str, list[Tensor]] = {name: [] for name in names}
        for start in range(0, queries, step):
            rows = torch.arange(start, min(start + step, queries))
            scores = piece.scores(rows, piece.q.dtype)
            weights = softmax_of(scores, piece.sinks)
            hidden = scores == -torch.inf
            for name, values in exact.values(piece, weights, rows, names):
                own[name].append(furthest_in_blocks(values.masked_fill(hidden, torch.nan), height, width))
        for name in names:
            parts[name].append(torch.cat(own[name], 1))
    return {name: picture_of_blocks(torch.cat(found)) for name, found in parts.items()}


def picture_of_blocks(furthest: Tensor) -> QuantityPicture:
    """The picture of blocks ``(head, row, column)``, each by its number furthest from 0."""
    greatest = furthest.abs().nan_to_num(0.0).amax((1, 2))
    shares = furthest.abs() / greatest.clamp_min(1e-38)[:, None, None]
    # Logarithms, so that small numbers differ too; the steps are a tenth apart.
    tones = (127 * (1 + shares.clamp_min(1e-38).log10() / DECADES)).round().clamp_min(0) * furthest.sign()
    return QuantityPicture(tones.nan_to_num(MASKED).to(torch.int8).numpy(), greatest.numpy())


def furthest_in_blocks(values: Tensor, height: int, width: int) -> Tensor:
    """The number furthest from 0 of each block ``height × width``, NaN where there is none.

    >>> furthest_in_blocks(torch.tensor([[[1.0, -3.0, torch.nan], [2.0, 0.0, torch.nan]]]), 2, 2)
    tensor([[[-3., nan]]])
    """
    for axis, size in ((2, width), (1, height)):
        padding = (0, -values.shape[2] % size) if axis == 2 else (0, 0, 0, -values.shape[1] % size)
        blocks = F.pad(values, padding, value=torch.nan).unflatten(axis, (-1, size))
        sizes = blocks.abs().nan_to_num(-1.0).argmax(axis + 1, keepdim=True)
        values = blocks.gather(axis + 1, sizes).squeeze(axis + 1)
    return values
