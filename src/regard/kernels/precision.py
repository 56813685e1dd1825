"""Which precision attention is computed in."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

STEEP = 4096.0
"""With a larger scale, float32 scores have no digits after the decimal point, so float64 is used."""

LARGEST_SCALE = 1e8
"""With a larger scale, float64 scores have none either."""

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def autocasts(device: str) -> bool:
    """Whether autocast is on for a type of device; tensors without data have none."""
    return device != "meta" and torch.is_autocast_enabled(device)


def full_precision(x: Tensor) -> AbstractContextManager[object]:
    """Disable autocast: scores rounded to bfloat16 would make the weights wrong."""
    device = x.device.type
    return nullcontext() if device == "meta" else torch.autocast(device, enabled=False)
