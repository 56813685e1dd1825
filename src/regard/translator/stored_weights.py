"""Weights as they are stored: matrices in 8 or 4 bits with a scale for each row, the rest in half precision.

w ≈ n · s, with whole numbers n from −127 to 127 and s = max |w| / 127 of its row. The error of a weight is at
most half a scale, which is well below the noise of training; the file has a quarter of the size.

With 4 bits, n is from −7 to 7 and a byte has two of them, the first one in its lower half. The embeddings of
a trained encoder can be stored so: dropout has trained the encoder to read them with more noise than this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

FORMAT = "regard translator 3"
SCALE = ".scale"
LEVELS, FEW_LEVELS = 127, 7


def stored_weights(weights: Mapping[str, Tensor], *, four_bits: Collection[str] = ()) -> dict[str, Tensor]:
    """The tensors to write for these weights; matrices named in ``four_bits`` take half the space.

    >>> found = stored_weights({"w": torch.tensor([[0.5, -1.27], [0.0, 0.0]]), "b": torch.ones(2)})
    >>> found["w"], found["b"].dtype
    (tensor([[  50, -127],
            [   0,    0]], dtype=torch.int8), torch.float16)
    """
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.ndim < 2:
            found[name] = tensor.half()
            continue
        few = name in four_bits and tensor.shape[-1] % 2 == 0
        scale = tensor.float().abs().amax(-1, keepdim=True) / (FEW_LEVELS if few else LEVELS)
        whole = (tensor.float() / scale.clamp(min=torch.finfo(torch.float32).tiny)).round().to(torch.int8)
        found[name] = _packed(whole) if few else whole
        found[name + SCALE] = scale
    return found


def restored_weights(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in single precision; those of older models are stored in half precision.

    >>> weights = {"w": torch.tensor([[0.5, -1.27]]), "few": torch.tensor([[0.7, -0.2]])}
    >>> restored_weights(stored_weights(weights, four_bits=["few"]))
    {'w': tensor([[ 0.5000, -1.2700]]), 'few': tensor([[ 0.7000, -0.2000]])}
    """
    return {
        name: _whole(tensor).float() * stored[name + SCALE] if name + SCALE in stored else tensor.float()
        for name, tensor in stored.items()
        if not name.endswith(SCALE)
    }


def _packed(whole: Tensor) -> Tensor:
    """Two numbers from −7 to 7 in each byte, ``(..., channel)`` → ``(..., channel / 2)``."""
    above = (whole + FEW_LEVELS).to(torch.uint8)
    return above[..., ::2] | above[..., 1::2] << 4


def _whole(stored: Tensor) -> Tensor:
    if stored.dtype != torch.uint8:
        return stored
    both = torch.stack([stored & 15, stored >> 4], dim=-1).flatten(-2)
    return both.to(torch.int8) - FEW_LEVELS
