"""The projections into and out of heads that all attention modules share.

queries = x W_q + b_q        keys, values = c W_k + b_k, c W_v + b_v        c = context or x
split   (batch, length, heads · channel) → (batch, head, length, channel)
output  = (heads side by side) W_o + b_o
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from regard.checks import check_integer, check_probability
from regard.errors import ArgumentError, ShapeError
from regard.nn.dropout import Dropout
from regard.nn.tensor_checks import check_vectors


class ProjectedHeads(nn.Module):
    """The projections of multi-head attention, without the attention.

    ``projection`` computes queries, keys and values in one product; its rows are the query heads,
    then the key heads, then the value heads.
    """

    def __init__(self, width: int, heads: int, key_heads: int | None, bias: bool, dropout: float) -> None:
        super().__init__()
        self.width, self.heads = check_integer("width", width), check_integer("heads", heads)
        self.key_heads = heads if key_heads is None else check_integer("key_heads", key_heads)
        if width % heads:
            raise ArgumentError(
                "heads must divide width (width = {width}).",
                got="heads = {heads}",
                do="Each head takes width / heads channels.",
                width=width,
                heads=heads,
            )
        if heads % self.key_heads:
            raise ArgumentError(
                "key_heads must divide heads (heads = {heads}).",
                got="key_heads = {key_heads}",
                do="Each key head serves heads / key_heads query heads.",
                heads=heads,
                key_heads=key_heads,
            )
        self.channels = width // heads
        key_width = self.key_heads * self.channels
        self.projection = nn.Linear(width, width + 2 * key_width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)
        self.dropout = Dropout(check_probability("residual_dropout", dropout))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier initialisation of each projection separately, not of the three as one wide matrix."""
        for part in self.projection.weight.split(self._widths()):
            nn.init.xavier_uniform_(part)
        nn.init.xavier_uniform_(self.output.weight)
        for linear in (self.projection, self.output):
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def _widths(self) -> list[int]:
        key_width = self.key_heads * self.channels
        return [self.width, key_width, key_width]

    def project(self, x: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of ``x``, keys and values of ``context`` (of ``x`` if it is None), split into heads."""
        check_vectors("x", x, self.width)
        if context is None:
            # All three are split into heads at once: views, nothing is copied.
            q, k, v = self._split(self.projection(x)).split([self.heads, self.key_heads, self.key_heads], 1)
            return q, k, v
        self._check_context(context, x.shape[0])
        for_queries, for_context = self._parts()
        k, v = self._split(F.linear(context, *for_context)).chunk(2, 1)
        return self._split(F.linear(x, *for_queries)), k, v

    def project_queries(self, x: Tensor) -> Tensor:
        """Only the queries, ``(batch, head, query, channel)``, for a context that is in a cache."""
        check_vectors("x", x, self.width)
        return self._split(F.linear(x, *self._parts()[0]))

    def join(self, heads: Tensor) -> Tensor:
        """``(batch, head, query, channel)`` → ``(batch, query, width)``, by the output projection."""
        out: Tensor = self.dropout(self.output(heads.transpose(1, 2).flatten(2)))
        return out

    def _split(self, x: Tensor) -> Tensor:
        """``(batch, length, heads · channel)`` → ``(batch, head, length, channel)``."""
        split: Tensor = x.unflatten(-1, (-1, self.channels)).transpose(1, 2)
        return split

    def _parts(self) -> list[tuple[Tensor, Tensor | None]]:
        """Weight and bias of the queries, and those of keys and values."""
        # split instead of indexing: its gradient is one concatenation instead of zeros and a sum.
        sizes = [self.width, self.projection.out_features - self.width]
        weights, bias = self.projection.weight.split(sizes), self.projection.bias
        return list(zip(weights, (None, None) if bias is None else bias.split(sizes)))

    def _check_context(self, context: object, batch: int) -> None:
        check_vectors("context", context, self.width)
        assert isinstance(context, Tensor)
        if context.shape[0] != batch:
            raise ShapeError(
                "x and context must have the same batch size (x = {batch}).",
                got="context = {context}",
                do="Encode one context per element of the batch.",
                batch=batch,
                context=context.shape[0],
            )

    def extra_repr(self) -> str:
        """The options shown in the module's repr."""
        grouped = f", key_heads={self.key_heads}" if self.key_heads != self.heads else ""
        return f"{self.width}, {self.heads}{grouped}"
