"""The gradients that reach the output of an attention call: dO, added up over backward passes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.errors import RecordingError


class OutputGradients:
    """dO of one call, for the rows of each of its steps.

    >>> gradients = OutputGradients("attention")
    >>> output = torch.ones(1, 1, 2, 3, requires_grad=True)  # (batch, head, query, channel)
    >>> gradients.follow(output, 0, None, 0.0)
    >>> (2 * output).sum().backward()
    >>> gradients.over(2)[0, 0]
    tensor([[2., 2., 2.],
            [2., 2., 2.]])
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.followed = False
        self._steps: dict[int, Tensor] = {}
        self._ended = False

    @property
    def received(self) -> bool:
        """Whether a backward pass has run."""
        return bool(self._steps)

    def follow(self, output: Tensor, first_row: int, heads: tuple[int, ...] | None, dropout: float) -> None:
        """Wait for the gradient of the output of some rows; of some heads, or of all."""
        if not output.requires_grad:
            return  # under no_grad, or the first of two passes that checkpointing makes
        if dropout:
            raise RecordingError(
                "Gradients of attention must be recorded without dropout.",
                got="dropout = {dropout:g} in {name}",
                do="Call model.eval() first; it does not stop gradients.",
                dropout=dropout,
                name=self.name,
            )
        self.followed = True

        def receive(gradient: Tensor) -> None:
            if not self._ended:
                self._add(first_row, gradient if heads is None else gradient[:, list(heads)])

        output.register_hook(receive)

    def _add(self, first_row: int, gradient: Tensor) -> None:
        if not math.isfinite(float(gradient.sum())) and not bool(gradient.isfinite().all()):
            raise RecordingError(
                "Gradients must be finite numbers.",
                got="NaN or infinity at the output of {name}",
                do="Look at the loss first: it must be a number. Half precision overflows early.",
                name=self.name,
            )
        wide = torch.promote_types(gradient.dtype, torch.float32)
        before = self._steps.get(first_row)
        # A copy, because the gradient belongs to the graph.
        self._steps[first_row] = (
            gradient.detach().to(wide, copy=True) if before is None else before + gradient
        )

    def end(self) -> None:
        """Ignore later backward passes."""
        self._ended = True

    def over(self, rows: int) -> Tensor:
        """dO of all rows, ``(batch, head, query, channel)``; 0 where no gradient came."""
        first = next(iter(self._steps.values()))
        if first.shape[2] == rows:
            return first
        total = first.new_zeros(*first.shape[:2], rows, first.shape[3])
        for start, gradient in self._steps.items():
            total[:, :, start : start + gradient.shape[2]] = gradient
        return total
