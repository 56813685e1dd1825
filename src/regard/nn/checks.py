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
            "{name} is a whole number, {least} or more.",
            got="{name} = {number!r}",
            do="Count it.",
            name=name,
            least=least,
            number=number,
        )
    return number


def check_probability(name: str, value: float) -> float:
    """``value``, checked to be a dropout probability."""
    if not 0.0 <= value < 1.0:
        raise ArgumentError(
            "{name} is a probability, at least 0 and below 1.",
            got="{name} = {value}",
            do="Pass 0.1, say; 0 for none.",
            name=name,
            value=value,
        )
    return float(value)


def check_name(option: str, name: object, known: Collection[str | None]) -> None:
    """Raise unless ``name`` is one of ``known``."""
    if name not in known:
        names = ", ".join(repr(one) for one in known)
        raise ArgumentError(
            "{option} is one of {names}.",
            got="{name!r}",
            do="Choose one of them.",
            option=option,
            names=names,
            name=name,
        )


def check_vectors(name: str, x: object, width: int) -> None:
    """Raise unless ``x`` is a tensor ``(batch, length, width)``."""
    if not isinstance(x, Tensor):
        raise DtypeError(
            "{name} is a torch tensor (batch, length, width).",
            got="{type}",
            do="Use torch.as_tensor(...).",
            name=name,
            type=type(x).__name__,
        )
    if x.ndim != 3 or x.shape[-1] != width:
        raise ShapeError(
            "{name} has shape (batch, length, width) (width = {width}).",
            got="shape {shape}",
            do="Add the batch axis with x[None], or build the module with this width.",
            name=name,
            width=width,
            shape=tuple(x.shape),
        )


def check_tokens(name: str, tokens: object) -> Tensor:
    """``tokens``, checked to be a non-empty integer tensor ``(batch, length)``."""
    if not isinstance(tokens, Tensor) or tokens.dtype not in (torch.int64, torch.int32):
        kind = str(tokens.dtype) if isinstance(tokens, Tensor) else type(tokens).__name__
        raise DtypeError(
            "{name} is an integer tensor (batch, length) of token ids.",
            got="{kind}",
            do="Use torch.tensor([[…]]).",
            name=name,
            kind=kind,
        )
    if tokens.ndim != 2 or not all(tokens.shape):
        raise ShapeError(
            "{name} has shape (batch, length) with at least one token.",
            got="shape {shape}",
            do="Begin with a start token if there is nothing else to say.",
            name=name,
            shape=tuple(tokens.shape),
        )
    return tokens


def check_in_vocabulary(name: str, tokens: Tensor, vocabulary: int) -> None:
    """Raise if a token id has no row in the embedding."""
    if int(tokens.max()) >= vocabulary or int(tokens.min()) < 0:
        raise ArgumentError(
            "{name} holds token ids from 0 to {vocabulary} (vocabulary = {vocabulary_2}).",
            got="ids from {min} to {max}",
            do="Encode the text with the model's own tokenizer.",
            name=name,
            vocabulary=vocabulary - 1,
            vocabulary_2=vocabulary,
            min=int(tokens.min()),
            max=int(tokens.max()),
        )
