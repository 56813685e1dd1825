"""Multi-head attention modules: projections around ``regard.attention``."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard import masks
from regard.checks import check_choice, check_integer, check_probability
from regard.errors import ArgumentError, ShapeError
from regard.kernels import attention, attention_weights, biases
from regard.kernels.bias import BiasLike
from regard.masks import MaskLike
from regard.nn.cache import KeyValueCache
from regard.nn.head_projections import ProjectedHeads
from regard.nn.positions import RotaryPositions

POSITIONS = (None, "rotary", "alibi")
"""The options of ``MultiHeadAttention(positions=)``."""


class MultiHeadAttention(ProjectedHeads):
    """Multi-head attention: ``concat(attention(x W_q, c W_k, c W_v)) W_o``, with ``c`` = context or x.

    Args:
        width: channels per token; each head has ``width / heads`` of them.
        heads: query heads.
        key_heads: key and value heads; fewer than ``heads`` means grouped-query attention.
        causal: no query sees later tokens; with a cache, the new tokens follow those in it.
        bias: whether the projections have a bias.
        dropout: on the weights, in training.
        residual_dropout: on the output, in training.
        positions: ``"rotary"`` rotates queries and keys, ``"alibi"`` adds a bias of the distance.
        length: the longest sequence for rotary positions.

    Shapes: x ``(batch, query, width)``, context ``(batch, key, width)`` → ``(batch, query, width)``.

    >>> from regard import masks, nn
    >>> attend = nn.MultiHeadAttention(16, 4, causal=True)
    >>> x = torch.randn(2, 7, 16)
    >>> attend(x, mask=masks.padding(lengths=[7, 5])).shape
    torch.Size([2, 7, 16])
    >>> cross = nn.MultiHeadAttention(16, 4, key_heads=2)
    >>> cross(x, torch.randn(2, 9, 16)).shape
    torch.Size([2, 7, 16])
    >>> cache = nn.KeyValueCache()  # in two parts, with the same result
    >>> parts = [attend(x[:, :4], cache=cache), attend(x[:, 4:], cache=cache)]
    >>> torch.allclose(torch.cat(parts, 1), attend(x), atol=1e-5)
    True
    """

    slopes: Tensor | None

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        key_heads: int | None = None,
        causal: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
        residual_dropout: float = 0.0,
        positions: str | None = None,
        length: int = 4096,
    ) -> None:
        super().__init__(width, heads, key_heads, bias, residual_dropout)
        check_choice("positions", positions, POSITIONS)
        self.causal = causal
        self.weight_dropout = check_probability("dropout", dropout)
        self.rotary = RotaryPositions(self.channels, length=length) if positions == "rotary" else None
        slopes = biases.alibi(heads).tables[0] if positions == "alibi" else None
        self.register_buffer("slopes", slopes, persistent=False)

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        mask: MaskLike | None = None,
        bias: BiasLike | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Attend from ``x`` to ``context``, or to ``x`` itself.

        ``mask`` and ``bias`` are those of ``regard.attention``. They cover all keys, including those
        in the cache. In cross-attention, the cache holds the projected context after the first call;
        later calls must pass the same context, of which only the length is checked.
        """
        q, k, v = self._queries_keys_values(x, context, cache)
        heads = attention(
            q,
            k,
            v,
            mask=self._mask(mask, q.shape[2], k.shape[2]),
            bias=_added(bias, self.position_bias()),
            dropout=self.weight_dropout if self.training else 0.0,
        )
        return self.join(heads)

    def weights(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        mask: MaskLike | None = None,
        bias: BiasLike | None = None,
    ) -> Tensor:
        """The weights of every head, ``(batch, head, query, key)``: n×n, for inspection.

        >>> MultiHeadAttention(8, 2, causal=True).weights(torch.randn(1, 3, 8))[0, :, 0].tolist()
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
        """
        q, k, _ = self._queries_keys_values(x, context, None)
        allowed = self._mask(mask, q.shape[2], k.shape[2])
        return attention_weights(q, k, mask=allowed, bias=_added(bias, self.position_bias()))

    def position_bias(self) -> biases.Bias | None:
        """The position bias that the module adds to the scores, if any."""
        return None if self.slopes is None else biases.Alibi(self.slopes)

    def _queries_keys_values(
        self, x: Tensor, context: Tensor | None, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if context is not None:
            self._check_cross()
            if cache is None:
                return self.project(x, context)
            return self._cached_context(x, context, cache)
        q, k, v = self.project(x, None)
        if self.rotary is not None:
            start = 0 if cache is None else cache.length
            q, k = self.rotary(q, start), self.rotary(k, start)
        return (q, k, v) if cache is None else (q, *cache.append(k, v))

    def _cached_context(
        self, x: Tensor, context: Tensor, cache: KeyValueCache
    ) -> tuple[Tensor, Tensor, Tensor]:
        if cache.keys is None or cache.values is None:
            q, k, v = self.project(x, context)
            return q, *cache.append(k, v)
        if (cache.keys.shape[0], cache.length) != (x.shape[0], context.shape[1]):
            raise ShapeError(
                "A cross-attention cache must continue with the context that it was filled from "
                "(batch = {batch}, keys = {keys}).",
                got="batch = {new_batch}, keys = {new_keys}",
                do="Start a new cache for another context.",
                batch=cache.keys.shape[0],
                keys=cache.length,
                new_batch=x.shape[0],
                new_keys=context.shape[1],
            )
        return self.project_queries(x), cache.keys, cache.values

    def _check_cross(self) -> None:
        positions = self.rotary is not None or self.position_bias() is not None
        if self.causal or positions:
            raise ArgumentError(
                "causal=True and positions within attention need self-attention, not a context.",
                got="a context, and positions within attention"
                if positions
                else "a context, and causal=True",
                do="Build cross-attention without them; pass mask=masks.causal() if you do want it.",
            )

    def _mask(self, given: MaskLike | None, queries: int, keys: int) -> MaskLike | None:
        if not self.causal:
            return given
        if given is None:
            return masks.causal()
        if isinstance(given, Tensor) and given.is_floating_point():
            # An additive mask is n×n already, and may have finite values too.
            return given.masked_fill(~masks.causal().dense(queries, keys, device=given.device), -torch.inf)
        return masks.causal() & masks.as_mask(given)


class RelativePositionAttention(MultiHeadAttention):
    """Self-attention with one learned number per head and distance, added to the scores.

    ``s_ij += table[head, clip + clamp(j − i, −clip, clip)]``: all distances beyond ``clip`` share one
    entry, so sequences may have any length (Shaw et al., 2018, with scalars as in T5). The table is
    initialised to 0, which is plain attention.

    Shapes: ``(batch, length, width)`` → the same. The options are those of :class:`MultiHeadAttention`.

    >>> attend = RelativePositionAttention(16, 4, clip=32)
    >>> attend.table.shape, attend(torch.randn(2, 100, 16)).shape
    (torch.Size([4, 65]), torch.Size([2, 100, 16]))
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        clip: int = 32,
        key_heads: int | None = None,
        causal: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
        residual_dropout: float = 0.0,
    ) -> None:
        super().__init__(
            width,
            heads,
            key_heads=key_heads,
            causal=causal,
            bias=bias,
            dropout=dropout,
            residual_dropout=residual_dropout,
        )
        self.table = nn.Parameter(torch.zeros(heads, 2 * check_integer("clip", clip) + 1))

    def position_bias(self) -> biases.Bias | None:
        """The learned table as a bias of the distance."""
        return biases.relative(self.table)


def _added(given: BiasLike | None, own: biases.Bias | None) -> BiasLike | None:
    """The sum of the user's bias and that of the module."""
    if given is None or own is None:
        return own if given is None else given
    if isinstance(given, Tensor):
        given = biases.TensorBias(given[(None,) * (4 - given.ndim)])
    return own + given
