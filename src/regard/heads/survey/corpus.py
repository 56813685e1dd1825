"""A corpus: documents one after another from a text file, a folder, JSONL or Parquet, never all at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from regard.errors import ArgumentError, DataError, PackageError

KINDS = (".txt", ".jsonl", ".ndjson", ".parquet")
UNITS = ("line", "paragraph", "file")

ENDS = 1 << 20
"""Bytes at each end of a file that tell it from another."""


@dataclass(frozen=True)
class Document:
    """One text with its number in the corpus, or the reason why it cannot be read."""

    number: int
    where: str  # file and line, for a person to find it
    text: str
    problem: str | None
    position: int  # how much of the corpus lies before its end, in bytes or rows


@dataclass(frozen=True)
class Corpus:
    """The files of a corpus and how documents are cut from them.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "corpus.txt").write_text("One day.\\n\\nAnother day.\\n")
    >>> [document.text for document in Corpus.open(folder / "corpus.txt")]
    ['One day.', 'Another day.']
    """

    path: Path
    files: tuple[Path, ...]
    unit: str | None
    field: str
    limit: int | None

    @classmethod
    def open(
        cls, path: str | Path, *, unit: str | None = None, field: str = "text", limit: int | None = None
    ) -> Corpus:
        """Find the files; the texts are read later, one by one.

        Args:
            path: a text file, a folder of files, JSONL or Parquet.
            unit: what a document is in a text file: ``"line"``, ``"paragraph"`` (between blank lines) or
                ``"file"``. Unless told, a line of a single file and a whole file of a folder.
            field: the field of JSONL, or the column of Parquet, that holds the text.
            limit: only the first so many documents.
        """
        path = Path(path)
        if unit is not None and unit not in UNITS:
            raise ArgumentError(
                f"unit is one of {', '.join(UNITS)}.", got=f"unit = {unit!r}", do="Leave it out."
            )
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise ArgumentError(
                "limit is a whole number, 1 or more.", got=f"limit = {limit!r}", do="Leave it out for all."
            )
        if path.is_dir():
            files = sorted(
                file for file in path.rglob("*") if file.suffix.lower() in KINDS and file.is_file()
            )
            if not files:
                raise DataError(
                    f"A folder of texts has files that end in {', '.join(KINDS)}.",
                    got=f"none in {path}",
                    do="Name the folder that holds them.",
                )
            return cls(path, tuple(files), unit or "file", field, limit)
        if not path.is_file():
            raise DataError(
                "A corpus is a text file, a folder, JSONL or Parquet.",
                got=f"{path}, which does not exist",
                do="Check the path.",
            )
        return cls(path, (path,), unit or "line", field, limit)

    @property
    def size(self) -> int:
        """How much there is to read, in bytes, or rows of Parquet; see ``Document.position``."""
        return sum(_rows(file) if _is_parquet(file) else file.stat().st_size for file in self.files)

    def digest(self) -> str:
        """What tells this corpus from another: names, sizes, and both ends of every file."""
        total = hashlib.blake2b(digest_size=16)
        for file in self.files:
            name = file.relative_to(self.path).as_posix() if file != self.path else ""
            size = file.stat().st_size
            total.update(f"{name}\0{size}\0".encode())
            with file.open("rb") as opened:
                total.update(opened.read(ENDS))
                opened.seek(max(0, size - ENDS))
                total.update(opened.read(ENDS))
        return total.hexdigest()

    def __iter__(self) -> Iterator[Document]:
        """Every document, in order. What cannot be read has a problem instead of a text."""
        number, before = 0, 0
        for file in self.files:
            position = 0
            for place, text, problem, position in self._read(file):
                if problem is None and not text.strip():
                    problem = "empty"
                where = file.name if file == self.path else file.relative_to(self.path).as_posix()
                yield Document(number, f"{where}{place}", text, problem, before + position)
                number += 1
                if number == self.limit:
                    return
            before += position

    def _read(self, file: Path) -> Iterator[_Piece]:
        suffix = file.suffix.lower()
        if suffix == ".parquet":
            return _parquet(file, self.field)
        if suffix in (".jsonl", ".ndjson"):
            return _jsonl(file, self.field)
        return _CUTS[self.unit or "line"](file)


_Piece = tuple[str, str, str | None, int]
"""Where in the file, the text, what is wrong with it, and how much of the file was read."""


def _decoded(raw: bytes) -> tuple[str, str | None]:
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return "", f"not UTF-8: {error.reason} at byte {error.start}"


def _lines(file: Path) -> Iterator[_Piece]:
    """One document per line; blank lines separate."""
    position = 0
    with file.open("rb") as opened:
        for number, raw in enumerate(opened, start=1):
            position += len(raw)
            text, problem = _decoded(raw.strip())
            if text or problem:
                yield f":{number}", text, problem, position


def _paragraphs(file: Path) -> Iterator[_Piece]:
    """One document per paragraph; blank lines separate."""
    position, start, gathered = 0, 1, b""
    with file.open("rb") as opened:
        for number, raw in enumerate(opened, start=1):
            position += len(raw)
            if raw.strip():
                start = start if gathered else number
                gathered += raw
            elif gathered:
                yield f":{start}", *_decoded(gathered.strip()), position
                gathered = b""
    if gathered:
        yield f":{start}", *_decoded(gathered.strip()), position


def _whole(file: Path) -> Iterator[_Piece]:
    """The file as one document."""
    raw = file.read_bytes()
    yield "", *_decoded(raw.strip()), len(raw)


_CUTS: dict[str, Callable[[Path], Iterator[_Piece]]] = {
    "line": _lines,
    "paragraph": _paragraphs,
    "file": _whole,
}


def _jsonl(file: Path, field: str) -> Iterator[_Piece]:
    for place, line, problem, position in _lines(file):
        text = ""
        if problem is None:
            try:
                entry = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                problem = f"not JSON: {error}"
            else:
                value = entry.get(field) if isinstance(entry, dict) else None
                text, problem = (
                    (value, None) if isinstance(value, str) else ("", f"no text in field {field!r}")
                )
        yield place, text, problem, position


# ---- Parquet -----------------------------------------------------------------------------------


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() == ".parquet"


def _parquet(file: Path, field: str) -> Iterator[_Piece]:
    row = 0
    with _opened(file) as opened:
        if field not in opened.schema_arrow.names:
            raise DataError(
                f"A Parquet file has a column of texts (columns = {', '.join(opened.schema_arrow.names)}).",
                got=f"field = {field!r} in {file}",
                do="Name the column with --field.",
            )
        for batch in opened.iter_batches(batch_size=1024, columns=[field]):
            for value in batch.column(0).to_pylist():
                row += 1
                good = isinstance(value, str)
                yield f":{row}", value if good else "", None if good else f"no text in {field!r}", row


def _rows(file: Path) -> int:
    with _opened(file) as opened:
        return int(opened.metadata.num_rows)


def _opened(file: Path) -> Any:
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise PackageError(
            "Parquet is read and written by pyarrow.",
            got="an installation without it",
            do='Install it: pip install "regard[survey]".',
        ) from error
    try:
        return parquet.ParquetFile(file)
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise DataError(
            "A file that ends in .parquet is Parquet.", got=f"{error} in {file}", do="Check the file."
        ) from error
