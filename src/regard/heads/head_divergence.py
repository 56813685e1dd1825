"""How different heads are: Jensen–Shannon divergence between their rows, and clusters of similar heads.

For the rows p and q of two heads at the same query::

    JS(p, q) = (H((p + q) / 2) − (H(p) + H(q)) / 2) / log 2        in [0, 1]

averaged over queries (Clark et al. 2019). Clusters come from average linkage: the two groups with the
least mean divergence between their heads are joined, again and again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.checks import is_integer
from regard.errors import ArgumentError, RecordingError
from regard.heads.head_table import check_batch, check_recording
from regard.heads.padding import real_queries
from regard.kernels.plain_kernel import MAX_SCORES
from regard.masks.extent import Numbers
from regard.recording import Call, Recording
from regard.table import Table


@dataclass(frozen=True, eq=False)
class Divergence:
    """The divergence between all pairs of heads, and the tree that joins similar ones."""

    heads: tuple[tuple[int, int], ...]  # (layer, head) of each row
    matrix: Numbers  # (head, head), in [0, 1]
    joins: tuple[tuple[int, int, float], ...]
    """Each join: two groups and how far apart they are. Group k below ``len(heads)`` is head k;
    above, it is what join ``k − len(heads)`` made."""

    def __repr__(self) -> str:
        return f"<Divergence between {len(self.heads)} heads>"

    @property
    def labels(self) -> list[str]:
        """The heads as text: layer.head."""
        return [f"{layer}.{head}" for layer, head in self.heads]

    @property
    def order(self) -> list[int]:
        """The heads in an order in which those of one cluster are adjacent."""
        return self._leaves(2 * len(self.heads) - 2)

    def clusters(self, count: int) -> list[list[tuple[int, int]]]:
        """``count`` groups of heads, each a list of (layer, head), in the order of the tree.

        >>> near = Divergence(((0, 0), (0, 1), (1, 0)), np.zeros((3, 3)), ((0, 2, 0.1), (3, 1, 0.8)))
        >>> near.clusters(2)
        [[(0, 0), (1, 0)], [(0, 1)]]
        """
        if not is_integer(count, 1, len(self.heads)):
            raise ArgumentError(
                "The number of clusters must be between 1 and {heads_count}.",
                got="count = {count!r}",
                do="Try 4.",
                heads_count=len(self.heads),
                count=count,
            )
        made = len(self.heads) + len(self.joins) - count + 1  # the groups that exist before the last joins
        whole = [2 * len(self.heads) - 2]
        groups: list[int] = []
        while whole:
            group = whole.pop()
            if group < made:
                groups.append(group)
            else:
                left, right, _ = self.joins[group - len(self.heads)]
                whole += [right, left]
        return [[self.heads[leaf] for leaf in self._leaves(group)] for group in groups]

    def _leaves(self, group: int) -> list[int]:
        waiting, found = [group], []
        while waiting:
            group = waiting.pop()
            if group < len(self.heads):
                found.append(group)
            else:
                left, right, _ = self.joins[group - len(self.heads)]
                waiting += [right, left]
        return found

    @property
    def table(self) -> Table:
        """Every pair of heads, one row each."""
        columns = ("layer", "head", "other_layer", "other_head", "divergence")
        count = len(self.heads)
        return Table(
            columns,
            [
                (*self.heads[a], *self.heads[b], float(self.matrix[a, b]))
                for a in range(count)
                for b in range(a + 1, count)
            ],
        )


@torch.no_grad()
def divergence(
    recording: Recording, batch: int | None = None, *, kind: str | None = None, run: int = 0
) -> Divergence:
    """How different every two heads of one kind are, with similar heads joined into clusters.

    ``kind`` is needed where a recording has several (an encoder-decoder). Rows are made a few at a time.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> found = divergence(seen)
    >>> found.matrix.shape, sorted(found.order)
    ((4, 4), [0, 1, 2, 3])
    """
    check_recording(recording)
    calls = _chosen(recording, kind, run)
    for call in calls:
        check_batch(call, batch)
    real = real_queries(recording, calls[0])
    heads = [(call, index) for call in calls for index in range(call.heads)]
    total, count = (np.zeros((len(heads), len(heads))) for _ in range(2))
    for one in range(calls[0].batch) if batch is None else (batch,):
        rows = np.flatnonzero(real[one].numpy())
        # All heads of some rows at a time, and as much again for the mean with one of them.
        step = max(1, MAX_SCORES // (len(heads) * calls[0].keys))
        for start in range(0, len(rows), step):
            _add(total, count, _weights(heads, one, rows[start : start + step].tolist()))
    matrix = total / np.maximum(count, 1)
    return Divergence(
        tuple((call.layer, call.head_numbers[index]) for call, index in heads), matrix, linkage(matrix)
    )


def _chosen(recording: Recording, kind: str | None, run: int) -> list[Call]:
    kinds = list(dict.fromkeys(call.kind for call in recording))
    if kind not in kinds and (kind is not None or len(kinds) > 1):
        raise ArgumentError(
            "Only heads of one kind can be compared (recorded: {kinds}).",
            got="kind = {kind!r}",
            do="Choose one with kind=.",
            kinds=", ".join(kinds),
            kind=kind,
        )
    calls = [call for call in recording if call.run == run and kind in (None, call.kind)]
    if len({call.extent for call in calls}) != 1:
        raise RecordingError(
            "Heads can only be compared if they have the same queries and keys.",
            got="{extents}" if calls else "no calls of run {run}",
            do="Record one text at a time, and choose a pass with run=.",
            extents="; ".join(sorted({str(call.extent) for call in calls})),
            run=run,
        )
    return calls


def _weights(heads: list[tuple[Call, int]], batch: int, rows: list[int]) -> Tensor:
    """Rows of all heads, ``(head, row, key)``, each summing to 1, or to 0 where nothing is seen."""
    found = torch.stack(
        [call.weights(call.head_numbers[index], rows, batch=batch).float().cpu() for call, index in heads]
    )
    mass = found.sum(-1, keepdim=True)
    return found / torch.where(mass > 0, mass, 1.0)


def _add(total: Numbers, count: Numbers, weights: Tensor) -> None:
    """Add the divergence at some rows; a query counts for two heads if it sees something in both."""
    entropy = -torch.xlogy(weights, weights).sum(-1)  # (head, row)
    sees = weights.sum(-1) > 0
    for a in range(len(weights) - 1):
        mean = (weights[a] + weights[a + 1 :]) / 2
        mixed = -torch.xlogy(mean, mean).sum(-1)
        apart = (mixed - (entropy[a] + entropy[a + 1 :]) / 2).clamp(min=0) / np.log(2)
        both = sees[a] & sees[a + 1 :]
        total[a, a + 1 :] += torch.where(both, apart, 0.0).sum(-1).double().numpy()
        count[a, a + 1 :] += both.sum(-1).numpy()
    total += np.triu(total, 1).T - np.tril(total, -1)
    count += np.triu(count, 1).T - np.tril(count, -1)


def linkage(distances: Numbers) -> tuple[tuple[int, int, float], ...]:
    """Average linkage: the joins of n items into one, nearest groups first; the earlier is on the left.

    >>> linkage(np.array([[0, 1, 4], [1, 0, 2], [4, 2, 0.0]]))
    ((0, 1, 1.0), (3, 2, 3.0))
    """
    apart = np.array(distances, dtype=np.float64)
    np.fill_diagonal(apart, np.inf)
    names = list(range(len(apart)))
    sizes = np.ones(len(apart))
    joins: list[tuple[int, int, float]] = []
    for _ in range(len(apart) - 1):
        a, b = sorted(int(at) for at in np.unravel_index(np.argmin(apart), apart.shape))
        joins.append((names[a], names[b], float(apart[a, b])))
        # The mean over all pairs of both groups, by their sizes.
        merged = (sizes[a] * apart[a] + sizes[b] * apart[b]) / (sizes[a] + sizes[b])
        merged[[a, b]] = np.inf
        apart[a], apart[:, a] = merged, merged
        apart[b], apart[:, b] = np.inf, np.inf
        sizes[a] += sizes[b]
        names[a] = len(distances) + len(joins) - 1
    return tuple(joins)
