"""Linear attention as a module: projections around ``regard.linear_attention``."""

from __future__ import annotations

from torch import Tensor

from regard.errors import ArgumentError, ShapeError
from regard.kernels import linear_attention, linear_attention_with_state
from regard.kernels.linear_kernel import FeatureMap
from regard.nn.cache import LinearCache
from regard.nn.head_projections import ProjectedHeads


class LinearAttention(ProjectedHeads):
    """Multi-head attention with ``φ(q) · φ(k)`` in place of ``exp(q · k)``: O(n), with a small state.

    A cache holds one state of constant size per head, so every new token costs the same. It is a
    different function from softmax attention.

    Shapes: x ``(batch, query, width)``, context ``(batch, key, width)`` → ``(batch, query, width)``.

    >>> import torch
    >>> from regard import nn
    >>> attend = nn.LinearAttention(16, 4, causal=True)
    >>> x = torch.randn(2, 9, 16)
    >>> cache = nn.LinearCache()
    >>> parts = [attend(x[:, :5], cache=cache), attend(x[:, 5:], cache=cache)]
    >>> torch.allclose(torch.cat(parts, 1), attend(x), atol=1e-5)
    True
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        key_heads: int | None = None,
        causal: bool = False,
        bias: bool = True,
        residual_dropout: float = 0.0,
        feature_map: str | FeatureMap = "elu",
    ) -> None:
        super().__init__(width, heads, key_heads, bias, residual_dropout)
        self.causal = causal
        self.feature_map = feature_map

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        keep: Tensor | None = None,
        cache: LinearCache | None = None,
    ) -> Tensor:
        """Attend from ``x`` to ``context``, or to ``x`` itself; ``keep`` is False at padding.

        ``keep`` has shape ``(batch, key)`` and covers only the keys of this call, not those in the
        cache.
        """
        if context is not None and self.causal:
            raise ArgumentError(
                "causal=True needs self-attention, not a context.",
                got="a context, and causal=True",
                do="Build cross-attention without it.",
            )
        q, k, v = self.project(x, context)
        if cache is None:
            return self.join(
                linear_attention(q, k, v, causal=self.causal, feature_map=self.feature_map, keep=keep)
            )
        if not self.causal:
            raise ArgumentError(
                "A cache holds earlier tokens, so the attention must be causal.",
                got="a cache, and causal=False",
                do="Build it with causal=True.",
            )
        return self.join(self._step(q, k, v, keep, cache))

    def _step(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, cache: LinearCache) -> Tensor:
        if cache.state is not None and cache.state.sums.shape[0] != q.shape[0]:
            raise ShapeError(
                "A cache must continue with the batch that it was filled with (batch = {batch}).",
                got="batch = {new_batch}",
                do="Start a new cache for another batch.",
                batch=cache.state.sums.shape[0],
                new_batch=q.shape[0],
            )
        heads, cache.state = linear_attention_with_state(
            q, k, v, cache.state, feature_map=self.feature_map, keep=keep
        )
        cache.length += q.shape[2]
        return heads
