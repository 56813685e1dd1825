"""Texts that grow token by token, with or without a cache: the state of ``generate``.

``logits`` scores the next token and ``append`` adds it. Beam search calls ``split`` to get several
rows per prompt, and ``reorder`` to continue other rows of the same prompt.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from regard.errors import ArgumentError, ShapeError
from regard.nn.cache import Cache
from regard.nn.models import Encoded, LanguageModel, Seq2Seq
from regard.nn.tensor_checks import check_keep, check_tokens


class Decoding(Protocol):
    """Texts that grow, one per row."""

    def logits(self) -> Tensor:
        """The logits of the next token, ``(row, vocabulary)``."""

    def append(self, tokens: Tensor) -> None:
        """Append one token to each row; ``tokens`` has shape ``(row,)``."""

    def split(self, times: int) -> None:
        """Repeat every row ``times`` times, next to each other."""

    def reorder(self, rows: Tensor) -> None:
        """Row i continues the text of row ``rows[i]``, which has the same prompt."""


class TargetDecoding:
    """The targets of a ``Seq2Seq``: they begin with a start token and attend to an encoded source."""

    def __init__(self, model: Seq2Seq, source: Tensor, start: int, *, cached: bool) -> None:
        self.model = model
        self.encoded: Encoded = model.encode(source)
        self.tokens = source.new_full((len(source), 1), start)
        self.cache: Cache | None = model.new_cache() if cached else None

    def logits(self) -> Tensor:
        """The logits after the last token."""
        new = self.tokens if self.cache is None else self.tokens[:, self.cache.length :]
        return self.model.decode(new, self.encoded, cache=self.cache)[:, -1]

    def append(self, tokens: Tensor) -> None:
        """Append one token to each row."""
        self.tokens = torch.cat([self.tokens, tokens[:, None]], 1)

    def split(self, times: int) -> None:
        """Repeat every row ``times`` times, next to each other."""
        rows = _each(self.tokens, times)
        self.tokens, self.encoded = self.tokens[rows], self.encoded.select(rows)
        if self.cache is not None:
            self.cache.select(rows)

    def reorder(self, rows: Tensor) -> None:
        """Row i continues the text of row ``rows[i]``."""
        self.tokens = self.tokens[rows]
        if self.cache is not None:
            self.cache.reorder(rows)


class PromptDecoding:
    """The texts of a ``LanguageModel``: prompts of any lengths, aligned at their ends."""

    def __init__(self, model: LanguageModel, prompt: Tensor, keep: Tensor | None, *, cached: bool) -> None:
        self.model = model
        self.tokens, self.keep = _end_together(prompt, model.real(prompt) if keep is None else keep)
        self.cache: Cache | None = model.new_cache() if cached else None

    def logits(self) -> Tensor:
        """The logits after the last token."""
        past = 0 if self.cache is None else self.cache.length
        logits: Tensor = self.model(self.tokens[:, past:], keep=self.keep[:, past:], cache=self.cache)
        return logits[:, -1]

    def append(self, tokens: Tensor) -> None:
        """Append one token to each row."""
        self.tokens = torch.cat([self.tokens, tokens[:, None]], 1)
        self.keep = torch.cat([self.keep, torch.ones_like(self.keep[:, :1])], 1)

    def split(self, times: int) -> None:
        """Repeat every row ``times`` times, next to each other."""
        rows = _each(self.tokens, times)
        self.tokens, self.keep = self.tokens[rows], self.keep[rows]
        if self.cache is not None:
            self.cache.select(rows)

    def reorder(self, rows: Tensor) -> None:
        """Row i continues the text of row ``rows[i]``."""
        self.tokens = self.tokens[rows]
        if self.cache is not None:
            self.cache.reorder(rows)


def _each(tokens: Tensor, times: int) -> Tensor:
    return torch.arange(len(tokens), device=tokens.device).repeat_interleave(times)


def begin(
    model: Seq2Seq | LanguageModel,
    prompt: Tensor,
    *,
    start: int | None,
    keep: Tensor | None,
    new: int,
    cached: bool,
) -> Decoding:
    """The decoding state for the model, after checking that ``new`` more tokens fit its positions."""
    check_tokens("prompt", prompt)
    if isinstance(model, Seq2Seq):
        if start is None or keep is not None:
            raise ArgumentError(
                "An encoder-decoder needs a start token, and finds the padding of the source by itself.",
                got="start = {start}, keep = None" if keep is None else "start = {start}, keep = a tensor",
                do="Pass start=, and pad the sources with the model's padding token.",
                start=start,
            )
        _check_room(1 + new, model.length)
        return TargetDecoding(model, prompt, start, cached=cached)
    if start is not None:
        raise ArgumentError(
            "A language model continues the prompt, so it must not get a start token.",
            got="start = {start}",
            do="Put the start token into the prompt.",
            start=start,
        )
    _check_room(prompt.shape[1] + new, model.length)
    return PromptDecoding(model, prompt, keep, cached=cached)


def _check_room(needed: int, longest: int) -> None:
    if needed > longest:
        raise ShapeError(
            "Prompt and new tokens must fit the positions of the model (longest = {longest}).",
            got="{needed} tokens",
            do="Shorten the prompt or lower max_new_tokens.",
            longest=longest,
            needed=needed,
        )


def _end_together(prompt: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Move padding to the front, so that the last column is the last token of every text."""
    check_keep(keep, prompt)
    if not bool(keep.any(1).all()):
        raise ShapeError(
            "Every prompt must have at least one token.",
            got="{empty} empty prompts",
            do="Begin an empty text with a start token.",
            empty=int((~keep.any(1)).sum()),
        )
    order = keep.to(torch.int8).argsort(dim=1, stable=True)  # padding first, the rest as it was
    return prompt.gather(1, order), keep.gather(1, order)
