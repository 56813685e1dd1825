"""Linear attention: ``o_i = φ(q_i) Σ_j φ(k_j) v_jᵀ / φ(q_i) Σ_j φ(k_j)``, in O(n).

The sums over keys do not depend on the query, so they are computed once. In causal form they grow
along the sequence, which is split into chunks: pairs within a chunk are computed directly, and
everything before the chunk is summarised in one state ``(channel, value channel + 1)``.
The last column holds the denominator, as if every value had a 1 appended.

This is a different function from softmax attention, not an approximation of it
(Katharopoulos et al., 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.kernels.inputs import Inputs, prepare
from regard.threads import MIN_SPREAD_SIZE, each, spread

CHUNK = 64
"""Positions per chunk: within a chunk each position costs CHUNK · channel, the state channel² per chunk."""

SEGMENT = 16 * CHUNK
"""Positions processed at once, so that a segment fits the CPU cache: three times as fast."""

FeatureMap = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class LinearState:
    """All that linear attention remembers of the past: ``Σ φ(k) [v, 1]ᵀ`` per head.

    >>> import torch
    >>> q = k = v = torch.randn(1, 2, 3, 4)  # (batch, head, length, channel)
    >>> _, state = linear_attention_with_state(q, k, v)
    >>> _, state = linear_attention_with_state(q, k, v, state=state)  # three more tokens
    """

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
    """Attention with ``φ(q) · φ(k)`` in place of ``exp(q · k)``; φ(x) = elu(x) + 1 by default.

    Args:
        q: queries ``(..., head, query, channel)``.
        k: keys ``(..., key head, key, channel)``; fewer heads than q means grouped heads.
        v: values ``(..., key head, key, value channel)``.
        causal: each query sees the keys up to its own position; the last query is at the last key.
        feature_map: ``"elu"`` or a function that maps channels to non-negative features.
        keep: bool ``(..., key)`` without the head axis, False for padding.

    >>> q = k = v = torch.randn(2, 4, 1000, 16)
    >>> linear_attention(q, k, v, causal=True).shape
    torch.Size([2, 4, 1000, 16])
    """
    call = _prepare(q, k, v, feature_map, keep)
    queries, keys = q.shape[-2], k.shape[-2]
    if not causal:
        return call.restore(_by_heads(call, _whole))
    if keys < queries:
        raise ShapeError(
            "Causal linear attention needs at least as many keys as queries (keys = {keys}).",
            got="queries = {queries}",
            do="Pass the keys of the whole sequence, or continue from a state.",
            keys=keys,
            queries=queries,
        )
    before = keys - queries
    return call.restore(_by_heads(call, lambda some: _causal(some, some.sums(0, before), before)[0]))


def linear_attention_with_state(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    state: LinearState | None = None,
    *,
    feature_map: str | FeatureMap = "elu",
    keep: Tensor | None = None,
) -> tuple[Tensor, LinearState]:
    """Causal linear attention that continues from a state: a prompt first, then token by token.

    >>> x = torch.randn(1, 5, 8)  # (head, length, channel)
    >>> whole = linear_attention(x, x, x, causal=True)
    >>> first, state = linear_attention_with_state(x[:, :4], x[:, :4], x[:, :4])
    >>> last, state = linear_attention_with_state(x[:, 4:], x[:, 4:], x[:, 4:], state)
    >>> torch.allclose(torch.cat([first, last], 1), whole, atol=1e-6)
    True
    """
    call = _prepare(q, k, v, feature_map, keep)
    if k.shape[-2] != q.shape[-2]:
        raise ShapeError(
            "With a state, queries and keys must be the same new tokens (queries = {queries}).",
            got="keys = {keys}",
            do="Pass only the keys that the state has not seen.",
            queries=q.shape[-2],
            keys=k.shape[-2],
        )
    sums = call.sums(0, 0)
    if state is not None:
        own = tuple(sums.shape)
        sums = (
            state.sums.reshape(-1, *state.sums.shape[-3:]) if state.sums.ndim > 2 else state.sums[None, None]
        )
        if tuple(sums.shape) != own:
            raise ShapeError(
                "The state must have shape (batch, heads, features, value channels + 1) = {own}.",
                got="{shape}",
                do="Start again with state=None.",
                own=own,
                shape=tuple(sums.shape),
            )
    output, sums = _causal(call, sums, 0)
    return call.restore(output), LinearState(call.inputs.restore(sums))


# ---- the calculation -------------------------------------------------------------------------


def _by_heads(call: _LinearCall, work: Callable[[_LinearCall], Tensor]) -> Tensor:
    """The output of all heads, with key heads computed in parallel."""
    inputs = call.inputs
    size = 4 * inputs.q.numel() * inputs.v.shape[-1]
    if inputs.q.device.type != "cpu" or not call.by_heads or size < MIN_SPREAD_SIZE:
        return work(call)
    return spread(lambda: torch.cat(each(work, call.heads_apart()), 1), size)


def _whole(call: _LinearCall) -> Tensor:
    sums = call.sums(0, call.inputs.extent.keys)
    segments = _segments(call.inputs.extent.queries)
    return call.joined([_divide(call.queries(*segment) @ sums) for segment in segments])


def _causal(call: _LinearCall, sums: Tensor, before: int) -> tuple[Tensor, Tensor]:
    """The output of the queries that follow the ``before`` keys in ``sums``, and the sums after them."""
    outputs = []
    for start, stop in _segments(call.inputs.extent.queries):
        q, k, v = (
            call.queries(start, stop),
            call.keys(before + start, before + stop),
            call.values(before + start, before + stop),
        )
        rest = (start - stop) % CHUNK
        # Padding with zeros adds 0 to every sum.
        q, k, v = (F.pad(x, (0, 0, 0, rest)).unflatten(-2, (-1, CHUNK)) for x in (q, k, v))
        inside = (q @ k.transpose(-1, -2)).tril() @ v  # (batch, head, chunk, query, value channel + 1)
        running = torch.cat([sums.unsqueeze(-3), k.transpose(-1, -2) @ v], -3).cumsum(-3)
        together = (inside + q @ running[..., :-1, :, :]).flatten(-3, -2)
        outputs.append(_divide(together[..., : stop - start, :]))
        sums = running[..., -1, :, :]
    return call.joined(outputs), sums


def _segments(length: int) -> list[tuple[int, int]]:
    return [(start, min(start + SEGMENT, length)) for start in range(0, length, SEGMENT)]


def _divide(output: Tensor) -> Tensor:
    """The weighted sums divided by the sums of the weights; 0 for queries that see no key."""
    total = output[..., -1:]
    return output[..., :-1] / torch.where(total == 0, 1.0, total)


@dataclass(frozen=True, eq=False)
class _LinearCall:
    """The checked inputs, turned into features for a range of positions at a time."""

    inputs: Inputs
    feature_map: FeatureMap
    keep: Tensor | None  # (batch or 1, 1, key, 1)
    by_heads: bool  # whether the feature map is ours and treats every head alike

    def heads_apart(self) -> list[_LinearCall]:
        """One call per key head."""
        inputs = self.inputs
        group = inputs.heads // max(1, inputs.k.shape[1])
        return [
            replace(
                self,
                inputs=replace(
                    inputs,
                    q=inputs.q[:, head * group : (head + 1) * group],
                    k=inputs.k[:, head : head + 1],
                    v=inputs.v[:, head : head + 1],
                ),
            )
            for head in range(inputs.k.shape[1])
        ]

    def queries(self, start: int, stop: int) -> Tensor:
        return self._features(self.inputs.q[:, :, start:stop])

    def keys(self, start: int, stop: int) -> Tensor:
        features = self._features(self.inputs.k[:, :, start:stop])
        if self.keep is not None:
            features = features * self.keep[:, :, start:stop].to(features.dtype)
        return self._spread(features)

    def values(self, start: int, stop: int) -> Tensor:
        """Values with a 1 appended to each, whose weighted sum is the denominator."""
        return self._spread(F.pad(self._wide(self.inputs.v[:, :, start:stop]), (0, 1), value=1.0))

    def sums(self, start: int, stop: int) -> Tensor:
        """``Σ φ(k) [v, 1]ᵀ`` over a range of keys."""
        total = self.keys(0, 0).transpose(-1, -2) @ self.values(0, 0)
        for first, last in _segments(stop - start):
            total = total + self.keys(start + first, start + last).transpose(-1, -2) @ self.values(
                start + first, start + last
            )
        return total

    def joined(self, outputs: list[Tensor]) -> Tensor:
        """The output of all segments, in the dtype of the user's tensors."""
        whole = torch.cat(
            [self.values(0, 0)[..., :0, :-1].expand(*self.inputs.q.shape[:2], 0, -1), *outputs], -2
        )
        return whole.to(self.inputs.q.dtype)

    def restore(self, output: Tensor) -> Tensor:
        """The output with the axes of the user's tensors."""
        return self.inputs.restore(output)

    def _features(self, x: Tensor) -> Tensor:
        features = self.feature_map(self._wide(x))
        if features.shape[:-1] != x.shape[:-1]:
            raise ShapeError(
                "A feature map may change only the last axis.",
                got="{features} from {channels}",
                do="Map channels to features.",
                features=tuple(features.shape),
                channels=tuple(x.shape),
            )
        return features

    def _wide(self, x: Tensor) -> Tensor:
        return x.to(torch.promote_types(x.dtype, torch.float32))

    def _spread(self, x: Tensor) -> Tensor:
        """Each key head repeated for every query head that shares it."""
        group = self.inputs.heads // max(1, x.shape[1])
        return x if group == 1 else x.repeat_interleave(group, 1)


