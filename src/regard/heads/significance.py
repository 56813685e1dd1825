"""How likely a score is by chance: against weights whose keys were shuffled.

A role names, for each query, some of the visible keys. If what a head looks at had nothing to do with the
role, its weights could be shuffled among the keys, and the score would be about as high. How
often it would is the p-value. It is bounded from above by a formula where there is one:

* ``tail``: every row is shuffled on its own (Hoeffding 1963, theorem 1);
* ``of_columns``: all rows are shuffled alike, because they look at the same few keys;
* ``of_distinct``: the greatest weight of every row goes to a random key.

``adjusted`` corrects for the number of questions asked (Benjamini & Hochberg 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.masks.extent import Integers, Numbers

LEVEL = 0.05
"""The greatest share of false ones among the roles that are called significant."""

SHUFFLES = 999
"""Used if no formula applies; the least p-value is then 1 in 1000."""

MOST_DRAWN = 1 << 24
"""Beyond this number of drawn keys only the formula is used, which is then sharp enough."""


def tail(score: Numbers, chance: Numbers, rows: Numbers, bound: Numbers) -> Numbers:
    """``exp(−rows · KL(score/bound ‖ chance/bound))``: how likely the mean of ``rows`` rows is this great.

    Each row is a random quantity between 0 and ``bound``; ``chance`` is the mean of their means. Nothing
    else is assumed, so keys may depend on each other.

    >>> one = np.array([1.0])
    >>> tail(one, one / 10, 3 * one, one).round(6).tolist()  # three rows, each on one of ten keys
    [0.001]
    >>> tail(one / 10, one / 10, 3 * one, one).tolist()
    [1.0]
    """
    bound = np.maximum(np.maximum(bound, score), 1e-300)
    a, b = np.clip(score / bound, 0.0, 1.0), np.clip(chance / bound, 1e-300, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.where(a > 0, a * np.log(np.where(a > 0, a, 1.0) / b), 0.0)
        less = np.where(
            a < 1, (1 - a) * (np.log1p(-np.where(a < 1, a, 0.0)) - np.log1p(-np.minimum(b, 1 - 1e-16))), 0.0
        )
        found: Numbers = np.where(a > b, np.exp(-rows * np.maximum(more + less, 0.0)), 1.0)
    return np.maximum(found, 1e-300)


class ReceivedWeights(NamedTuple):
    """What each key of a sequence receives, and which keys a role names."""

    received: Tensor  # (head, key): of the keys that could have been named
    chosen: Integers  # those that are


def of_columns(sequences: Sequence[ReceivedWeights]) -> Numbers:
    """The p-value of what the chosen keys receive, compared with as many random keys, for each head."""
    heads = len(sequences[0].received)
    observed, drawn = np.zeros(heads), np.zeros((heads, SHUFFLES))
    expected, bound, draws = np.zeros(heads), np.zeros(heads), 0
    exact = len(sequences) == 1 and len(sequences[0].chosen) == 1
    for received, chosen in sequences:
        values = received.double().cpu()
        observed += values[:, torch.from_numpy(chosen)].sum(1).numpy()
        expected += len(chosen) * values.mean(1).numpy()
        bound = np.maximum(bound, values.amax(1).numpy())
        draws += len(chosen)
        if not exact:
            drawn += (values.float() @ _subsets(values.shape[1], len(chosen)).T).double().numpy()
    # Equal sums may differ in their last digits.
    almost = observed[:, None] * (1 - 1e-6)
    if exact:  # one key of one text: it could have been any of them
        found = np.asarray((sequences[0].received.double().cpu().numpy() >= almost).mean(1))
    else:
        found = (1 + (drawn >= almost).sum(1)) / (1 + SHUFFLES)
    # Drawing without replacement spreads no wider than drawing with it (Hoeffding 1963, theorem 4).
    formula = tail(observed / draws, expected / draws, np.full(heads, float(draws)), bound)
    least: Numbers = np.minimum(found, formula)
    return least


@lru_cache(maxsize=8)
def _subsets(population: int, size: int) -> Tensor:
    """Which keys are drawn in each shuffle, ``(shuffle, key)``; always the same draws."""
    chance = torch.Generator().manual_seed(0)
    order = torch.rand(SHUFFLES, population, generator=chance)
    return (order <= order.kthvalue(size, dim=1, keepdim=True).values).float()


class RowPeaks(NamedTuple):
    """The greatest weight of each row of a sequence, the number of keys, and what the sum is divided by."""

    weights: Tensor  # (head, row)
    keys: int
    parts: Tensor  # (head,)


def of_distinct(score: Numbers, sequences: Sequence[RowPeaks]) -> Numbers:
    """The p-value of peaks on this number of different keys, if the peak of every row were at a random key.

    ``score`` is the sum over sequences of ``Σ_j max {weights of rows with their peak at j} / parts``.
    """
    heads = len(score)
    mean, squares = np.zeros(heads), np.zeros(heads)
    for weights, keys, parts in sequences:
        ordered = weights.double().cpu().sort(1, descending=True).values
        # The r-th greatest counts if none of the r before it has drawn its key.
        free = (1 - 1 / keys) ** torch.arange(ordered.shape[1], dtype=torch.float64)
        mean += ((ordered @ free) / parts.cpu()).numpy()
        squares += ((ordered**2).sum(1) / parts.cpu() ** 2).numpy()
    # Another key for one row changes the sum by at most its weight (McDiarmid 1989).
    above = np.maximum(score - mean, 0.0)
    found = np.where(above > 0, np.exp(-2 * above**2 / np.maximum(squares, 1e-300)), 1.0)
    if SHUFFLES * sum(peaks.weights.numel() for peaks in sequences) > MOST_DRAWN:
        return np.asarray(np.maximum(found, 1e-300), np.float64)
    drawn = sum(_drawn(peaks, seed) for seed, peaks in enumerate(sequences))
    reached = (1 + (drawn >= score[:, None] * (1 - 1e-9)).sum(1)) / (1 + SHUFFLES)
    least: Numbers = np.maximum(np.minimum(found, reached), 1e-300)
    return least


def _drawn(peaks: RowPeaks, seed: int) -> Numbers:
    """The sum of a sequence with every peak at a random key, ``(head, shuffle)``."""
    chance = torch.Generator().manual_seed(seed)
    keys = torch.randint(peaks.keys, (SHUFFLES, peaks.weights.shape[1]), generator=chance)
    sums = []
    for weights, parts in zip(peaks.weights.double().cpu(), peaks.parts.tolist()):
        highest = torch.zeros(SHUFFLES, peaks.keys, dtype=torch.float64)
        highest.scatter_reduce_(1, keys, weights.expand(SHUFFLES, -1), "amax")
        sums.append(highest.sum(1) / parts)
    return torch.stack(sums).numpy()


def adjusted(p: Sequence[float]) -> list[float]:
    """p-values corrected for their number: ``min over larger ones of p · count / rank``.

    Of those up to 0.05, at most one in twenty is then false (Benjamini & Hochberg 1995).

    >>> adjusted([0.01, 0.04, 0.03, 0.5])
    [0.04, 0.05333333333333334, 0.05333333333333334, 0.5]
    """
    if not p:
        return []
    values = np.asarray(p, np.float64)
    order = np.argsort(values)
    scaled = values[order] * len(values) / np.arange(1, len(values) + 1)
    found = np.empty_like(scaled)
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return [float(value) for value in found]
