"""A corpus: documents one after another from a text file, a folder, JSONL or Parquet, never all at once."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from regard.checks import check_choice, check_integer
from regard.errors import DataError, PackageError

KINDS = (".txt", ".jsonl", ".ndjson", ".parquet")
UNITS = ("line", "paragraph", "file")

ENDS = 1 << 20
"""Bytes at each end of a file that identify it."""

CHARACTERS = 1 << 22
"""The most characters of a document that are read; the rest is never in memory."""

LINE = 1 << 24
"""The most bytes of a line of JSON: without its end it cannot be parsed."""

SKIPPED = 1 << 20
"""Bytes that are skipped at a time."""


@dataclass(frozen=True)
class Document:
    """One text with its number in the corpus, or the reason why it cannot be read."""

    number: int
    where: str  # file and line, so that a person can find it
    text: str
    problem: str | None
    position: int  # how much of the corpus lies before its end, in bytes or rows
    cut: bool = False  # whether it was longer than the limit


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
                ``"file"``. By default, a line of a single file and a whole file of a folder.
            field: the field of JSONL, or the column of Parquet, that holds the text.
            limit: read only the first ``limit`` documents.
        """
        path = Path(path)
        if unit is not None:
            check_choice("unit", unit, UNITS)
        if limit is not None:
            check_integer("limit", limit)
        if path.is_dir():
            files = sorted(
                file for file in path.rglob("*") if file.suffix.lower() in KINDS and file.is_file()
            )
            if not files:
                raise DataError(
                    "A folder of texts needs files that end in {KINDS}.",
                    got="none in {path}",
                    do="Pass the folder that contains them.",
                    KINDS=", ".join(KINDS),
                    path=path,
                )
            return cls(path, tuple(files), unit or "file", field, limit)
        if not path.is_file():
            raise DataError(
                "A corpus must be a text file, a folder, JSONL or Parquet.",
                got="{path}, which does not exist",
                do="Check the path.",
                path=path,
            )
        return cls(path, (path,), unit or "line", field, limit)

    @property
    def size(self) -> int:
        """How much there is to read, in bytes, or rows of Parquet; see ``Document.position``."""
        return sum(_rows(file) if _is_parquet(file) else file.stat().st_size for file in self.files)

    def digest(self) -> str:
        """Identifies the corpus: names, sizes, and both ends of every file."""
        total = hashlib.blake2b(digest_size=16)
        for file in self.files:
            name = file.relative_to(self.path).as_posix() if file != self.path else ""
            size = file.stat().st_size
            # A file name may have bytes that are not UTF-8; Python keeps them as lone surrogates.
            total.update(f"{name}\0{size}\0".encode("utf-8", "surrogateescape"))
            with file.open("rb") as opened:
                total.update(opened.read(ENDS))
                opened.seek(max(0, size - ENDS))
                total.update(opened.read(ENDS))
        return total.hexdigest()

    def __iter__(self) -> Iterator[Document]:
        """Every document, in order. What cannot be read has a problem instead of a text."""
        return self.documents()

    def documents(self, characters: int = CHARACTERS) -> Iterator[Document]:
        """Every document, in order, cut after a number of characters: a line of gigabytes takes no memory."""
        number, before = 0, 0
        for file in self.files:
            where = file.name if file == self.path else file.relative_to(self.path).as_posix()
            position = 0
            for piece in self._read(file, characters):
                position = piece.position
                problem = "empty" if piece.problem is None and not piece.text.strip() else piece.problem
                place = f"{where}{piece.place}"
                yield Document(number, place, piece.text, problem, before + position, piece.cut)
                number += 1
                if number == self.limit:
                    return
            before += position

    def _read(self, file: Path, characters: int) -> Iterator[_Piece]:
        suffix = file.suffix.lower()
        if suffix == ".parquet":
            return _parquet(file, self.field, characters)
        if suffix in (".jsonl", ".ndjson"):
            return _jsonl(file, self.field, characters)
        return _UNITS[self.unit or "line"](file, characters)


@dataclass(frozen=True)
class _Piece:
    """One document of a file."""

    place: str  # in the file
    text: str
    problem: str | None
    position: int  # how much of the file was read
    cut: bool = False


@dataclass(frozen=True)
class _Line:
    """One line of a file, as far as it was read."""

    number: int
    raw: bytes
    position: int  # where it ends, all of it
    cut: bool


def _lines(file: Path, most: int) -> Iterator[_Line]:
    """Every line, up to a number of bytes; the rest of a longer one is skipped."""
    number, position = 0, 0
    with file.open("rb") as opened:
        while raw := opened.readline(most + 1):
            number += 1
            position += len(raw)
            cut = len(raw) > most and not raw.endswith(b"\n")
            more = raw
            while more and not more.endswith(b"\n"):
                more = opened.readline(SKIPPED)
                position += len(more)
            yield _Line(number, raw[:most], position, cut)


def _bytes(characters: int) -> int:
    """Bytes that hold this number of characters, whatever they are."""
    return 4 * characters


