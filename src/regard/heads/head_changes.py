"""How far the heads of one recording differ from those of another: another text, model or layer, or an edit.

Heads are compared query by query: the Jensen–Shannon divergence of their two rows, in [0, 1], averaged over
the queries that see something in both recordings (see ``head_divergence.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import RecordingError
from regard.heads.head_selection import Chosen, chosen
from regard.heads.head_table import check_batch, check_recording
from regard.heads.padding import real_queries
from regard.kernels.plain_kernel import MAX_SCORES
from regard.recording import Call, Recording
from regard.table import Table, Value

COLUMNS = ("kind", "layer", "head", "other_layer", "divergence", "query", "key", "difference")
"""The columns of :func:`changes`; ``query`` and ``key`` are the pair whose weight changed most."""

SAME_TOKENS = 0.5
"""The share of equal tokens from which two texts of the same length are compared position by position."""


@dataclass(frozen=True, eq=False)
class HeadChange:
    """How far one head differs: the mean divergence of its rows, and the pair whose weight changed most."""

    head: int
    divergence: float
    query: int
    key: int
    difference: float


def changes(
    recording: Recording,
    other: Recording,
    *,
    batch: int = 0,
    layers: Chosen = None,
    other_layers: Chosen = None,
) -> Table:
    """The heads of a recording compared with those of another one, the ones that changed most first.

    Calls of the same kind and layer are compared, or one after another if the recordings have no layer in
    common; an encoder also with a decoder; heads by their number. Both must have read the same tokens, or
    texts of the same length with at least half of their tokens equal. ``difference`` is the weight in
    ``other`` minus that in ``recording``. ``changes(seen, seen, layers=2, other_layers=5)`` compares two
    layers of one recording.

    >>> import torch, regard
    >>> from regard import edits, masks
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> ids = torch.tensor([[5, 6, 7, 8]])
    >>> with torch.no_grad(), regard.watch(model) as plain:
    ...     _ = model(ids)
    >>> with torch.no_grad(), regard.edit(model, edits.block(masks.span(0, 1), heads=1)):
    ...     with regard.watch(model) as edited:
    ...         _ = model(ids)
    >>> found = changes(plain, edited)
    >>> found[0]["head"], found[1]["divergence"]
    (1, 0.0)
    """
    check_recording(recording)
    check_recording(other)
    rows: list[tuple[Value, ...]] = []
    calls = [call for _, call in chosen(recording, layers, None)]
    others = [call for _, call in chosen(other, other_layers, None)]
    for call, twin in paired_calls(calls, others):
        check_batch(call, batch)
        check_batch(twin, batch)
        if not same_positions(recording, call, other, twin, batch):
            continue
        for found in changed_heads(call, twin, real_queries(recording, call)[batch], batch):
            where = (call.kind, call.layer, found.head, twin.layer)
            rows.append((*where, found.divergence, found.query, found.key, found.difference))
    if not rows:
        raise RecordingError(
            "Heads can only be compared where both recordings have read the same tokens.",
            got="{one} and {two}",
            do="Read one text twice, or two texts of the same length that differ in a few tokens.",
            one=_sizes(recording),
            two=_sizes(other),
        )
    return Table(COLUMNS, rows).sort("divergence", descending=True)


def paired_calls(calls: Sequence[Call], others: Sequence[Call]) -> list[tuple[Call, Call]]:
    """The calls of two recordings that are compared: of one kind and run, by layer, else in order.

    An encoder and a decoder have no kind in common; what they do within their text is compared.
    """
    found = []
    for place in dict.fromkeys((call.kind, call.run) for call in calls):
        own, twins = ([one for one in side if (one.kind, one.run) == place] for side in (calls, others))
        found += _paired_layers(own, twins)
    if found:
        return found
    own, twins = ([one for one in side if one.kind != "cross" and one.run == 0] for side in (calls, others))
    return _paired_layers(own, twins)


def _paired_layers(own: Sequence[Call], twins: Sequence[Call]) -> list[tuple[Call, Call]]:
    """Calls of the same layer, or if there are none, one after another."""
    layers = {one.layer: one for one in reversed(twins)}
    if any(one.layer in layers for one in own):
        return [(one, layers[one.layer]) for one in own if one.layer in layers]
    return list(zip(own, twins))


def same_positions(recording: Recording, call: Call, other: Recording, twin: Call, batch: int = 0) -> bool:
    """Whether position i means the same in two calls: as many tokens, and at least half of them equal."""
    if call.extent != twin.extent:
        return False
    sides = (
        (recording.query_tokens(call, batch), other.query_tokens(twin, batch)),
        (recording.key_tokens(call, batch), other.key_tokens(twin, batch)),
    )
    return all(_mostly_equal(own, theirs) for own, theirs in sides)


def _mostly_equal(own: Sequence[str] | None, theirs: Sequence[str] | None) -> bool:
    if own is None or theirs is None or not own:
        return True  # numbered: only their count can be compared
    return sum(a == b for a, b in zip(own, theirs)) >= SAME_TOKENS * len(own)


@torch.no_grad()
def changed_heads(call: Call, twin: Call, counted: Tensor, batch: int = 0) -> list[HeadChange]:
    """Every head that both calls have, in order; ``counted`` are the queries that are not padding."""
    return [_changed_head(call, twin, head, counted, batch) for head in _shared_heads(call, twin)]


def both_weights(
    call: Call, twin: Call, head: int, *, batch: int = 0, multiple: int = 1
) -> Iterator[tuple[Tensor, Tensor]]:
    """The weights of one head in both calls, in float32, a ``multiple`` of rows ``(row, key)`` at a time."""
    step = max(1, MAX_SCORES // max(1, call.keys * multiple)) * multiple
    for start in range(0, call.queries, step):
        rows = slice(start, min(start + step, call.queries))
        yield (
            call.weights(head, rows, batch=batch).float().cpu(),
            twin.weights(head, rows, batch=batch).float().cpu(),
        )


def _shared_heads(call: Call, twin: Call) -> list[int]:
    return [head for head in call.head_numbers if head in twin.head_numbers]


def _changed_head(call: Call, twin: Call, head: int, counted: Tensor, batch: int) -> HeadChange:
    total, count, start = 0.0, 0, 0
    most = (0, 0, 0.0)
    for own, theirs in both_weights(call, twin, head, batch=batch):
        counts = counted[start : start + len(own)].cpu() & (own.sum(-1) > 0) & (theirs.sum(-1) > 0)
        total += float(row_divergence(own, theirs)[counts].double().sum())
        count += int(counts.sum())
        apart = theirs - own
        at = int(apart.abs().argmax()) if apart.numel() else 0
        if apart.numel() and abs(float(apart.flatten()[at])) > abs(most[2]):
            most = (start + at // call.keys, at % call.keys, float(apart.flatten()[at]))
        start += len(own)
    return HeadChange(head, total / count if count else math.nan, *most)


def row_divergence(one: Tensor, other: Tensor) -> Tensor:
    """The Jensen–Shannon divergence of rows of weights ``(…, key)``, each taken as shares of its sum.

    >>> row_divergence(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    tensor(1.)
    """
    one, other = (rows / rows.sum(-1, keepdim=True).clamp_min(1e-38) for rows in (one, other))
    mean = (one + other) / 2
    mixed, *own = (-torch.xlogy(rows, rows).sum(-1) for rows in (mean, one, other))
    return (mixed - sum(own) / 2).clamp(0, math.log(2)) / math.log(2)


def _sizes(recording: Recording) -> str:
    """The sizes of some calls, for error messages."""
    return ", ".join(dict.fromkeys(str(call.extent) for call in recording.calls[:12])) or "no calls"
