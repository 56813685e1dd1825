"""What is measured on a model when its attention is changed: the loss, a logit, a probability …

>>> import regard
>>> regard.metrics.difference(5, 7)
difference(5, 7)

A metric is one of these, or any function of the model's output that gives a number. Each reads one
:class:`Outcome`: an output, the inputs that led to it, and the output of the same model without any edit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.checks import is_integer, is_number
from regard.errors import ArgumentError, DtypeError, Phrase, ShapeError
from regard.model_outcome import IGNORED, ModelInputs, Outcome, hidden_of, logits_of, needed_logits

__all__ = [
    "Metric",
    "ModelInputs",
    "Outcome",
    "cosine",
    "difference",
    "kl",
    "logit",
    "loss",
    "probability",
    "token_id",
]

Token = int | str
"""The id of a token, or its text where a tokenizer is given."""


class Metric(ABC):
    """A number for each sequence of an outcome.

    >>> isinstance(logit(42), Metric), isinstance(loss, Metric)
    (True, True)
    """

    @abstractmethod
    def of(self, outcome: Outcome) -> Tensor:
        """The number of each sequence, ``(batch,)``."""

    def divergence(self, outcome: Outcome) -> Tensor | None:
        """KL of the next token after the edit, at the positions of this metric; None without logits."""
        return kl.of(outcome) if logits_of(outcome.output, outcome.inputs) is not None else None


@dataclass(frozen=True)
class Loss(Metric):
    """The cross-entropy of the expected tokens, in nats, averaged over their positions.

    >>> loss
    loss
    """

    def __repr__(self) -> str:
        return "loss"

    def of(self, outcome: Outcome) -> Tensor:
        logits = needed_logits(outcome.output, outcome.inputs, self)
        targets, later = outcome.inputs.targets()
        if logits.shape[:2] != targets.shape:
            raise ShapeError(
                "The loss needs logits at every position (batch, position = {targets}).",
                got="logits of shape {logits}",
                do="Call the model without logits_to_keep.",
                targets=tuple(targets.shape),
                logits=tuple(logits.shape),
            )
        if later:
            logits, targets = logits[:, :-1], targets[:, 1:]
        each = F.cross_entropy(logits.mT.float(), targets.to(logits.device), reduction="none")
        counts = (targets != IGNORED).to(each)
        return (each * counts).sum(1) / counts.sum(1)


@dataclass(frozen=True)
class KLDivergence(Metric):
    """KL(before ‖ after) of the next token, in nats, averaged over the positions that are not padding.

    >>> kl
    kl
    """

    def __repr__(self) -> str:
        return "kl"

    def of(self, outcome: Outcome) -> Tensor:
        after, before = (needed_logits(x, outcome.inputs, self) for x in (outcome.output, outcome.plain))
        each = _divergences(before, after)  # (batch, position)
        keep = outcome.inputs.named.get("attention_mask")
        if not isinstance(keep, Tensor) or keep.shape != each.shape:
            return each.mean(1)
        counts = keep.to(each)
        return (each * counts).sum(1) / counts.sum(1)


def _divergences(before: Tensor, after: Tensor) -> Tensor:
    p, q = (F.log_softmax(x.float(), -1) for x in (before, after))
    return F.kl_div(q, p, reduction="none", log_target=True).sum(-1).clamp(min=0)


@dataclass(frozen=True)
class AtPosition(Metric):
    """A metric of the next token after one position; −1 is the last that is not padding."""

    position: int = -1
    texts: tuple[Token, ...] = field(default=(), compare=False, kw_only=True)
    """The tokens as the user wrote them."""

    def _called(self, name: str) -> str:
        shown = (text if isinstance(text, str) else token for text, token in zip(self.texts, self.tokens))
        return f"{name}({', '.join(map(repr, shown if self.texts else self.tokens))})"

    @abstractmethod
    def read(self, logits: Tensor) -> Tensor:
        """The number of each row of logits ``(batch, token)``."""

    def of(self, outcome: Outcome) -> Tensor:
        return self.read(self._row(outcome.output, outcome.inputs))

    def divergence(self, outcome: Outcome) -> Tensor | None:
        """KL at the same position."""
        before, after = (self._row(x, outcome.inputs) for x in (outcome.plain, outcome.output))
        return _divergences(before, after)

    def _row(self, output: Any, inputs: ModelInputs) -> Tensor:
        logits = needed_logits(output, inputs, self)
        length, tokens = logits.shape[1:]
        wrong = [token for token in self.tokens if token >= tokens]
        if wrong:
            raise ArgumentError(
                "A token must be an id of the model (0 … {last}).",
                got="{token}",
                do="Take the id from the model's own tokenizer.",
                last=tokens - 1,
                token=wrong[0],
            )
        if not -length <= self.position < length:
            raise ArgumentError(
                "position must be one of the logits (0 … {last}, or −1 for the last).",
                got="position = {position}",
                do="Count from 0.",
                last=length - 1,
                position=self.position,
            )
        row = torch.arange(logits.shape[0], device=logits.device)
        if self.position == -1:
            return logits[row, inputs.last(length, logits.device)]
        return logits[:, self.position]

    @property
    @abstractmethod
    def tokens(self) -> tuple[int, ...]:
        """The ids that are read."""


@dataclass(frozen=True, repr=False)
class TokenLogit(AtPosition):
    """The logit of a token."""

    token: int = 0

    def __repr__(self) -> str:
        return self._called("logit")

    @property
    def tokens(self) -> tuple[int, ...]:
        return (self.token,)

    def read(self, logits: Tensor) -> Tensor:
        return logits[:, self.token].float()


@dataclass(frozen=True, repr=False)
class TokenProbability(TokenLogit):
    """The probability of a token."""

    def __repr__(self) -> str:
        return self._called("probability")

    def read(self, logits: Tensor) -> Tensor:
        return logits.float().softmax(-1)[:, self.token]


@dataclass(frozen=True, repr=False)
class LogitDifference(AtPosition):
    """The logit of a token minus that of another."""

    token: int = 0
    other: int = 0

    def __repr__(self) -> str:
        return self._called("difference")

    @property
    def tokens(self) -> tuple[int, ...]:
        return (self.token, self.other)

    def read(self, logits: Tensor) -> Tensor:
        return (logits[:, self.token] - logits[:, self.other]).float()


@dataclass(frozen=True)
class Cosine(Metric):
    """The cosine between the outputs before and after, averaged over positions: 1 if nothing changed.

    >>> cosine
    cosine
    """

    def __repr__(self) -> str:
        return "cosine"

    def of(self, outcome: Outcome) -> Tensor:
        before, after = (hidden_of(x).float() for x in (outcome.plain, outcome.output))
        each = F.cosine_similarity(before, after, dim=-1)
        return each.flatten(1).mean(1) if each.ndim > 1 else each


loss = Loss()
kl = KLDivergence()
cosine = Cosine()


def logit(token: Token, *, position: int = -1, tokenizer: Any = None) -> Metric:
    """The logit of a token after ``position``, the last one by default.

    ``token`` is an id, or with ``tokenizer`` a text that is one token, such as ``" Mary"``.

    >>> logit(42)
    logit(42)
    """
    return TokenLogit(_position(position), token_id(token, tokenizer), texts=(token,))


def probability(token: Token, *, position: int = -1, tokenizer: Any = None) -> Metric:
    """The probability of a token after ``position``; the arguments are those of :func:`logit`.

    >>> probability(42, position=3).position
    3
    """
    return TokenProbability(_position(position), token_id(token, tokenizer), texts=(token,))


def difference(token: Token, other: Token, *, position: int = -1, tokenizer: Any = None) -> Metric:
    """The logit of a token minus that of another; the arguments are those of :func:`logit`.

    >>> difference(42, 7)
    difference(42, 7)
    """
    ids = token_id(token, tokenizer), token_id(other, tokenizer)
    return LogitDifference(_position(position), *ids, texts=(token, other))


def _position(given: object) -> int:
    if not is_integer(given):
        raise ArgumentError(
            "position must be a whole number.",
            got="position = {given!r}",
            do="−1 is the last one.",
            given=given,
        )
    return int(given)


def token_id(token: Token, tokenizer: Any = None) -> int:
    """The id of a token; a text must be exactly one token of the tokenizer.

    >>> token_id(42, None)
    42
    """
    if isinstance(token, str):
        if tokenizer is None:
            raise ArgumentError(
                "A token must be an id, or a text with a tokenizer.",
                got="{token!r} without a tokenizer",
                do="Pass tokenizer=, or the id.",
                token=token,
            )
        ids: Sequence[int] = tokenizer(token, add_special_tokens=False)["input_ids"]
        if len(ids) != 1 or ids[0] == getattr(tokenizer, "unk_token_id", None):
            raise ArgumentError(
                "A text must be exactly one token of the model.",
                got="{token!r}, which is {pieces}" if ids else "{token!r}, which is none",
                do="Try it with or without the space in front, or take its first piece.",
                token=token,
                pieces=" + ".join(map(repr, tokenizer.convert_ids_to_tokens(list(ids)))),
            )
        return int(ids[0])
    if not is_integer(token, 0):
        raise ArgumentError(
            "A token must be an id, or a text with a tokenizer.",
            got="{token!r}",
            do="Pass tokenizer=, or the id.",
            token=token,
        )
    return int(token)


# ---- numbers ---------------------------------------------------------------------------------

AnyMetric = Metric | Callable[[Any], Any]
"""A metric, or a function of the model's output."""


