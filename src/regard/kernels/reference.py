"""Attention, step by step, in NumPy: the definition that everything else is tested against.

Read it from top to bottom. Arrays have the axes ``(..., head, query or key, channel)``; for a single
head its axis is optional. Nothing here is fast; it is written in float64 to be right.

    scores   s_ij = cap(scale · q_i · k_j) + bias_ij       cap(x) = c · tanh(x / c), with a softcap
    masked   s_ij = −∞ where query i may not see key j
    lse      lse_i = log Σ_j exp(s_ij)                     a sink adds one more term to the sum
    weights  w_ij = exp(s_ij − lse_i)                      a row that sees no key is all 0
    output   o_i = Σ_j w_ij · v_j
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regard.masks.extent import Numbers as Numbers
from regard.masks.id_table import as_array


@dataclass(frozen=True)
class ReferenceStep:
    """One named step of the calculation."""

    name: str
    formula: str
    value: Numbers


@dataclass(frozen=True)
class Trace:
    """All steps in order. ``trace["weights"]`` is the value of one of them; ``trace.output`` is the result.

    >>> trace = attention([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[10.0], [20.0]])
    >>> for step in trace:
    ...     print(f"{step.name:8} {step.value.shape}  {step.formula}")
    q        (1, 2)  q
    k        (2, 2)  k
    v        (2, 1)  v
    dots     (1, 2)  q kᵀ
    scores   (1, 2)  q kᵀ · 0.707
    lse      (1,)  log Σ exp(scores)
    weights  (1, 2)  exp(scores − lse)
    output   (1, 1)  weights v
    >>> trace.output.round(2)
    array([[13.3]])
    """

    steps: list[ReferenceStep] = field(default_factory=list)

    def add(self, name: str, formula: str, value: Numbers) -> Numbers:
        """Record a step and return its value."""
        self.steps.append(ReferenceStep(name, formula, value))
        return value

    def __getitem__(self, name: str) -> Numbers:
        for step in reversed(self.steps):
            if step.name == name:
                return step.value
        raise KeyError(f"no step {name!r}; there are {', '.join(step.name for step in self.steps)}")

    def __iter__(self) -> Iterator[ReferenceStep]:
        return iter(self.steps)

    @property
    def output(self) -> Numbers:
        """The result of the calculation."""
        return self["output"]


def softmax(scores: Numbers, sinks: Numbers | None = None) -> tuple[Numbers, Numbers]:
    """The weights of each row, and the log of their denominator.

    The maximum of *each row* is subtracted first. With the maximum of the whole matrix, a row of
    low scores would divide 0 by 0; without any, a score of 1000 would overflow.
    """
    highest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    if sinks is not None:
        highest = np.maximum(highest, sinks)
    highest = np.where(np.isfinite(highest), highest, 0.0)  # rows that see no key
    powers = np.exp(scores - highest)
    total = powers.sum(axis=-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks - highest)
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    with np.errstate(divide="ignore"):
        lse = (highest + np.log(total))[..., 0]
    return weights, lse


def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    mask: Any = None,
    bias: ArrayLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: ArrayLike | None = None,
) -> Trace:
    """Attention of queries ``(..., head, query, channel)`` over keys and values, as a trace.

    ``mask`` is a regard mask or an array of bools, ``bias`` is added to the scores, and ``sinks``
    is one logit per head that takes weight but has no value.
    """
    trace = Trace()
    q = trace.add("q", "q", np.asarray(q, np.float64))
    k = trace.add("k", "k", np.asarray(k, np.float64))
    v = trace.add("v", "v", np.asarray(v, np.float64))
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:  # grouped heads: consecutive ones share a key head
        k = trace.add(
            "k", "each key head, once per query head", np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
        )
        v = trace.add(
            "v", "each value head, once per query head", np.repeat(v, q.shape[-3] // v.shape[-3], axis=-3)
        )

    scale = q.shape[-1] ** -0.5 if scale is None else scale
    dots = trace.add("dots", "q kᵀ", q @ np.swapaxes(k, -1, -2))
    scores = trace.add("scores", f"q kᵀ · {scale:.3g}", dots * scale)
    if softcap is not None:
        scores = trace.add(
            "capped", f"{softcap:g} · tanh(scores / {softcap:g})", softcap * np.tanh(scores / softcap)
        )
    if bias is not None:
        scores = trace.add("biased", "scores + bias", scores + np.asarray(bias, np.float64))
    if mask is not None:
        allowed = (
            mask.dense(*scores.shape[-2:]).numpy()
            if hasattr(mask, "dense")
            else np.asarray(as_array(mask), np.bool_)
        )
        scores = trace.add("masked", "−∞ where the mask forbids", np.where(allowed, scores, -np.inf))

    logits = None if sinks is None else np.asarray(sinks, np.float64)[..., :, None, None]
    weights, lse = softmax(scores, logits)
    trace.add("lse", "log Σ exp(scores)" + ("" if sinks is None else " with the sink"), lse)
    trace.add("weights", "exp(scores − lse)", weights)
    trace.add("output", "weights v", weights @ v)
    return trace


def split_heads(x: Numbers, heads: int) -> Numbers:
    """``(..., length, heads · channel)`` to ``(..., heads, length, channel)``."""
    *lead, length, width = x.shape
    return np.swapaxes(x.reshape(*lead, length, heads, width // heads), -2, -3)


def combine_heads(x: Numbers) -> Numbers:
    """``(..., heads, length, channel)`` back to ``(..., length, heads · channel)``."""
    x = np.swapaxes(x, -2, -3)
    return x.reshape(*x.shape[:-2], -1)


def multi_head(
    x: ArrayLike,
    w_q: ArrayLike,
    w_k: ArrayLike,
    w_v: ArrayLike,
    w_o: ArrayLike,
    *,
    heads: int,
    context: ArrayLike | None = None,
    **options: Any,
) -> Trace:
    """Multi-head attention of tokens ``x (..., length, width)``; each weight is ``(width in, width out)``.

    Keys and values come from ``context`` (cross-attention) or from ``x`` itself. ``options`` are
    those of :func:`attention`.
    """
    trace = Trace()
    x = trace.add("x", "x", np.asarray(x, np.float64))
    of, origin = ("x", x)
    if context is not None:
        of, origin = ("context", trace.add("context", "context", np.asarray(context, np.float64)))
    queries = trace.add("queries", "x W_q", x @ np.asarray(w_q, np.float64))
    keys = trace.add("keys", f"{of} W_k", origin @ np.asarray(w_k, np.float64))
    values = trace.add("values", f"{of} W_v", origin @ np.asarray(w_v, np.float64))

    channel = queries.shape[-1] // heads
    inner = attention(
        split_heads(queries, heads),
        split_heads(keys, keys.shape[-1] // channel),
        split_heads(values, keys.shape[-1] // channel),
        **options,
    )
    split = {"q": "queries, split into heads", "k": "keys, split into heads", "v": "values, split into heads"}
    for step in inner:
        if step.name != "output":
            trace.add(step.name, split.get(step.formula, step.formula), step.value)
    trace.add("heads", "weights v, for each head", inner.output)
    joined = trace.add("joined", "heads side by side", combine_heads(inner.output))
    trace.add("output", "joined W_o", joined @ np.asarray(w_o, np.float64))
    return trace
