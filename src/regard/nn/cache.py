"""What decoding remembers, so that a new token costs one row and not the whole matrix.

>>> memory = KeyValueCache()
>>> k = v = torch.zeros(2, 4, 3, 8)  # (batch, key head, length, channel)
>>> memory.append(k, v)[0].shape, memory.append(k[:, :, :1], v[:, :, :1])[0].shape
(torch.Size([2, 4, 3, 8]), torch.Size([2, 4, 4, 8]))
>>> memory.length
4

A cache is filled by the module that it is passed to. It belongs to one batch of texts; start a new
one for the next batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.errors import ShapeError
from regard.kernels import LinearState


class KeyValueCache:
    """The keys and values of one attention module: ``(batch, key head, length, channel)`` each.

    In self-attention it grows with every call. In cross-attention it holds the projected context.

    Without gradients, keys and values are in buffers with spare room, so that a step copies one row
    per head and not the whole past.

    >>> import torch
    >>> from regard import nn
    >>> attend, cache, x = nn.MultiHeadAttention(8, 2, causal=True), KeyValueCache(), torch.randn(1, 5, 8)
    >>> attend(x[:, :4], cache=cache).shape, attend(x[:, 4:], cache=cache).shape
    (torch.Size([1, 4, 8]), torch.Size([1, 1, 8]))
    """

    def __init__(self) -> None:
        self.length = 0
        self._keys: Tensor | None = None  # (batch, key head, room ≥ length, channel)
        self._values: Tensor | None = None

    @property
    def keys(self) -> Tensor | None:
        """The keys so far, or None before the first call."""
        return None if self._keys is None else self._keys[:, :, : self.length]

    @property
    def values(self) -> Tensor | None:
        """The values so far, or None before the first call."""
        return None if self._values is None else self._values[:, :, : self.length]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append new keys and values; return all of them."""
        if self._keys is None or self._values is None:
            self._keys, self._values = k, v
        else:
            self._check(k)
            start, stop = self.length, self.length + k.shape[2]
            self._keys = _written(self._keys, k, start, stop)
            self._values = _written(self._values, v, start, stop)
        self.length += k.shape[2]
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def select(self, rows: Tensor) -> None:
        """Keep these batch elements, in this order; an element may come twice (beams)."""
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys.index_select(0, rows), self._values.index_select(0, rows)

    def _check(self, k: Tensor) -> None:
        assert self._keys is not None
        own, new = self._keys.shape, k.shape
        if (own[0], own[1], own[3]) != (new[0], new[1], new[3]):
            raise ShapeError(
                "A cache must continue with the batch that it was filled with (batch = {batch}, "
                "key heads = {heads}, channels = {channels}).",
                got="batch = {new_batch}, key heads = {new_heads}, channels = {new_channels}",
                do="Start a new cache for another batch or module.",
                batch=own[0],
                heads=own[1],
                channels=own[3],
                new_batch=new[0],
                new_heads=new[1],
                new_channels=new[3],
            )


def _written(buffer: Tensor, new: Tensor, start: int, stop: int) -> Tensor:
    """``buffer`` with ``new`` at ``start … stop``; a larger buffer if it does not fit."""
    if torch.is_grad_enabled() and (buffer.requires_grad or new.requires_grad):
        return torch.cat([buffer[:, :, :start], new], 2)  # writing in place would break the autograd graph
    if stop > buffer.shape[2]:
        batch, heads, _, channels = buffer.shape
        larger = new.new_empty(batch, heads, max(16, 2 * stop), channels)
        larger[:, :, :start] = buffer[:, :, :start]
        buffer = larger
    buffer[:, :, start:stop] = new
    return buffer


class LinearCache:
    """What linear attention remembers: one state of constant size per head.

    ``state`` is None before the first call.

    >>> import torch
    >>> from regard import nn
    >>> attend, cache = nn.LinearAttention(8, 2, causal=True), LinearCache()
    >>> attend(torch.randn(1, 4, 8), cache=cache).shape
    torch.Size([1, 4, 8])
    """

    def __init__(self) -> None:
        self.length = 0
        self.state: LinearState | None = None

    def select(self, rows: Tensor) -> None:
        """Keep these batch elements, in this order."""
        if self.state is not None:
            self.state = LinearState(self.state.sums.index_select(0, rows))


class Cache:
    """The caches of a stack of layers: for self-attention (``own``) and cross-attention (``context``).

    >>> cache = Cache(3)
    >>> cache.length, len(cache.own), len(cache.context)
    (0, 3, 3)
    """

    def __init__(self, layers: int) -> None:
        self.own = [KeyValueCache() for _ in range(layers)]
        self.context = [KeyValueCache() for _ in range(layers)]
        self.keep: Tensor | None = None  # (batch, length), False at padding; kept by LanguageModel

    @property
    def length(self) -> int:
        """The number of tokens that the stack has seen."""
        return self.own[0].length if self.own else 0

    def select(self, rows: Tensor) -> None:
        """Keep these batch elements, in this order; an element may come twice (beams)."""
        for one in (*self.own, *self.context):
            one.select(rows)
        if self.keep is not None:
            self.keep = self.keep.index_select(0, rows)

    def reorder(self, rows: Tensor) -> None:
        """Like ``select``, if every row moves to one with the same context and padding."""
        for one in self.own:
            one.select(rows)


def check_layers(cache: Cache | None, layers: int) -> None:
    """Raise unless the cache has one entry for each of ``layers`` layers."""
    if cache is not None and len(cache.own) != layers:
        raise ShapeError(
            "A cache must have one entry per layer (layers = {layers}).",
            got="{own} entries",
            do="Make it with Cache(layers) or the model's new_cache().",
            layers=layers,
            own=len(cache.own),
        )
