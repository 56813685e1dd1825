"""Linear attention: ``o_i = φ(q_i) Σ_j φ(k_j) v_jᵀ / φ(q_i) Σ_j φ(k_j)``, in O(n).

The sums over keys do not depend on the query, so they are taken once. In causal form they grow
along the sequence: the sequence is cut into chunks; inside a chunk the few pairs are computed
as they are, and everything before the chunk is one carried state ``(channel, value channel + 1)``.
The last column carries the denominator, as if every value had a 1 appended.

It is another function than softmax attention, not an approximation that regard would pass off as
exact (Katharopoulos et al., 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regard.attention.inputs import prepare
from regard.errors import ArgumentError, DtypeError, ShapeError

CHUNK = 64
"""Queries per chunk: pairs inside a chunk cost CHUNK · channel each, the state channel² per chunk."""

FeatureMap = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class LinearState:
    """Everything that linear attention remembers of the past: ``Σ φ(k) [v, 1]ᵀ`` per head."""

    sums: Tensor  # (..., head, feature, value channel + 1)


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    feature_map: str | FeatureMap = "elu",
    keep: Tensor | None = None,
) -> Tensor:
    """Attention with ``φ(q) · φ(k)`` in place of ``exp(q · k)``; φ(x) = elu(x) + 1 unless told.

    Args:
        q: queries ``(..., head, query, channel)``.
        k: keys ``(..., key head, key, channel)``; fewer heads than queries means grouped heads.
        v: values ``(..., key head, key, value channel)``.
        causal: each query sees the keys up to its own position; the last query stands at the last key.
        feature_map: ``"elu"`` or a function that maps channels to features that are not negative.
        keep: bool ``(..., key)`` without the head axis, False for padding.

    >>> q = k = v = torch.randn(2, 4, 1000, 16)
    >>> linear_attention(q, k, v, causal=True).shape
    torch.Size([2, 4, 1000, 16])
    """
    features = _prepare(q, k, v, feature_map, keep)
    if not causal:
        output = _divide(features.q @ (features.k.transpose(-1, -2) @ features.v))
        return features.restore(output)
    before = features.k.shape[-2] - features.q.shape[-2]
    if before < 0:
        raise ShapeError(
            f"Causal linear attention has at least as many keys as queries (keys = {features.k.shape[-2]}).",
            got=f"queries = {features.q.shape[-2]}",
            do="Pass the keys of the whole sequence, or carry a state.",
        )
    state = features.k[..., :before, :].transpose(-1, -2) @ features.v[..., :before, :]
    output, _ = _chunked(features.q, features.k[..., before:, :], features.v[..., before:, :], state)
    return features.restore(output)


def linear_attention_with_state(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    state: LinearState | None = None,
    *,
    feature_map: str | FeatureMap = "elu",
    keep: Tensor | None = None,
) -> tuple[Tensor, LinearState]:
    """Causal linear attention that goes on where it stopped: a prompt, then token by token.

    >>> x = torch.randn(1, 5, 8)  # (head, length, channel)
    >>> whole = linear_attention(x, x, x, causal=True)
    >>> first, state = linear_attention_with_state(x[:, :4], x[:, :4], x[:, :4])
    >>> last, state = linear_attention_with_state(x[:, 4:], x[:, 4:], x[:, 4:], state)
    >>> torch.allclose(torch.cat([first, last], 1), whole, atol=1e-6)
    True
    """
    features = _prepare(q, k, v, feature_map, keep)
    if features.k.shape[-2] != features.q.shape[-2]:
        raise ShapeError(
            f"With a state, queries and keys are the same new tokens (queries = {features.q.shape[-2]}).",
            got=f"keys = {features.k.shape[-2]}",
            do="Pass only the keys that the state has not seen.",
        )
    shape = (*features.q.shape[:-2], features.k.shape[-1], features.v.shape[-1])
    if state is None:
        sums = features.v.new_zeros(shape)
    else:
        sums = state.sums.reshape(-1, *state.sums.shape[-3:])
        if tuple(sums.shape) != shape:
            raise ShapeError(
                f"The state fits batch, heads and channels {shape}.", got=f"{tuple(sums.shape)}", do="Start again with state=None."
            )
    output, sums = _chunked(features.q, features.k, features.v, sums)
    return features.restore(output), LinearState(sums.reshape(*features.lead, *sums.shape[1:]))


# ---- the calculation -------------------------------------------------------------------------


def _chunked(q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Causal attention of as many queries as keys after ``state``; also the state behind them."""
    length = q.shape[-2]
    rest = -length % CHUNK
    # Zeros at the end are features of nothing: they add 0 to every sum.
    q, k, v = (F.pad(x, (0, 0, 0, rest)).unflatten(-2, (-1, CHUNK)) for x in (q, k, v))
    inside = (q @ k.transpose(-1, -2)).tril_() @ v  # (..., chunk, query, value channel + 1)
    sums = torch.cat([state.unsqueeze(-3), k.transpose(-1, -2) @ v], -3).cumsum(-3)
    output = (inside + q @ sums[..., :-1, :, :]).flatten(-3, -2)[..., :length, :]
    return _divide(output), sums[..., -1, :, :]