def name_of(metric: AnyMetric) -> str:
    """What a metric is called in a title or a column."""
    return repr(metric) if isinstance(metric, Metric) else getattr(metric, "__name__", "metric")


def check_metric(metric: object) -> None:
    """Raise unless this can be a metric."""
    if not isinstance(metric, Metric) and not callable(metric):
        raise DtypeError(
            "A metric must be one of regard.metrics, or a function of the model's output.",
            got="{type}",
            do="Pass, for example, metrics.loss.",
            type=type(metric).__name__,
        )


def measured(metric: AnyMetric, outcome: Outcome, what: object) -> float:
    """The metric of an outcome as one finite number; ``what`` says in an error what was measured."""
    found = metric.of(outcome) if isinstance(metric, Metric) else metric(outcome.output)
    if isinstance(found, Tensor) and (isinstance(metric, Metric) or found.numel() == 1):
        found = float(found.detach().double().mean())
    if not is_number(found):
        raise ArgumentError(
            "A metric must return one finite number ({name}).",
            got="{found} for {what}",
            do="Return a float, such as output.logits[0, -1, 42].item().",
            name=name_of(metric),
            found=_shown(found),
            what=what,
        )
    return float(found)


def divergence_of(metric: AnyMetric, outcome: Outcome) -> float | None:
    """KL of the changed distribution at the positions of the metric; None for a model without logits."""
    if not isinstance(metric, Metric):
        found = kl.of(outcome) if logits_of(outcome.output, outcome.inputs) is not None else None
    else:
        found = metric.divergence(outcome)
    return None if found is None else float(found.detach().double().mean())


def _shown(found: object) -> Phrase:
    if isinstance(found, Tensor):
        return Phrase("a tensor of shape {shape}", shape=tuple(found.shape))
    return Phrase("{found}", found=repr(found)[:60])
