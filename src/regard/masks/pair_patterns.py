"""Patterns with tables over both axes: documents, dense."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.errors import MaskError, ShapeError
from regard.masks.extent import Array, Extent, Pairs, TiledAxis
from regard.masks.id_table import IdTable, aligned, as_array, as_table, with_head, without_head
from regard.masks.mask import Both, Constant, Either, Mask, Verdicts, verdicts
from regard.masks.patterns import Window
from regard.masks.table_text import write_table


@dataclass(frozen=True, repr=False)
class Documents(Mask):
    """Pairs within one document. The tables hold the document id of each position."""

    query_ids: IdTable  # (lead..., length)
    key_ids: IdTable

    def __repr__(self) -> str:
        tables = [self.query_ids] if self.query_ids == self.key_ids else [self.query_ids, self.key_ids]
        return f"documents({', '.join(write_table(without_head(table.values)) for table in tables)})"

    @property
    def lead(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.query_ids.values.shape[:-1], self.key_ids.values.shape[:-1])

    def allows(self, pairs: Pairs) -> Array:
        of_query = pairs.look_up(self.query_ids.values, aligned(pairs.q, self.query_ids, pairs.extent))
        of_key = pairs.look_up(self.key_ids.values, aligned(pairs.k, self.key_ids, pairs.extent))
        return of_query == of_key

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        of_query = self.query_ids.values[aligned(rows.positions, self.query_ids, extent)]
        of_key = self.key_ids.values[aligned(columns.positions, self.key_ids, extent)]
        (q_least, q_greatest), (k_least, k_greatest) = rows.span(of_query), columns.span(of_key)
        apart = (q_greatest[:, None] < k_least) | (q_least[:, None] > k_greatest)
        one_document = (q_least == q_greatest)[:, None] & (k_least == k_greatest)
        return verdicts(one_document & (q_least[:, None] == k_least), apart)

    def table_lengths(self) -> tuple[int, ...]:
        return (self.query_ids.values.shape[-1], self.key_ids.values.shape[-1])

    @cached_property
    def entries(self) -> int:
        return int(self.query_ids.values.size + self.key_ids.values.size)

    def select(self, index: tuple[int, ...]) -> Mask:
        return Documents(self.query_ids.at(index, 1), self.key_ids.at(index, 1)) if self.lead else self

    def check(self, extent: Extent) -> None:
        queries, keys = self.query_ids.values.shape[-1], self.key_ids.values.shape[-1]
        shared = self.query_ids == self.key_ids and queries == max(extent)
        if not shared and (queries, keys) != extent:
            raise ShapeError(
                "documents(ids) needs one id per position ({extent}).",
                got="{queries} ids for the queries and {keys} for the keys",
                do="Pass ids of shape (batch, length) or (length,), or documents(query_ids, key_ids).",
                extent=extent,
                queries=queries,
                keys=keys,
            )

    @property
    def T(self) -> Mask:  # noqa: N802
        return Documents(self.key_ids, self.query_ids)


def documents(ids: object, key_ids: object = None) -> Mask:
    """Every query sees only the keys of its document; ``ids`` has the document id of each position.

    For several documents packed into one sequence: ``documents(ids) & causal()`` is causal within
    each. ``key_ids`` is needed only if queries and keys come from different sequences.

    >>> documents([0, 0, 1]).dense(3).int().tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """
    of_queries = _document_ids(ids)
    of_keys = of_queries if key_ids is None else _document_ids(key_ids)
    leads = [table.values.shape[:-1] for table in (of_queries, of_keys)]
    try:
        np.broadcast_shapes(*leads)
    except ValueError:
        raise MaskError(
            "The tables of documents(query_ids, key_ids) must have the same batch size.",
            got="{queries} and {keys}",
            do="Give both the same batch size.",
            queries=leads[0][:-1],
            keys=leads[1][:-1],
        ) from None
    return Documents(of_queries, of_keys)


def _document_ids(given: object) -> IdTable:
    values = as_array(given)
    # Ids from 2**63 on would become negative and could collide with others.
    whole = not values.size or (values.dtype.kind in "iu" and int(values.max()) < 1 << 63)
    if not whole or not values.ndim:
        raise MaskError(
            "Document ids must be 64-bit whole numbers, one per position.",
            got="{dtype} of shape {shape}",
            do="Pass a list or an integer tensor.",
            dtype=values.dtype,
            shape=values.shape,
        )
    return with_head(IdTable(values.astype(np.int64)), own_axes=1)


@dataclass(frozen=True, repr=False)
class Dense(Mask):
    """Any table of bools ``(..., queries, keys)``; axes of size 1 broadcast."""

    table: IdTable

    def __repr__(self) -> str:
        if not self.table.values.shape[-2]:
            return f"{self.T!r}.T"  # an empty list of rows would lose the number of columns
        return f"dense({write_table(self.table.values)})"

    def __post_init__(self) -> None:
        if self.table.values.ndim < 2:
            row = self.table.values.reshape(1, -1)
            object.__setattr__(self, "table", IdTable(row))

    @property
    def lead(self) -> tuple[int, ...]:
        return self.table.values.shape[:-2]

    def allows(self, pairs: Pairs) -> Array:
        rows, columns = self.table.values.shape[-2:]
        # Multiplying by 0 makes every index 0 and keeps the shape.
        i = (pairs.q - pairs.extent.offset) * (rows != 1)
        j = pairs.k * (columns != 1)
        return pairs.look_up(self.table.values, i, j)

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        table = self.table.values
        i = (rows.positions - extent.offset) * (table.shape[0] != 1)
        j = columns.positions * (table.shape[1] != 1)
        least = np.minimum.reduceat(table[i], rows.starts, axis=0)[:, j]
        greatest = np.maximum.reduceat(table[i], rows.starts, axis=0)[:, j]
        return verdicts(
            np.minimum.reduceat(least, columns.starts, axis=1),
            ~np.maximum.reduceat(greatest, columns.starts, axis=1),
        )

    def table_lengths(self) -> tuple[int, ...]:
        return tuple(size for size in self.table.values.shape[-2:] if size != 1)

    def select(self, index: tuple[int, ...]) -> Mask:
        if not self.lead:
            return self
        own = self.table.at(index, 2)
        # One entry for all pairs needs no table, so whatever it is combined with can be simplified.
        return Constant(bool(own.values[0, 0])) if own.values.shape == (1, 1) else Dense(own)

    def check(self, extent: Extent) -> None:
        rows, columns = self.table.values.shape[-2:]
        if rows not in (1, extent.queries) or columns not in (1, extent.keys):
            raise ShapeError(
                "A dense mask must broadcast to (..., queries, keys) ({extent}).",
                got="shape {shape}",
                do="Give it one row per query and one column per key; for padding use masks.padding(keep).",
                extent=extent,
                shape=tuple(self.table.values.shape),
            )

    @property
    def T(self) -> Mask:  # noqa: N802
        return Dense(IdTable(np.swapaxes(self.table.values, -1, -2)))


def dense(table: object) -> Mask:
    """A mask from any bool tensor ``(..., queries, keys)``, or an additive one of 0 and −inf.

    >>> from regard.masks import causal
    >>> dense([[1, 0], [1, 1]]) & causal()
    dense([[1, 0], [1, 1]]) & causal()
    """
    return Dense(as_table(table))


def looks_back(mask: Mask) -> bool:
    """Whether no query sees a later key, as far as the mask itself shows."""
    if isinstance(mask, Window):
        return mask.after == 0
    if isinstance(mask, Dense):
        queries, keys = mask.table.values.shape[-2:]
        return queries > 1 and not np.triu(mask.table.values, keys - queries + 1).any()
    if isinstance(mask, Both):
        return any(looks_back(part) for part in mask.parts)
    return isinstance(mask, Either) and all(looks_back(part) for part in mask.parts)
