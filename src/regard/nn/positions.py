"""Position encodings. Each module takes an offset, for decoding with a cache.

| module                | acts on                                  | beyond its length |
|-----------------------|------------------------------------------|-------------------|
| `SinusoidalPositions` | adds to the vectors                      | an error          |
| `LearnedPositions`    | adds to the vectors                      | an error          |
| `RotaryPositions`     | rotates queries and keys                 | an error          |
| ALiBi                 | `MultiHeadAttention(positions="alibi")`  | has no length     |
| relative              | `RelativePositionAttention`              | has no length     |
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from regard.checks import check_integer
from regard.errors import ArgumentError, ShapeError
from regard.nn.tensor_checks import check_vectors

Offset = int | Tensor
"""The position of the first token, or an integer tensor ``(batch, length)`` with those of all tokens."""


def rows_of(table: Tensor, length: int, offset: Offset) -> Tensor:
    """The rows of a position table: ``(length, channel)`` or ``(batch, length, channel)``."""
    if isinstance(offset, Tensor):
        _check_longest(int(offset.max()) + 1 if offset.numel() else 0, len(table))
        return table[offset]
    _check_longest(offset + length, len(table))
    return table[offset : offset + length]


def _check_longest(needed: int, longest: int) -> None:
    if needed > longest:
        raise ShapeError(
            "A text must fit the positions of the model (longest = {longest}).",
            got="{needed} tokens",
            do="Shorten the text, or build the module with a larger length.",
            longest=longest,
            needed=needed,
        )


def _frequencies(pairs: int, base: float) -> Tensor:
    """``base^(−i / pairs)``: from one turn in 2π tokens down to one in 2π · base."""
    return torch.exp(torch.arange(pairs, dtype=torch.float64) * (-math.log(base) / max(1, pairs)))


class SinusoidalPositions(nn.Module):
    """Adds ``sin(p · ω_i)`` to even channels and ``cos(p · ω_i)`` to odd ones, ω_i = base^(−2i/width).

    Shapes: ``(batch, length, width)`` → the same.

    >>> positions = SinusoidalPositions(4)
    >>> positions(torch.zeros(1, 2, 4)).tolist()[0][0]  # at 0: sin 0, cos 0, sin 0, cos 0
    [0.0, 1.0, 0.0, 1.0]
    >>> torch.equal(positions(torch.zeros(1, 9, 4))[:, 5:], positions(torch.zeros(1, 4, 4), offset=5))
    True
    """

    table: Tensor

    def __init__(self, width: int, *, length: int = 4096, base: float = 10000.0) -> None:
        super().__init__()
        self.width, self.length = check_integer("width", width), check_integer("length", length)
        angles = torch.arange(length, dtype=torch.float64)[:, None] * _frequencies((width + 1) // 2, base)
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[:, :width]
        self.register_buffer("table", table.float(), persistent=False)

    def forward(self, x: Tensor, offset: Offset = 0) -> Tensor:
        """``x`` with its positions added."""
        check_vectors("x", x, self.width)
        return x + rows_of(self.table, x.shape[1], offset).to(x.dtype)


class LearnedPositions(nn.Module):
    """Adds one learned vector per position.

    Shapes: ``(batch, length, width)`` → the same.

    >>> LearnedPositions(8, length=16)(torch.zeros(2, 5, 8), offset=3).shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, width: int, *, length: int) -> None:
        super().__init__()
        self.width, self.length = check_integer("width", width), check_integer("length", length)
        self.table = nn.Parameter(torch.empty(length, width))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, x: Tensor, offset: Offset = 0) -> Tensor:
        """``x`` with its positions added."""
        check_vectors("x", x, self.width)
        return x + rows_of(self.table, x.shape[1], offset).to(x.dtype)


class RotaryPositions(nn.Module):
    """Rotates each pair of channels of queries and keys by an angle proportional to the position.

    Channels ``i`` and ``i + channels/2`` are a pair, as in Llama. The product of a query at ``p`` and
    a key at ``p'`` then depends only on ``p − p'``, so nothing has to be added to the scores.

    Shapes: ``(batch, head, length, channel)`` → the same.

    >>> turn = RotaryPositions(8)
    >>> q, k = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    >>> near, far = ((turn(q, 3 + n) * turn(k, 1 + n)).sum() for n in (0, 100))
    >>> torch.allclose(near, far, atol=1e-4)
    True
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, channels: int, *, length: int = 4096, base: float = 10000.0) -> None:
        super().__init__()
        self.channels, self.length = check_integer("channels", channels), check_integer("length", length)
        if channels % 2:
            raise ArgumentError(
                "Rotary positions rotate pairs of channels, so the number of channels must be even.",
                got="{channels} channels",
                do="Choose width and heads such that width / heads is even.",
                channels=channels,
            )
        angles = torch.arange(length, dtype=torch.float64)[:, None] * _frequencies(channels // 2, base)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(self, x: Tensor, offset: Offset = 0) -> Tensor:
        """``x`` rotated by its positions."""
        if x.ndim != 4 or x.shape[-1] != self.channels:
            raise ShapeError(
                "Rotary positions need shape (batch, head, length, channel) (channels = {channels}).",
                got="shape {shape}",
                do="Split the heads first.",
                channels=self.channels,
                shape=tuple(x.shape),
            )
        cos, sin = (rows_of(table, x.shape[2], offset).to(x.dtype) for table in (self.cos, self.sin))
        if cos.ndim == 3:  # positions per batch element: add the head axis
            cos, sin = cos[:, None], sin[:, None]
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
