"""Checks of the tensors that modules take: vectors, and tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.errors import ArgumentError, DtypeError, ShapeError


def check_vectors(name: str, x: object, width: int) -> None:
    """Raise unless ``x`` is a tensor ``(batch, length, width)``."""
    if not isinstance(x, Tensor):
        raise DtypeError(
            "{name} must be a torch tensor (batch, length, width).",
            got="{type}",
            do="Use torch.as_tensor(...).",
            name=name,
            type=type(x).__name__,
        )
    if x.ndim != 3 or x.shape[-1] != width:
        raise ShapeError(
            "{name} must have shape (batch, length, width) (width = {width}).",
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
            "{name} must be an integer tensor (batch, length) of token ids.",
            got="{kind}",
            do="Use torch.tensor([[…]]).",
            name=name,
            kind=kind,
        )
    if tokens.ndim != 2 or not all(tokens.shape):
        raise ShapeError(
            "{name} must have shape (batch, length) with at least one token.",
            got="shape {shape}",
            do="Begin an empty text with a start token.",
            name=name,
            shape=tuple(tokens.shape),
        )
    return tokens


def check_keep(keep: Tensor, tokens: Tensor) -> None:
    """Raise unless ``keep`` says of each token whether it is real."""
    if keep.shape != tokens.shape:
        raise ShapeError(
            "keep must have one value per token (shape {shape}).",
            got="shape {own}",
            do="Pass True for real tokens and False for padding.",
            shape=tuple(tokens.shape),
            own=tuple(keep.shape),
        )


def check_in_vocabulary(name: str, tokens: Tensor, vocabulary: int) -> None:
    """Raise if a token id has no row in the embedding."""
    if int(tokens.max()) >= vocabulary or int(tokens.min()) < 0:
        raise ArgumentError(
            "{name} must hold token ids from 0 to {last} (vocabulary = {vocabulary}).",
            got="ids from {least} to {greatest}",
            do="Encode the text with the model's own tokenizer.",
            name=name,
            last=vocabulary - 1,
            vocabulary=vocabulary,
            least=int(tokens.min()),
            greatest=int(tokens.max()),
        )
