"""``Table``: rows of plain numbers and names, easy to pass to other tools."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, overload

from regard import atomic
from regard.errors import ArgumentError, PackageError
from regard.notebook_table import html_table

Value = str | int | float | None
"""The content of a cell; None if it is empty."""

Record = Mapping[str, Value]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with named columns. It is immutable: sorting and filtering return a new table.

    >>> table = Table(("head", "entropy"), [(0, 1.5), (1, None), (2, 0.5)])
    >>> table
    <Table: 3 rows, columns head, entropy>
    >>> table[0]
    {'head': 0, 'entropy': 1.5}
    >>> [row["head"] for row in table.sort("entropy")]  # None comes last
    [2, 0, 1]
    >>> table.filter(head=2).column("entropy")
    [0.5]
    >>> print(table.filter(lambda row: row["head"] < 2).to_csv(), end="")
    head,entropy
    0,1.5
    1,
    """

    columns: tuple[str, ...]
    cells: Sequence[tuple[Value, ...]]

    def __post_init__(self) -> None:
        # NaN becomes None: JSON cannot write it, and it has no place in a sort order.
        rows = (tuple(None if _is_nan(cell) else cell for cell in row) for row in self.cells)
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "cells", tuple(rows))
        wrong = next((row for row in self.cells if len(row) != len(self.columns)), None)
        if wrong is not None:
            raise ArgumentError(
                "Every row needs one cell per column (columns = {columns}).",
                got="{wrong_count}",
                columns=len(self.columns),
                wrong_count=len(wrong),
            )

    def __repr__(self) -> str:
        count = len(self)
        return f"<Table: {count} row{'' if count == 1 else 's'}, columns {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        count = len(self)
        return html_table(self.columns, self.cells, f"{count:,} row{'' if count == 1 else 's'}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and (self.columns, self.cells) == (other.columns, other.cells)

    __hash__ = None  # type: ignore[assignment]

    # ---- reading -------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[Record]:
        return (dict(zip(self.columns, row)) for row in self.cells)

    @overload
    def __getitem__(self, which: int) -> Record: ...
    @overload
    def __getitem__(self, which: slice) -> Table: ...
    def __getitem__(self, which: int | slice) -> Record | Table:
        if isinstance(which, slice):
            return Table(self.columns, self.cells[which])
        return dict(zip(self.columns, self.cells[which]))

    def column(self, name: str) -> list[Value]:
        """The cells of one column, from top to bottom."""
        at = self._at(name)
        return [row[at] for row in self.cells]

    def sort(self, by: str, *, descending: bool = False) -> Table:
        """The rows sorted by a column; the sort is stable, and empty cells come last."""
        at = self._at(by)
        known = [row for row in self.cells if row[at] is not None]
        unknown = [row for row in self.cells if row[at] is None]
        order: Callable[[tuple[Value, ...]], Any] = lambda row: row[at]  # noqa: E731 - typed for sorted
        return Table(self.columns, [*sorted(known, key=order, reverse=descending), *unknown])

    def filter(self, keep: Callable[[Record], object] | None = None, **equal: Value) -> Table:
        """The rows for which ``keep(row)`` is true and whose cells equal the given values."""
        conditions = [(self._at(name), value) for name, value in equal.items()]
        rows = [row for row in self.cells if all(row[at] == value for at, value in conditions)]
        if keep is not None:
            rows = [row for row in rows if keep(dict(zip(self.columns, row)))]
        return Table(self.columns, rows)

    def _at(self, name: str) -> int:
        if name not in self.columns:
            raise ArgumentError(
                "A column must be one of {columns}.",
                got="{name!r}",
                do="Choose one of them.",
                columns=", ".join(self.columns),
                name=name,
            )
        return self.columns.index(name)

    # ---- conversions ---------------------------------------------------------------------------

    def to_csv(self, path: str | Path | None = None) -> str:
        """Comma-separated text with a header line; also written to ``path``, if given."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(["" if cell is None else cell for cell in row] for row in self.cells)
        return _written(text.getvalue(), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """A JSON list of records, with null for empty cells; also written to ``path``, if given."""
        lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in self]
        return _written("[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n", path)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``."""
        return _package("pandas").DataFrame(self._lists())

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``."""
        return _package("polars").DataFrame(self._lists(), strict=False)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``."""
        return _package("pyarrow").table(self._lists())

    def _lists(self) -> dict[str, list[Value]]:
        return {name: self.column(name) for name in self.columns}


def _is_nan(cell: object) -> bool:
    return isinstance(cell, float) and math.isnan(cell)


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        atomic.write_text(path, text)
    return text


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise PackageError(
            "Table.to_{removeprefix}() needs the package {name}.",
            got="no {name}",
            do="Install it with pip install {name}, or use to_csv() or to_json(), which need no package.",
            removeprefix=name.removeprefix("py"),
            name=name,
        ) from error
