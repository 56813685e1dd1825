"""What a layer adds its attention to: the residual x of ``x + y``, seen while a model runs.

A block computes ``r = x + y``, with y the output projection of its attention. The first norm that is computed
afterwards reads r, whether it stands behind the sum or before the next block. A residual is kept only if all
of this was seen: the projection read the outputs of the heads, side by side, and r is y plus a tensor that a
norm or an attention module read, or a norm wrote, before. So blocks that add something else as well, scale y
or normalise it first have none.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.interception.call_types import AttentionStep
from regard.recording.output_projection import OutputProjections, is_linear

REMEMBERED = 12
"""How many of the last tensors are compared; a block has a few norms, of queries and keys too."""

Receiver = Callable[[Tensor], None]
"""Is given the residual ``(batch, query, width)`` of the rows of a step."""


@dataclass(frozen=True, eq=False)
class _Attended:
    """A step whose heads have been computed, and not yet projected."""

    output: Tensor  # (batch, head, query, channel)
    receive: Receiver


@dataclass(frozen=True, eq=False)
class _Projected:
    """A step whose heads have been projected, and not yet added."""

    y: Tensor
    turned: bool  # whether y is (query, batch, width)
    rows: tuple[int, int]  # batch and queries
    receive: Receiver


class ResidualStream:
    """Finds the residuals of the attention calls of one model while it runs, in the thread that enters it."""

    def __init__(self, model: nn.Module, projections: OutputProjections) -> None:
        self._model = model
        self._projections = projections
        self._known: deque[Tensor] = deque(maxlen=REMEMBERED)  # the newest last
        self._attended: dict[nn.Module, _Attended] = {}
        self._projected: _Projected | None = None
        self._hooks = ExitStack()
        self._hooked: set[nn.Module] = set()
        self._thread = 0

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow the norms of the model, and what has linear parts, while the block runs."""
        self._thread = threading.get_ident()
        with self._hooks:
            for part in self._model.modules():
                if "norm" in type(part).__name__.lower():
                    self._add_hook(part.register_forward_pre_hook(self._read, with_kwargs=True))
                    self._add_hook(part.register_forward_hook(self._written))
                elif any(is_linear(child) for child in part.children()):
                    # Where the norm comes after the sum, the first layer reads an x that no norm has written.
                    self._add_hook(part.register_forward_pre_hook(self._entered, with_kwargs=True))
            try:
                yield
            finally:
                self._known.clear()
                self._attended.clear()
                self._projected = None

    def expect(self, name: str, step: AttentionStep, receive: Receiver) -> None:
        """Wait for the projection of a step of the module ``name``, and for the sum behind it."""
        module = self._projections.module(name)
        if module is None or step.output is None:
            return
        if module not in self._hooked:
            self._hooked.add(module)
            self._add_hook(module.register_forward_hook(self._project))
        self._attended[module] = _Attended(step.output.detach(), receive)

    def _add_hook(self, handle: Any) -> None:
        self._hooks.callback(handle.remove)

    def _listens(self) -> bool:
        return threading.get_ident() == self._thread

    # ---- hooks ---------------------------------------------------------------------------------

    def _project(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """The projection of a step was computed."""
        step = self._attended.pop(module, None) if self._listens() else None
        self._projected = None if self._listens() else self._projected
        if step is None:
            return
        batch, _, queries, _ = step.output.shape
        if isinstance(module, nn.MultiheadAttention):
            y, turned = output[0], not module.batch_first and output[0].ndim == 3
        else:
            y, turned = output, False
            if not _is_side_by_side(args[0] if args else None, step.output):
                return
        lead = (queries, batch) if turned else (batch, queries)
        if isinstance(y, Tensor) and y.shape[:-1] in (lead, (batch * queries,)):
            self._projected = _Projected(y.detach(), turned, (batch, queries), step.receive)

    def _read(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A norm begins: what it reads may be the sum."""
        del module
        r, waiting = _first_tensor(args, kwargs), self._projected
        if r is None or not self._listens():
            return
        if waiting is not None and r.shape == waiting.y.shape:
            self._projected = None
            x = next(filter(partial(_adds_up, waiting.y, r), reversed(self._known)), None)
            if x is not None:
                x = x.transpose(0, 1) if waiting.turned else x
                waiting.receive(x.reshape(*waiting.rows, -1))
        self._known.append(r)

    def _entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A module with linear parts begins."""
        del module
        given = _first_tensor(args, kwargs)
        if given is not None and self._listens():
            self._known.append(given)

    def _written(self, module: nn.Module, args: Any, output: Any) -> None:
        """A norm has ended."""
        del module, args
        if self._listens() and isinstance(output, Tensor):
            self._known.append(output.detach())


def _first_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    given = args[0] if args else next(iter(kwargs.values()), None)
    return given.detach() if isinstance(given, Tensor) else None


def _is_side_by_side(given: object, heads: Tensor) -> bool:
    """Whether the projection read the outputs of the heads: not gated, not normalised, not edited."""
    beside = heads.transpose(1, 2).flatten(2)  # (batch, query, head · channel)
    if (
        not isinstance(given, Tensor)
        or given.numel() != beside.numel()
        or given.shape[-1] != beside.shape[-1]
    ):
        return False
    return _close(given.detach().reshape(beside.shape), beside)


def _adds_up(y: Tensor, r: Tensor, x: Tensor) -> bool:
    """Whether r is x + y."""
    return x.shape == r.shape and _close(x.to(r.device) + y.to(r.device), r)


def _close(found: Tensor, wanted: Tensor) -> bool:
    """Whether two tensors differ by rounding only, in proportion to the largest number."""
    coarse = max(torch.finfo(found.dtype).eps, torch.finfo(wanted.dtype).eps)
    wide = torch.promote_types(found.dtype, wanted.dtype)
    difference = (found.to(wide) - wanted.to(found.device, wide)).abs().max() if found.numel() else 0.0
    return bool(difference <= 4 * coarse * wanted.abs().max()) if found.numel() else False
