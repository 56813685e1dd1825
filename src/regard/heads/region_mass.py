"""How much each head looks at a region: its sinks, its neighbours, a needle, the prompt."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from regard.errors import ArgumentError, MaskError
from regard.heads.head_selection import Chosen, chosen
from regard.heads.head_table import PLACE, check_batch, check_recording, mean_of_heads, place_of
from regard.heads.padding import real_queries
from regard.kernels.planner import plan_extent
from regard.masks import Mask, MaskLike, everything
from regard.masks.extent import Extent
from regard.recording import Call, Recording, ScoredCall
from regard.recording.call import Positions
from regard.table import Table, Value
from regard.threads import each, spread

COLUMNS = (*PLACE, "queries")
"""The columns before those of the regions."""


def mass(
    recording: Recording,
    regions: Mapping[str, MaskLike],
    *,
    rows: Positions | None = None,
    batch: int | None = None,
    layers: Chosen = None,
    heads: Chosen = None,
) -> Table:
    """One row per head, one column per region: the mean weight that its queries give to the region.

    ``Σ_{j∈M} w_ij = exp(lse_i(mask & M) − lse_i)``, averaged over the queries that see something and are
    not padding; ``rows`` chooses some of them. A pass costs only the pairs of its region, never n×n.

    >>> import torch, regard
    >>> from regard import masks
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 9, 16))
    >>> found = mass(seen, {"first": masks.prefix(4), "rest": masks.span(4, 9), "near": masks.window(2, 2)})
    >>> found.columns[-3:]
    ('first', 'rest', 'near')
    >>> round(found[0]["first"] + found[0]["rest"], 5)
    1.0

    ``layers``, ``heads`` and ``batch`` choose as in :func:`regard.heads.table`.
    """
    check_recording(recording)
    named = _checked(regions)
    calls = chosen(recording, layers, heads)
    for _, call in calls:
        check_batch(call, batch)
    _check_fit(named, [call for _, call in calls])
    counted = [_counted(recording, call, rows) for _, call in calls]

    def rows_of(at: int) -> list[tuple[Value, ...]]:
        return _of_call(*calls[at], counted[at], named, batch)

    size = sum(call.q.numel() * call.keys for _, call in calls if isinstance(call, ScoredCall))
    found = spread(lambda: each(rows_of, range(len(calls))), size)
    return Table((*COLUMNS, *named), [row for some in found for row in some])


def _of_call(
    number: int, call: Call, counted: Tensor, regions: Mapping[str, MaskLike], batch: int | None
) -> list[tuple[Value, ...]]:
    which = slice(None) if batch is None else slice(batch, batch + 1)
    weights = {name: call.mass(region)[which] for name, region in regions.items()}
    sees = (call.lse > -torch.inf if isinstance(call, ScoredCall) else call.mass(everything()) > 0)[which]
    counts = counted[which, None].to(sees.device) & sees  # (batch, head, query)
    means = [mean_of_heads(found, counts) for found in weights.values()]
    queries = counts.sum((0, 2)).tolist()
    return [
        (*place_of(number, call, head), queries[head], *(mean[head] for mean in means))
        for head in range(call.heads)
    ]


def _counted(recording: Recording, call: Call, rows: Positions | None) -> Tensor:
    """The queries that are averaged over, ``(batch, query)``."""
    real = real_queries(recording, call)
    if rows is None:
        return real
    asked = np.zeros(call.queries, np.bool_)
    try:
        asked[np.asarray(rows, np.int64) if not isinstance(rows, slice) else rows] = True
    except (IndexError, TypeError, ValueError):
        asked[:] = False
    if not asked.any():
        raise ArgumentError(
            "rows must be a slice or positions of queries (0 … {last}).",
            got="rows = {rows!r}",
            do="Count from 0, or omit rows to average over all queries.",
            last=call.queries - 1,
            rows=rows,
        )
    return real & torch.from_numpy(asked)


# ---- regions ---------------------------------------------------------------------------------


def _checked(regions: object) -> dict[str, MaskLike]:
    if not isinstance(regions, Mapping) or not regions:
        raise ArgumentError(
            "Regions must be masks by name.",
            got="{regions}",
            do='Pass, for example, {{"sinks": masks.prefix(4), "local": masks.window(64, 0)}}.',
            regions=repr(regions)[:60],
        )
    for name in regions:
        if not isinstance(name, str) or name in COLUMNS:
            raise ArgumentError(
                "The name of a region becomes a column, so it must not be one of {taken}.",
                got="{name!r}",
                do="Choose another name.",
                taken=", ".join(COLUMNS),
                name=name,
            )
    return dict(regions)


def _check_fit(regions: Mapping[str, MaskLike], calls: list[Call]) -> None:
    """Raise where a region has no pair in any call: an empty answer would look like a finding."""
    sizes = {(call.extent, call.kind == "cross"): call for call in calls}  # one call of each size
    for name, region in regions.items():
        if sizes and not any(_has_pairs(call.region(region), call.extent) for call in sizes.values()):
            raise MaskError(
                "A region must have at least one pair of query and key in some call ({sizes}).",
                got="{name} = {region}",
                do="Compare the positions of the region with the length of the text.",
                sizes="; ".join(dict.fromkeys(str(extent) for extent, _ in list(sizes)[:3])),
                name=name,
                region=repr(region)[:60],
            )


def _has_pairs(region: Mask, extent: Extent) -> bool:
    return plan_extent(region, extent).path != "empty"
