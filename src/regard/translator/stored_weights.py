"""Weights as they are stored: matrices in 8 bits with a scale for each row, the rest in half precision.

w ≈ n · s, with whole numbers n from −127 to 127 and s = max |w| / 127 of its row. The error of a weight is at
most half a scale, which is well below the noise of training; the file has a quarter of the size.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

FORMAT = "regard translator 2"
SCALE = ".scale"
LEVELS = 127


def stored_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors to write for these weights.

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
        scale = tensor.float().abs().amax(-1, keepdim=True) / LEVELS
        found[name] = (
            (tensor.float() / scale.clamp(min=torch.finfo(torch.float32).tiny)).round().to(torch.int8)
        )
        found[name + SCALE] = scale
    return found


def restored_weights(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in single precision; those of older models are stored in half precision.

    >>> restored_weights(stored_weights({"w": torch.tensor([[0.5, -1.27]])}))["w"]
    tensor([[ 0.5000, -1.2700]])
    """
    return {
        name: tensor.float() * stored[name + SCALE] if tensor.dtype == torch.int8 else tensor.float()
        for name, tensor in stored.items()
        if not name.endswith(SCALE)
    }