def _piece(place: str, raw: bytes, position: int, *, cut: bool, characters: int) -> _Piece:
    """A document from its bytes. If they were cut, the last character may be torn."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(raw, final=not cut).strip()
    except UnicodeDecodeError as error:
        return _Piece(place, "", f"not UTF-8: {error.reason} at byte {error.start}", position)
    return _shortened(place, text, position, cut=cut, characters=characters)


def _shortened(place: str, text: str, position: int, *, cut: bool, characters: int) -> _Piece:
    return _Piece(place, text[:characters], None, position, cut or len(text) > characters)


def _by_line(file: Path, characters: int) -> Iterator[_Piece]:
    """One document per line; blank lines separate."""
    for line in _lines(file, _bytes(characters)):
        raw = line.raw.strip()
        if raw or line.cut:
            yield _piece(f":{line.number}", raw, line.position, cut=line.cut, characters=characters)


def _by_paragraph(file: Path, characters: int) -> Iterator[_Piece]:
    """One document per paragraph; blank lines separate."""
    most = _bytes(characters)
    start, position, gathered, cut = 1, 0, bytearray(), False
    for line in _lines(file, most):
        position = line.position
        if line.raw.strip() or line.cut:
            start = start if gathered else line.number
            cut = cut or line.cut or len(gathered) + len(line.raw) > most
            gathered += line.raw[: most - len(gathered)]
        elif gathered:
            yield _piece(f":{start}", bytes(gathered).strip(), position, cut=cut, characters=characters)
            gathered, cut = bytearray(), False
    if gathered:
        yield _piece(f":{start}", bytes(gathered).strip(), position, cut=cut, characters=characters)


def _by_file(file: Path, characters: int) -> Iterator[_Piece]:
    """The file as one document."""
    most = _bytes(characters)
    size = file.stat().st_size
    with file.open("rb") as opened:
        raw = opened.read(most)
    yield _piece("", raw.strip(), size, cut=size > most, characters=characters)


_UNITS: dict[str, Callable[[Path, int], Iterator[_Piece]]] = {
    "line": _by_line,
    "paragraph": _by_paragraph,
    "file": _by_file,
}


def _jsonl(file: Path, field: str, characters: int) -> Iterator[_Piece]:
    for line in _lines(file, LINE):
        raw = line.raw.strip()
        if not raw and not line.cut:
            continue
        place, position = f":{line.number}", line.position
        found = _field(raw, field) if not line.cut else (None, f"a line of more than {LINE:,} bytes")
        if found[0] is None:
            yield _Piece(place, "", found[1], position)
        else:
            yield _shortened(place, found[0], position, cut=False, characters=characters)


def _field(raw: bytes, field: str) -> tuple[str | None, str]:
    """The text in a line of JSON, or what is wrong with it."""
    try:
        entry = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        return None, f"not UTF-8: {error.reason} at byte {error.start}"
    except (ValueError, RecursionError) as error:  # ValueError: also a number of too many digits
        return None, f"not JSON: {error}"
    value = entry.get(field) if isinstance(entry, dict) else None
    return (value, "") if isinstance(value, str) else (None, f"no text in field {field!r}")


# ---- Parquet -----------------------------------------------------------------------------------


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() == ".parquet"


def _parquet(file: Path, field: str, characters: int) -> Iterator[_Piece]:
    row = 0
    with _opened(file) as opened:
        names = opened.schema_arrow.names
    if field not in names:
        raise DataError(
            "A Parquet file needs a column of texts (columns = {columns}).",
            got="field = {field!r} in {file}",
            do="Name the column with --field.",
            columns=", ".join(names),
            field=field,
            file=file,
        )
    with _opened(file, as_dictionary=field) as opened:
        for column in _columns(file, opened, field):
            # One by one: a text that a dictionary holds once may be in every row.
            for index in range(len(column)):
                row += 1
                value = column[index].as_py()
                if isinstance(value, str):
                    yield _shortened(f":{row}", value, row, cut=False, characters=characters)
                else:
                    yield _Piece(f":{row}", "", f"no text in {field!r}", row)


def _columns(file: Path, opened: Any, field: str) -> Iterator[Any]:
    """The column of texts, some rows at a time."""
    try:
        for batch in opened.iter_batches(batch_size=256, columns=[field]):
            yield batch.column(0)
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise _not_parquet(file, error) from error


def _rows(file: Path) -> int:
    with _opened(file) as opened:
        return int(opened.metadata.num_rows)


def _opened(file: Path, *, as_dictionary: str | None = None) -> Any:
    """The file; a column of which may be kept as a dictionary, so that a text that repeats is there once."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise PackageError(
            "Reading and writing Parquet needs pyarrow.",
            got="an installation without it",
            do='Install it: pip install "regard[survey]".',
        ) from error
    try:
        return parquet.ParquetFile(file, read_dictionary=[as_dictionary] if as_dictionary else None)
    except KeyError:  # a column without text, such as one of lists
        return parquet.ParquetFile(file)
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise _not_parquet(file, error) from error


def _not_parquet(file: Path, error: Exception) -> DataError:
    return DataError(
        "A file that ends in .parquet must be Parquet.",
        got="{error} in {file}",
        do="Check the file.",
        error=error,
        file=file,
    )
