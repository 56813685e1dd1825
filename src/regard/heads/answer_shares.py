"""Which words, and which heads, an answer of a model rests on: three methods, one form of result.

The answer is a logit z of a token or a class, less that of another if one is given. Its tokens and heads::

    gradient      Σ w_ij · ∂z/∂w_ij     of a key, over all layers, heads and queries; of a head, over keys
    relevance     R − I                 of Chefer, Gur and Wolf; heads as for the gradient
    attribution   Σ w_ij · (v_j W_O)·u  at the position of the answer: of each token, of each head

A share is a number divided by the sum of all sizes, so that the sizes of all shares sum to 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.ablation.measured_effects import Progress
from regard.checks import check_choice, check_position, is_index
from regard.errors import ArgumentError, RecordingError
from regard.heads.head_importance import importance, key_importance
from regard.heads.language_stack import stack_of
from regard.heads.logit_attribution import attribution
from regard.heads.token_relevance import relevance
from regard.model_outcome import ModelInputs
from regard.recording import Recording, watch
from regard.table import Table, Value

METHODS = ("relevance", "attribution", "gradient")

COLUMNS = ("kind", "layer", "head", "value", "share")

LONG = 1024
"""Tokens beyond which the layers are computed twice, so that their activations need not be kept."""


@dataclass(frozen=True)
class Question:
    """What to explain: the answer read at ``row``, by default the most likely one, against another."""

    row: int | None = None
    target: int | None = None
    against: int | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer, and the share that each token had in it; ``source`` is the text that a decoder looks at."""

    row: int
    target: int
    against: int | None
    logit: float
    probability: float
    own: Tensor  # (token,)
    source: Tensor | None  # (token of the source,)
    heads: Table  # kind, layer, head, value, share
    direction: Tensor | None = None  # of an attribution: what the logit reads from the residual stream


@dataclass(frozen=True, eq=False)
class AnswerShares:
    """Answers of a model, with the recording of their gradients (of their sum, if there are several)."""

    method: str
    answers: tuple[Answer, ...]
    recording: Recording

    def tokens(
        self, answers: Sequence[str], tokens: Sequence[str], source_tokens: Sequence[str] | None = None
    ) -> Table:
        """One row per answer and token: ``answers`` are their names, ``tokens`` the texts of both sides."""
        rows: list[tuple[Value, ...]] = [
            (answer.row, name, side, place, shown[place], float(share))
            for answer, name in zip(self.answers, answers, strict=True)
            for side, shares, shown in (
                ("source", answer.source, source_tokens),
                ("text", answer.own, tokens),
            )
            if shares is not None and shown is not None
            for place, share in enumerate(shares)
        ]
        return Table(("row", "answer", "side", "position", "token", "share"), rows)

    @property
    def heads(self) -> Table:
        """One row per head; its share is the mean over all answers."""
        found: dict[tuple[Value, ...], list[tuple[float, float]]] = {}
        for answer in self.answers:
            for row in answer.heads:
                place = (row["kind"], row["layer"], row["head"])
                found.setdefault(place, []).append((float(row["value"]), float(row["share"])))  # type: ignore[arg-type]
        rows = [
            (*place, *(sum(column) / len(parts) for column in zip(*parts))) for place, parts in found.items()
        ]
        return Table(COLUMNS, rows)


def answer_shares(
    model: nn.Module,
    inputs: Tensor | Mapping[str, Any] | tuple[Any, ...],
    questions: Sequence[Question] = (Question(),),
    *,
    method: str = "relevance",
    progress: Progress | None = None,
) -> AnswerShares:
    """The share of each token and head in the answers of a model to one text, one run for each answer.

    ``inputs`` are those of one text, as a tokenizer returns them, or the tensors that the model takes.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=2).eval()
    >>> found = answer_shares(model, torch.tensor([[3, 1, 4, 1, 5]]), method="gradient")
    >>> found.answers[0].own.shape, round(float(found.answers[0].own.abs().sum()), 6)
    (torch.Size([5]), 1.0)
    """
    check_choice("method", method, METHODS)
    if method == "attribution":
        stack_of(model)  # refuses before the work begins
    given = ModelInputs.of(model, inputs)
    if given.batch != 1:
        raise ArgumentError(
            "answer_shares needs exactly one text.",
            got="a batch of {batch}",
            do="Pass one text at a time: ids[:1].",
            batch=given.batch,
        )
    if not questions:
        raise ArgumentError("There must be at least one question.", got="none", do="Pass [Question()].")
    passes = len(questions) + (len(questions) > 1)
    found, recording = [], None
    for number, question in enumerate(questions):
        recording, read = _recorded(model, given, [question])
        found.append(_explained(model, inputs, recording, read[0], method))
        if progress is not None:
            progress(number + 1, passes)
    if len(questions) > 1:
        recording, _ = _recorded(model, given, questions)
    assert recording is not None
    return AnswerShares(method, tuple(found), recording)


# ---- one run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ReadAnswer:
    """An answer as it was read."""

    row: int
    target: int
    against: int | None
    logit: float
    probability: float


