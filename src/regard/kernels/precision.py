"""Which precision attention is computed in."""

from __future__ import annotations

import torch
from torch import Tensor

STEEP = 4096.0
"""With a larger scale, float32 scores have no digits after the decimal point, so float64 is used."""

LARGEST_SCALE = 1e8
"""With a larger scale, float64 scores have none either."""

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def full_precision(x: Tensor) -> torch.autocast:
    """Disable autocast: scores rounded to bfloat16 would make the weights wrong."""
    return torch.autocast(x.device.type, enabled=False)
