"""The rows of a monitor, and the CSV file that it writes step by step."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard import atomic
from regard.errors import ArgumentError

COLUMNS = ("step", "kind", "layer", "head", "entropy", "score", "first", "gradient", "information")
"""The columns of a row: one head at one step."""

OLDEST = COLUMNS[:8]
"""The columns that every file has; those of earlier versions end here."""

PLACE, NUMBERS = COLUMNS[:4], COLUMNS[4:]
"""The columns that say what is measured, and those that are measured."""

HeadRow = dict[str, Any]
"""The numbers of one head at one step, by column."""


@dataclass(frozen=True)
class MonitorFile:
    """A CSV file that grows by a few lines in every measured step."""

    path: Path

    def begin(self, start: int) -> None:
        """Write the header. Of an earlier file keep the steps before ``start``, whose lines are complete."""
        kept = [row for row in self._rows() if row["step"] < start] if start else []
        atomic.write_text(self.path, _csv([list(COLUMNS)]) + _csv(map(_cells, kept)))

    def append(self, rows: list[HeadRow]) -> None:
        """Add the rows of a step."""
        atomic.append_text(self.path, _csv(map(_cells, rows)))

    def _rows(self) -> list[HeadRow]:
        return read_monitor(self.path) if self.path.exists() else []


def read_monitor(path: str | Path) -> list[HeadRow]:
    """The rows in a file that a monitor wrote; the last line may be cut off.

    >>> import regard, torch
    >>> file = getfixture("tmp_path") / "monitor.csv"
    >>> with regard.monitor(torch.nn.Linear(2, 2), out=file):
    ...     pass
    >>> read_monitor(file)
    []
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        whole, _, _ = file.read().rpartition("\n")
    lines = csv.reader(io.StringIO(whole))
    found = next(lines, [])
    if tuple(found) not in (COLUMNS, OLDEST):
        raise ArgumentError(
            "A file of a monitor must have the columns {columns}.",
            got="{found} in {path}",
            do="Pass a file that regard.monitor(model, out=…) or regard train wrote.",
            columns=", ".join(OLDEST),
            found=", ".join(found)[:60] or "nothing",
            path=path,
        )
    try:
        return [_read(line, len(found)) for line in lines]
    except (ValueError, IndexError) as error:
        raise ArgumentError(
            "Every line of the file of a monitor must have a step, a head and its numbers.",
            got="something else in {path}",
            do="Remove the line, or move the file away.",
            path=path,
        ) from error


def _read(line: list[str], columns: int) -> HeadRow:
    step, kind, layer, head, *numbers = line
    values = [float(number) if number else None for number in numbers]
    # Files of earlier versions have fewer columns.
    values += [None] * (len(COLUMNS) - columns)
    return dict(zip(COLUMNS, (int(step), kind, int(layer), int(head), *values), strict=True))


def _cells(row: HeadRow) -> list[object]:
    return [f"{row[name]:.6g}" if isinstance(row[name], float) else row[name] for name in COLUMNS]


def _csv(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
