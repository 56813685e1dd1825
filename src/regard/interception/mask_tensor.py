"""What lets a lazy mask pass for the tensor that it represents, in a model that computes with its mask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class MaskTensor(ABC):
    """A mask ``(batch, 1, query, key)`` that becomes a tensor when something is computed with it."""

    ndim = 4

    @property
    @abstractmethod
    def shape(self) -> torch.Size:
        """The shape of the tensor."""

    @abstractmethod
    def dense(self) -> Tensor | None:
        """The tensor; None if every query sees every key."""

    def contiguous(self) -> MaskTensor:
        """Itself: generation with a static cache prepares its masks before the model is called."""
        return self

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """A model that computes with its mask gets the tensor, and pays for it."""
        del types
        return func(*_as_tensors(args), **_as_tensors(kwargs or {}))

    def __getitem__(self, index: Any) -> Any:
        return self._tensor()[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._tensor(), name)

    def __add__(self, other: Any) -> Any:
        return self._tensor() + other

    __radd__ = __add__

    def _tensor(self) -> Tensor:
        found = self.dense()
        return torch.ones(self.shape, dtype=torch.bool) if found is None else found


def _as_tensors(given: Any) -> Any:
    """Arguments of a function, with a tensor in place of every lazy mask."""
    if isinstance(given, MaskTensor):
        return given._tensor()
    if isinstance(given, list | tuple):
        return type(given)(_as_tensors(one) for one in given)
    return {key: _as_tensors(one) for key, one in given.items()} if isinstance(given, dict) else given
