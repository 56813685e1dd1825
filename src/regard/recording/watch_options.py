"""What a watch keeps of each attention call."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from regard.recording.output_projection import OutputProjections


@dataclass(frozen=True)
class WatchOptions:
    """What to keep of each call; None keeps all layers, all heads, and the dtype of the model."""

    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    statistics: bool = False
    top: int = 0
    values: bool = False
    dtype: torch.dtype | None = None
    gradients: bool = False
    projections: OutputProjections | None = None
