"""Argument checks that several modules share: integers, probabilities, names, shapes."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from regard.errors import ArgumentError, DtypeError, ShapeError


def check_whole(name: str, number: object, *, least: int = 1) -> int:
    """``number``, checked to be an integer of at least ``least``."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ArgumentError(
            f"{name} is a whole number, {least} or more.", got=f"{name} = {number!r}", do="Count it."
        )
    return number


def check_probability(name: str, value: float) -> float:
    """``value``, checked to be a dropout probability."""
    if not 0.0 <= value < 1.0:
        raise ArgumentError(
            f"{name} is a probability, at least 0 and below 1.",
            got=f"{name} = {value}",
            do="Pass 0.1, say; 0 for none.",
        )
    return float(value)


def check_name(option: str, name: object, known: Collection[str | None]) -> None:
    """Raise unless ``name`` is one of ``known``."""
    if name not in known:
        names = ", ".join(repr(one) for one in known)
        raise ArgumentError(f"{option} is one of {names}.", got=repr(name), do="Choose one of them.")


def check_vectors(name: str, x: object, width: int) -> None:
    """Raise unless ``x`` is a tensor ``(batch, length, width)``."""
    if not isinstance(x, Tensor):
        raise DtypeError(
            f"{name} is a torch tensor (batch, length, width).",
            got=type(x).__name__,
            do="Use torch.as_tensor(...).",
        )
    if x.ndim != 3 or x.shape[-1] != width:
        raise ShapeError(
            f"{name} has shape (batch, length, width) (width = {width}).",
            got=f"shape {tuple(x.shape)}",
            do="Add the batch axis with x[None], or build the module with this width.",
        )


def check_tokens(name: str, tokens: object) -> Tensor:
    """``tokens``, checked to be a non-empty integer tensor ``(batch, length)``."""
    if not isinstance(tokens, Tensor) or tokens.dtype not in (torch.int64, torch.int32):
        kind = str(tokens.dtype) if isinstance(tokens, Tensor) else type(tokens).__name__
        raise DtypeError(
            f"{name} is an integer tensor (batch, length) of token ids.",
            got=kind,
            do="Use torch.tensor([[…]]).",
        )
    if tokens.ndim != 2 or not all(tokens.shape):
        raise ShapeError(
            f"{name} has shape (batch, length) with at least one token.",
            got=f"shape {tuple(tokens.shape)}",
            do="Begin with a start token if there is nothing else to say.",
        )
    return tokens


def check_in_vocabulary(name: str, tokens: Tensor, vocabulary: int) -> None:
    """Raise if a token id has no row in the embedding."""
    if int(tokens.max()) >= vocabulary or int(tokens.min()) < 0:
        raise ArgumentError(
            f"{name} holds token ids from 0 to {vocabulary - 1} (vocabulary = {vocabulary}).",
            got=f"ids from {int(tokens.min())} to {int(tokens.max())}",
            do="Encode the text with the model's own tokenizer.",
        )
