"""The mean of the last checkpoints: better than any one of them, at no cost in the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import TrainingError
from regard.translator.files import read_tensors


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights in these files, added up in double precision.

    >>> from regard.translator.files import write_tensors
    >>> files = [getfixture("tmp_path") / f"{n}.safetensors" for n in (1, 2)]
    >>> for n, file in enumerate(files):
    ...     write_tensors(file, {"w": torch.full((2,), 2.0 * n)}, {})
    >>> average(files)
    {'w': tensor([1., 1.])}
    """
    if not paths:
        raise TrainingError(
            "Averaging needs at least one checkpoint.", got="none", do="Train until the first checkpoint."
        )
    total: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    for path in paths:
        weights, _ = read_tensors(
            path, do="Remove this file and continue with --resume: the other weights are averaged."
        )
        for name, tensor in weights.items():
            kinds[name] = tensor.dtype
            total[name] = total.get(name, torch.zeros((), dtype=torch.float64)) + tensor.double()
    return {name: (tensor / len(paths)).to(kinds[name]) for name, tensor in total.items()}
