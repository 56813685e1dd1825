"""Weights as they are stored: matrices in a few bits with a scale for each row, the rest in half precision.

w ≈ n · s, with whole numbers n from −N to N, N = 2^(bits − 1) − 1, and s = max |w| / N of its row. The error
of a weight is at most half a scale, which with 8 bits is far below the noise of training; the file has a
quarter of the size.

Fewer than 8 bits are stored as planes: the first plane has the lowest bit of every number of a row, eight of
them in each byte, and the last plane the highest. So the shape of a tensor, ``(..., bits, channel / 8)``,
says how many bits there are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

FORMAT = "regard translator 4"
SCALE = ".scale"
LEAST_BITS, MOST_BITS = 2, 8
BYTE = 8
"""Numbers of a row whose bits of one plane are in one byte."""


def stored_weights(weights: Mapping[str, Tensor], *, bits: int = MOST_BITS) -> dict[str, Tensor]:
    """The tensors to write for these weights, with matrices in this many bits, from 2 to 8.

    Rows whose length is not a multiple of 8 are stored in 8 bits.

    >>> found = stored_weights({"w": torch.tensor([[0.5, -1.27], [0.0, 0.0]]), "b": torch.ones(2)})
    >>> found["w"], found["b"].dtype
    (tensor([[  50, -127],
            [   0,    0]], dtype=torch.int8), torch.float16)
    >>> stored_weights({"w": torch.randn(5, 16)}, bits=6)["w"].shape
    torch.Size([5, 6, 2])
    """
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.ndim < 2:
            found[name] = tensor.half()
            continue
        own = bits if tensor.shape[-1] % BYTE == 0 else MOST_BITS
        scale = tensor.float().abs().amax(-1, keepdim=True) / _largest(own)
        whole = (tensor.float() / scale.clamp(min=torch.finfo(torch.float32).tiny)).round().to(torch.int8)
        found[name] = whole if own == MOST_BITS else _planes(whole, own)
        found[name + SCALE] = scale
    return found


def restored_weights(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in single precision; those of older models are stored in half precision.

    >>> weights = {"w": torch.tensor([[0.5, -1.27]]), "few": torch.arange(8.0)[None] - 7}
    >>> restored_weights(stored_weights(weights, bits=4))
    {'w': tensor([[ 0.5000, -1.2700]]), 'few': tensor([[-7., -6., -5., -4., -3., -2., -1.,  0.]])}
    """
    return {
        name: _whole(tensor).float() * stored[name + SCALE] if name + SCALE in stored else tensor.float()
        for name, tensor in stored.items()
        if not name.endswith(SCALE)
    }


def _largest(bits: int) -> int:
    return int(2 ** (bits - 1)) - 1


def _planes(whole: Tensor, bits: int) -> Tensor:
    """Numbers as planes of bits, ``(..., channel)`` → ``(..., bits, channel / 8)``."""
    above = (whole + _largest(bits)).to(torch.uint8)  # from 0
    planes = (above[..., None, :] >> _places(bits)) & 1  # (..., bits, channel)
    return torch.from_numpy(np.packbits(planes.numpy(), axis=-1, bitorder="little"))


def _whole(stored: Tensor) -> Tensor:
    if stored.dtype != torch.uint8:
        return stored
    bits = stored.shape[-2]
    planes = torch.from_numpy(np.unpackbits(stored.numpy(), axis=-1, bitorder="little"))
    above = (planes << _places(bits)).sum(-2, dtype=torch.uint8)
    return above.to(torch.int8) - _largest(bits)


def _places(bits: int) -> Tensor:
    return torch.arange(bits, dtype=torch.uint8)[:, None]  # (bits, 1)
