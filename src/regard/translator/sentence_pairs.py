"""Sentence pairs: read from a tab-separated file, converted to simplified characters, split for training.

The file is that of www.manythings.org/anki (``cmn.txt``: English, Chinese, attribution), or the same
with a header that names its columns.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import ArgumentError, DataError
from regard.translator.chinese_script import punctuated, simplified

HAN = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, order=True)
class Pair:
    """An English sentence and one translation of it.

    >>> Pair("I love you.", "我爱你。").english
    'I love you.'
    """

    english: str
    chinese: str


@dataclass(frozen=True)
class HeldOut:
    """A sentence kept out of training, with every translation that the file has of it.

    >>> HeldOut("Thanks.", ("谢谢。", "多谢。")).references[0]
    '谢谢。'
    """

    english: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class CorpusSplit:
    """What to train on, and what to measure on; no English sentence is in both.

    >>> pairs = [Pair(f"Sentence {number}.", "句子。") for number in range(9)]
    >>> found = split(pairs, held_out=2)
    >>> len(found.training), len(found.held_out)
    (7, 2)
    """

    training: tuple[Pair, ...]
    held_out: tuple[HeldOut, ...]
    validation: tuple[HeldOut, ...] = ()
    further: int = 0  # how many of the training pairs are not from the file


def read_pairs(path: str | Path) -> list[Pair]:
    """The pairs of a file, in its order, Chinese in simplified characters.

    >>> file = getfixture("tmp_path") / "cmn.txt"
    >>> _ = file.write_text("Who?\\t誰？\\tCC-BY\\n", encoding="utf-8")
    >>> read_pairs(file)
    [Pair(english='Who?', chinese='谁？')]
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(
            "Sentence pairs must be in a tab-separated file.",
            got="{path}, which is not a file",
            do="Pass, for example, cmn.txt from www.manythings.org/anki.",
            path=path,
        )
    lines = _lines(path)
    pairs = _pairs(path, lines)
    if not pairs:
        raise DataError(
            "The file needs at least one pair.", got="none in {path}", do="Pass another file.", path=path
        )
    if not any(HAN.search(pair.chinese) for pair in pairs):
        raise DataError(
            "The second column must be Chinese.",
            got="no Chinese character in {path}; the first entry is {chinese!r}",
            do="Put the columns in the order English, Chinese, attribution, or name them in a header.",
            path=path,
            chinese=pairs[0].chinese,
        )
    return _folded(pairs)


def split(
    pairs: Iterable[Pair],
    *,
    held_out: int = 1000,
    validation: int = 0,
    seed: int = 0,
    further: Iterable[Pair] = (),
) -> CorpusSplit:
    """Keep ``held_out`` and ``validation`` English sentences out of training, chosen only by ``seed``.

    Choices are made by the validation sentences; the held-out ones are for the scores at the end.

    Sentences are drawn by a hash of their text, so the order of the file does not matter. Case and
    spaces are ignored. The ``further`` pairs are trained on only, except those whose English is kept out.

    >>> pairs = [Pair("Hi.", "嗨。"), Pair("hi.", "你好。"), Pair("Who?", "谁？"), Pair("Run.", "跑。")]
    >>> corpus = split(pairs, held_out=1, seed=4)
    >>> corpus.held_out
    (HeldOut(english='Hi.', references=('你好。', '嗨。')),)
    >>> corpus.training
    (Pair(english='Run.', chinese='跑。'), Pair(english='Who?', chinese='谁？'))
    """
    groups: dict[str, list[Pair]] = {}
    for pair in sorted(set(pairs)):
        groups.setdefault(sentence_key(pair.english), []).append(pair)
    if held_out < 1 or validation < 0 or held_out + validation >= len(groups):
        raise ArgumentError(
            "Some sentences must be held out and some must remain (English sentences = {sentences}).",
            got="held_out = {held_out}, validation = {validation}",
            do="Hold out fewer, or provide more pairs.",
            sentences=len(groups),
            held_out=held_out,
            validation=validation,
        )
    drawn = sorted(groups, key=lambda sentence: _lot(sentence, seed))[: held_out + validation]
    kept_out = set(drawn)
    training = {pair for sentence, group in groups.items() if sentence not in kept_out for pair in group}
    added = {pair for pair in further if sentence_key(pair.english) not in kept_out} - training
    return CorpusSplit(
        training=tuple(sorted(training | added)),
        held_out=tuple(_held_out(groups[sentence]) for sentence in sorted(drawn[:held_out])),
        validation=tuple(_held_out(groups[sentence]) for sentence in sorted(drawn[held_out:])),
        further=len(added),
    )


def digest(pairs: Iterable[Pair]) -> str:
    """A digest of these pairs, whatever their order: a run resumes only with its own data."""
    total = hashlib.blake2b(digest_size=16)
    for pair in sorted(set(pairs)):
        total.update(f"{pair.english}\t{pair.chinese}\n".encode())
    return total.hexdigest()


def _held_out(group: Sequence[Pair]) -> HeldOut:
    return HeldOut(group[0].english, tuple(sorted({pair.chinese for pair in group})))


def sentence_key(english: str) -> str:
    """The sentence without differences of case and spaces.

    >>> sentence_key("The  Cat sat.")
    'the cat sat.'
    """
    return " ".join(english.casefold().split())


def _lot(sentence: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\t{sentence}".encode(), digest_size=16).digest()


def _lines(path: Path) -> list[str]:
    contents = path.read_bytes()
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # utf-8-sig removes the byte order mark, and the error counts from after it.
        behind = contents.removeprefix(codecs.BOM_UTF8)
        number = behind.count(b"\n", 0, error.start) + 1
        raise DataError(
            "A file of pairs must be in UTF-8.",
            got="byte {behind:#04x} in line {number} of {path}",
            do="Save it as UTF-8.",
            behind=behind[error.start],
            number=number,
            path=path,
        ) from error
    return [line.rstrip("\r") for line in text.split("\n")]


def _pairs(path: Path, lines: Sequence[str]) -> list[Pair]:
    english, chinese, first = _columns(path, lines[0])
    pairs = []
    for number, line in enumerate(lines[first:], first + 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) <= max(english, chinese) or not cells[english] or not cells[chinese]:
            raise DataError(
                "Every line needs an English and a Chinese sentence, separated by a tab.",
                got="{line!r} in line {number} of {path}",
                do="Complete or remove the line.",
                line=line[:60],
                number=number,
                path=path,
            )
        pairs.append(Pair(cells[english], cells[chinese]))
    return pairs


def _columns(path: Path, line: str) -> tuple[int, int, int]:
    """The columns of the two sentences, and how many lines come before the first pair."""
    names = [cell.strip().lower() for cell in line.split("\t")]
    if not {"english", "chinese"} & set(names):
        return 0, 1, 0
    if "english" not in names or "chinese" not in names:
        raise DataError(
            "A header must name the columns english and chinese.",
            got="{names} in line 1 of {path}",
            do="Add the missing column.",
            names=", ".join(names),
            path=path,
        )
    return names.index("english"), names.index("chinese"), 1


def _folded(pairs: Sequence[Pair]) -> list[Pair]:
    """The same pairs as they are printed on the mainland; half of the file is in traditional characters."""
    folded = simplified([pair.chinese for pair in pairs])
    return [Pair(pair.english, punctuated(chinese)) for pair, chinese in zip(pairs, folded, strict=True)]
