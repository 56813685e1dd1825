"""Layers below an edit compute what they computed without it, so their outputs are reused.

An edit in layer 20 changes nothing in layers 0 … 19. A :class:`LayerCache` keeps the output of every block
during the plain run, and :meth:`LayerCache.skipped` lets the blocks below an edit return it. Where a model
does not allow that (blocks that run twice, or pass something on beside their output), nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.interception.call_types import Kind
from regard.masks import Mask
from regard.masks.extent import Bools, Extent
from regard.model_outcome import ModelInputs, hidden_of, repeated
from regard.recording import Call
from regard.recording.watcher import listen


@dataclass(frozen=True)
class CallInBlock:
    """One attention call of the plain run: which it was, and in which block of the model."""

    kind: Kind
    layer: int
    heads: tuple[int, ...]
    queries: int
    keys: int
    mask: Mask
    block: str  # path of the module, empty if it is in no list of blocks

    def visible(self) -> Bools:
        """Which pairs any head of any sequence may see, ``(query, key)``: for short texts."""
        shown = self.mask.evaluate(Extent(self.queries, self.keys))
        anywhere = np.asarray(shown.reshape(-1, *shown.shape[-2:]).any(0))
        return np.broadcast_to(anywhere, (self.queries, self.keys))


class LayerCache:
    """What attention a model calls, and the outputs of its blocks, from one plain run."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.layers: list[CallInBlock] = []
        self._outputs: dict[str, Any] = {}
        self._usable: bool | None = None

    @contextmanager
    def filled(self) -> Iterator[None]:
        """Fill it while the model runs once."""
        with ExitStack() as stack:
            for path, module in self.model.named_modules():
                if path and _block_of(self.model, path) == path:
                    handle = module.register_forward_hook(self._hook(path))
                    stack.callback(handle.remove)
            stack.enter_context(listen(self.model, self._hear))
            yield

    def _hook(self, path: str) -> Any:
        def keep(module: nn.Module, args: Any, output: Any) -> None:
            del module, args
            # A block that runs twice would need the output of each run.
            self._outputs[path] = None if path in self._outputs else output

        return keep

    def _hear(self, call: Call) -> None:
        block = _block_of(self.model, call.name)
        self.layers.append(
            CallInBlock(call.kind, call.layer, call.head_numbers, *call.extent, call.mask, block)
        )

    # ---- what may be skipped -------------------------------------------------------------------

    def below(self, kind: Kind, layer: int) -> tuple[str, ...]:
        """The blocks that ran before the one of this layer."""
        order = list(dict.fromkeys(seen.block for seen in self.layers))
        own = next((seen.block for seen in self.layers if (seen.kind, seen.layer) == (kind, layer)), "")
        if "" in order or own not in order:
            return ()
        return tuple(order[: order.index(own)])

    def layer_within(self, kind: Kind, layer: int, skipped: tuple[str, ...]) -> int:
        """The number that a layer has when some blocks do not call attention: layers count calls."""
        left_out = {seen.layer for seen in self.layers if seen.kind == kind and seen.block in skipped}
        return layer - sum(number < layer for number in left_out)

    @contextmanager
    def skipped(self, blocks: tuple[str, ...], batch: int, times: int) -> Iterator[None]:
        """Let these blocks return what they returned in the plain run, for every repetition of the batch."""
        with ExitStack() as stack:
            for path in blocks:
                module = self.model.get_submodule(path)
                output = _repeated_all(self._outputs[path], batch, times)
                vars(module)["forward"] = lambda *args, _output=output, **named: _output
                stack.callback(vars(module).pop, "forward", None)
            yield

    def usable(self, inputs: ModelInputs, plain: Any) -> bool:
        """Whether the model gives its own output again when all its blocks are skipped."""
        if self._usable is None:
            self._usable = self._reproduces(inputs, plain)
        return self._usable

    def _reproduces(self, inputs: ModelInputs, plain: Any) -> bool:
        blocks = tuple(dict.fromkeys(seen.block for seen in self.layers))
        if "" in blocks or any(self._outputs.get(path) is None for path in blocks):
            return False
        if any("forward" in vars(self.model.get_submodule(path)) for path in blocks):
            return False  # replaced by someone else in the meantime
        try:
            with self.skipped(blocks, inputs.batch, 1):
                again = hidden_of(inputs.run(self.model))
        except (TypeError, ValueError, IndexError, AttributeError, RuntimeError):
            return False
        wanted = hidden_of(plain)
        return again.shape == wanted.shape and torch.allclose(again, wanted, rtol=1e-4, atol=1e-5)


def _is_block(model: nn.Module, path: str) -> bool:
    parent, _, name = path.rpartition(".")
    return name.isdecimal() and isinstance(model.get_submodule(parent), nn.ModuleList)


def _block_of(model: nn.Module, name: str) -> str:
    """The outermost block of a list of blocks that holds a module."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = ".".join(parts[:count])
        try:
            found = _is_block(model, path)
        except AttributeError:
            return ""
        if found:
            return path
    return ""


def _repeated_all(output: Any, batch: int, times: int) -> Any:
    if isinstance(output, Tensor):
        return repeated(output, batch, times)
    if isinstance(output, tuple):
        return tuple(_repeated_all(x, batch, times) for x in output)
    return output
