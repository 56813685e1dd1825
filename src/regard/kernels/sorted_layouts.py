"""Layouts in which positions are sorted, so that queries and the keys they see become neighbours.

    Mask, Extent, Region → one MaskPart, or None if the mask has no such layout

Documents are sorted by document, unless they already are, and each one is a separate square. So are dilated
windows, ``documents(i % d) & window(…)``. The queries of an image under ``neighbourhood(…)`` are sorted by
blocks of the image, each with the box of keys that it sees.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import numpy as np

from regard.kernels import mask_parts
from regard.kernels.layout import MAX_TILE_ROWS, row_tiles, union
from regard.kernels.mask_parts import MaskPart, Region, RowTile
from regard.masks.extent import Extent, Integers, TiledAxis
from regard.masks.grid_patterns import Neighbourhood
from regard.masks.id_table import aligned
from regard.masks.mask import NONE, SOME, Both, Constant, Mask
from regard.masks.pair_patterns import Documents
from regard.masks.patterns import causal

BLOCK_SIDES = (1, 2, 4, 8, 16, 32, 64)
"""Sides of the blocks into which a grid may be divided."""


def by_document(mask: Mask, extent: Extent, region: Region, max_rows: int = MAX_TILE_ROWS) -> MaskPart | None:
    """One part with its positions sorted by document; None if the mask does not keep documents apart."""
    factors = mask.parts if isinstance(mask, Both) else (mask,)
    documents = next((one for one in factors if isinstance(one, Documents)), None)
    if documents is None:
        return None
    rest = mask.substitute({documents: True})
    positions = (region.query_positions(extent), region.key_positions())
    labels = _labels(documents, extent, *positions)
    queries, keys = map(_order, labels)
    sorted_labels = [x if order is None else x[order] for x, order in zip(labels, (queries, keys))]
    q, k = (x if order is None else x[order] for x, order in zip(positions, (queries, keys)))
    count = int(max(x.max() for x in labels)) + 1
    edges = [np.searchsorted(x, np.arange(count + 1)).tolist() for x in sorted_labels]
    rows: list[RowTile] = []
    for (a, b), (c, d) in zip(pairwise(edges[0]), pairwise(edges[1])):
        if a == b or c == d:
            continue
        if rest == Constant(True):
            rows.append(RowTile(a, b, ((c, d),), ()))
        elif rest == causal() and np.array_equal(q[a:b], k[c:d]):
            rows.append(RowTile(a, b, ((c, d),), ((c, d),), causal=True))
        else:
            rows += (_moved(row, a, c) for row in row_tiles(rest, q[a:b], k[c:d], extent, max_rows))
    joined = _join_documents(rows) if rest in (Constant(True), causal()) else rows
    # Rows of one document need only what remains of the mask; joined ones need all of it.
    return MaskPart(
        queries, keys, rest if len(joined) == len(rows) else mask, tuple(joined), region, reordered=True
    )


def by_block(mask: Mask, extent: Extent, region: Region) -> MaskPart | None:
    """One part with its queries sorted by blocks of a grid; None unless queries see only neighbours there."""
    factors = mask.parts if isinstance(mask, Both) else (mask,)
    near = next((one for one in factors if isinstance(one, Neighbourhood) and not one.transposed), None)
    if near is None or region != Region.whole(extent):
        return None
    block = _block_shape(near)
    positions = region.query_positions(extent)
    coordinates = near.coordinates(positions)
    blocks = [along // size for along, size in zip(coordinates, block)]
    labels = np.ravel_multi_index(blocks, [-(-a // b) for a, b in zip(near.shape, block)])
    order = np.argsort(labels, kind="stable")
    edges = [0, *(np.flatnonzero(np.diff(labels[order])) + 1).tolist(), len(order)]
    centres = near.centres(coordinates)
    rows = []
    for start, stop in pairwise(edges):
        inside = [along[order[start:stop]] for along in centres]
        box = [
            range(max(0, int(along.min()) - reach), min(size, int(along.max()) + reach + 1))
            for along, reach, size in zip(inside, near.radius, near.shape)
        ]
        row = _box_row(mask, positions[order[start:stop]], start, box, near.shape, extent)
        if row is not None:
            rows.append(row)
    return MaskPart(order, None, mask, tuple(rows), region, reordered=True) if rows else None


def _block_shape(near: Neighbourhood) -> tuple[int, ...]:
    """The block of queries of the least cost; a block and the keys that it sees make one kernel call."""

    def cost(block: tuple[int, ...]) -> float:
        calls = prod(-(-size // own) for size, own in zip(near.shape, block))
        keys = prod(min(size, own + 2 * reach) for size, own, reach in zip(near.shape, block, near.radius))
        masked = (1 + mask_parts.MASKED_PAIR) * prod(block) * keys
        return calls * (mask_parts.CALL_PAIRS + masked + mask_parts.COPIED_KEY * keys)

    sides = [sorted({min(side, size) for side in BLOCK_SIDES}) for size in near.shape]
    blocks = [block for block in product(*sides) if prod(block) <= MAX_TILE_ROWS]
    return min(blocks or [tuple(min(side) for side in sides)], key=cost)


def _box_row(
    mask: Mask, q: Integers, start: int, box: list[range], shape: tuple[int, ...], extent: Extent
) -> RowTile | None:
    """The row tile of some queries that see keys in a box of a grid; None if they see none."""
    lines = np.zeros(1, np.int64)
    for along, size in zip(box[:-1], shape):
        lines = (lines[:, None] * size + np.asarray(along)).reshape(-1)
    firsts = lines * shape[-1] + box[-1].start
    runs = union(tuple((int(first), int(first) + len(box[-1])) for first in firsts))
    keys = TiledAxis(
        np.concatenate([np.arange(*run) for run in runs]),
        np.cumsum([0, *(b - a for a, b in runs[:-1])]),
    )
    seen = mask.tiles(TiledAxis(q, np.zeros(1, np.int64)), keys, extent)[0]
    chosen = tuple(run for run, verdict in zip(runs, seen) if verdict != NONE)
    if not chosen:
        return None
    checked = chosen if (seen == SOME).any() else ()
    return RowTile(start, start + len(q), chosen, checked)


def _labels(documents: Documents, extent: Extent, q: Integers, k: Integers) -> tuple[Integers, Integers]:
    """The documents of queries and keys, numbered in the order in which they begin."""
    tables = ((documents.key_ids, k), (documents.query_ids, q))
    ids = np.concatenate([table.values[aligned(where, table, extent)] for table, where in tables])
    _, first, which = np.unique(ids, return_index=True, return_inverse=True)
    labels = np.argsort(np.argsort(first))[which.reshape(-1)]
    return labels[len(k) :], labels[: len(k)]


def _order(labels: Integers) -> Integers | None:
    """The order that sorts the labels, stable within each; None if they are sorted already."""
    return None if (labels[1:] >= labels[:-1]).all() else np.argsort(labels, kind="stable")


def _moved(row: RowTile, queries: int, keys: int) -> RowTile:
    runs, mixed = (tuple((a + keys, b + keys) for a, b in some) for some in (row.runs, row.mixed))
    return RowTile(row.start + queries, row.stop + queries, runs, mixed)


def _join_documents(rows: list[RowTile]) -> list[RowTile]:
    """Neighbouring squares joined where separate calls would cost more than the pairs they save."""
    joined: list[RowTile] = []
    for row in rows:
        if joined and joined[-1].stop == row.start and joined[-1].runs[0][1] == row.runs[0][0]:
            before = joined[-1]
            run = (before.runs[0][0], row.runs[0][1])
            both = RowTile(before.start, row.stop, (run,), (run,))
            apart = mask_parts.CALL_PAIRS + before.computed + row.computed
            if (1 + mask_parts.MASKED_PAIR) * both.pairs < apart:
                joined[-1] = both
                continue
        joined.append(row)
    return joined