def _divide(output: Tensor) -> Tensor:
    """The sums over values by the sums of weights; 0 where nothing was seen."""
    total = output[..., -1:]
    return output[..., :-1] / torch.where(total == 0, 1.0, total)


@dataclass(frozen=True, eq=False)
class _Features:
    q: Tensor  # (batch, head, query, feature)
    k: Tensor  # (batch, head, key, feature)
    v: Tensor  # (batch, head, key, value channel + 1)
    lead: tuple[int, ...]
    dtype: torch.dtype

    def restore(self, output: Tensor) -> Tensor:
        return output.reshape(*self.lead, *output.shape[-2:]).to(self.dtype)


def _prepare(q: Tensor, k: Tensor, v: Tensor, feature_map: str | FeatureMap, keep: Tensor | None) -> _Features:
    inputs = prepare(q, k, v)
    mapped = _feature_map(feature_map)
    wide = torch.promote_types(q.dtype, torch.float32)
    group = inputs.heads // max(1, inputs.k.shape[1])
    features_q, features_k = mapped(inputs.q.to(wide)), mapped(inputs.k.to(wide))
    if features_q.shape[:-1] != inputs.q.shape[:-1] or features_k.shape[:-1] != inputs.k.shape[:-1]:
        raise ShapeError(
            "A feature map changes at most the last axis.", got=f"{tuple(features_q.shape)} from {tuple(inputs.q.shape)}", do="Map channels to features."
        )
    if keep is not None:
        features_k = features_k * _check_keep(keep, inputs.lead, inputs.extent.keys, q.device).to(wide)
    values = F.pad(inputs.v.to(wide), (0, 1), value=1.0)
    if group > 1:
        features_k, values = features_k.repeat_interleave(group, 1), values.repeat_interleave(group, 1)
    lead = (*inputs.lead, inputs.heads) if inputs.has_heads else ()
    return _Features(features_q, features_k, values, lead, q.dtype)


def _feature_map(given: str | FeatureMap) -> FeatureMap:
    if given == "elu":
        return lambda x: F.elu(x) + 1
    if callable(given):
        return given
    raise ArgumentError('feature_map is "elu" or a function.', got=repr(given), do="Pass a function of a tensor of channels.")


def _check_keep(keep: object, lead: tuple[int, ...], keys: int, device: torch.device) -> Tensor:
    """``keep`` as ``(batch or 1, 1, key, 1)``."""
    if not isinstance(keep, Tensor) or keep.dtype != torch.bool:
        raise DtypeError("keep is a bool tensor, True for real tokens.", got=type(keep).__name__, do="Convert it with .bool().")
    try:
        wide = keep.to(device).expand(*lead, keys)
    except RuntimeError:
        raise ShapeError(
            f"keep broadcasts to (..., key) = {(*lead, keys)}.", got=f"shape {tuple(keep.shape)}", do="Pass one value per key, without a head axis."
        ) from None
    return wide.reshape(-1, 1, keys, 1)