def _recorded(
    model: nn.Module, inputs: ModelInputs, questions: Sequence[Question]
) -> tuple[Recording, list[_ReadAnswer]]:
    """Forward and backward pass: gradients of the sum of all answers."""
    length = max((x.shape[1] for x in (*inputs.args, *inputs.named.values()) if _is_ids(x)), default=0)
    options = _options(model, length, questions)
    run = ModelInputs(inputs.args, {**inputs.named, **options}, inputs.batch)
    with (
        torch.enable_grad(),
        _frozen(model),
        _twice(model, length > LONG),
        watch(model, gradients=True, projections=True) as seen,
    ):
        logits = _logits(model, run.run(model))
        queries = seen[-1].queries
        read, total = [], logits.new_zeros(())
        for question in questions:
            row = _row(question.row, queries, seen[0].kind if logits.ndim == 2 else None)
            line = logits[0] if logits.ndim == 2 else logits[0, row - queries]
            one, score = _answer(question, row, line)
            read.append(one)
            total = total + score
        total.backward()
    return seen, read


@contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    """No gradients of parameters, which are not needed."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


def _answer(question: Question, row: int, line: Tensor) -> tuple[_ReadAnswer, Tensor]:
    """What is read from one line of logits, and the number to differentiate."""
    target = int(line.argmax()) if question.target is None else question.target
    for name, token in (("target", target), ("against", question.against)):
        if token is not None and not is_index(token, len(line)):
            raise ArgumentError(
                "{name} must be one of the answers that the model can give (0 … {last}).",
                got="{name} = {token!r}",
                do="Pass the id of a token, or the number of a class.",
                name=name,
                last=len(line) - 1,
                token=token,
            )
    score = line[target] if question.against is None else line[target] - line[question.against]
    probability = float(line.detach().double().softmax(-1)[target])
    return _ReadAnswer(row, target, question.against, float(score.detach()), probability), score


def _logits(model: nn.Module, output: Any) -> Tensor:
    found = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if not isinstance(found, Tensor) or found.ndim not in (2, 3) or not found.requires_grad:
        raise RecordingError(
            "An explanation needs an answer: the logits of tokens, or of classes.",
            got="{model}, which has no language head and no classes",
            do="Take a model with a head: AutoModelForCausalLM, AutoModelForSequenceClassification, say.",
            model=type(model).__name__,
        )
    return found


def _row(row: int | None, queries: int, kind: str | None) -> int:
    """The position of the answer; a class is read at the first position of an encoder, else at the last."""
    if row is None:
        return 0 if kind == "encoder" else queries - 1
    return check_position("row", row, queries)


def _is_ids(x: object) -> bool:
    return isinstance(x, Tensor) and x.ndim >= 2


def _options(model: nn.Module, length: int, questions: Sequence[Question]) -> dict[str, Any]:
    """Of a long text, no cache, and no logits of positions that are not asked for: both take memory."""
    known = inspect.signature(model.forward).parameters
    options: dict[str, Any] = {"use_cache": False} if "use_cache" in known else {}
    rows = [-1 if question.row is None else question.row for question in questions]
    last = max(length - row if row >= 0 else -row for row in rows)
    if "logits_to_keep" in known and 0 < last <= length:
        options["logits_to_keep"] = last
    return options


@contextmanager
def _twice(model: nn.Module, wanted: bool) -> Iterator[None]:
    """Compute every layer again in the backward pass, in place of keeping what it computed."""
    layers = _layers(model) if wanted else []
    for layer in layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward  # the method of the class again


def _layers(model: nn.Module) -> list[nn.Module]:
    """The members of the outermost lists of modules."""
    if isinstance(model, nn.ModuleList):
        return list(model)
    return [layer for child in model.children() for layer in _layers(child)]


# ---- its shares ------------------------------------------------------------------------------------


def _explained(model: nn.Module, inputs: Any, seen: Recording, read: _ReadAnswer, method: str) -> Answer:
    source: Tensor | None = None
    direction: Tensor | None = None
    heads: list[tuple[Value, Value, Value, float]]
    if method == "attribution":
        named = inputs if isinstance(inputs, Mapping | Tensor) else inputs[0]
        parts = attribution(model, named, read.target, read.against, read.row)
        own, by_head, direction = parts.by_token(), parts.by_head(), parts.direction
        heads = [
            ("decoder", layer, head, float(by_head[layer, head]))
            for layer in range(by_head.shape[0])
            for head in range(by_head.shape[1])
        ]
    else:
        heads = [
            (row["kind"], row["layer"], row["head"], float(row["gate_gradient"]))  # type: ignore[arg-type]
            for row in importance(seen)
        ]
        own, source = _by_relevance(seen, read.row) if method == "relevance" else _by_gradient(seen)
    sizes = float(own.abs().sum() + (0 if source is None else source.abs().sum())) or 1.0
    of_heads = sum(abs(value) for *_, value in heads) or 1.0
    table = Table(
        COLUMNS,
        [(kind, layer, head, value, value / of_heads) for kind, layer, head, value in heads],
    )
    return Answer(
        read.row, read.target, read.against, read.logit, read.probability,
        own.double() / sizes, None if source is None else source.double() / sizes, table, direction,
    )  # fmt: skip


def _by_relevance(seen: Recording, row: int) -> tuple[Tensor, Tensor | None]:
    """R − I: every position is relevant to itself before any attention."""
    found = relevance(seen, row=row)
    return found.added, found.source


def _by_gradient(seen: Recording) -> tuple[Tensor, Tensor | None]:
    """What the keys of all layers gave to first order; a source has the keys of the encoder and of cross."""
    sums: dict[bool, Tensor] = {}
    two = any(call.kind == "cross" for call in seen)
    for call in seen:
        at_source = two and call.kind != "decoder"
        found = key_importance(call.scored())
        sums[at_source] = sums[at_source] + found if at_source in sums else found
    return sums[False], sums.get(True)