def _prepare(
    q: Tensor, k: Tensor, v: Tensor, feature_map: str | FeatureMap, keep: Tensor | None
) -> _LinearCall:
    inputs = prepare(q, k, v)
    checked = None if keep is None else _check_keep(keep, inputs.lead, inputs.extent.keys, q.device)
    return _LinearCall(inputs, _feature_map(feature_map), checked, feature_map == "elu")


def _feature_map(given: str | FeatureMap) -> FeatureMap:
    if given == "elu":
        return lambda x: F.elu(x) + 1
    if callable(given):
        return given
    raise ArgumentError(
        'feature_map must be "elu" or a function.',
        got="{given!r}",
        do="Pass a function that maps a tensor of channels to features.",
        given=given,
    )


def _check_keep(keep: object, lead: tuple[int, ...], keys: int, device: torch.device) -> Tensor:
    """``keep`` as ``(batch or 1, 1, key, 1)``."""
    if not isinstance(keep, Tensor) or keep.dtype != torch.bool:
        raise DtypeError(
            "keep must be a bool tensor, True for real tokens.",
            got="{type}",
            do="Convert it with .bool().",
            type=type(keep).__name__,
        )
    try:
        wide = keep.to(device).expand(*lead, keys)
    except RuntimeError:
        raise ShapeError(
            "keep must broadcast to (..., key) = {full}.",
            got="shape {shape}",
            do="Pass one value per key, without a head axis.",
            full=(*lead, keys),
            shape=tuple(keep.shape),
        ) from None
    return wide.reshape(-1, 1, keys, 1)
