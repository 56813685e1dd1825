"""Products of linear layers in half precision while training, everything else in single precision.

Most of the time of a step goes into these products, and CPUs with bfloat16 instructions take half of it for
them. Attention stays in single precision: torch's backward pass of it is five times slower in bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


def linear_precision(precision: str) -> AbstractContextManager[Any]:
    """A block in which linear layers multiply in this precision; the rest of the model sees single precision.

    >>> with linear_precision("bfloat16"):
    ...     F.linear(torch.tensor([[1.001]]), torch.tensor([[1.0]]))
    tensor([[1.]])
    """
    return nullcontext() if precision == "float32" else _HalfLinear()


class _HalfLinear(TorchFunctionMode):
    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function is F.linear:
            return _half_linear(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def _half_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    half = torch.bfloat16
    return F.linear(x.to(half), weight.to(half), None if bias is None else bias.to(half)).float()
