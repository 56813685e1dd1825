"""What a layer adds its attention to: the residual stream at one position, seen while a model runs.

A block computes ``r = x + y``, with y the output projection of its attention. The first norm that is computed
afterwards reads r, whether it stands behind the sum or before the next block. So ``x = r − y``; it is
taken only if x was read or written by a norm before, which leaves out blocks that add something else as well.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.kernels.reference import Numbers
from regard.recording import Call
from regard.recording.output_projection import find_projection

CLOSE = 1e-4
"""How far r − y may be from x, in proportion to the largest number of r."""


@dataclass(frozen=True, eq=False)
class LayerResidual:
    """The bias of the output projection, and what the projected heads are added to, at one position."""

    bias: Numbers | None  # (width,)
    x: Numbers | None  # (width,)


@torch.no_grad()
def layer_residual(
    model: nn.Module, run: Callable[[], object], call: Call, query: int
) -> LayerResidual | None:
    """The bias and residual of a call; ``run`` runs the model once more. None if its projection is unknown.

    >>> import regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=2).eval()
    >>> with torch.no_grad(), regard.watch(model) as seen:
    ...     _ = model(torch.tensor([[3, 1, 4]]))
    >>> layer_residual(model, lambda: model(torch.tensor([[3, 1, 4]])), seen[1], 2).x.shape
    (16,)
    """
    projection = find_projection(model, call.name)
    if projection is None:
        return None
    bias = getattr(projection, "bias", None)
    listener = _Listener(query)
    with ExitStack() as removed:
        handles = [projection.register_forward_hook(listener.projected)]
        for part in model.modules():
            if "norm" in type(part).__name__.lower():
                handles.append(part.register_forward_pre_hook(listener.read, with_kwargs=True))
                handles.append(part.register_forward_hook(listener.written))
        for handle in handles:
            removed.callback(handle.remove)
        run()
    return LayerResidual(None if bias is None else _numbers(bias), listener.residual())


@dataclass(eq=False)
class _Listener:
    """Rows of the tensors that norms read and write, until the projection and the norm behind it came."""

    query: int
    before: list[Tensor] = field(default_factory=list)
    y: Tensor | None = None
    r: Tensor | None = None

    def projected(self, module: nn.Module, args: Any, output: Tensor) -> None:
        del module, args
        if self.y is None:
            self.y = self._row(output)

    def read(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del module
        row = self._row(args[0] if args else next(iter(kwargs.values())))
        if self.y is None:
            self.before += [] if row is None else [row]
        elif self.r is None and row is not None and row.shape == self.y.shape:
            self.r = row

    def written(self, module: nn.Module, args: Any, output: Any) -> None:
        del module, args
        row = self._row(output)
        if self.y is None and row is not None:
            self.before.append(row)

    def residual(self) -> Numbers | None:
        if self.y is None or self.r is None:
            return None
        x, size = self.r - self.y, float(self.r.abs().max())
        known = (one for one in reversed(self.before) if one.shape == x.shape)
        return next((_numbers(one) for one in known if float((one - x).abs().max()) <= CLOSE * size), None)

    def _row(self, x: object) -> Tensor | None:
        """The position in question of the first text."""
        if not isinstance(x, Tensor) or x.ndim != 3 or x.shape[1] <= self.query:
            return None
        return x[0, self.query].detach().double()


def _numbers(tensor: Tensor) -> Numbers:
    found: Numbers = tensor.detach().double().cpu().numpy()
    return found
