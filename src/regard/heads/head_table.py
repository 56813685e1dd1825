"""The table of heads: what each head of each layer does on average, from one streaming pass."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.checks import is_index
from regard.errors import ArgumentError, RecordingError
from regard.heads.distance_weights import first_distances, weight_by_distance
from regard.heads.head_selection import Chosen, chosen
from regard.heads.padding import real_queries
from regard.kernels import Statistics
from regard.recording import Call, Recording, ScoredCall
from regard.table import Table, Value
from regard.threads import each, spread

PLACE = ("call", "name", "kind", "layer", "head", "run")
"""The columns that say which head a row is about."""

MEANS = (
    "entropy", "relative_entropy", "self_weight", "previous_weight", "first_weight", "distance",
    "peak", "visible",
)  # fmt: skip
"""The columns that are means over queries."""

COLUMNS = (*PLACE, "queries", *MEANS, "received_peak")


def table(
    recording: Recording,
    batch: int | None = None,
    *,
    layers: Chosen = None,
    heads: Chosen = None,
    distances: bool = False,
) -> Table:
    """One row per head: its statistics averaged over the queries that see something.

    Queries that see nothing and, where the mask shows it, padding are left out. All sequences of the
    batch count together unless ``batch`` names one; ``layers`` and ``heads`` choose some.
    The definitions are in ``docs/statistics.md``.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoder(
    ...     torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 3, enable_nested_tensor=False
    ... )
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> found = table(seen)
    >>> len(found), found[5]["layer"], found[5]["head"], found[5]["queries"]
    (6, 2, 1, 5)
    >>> sharpest = found.sort("entropy")[0]

    ``distances`` adds the weight by distance from the query: columns ``distance_0``, ``distance_1``,
    ``distance_2`` (2 and 3), ``distance_4`` (4 to 7) and so on. This takes about two more passes.

    >>> near = table(seen, distances=True)[0]
    >>> [name for name in near if name.startswith("distance_")]
    ['distance_0', 'distance_1', 'distance_2', 'distance_4']
    >>> round(sum(near[f"distance_{first}"] for first in (0, 1, 2, 4)), 4)
    1.0

    Nothing n×n is built. Recordings of statistics alone suffice, except for distances.
    """
    check_recording(recording)
    calls = chosen(recording, layers, heads)
    for _, call in calls:
        check_batch(call, batch)
    far = first_distances(max((call.keys for _, call in calls), default=0)) if distances else ()
    real = [real_queries(recording, call) for _, call in calls]

    def rows_of(at: int) -> list[tuple[Value, ...]]:
        number, call = calls[at]
        found = _of_call(number, call, real[at], batch)
        more = _distances(call, real[at], batch, len(far)) if distances else [()] * len(found)
        return [(*row, *cells) for row, cells in zip(found, more)]

    size = sum(call.q.numel() * call.keys for _, call in calls if isinstance(call, ScoredCall))
    rows = spread(lambda: each(rows_of, range(len(calls))), size)
    return Table((*COLUMNS, *(f"distance_{first}" for first in far)), [row for some in rows for row in some])


def _distances(call: Call, real: Tensor, batch: int | None, bins: int) -> list[tuple[Value, ...]]:
    """The weight at each distance, averaged over the queries that see something, for each head."""
    found = weight_by_distance(call)
    if found is None:
        return [(None,) * bins] * call.heads
    which = slice(None) if batch is None else slice(batch, batch + 1)
    found = found[which]
    counts = real[which, None].to(found.device) & (found.sum(-1) > 0)
    means = [mean_of_heads(found[..., one], counts) for one in range(found.shape[-1])]
    # A shorter text has no keys that far away.
    return [(*(mean[head] for mean in means), *(None,) * (bins - len(means))) for head in range(call.heads)]


def check_recording(recording: object) -> None:
    """Raise unless this is a recording with something in it."""
    if not isinstance(recording, Recording):
        raise ArgumentError(
            "The heads must come from a recording.",
            got="{type}",
            do="Make one: with regard.watch(model) as seen: model(...).",
            type=type(recording).__name__,
        )
    if not len(recording):
        raise RecordingError(
            "A recording needs at least one call.", got="none", do="Run the model inside the watch block."
        )


def check_batch(call: Call, batch: int | None) -> None:
    """Raise unless ``batch`` is a sequence of the call, or None for all."""
    if batch is not None and not is_index(batch, call.batch):
        raise ArgumentError(
            "batch must be one of the recorded sequences (0 … {batch}), or None for all.",
            got="batch = {batch_2!r}",
            do="Count from 0.",
            batch=call.batch - 1,
            batch_2=batch,
        )


def check_run(recording: Recording, run: int) -> None:
    """Raise unless ``run`` is one of the passes that were recorded."""
    if all(call.run != run for call in recording):
        raise ArgumentError(
            "run must be one of the recorded passes (0 … {recording}).",
            got="run = {run!r}",
            do="Count from 0.",
            recording=max(call.run for call in recording),
            run=run,
        )


def place_of(number: int, call: Call, index: int) -> tuple[Value, ...]:
    """The cells that say which head a row is about."""
    return number, call.name, call.kind, call.layer, call.head_numbers[index], call.run


def _of_call(number: int, call: Call, real: Tensor, batch: int | None) -> list[tuple[Value, ...]]:
    which = slice(None) if batch is None else slice(batch, batch + 1)
    found = without_padding(call, real).statistics()
    sees = found.visible[which] > 0  # (batch, head, query)
    counts = sees & real[which, None].to(sees.device)
    means = [mean_of_heads(value, where) for value, where in _measures(found, which, counts)]
    received = _received_peak(found, which, counts, complete=bool((counts == sees).all()))
    queries = counts.sum((0, 2)).tolist()
    return [
        (*place_of(number, call, head), queries[head], *(mean[head] for mean in means), received[head])
        for head in range(call.heads)
    ]


def without_padding(call: Call, real: Tensor) -> Call:
    """The call in which queries that are padding see nothing, so that keys receive weight from text only."""
    return call if bool(real.all()) else call.hide_queries(real)


def _measures(found: Statistics, chosen: slice, counts: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The values of :data:`MEANS` with the queries that each is averaged over."""
    visible = found.visible[chosen]
    several = counts & (visible > 1)  # one visible key leaves no choice, so nothing to measure
    relative = found.entropy[chosen] / torch.log(torch.where(several, visible, 2).to(found.entropy.dtype))
    whole = {name: (getattr(found, name)[chosen], counts) for name in MEANS if name != "relative_entropy"} | {
        "relative_entropy": (relative, several)
    }
    return [whole[name] for name in MEANS]


def mean_of_heads(values: Tensor, where: Tensor) -> list[float | None]:
    """The mean of each head ``(batch, head, query)`` → ``(head,)``; None where nothing counts."""
    total = torch.where(where, values.double(), 0.0).sum((0, 2))
    count = where.sum((0, 2))
    return [t / c if c else None for t, c in zip(total.tolist(), count.tolist())]


def _received_peak(found: Statistics, chosen: slice, counts: Tensor, *, complete: bool) -> list[float | None]:
    """The greatest share of a sequence's attention that one key receives, averaged over sequences.

    Kept statistics have summed over all queries. Where some of them are padding, their part cannot
    be subtracted, and the result is None.
    """
    if not complete:
        return [None] * counts.shape[1]
    queries = counts.sum(-1)  # (batch, head)
    shares = found.received[chosen].double().amax(-1) / queries.clamp(min=1)
    return mean_of_heads(shares[..., None], (queries > 0)[..., None])
