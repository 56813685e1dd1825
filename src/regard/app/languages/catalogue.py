"""Errors in Chinese: a message is recognised by its English template and said again in the other language.

``zh.json`` has every template of regard's own errors, ``others.json`` those of click and of the system.
The most specific template wins, which is the one with the most letters of its own. What nobody has
translated, a message of the operating system, stays as it is.

>>> say_in_chinese("The text has at most 64 words, so that every number can be shown.")
'文本最多 64 个词，这样才能显示每一个数。'
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from regard.errors import RegardError

FILES = tuple(Path(__file__).parent / name for name in ("zh.json", "others.json"))

_PLACE = re.compile(r"\{(\d+)\}")
_QUOTED = re.compile(r"""(['"]).*\1""", re.DOTALL)
_SENTENCES = re.compile(r"\. [A-Z]")
_FEWEST = 4
"""What stands in a place of a template is translated by templates with at least so many letters: weaker
ones, such as ``{0} in {1}``, would change what the user wrote."""


@dataclass(frozen=True)
class Entry:
    """A template, and what it is in Chinese."""

    english: str
    chinese: str
    pattern: re.Pattern[str]
    own: int  # signs that are not in places

    @property
    def letters(self) -> int:
        """How many letters of the template are its own."""
        return len(re.sub(r"[^A-Za-z]", "", _PLACE.sub("", self.english)))


@cache
def entries() -> tuple[Entry, ...]:
    """All templates, the most specific first."""
    found = []
    for file in FILES:
        for english, chinese in json.loads(file.read_text(encoding="utf-8")).items():
            texts = _PLACE.split(english)[::2]
            pattern = re.compile("(.*?)".join(map(re.escape, texts)), re.DOTALL)
            found.append(Entry(english, chinese, pattern, sum(map(len, texts))))
    return tuple(sorted(found, key=lambda entry: -entry.own))


def say_in_chinese(text: str, fewest: int = 0) -> str:
    """A part of a message in Chinese; as it is if no template fits."""
    if _QUOTED.fullmatch(text):
        return text  # what the user wrote
    entry = _entry(text, fewest)
    found = None if entry is None else entry.pattern.fullmatch(text)
    if entry is None or found is None:
        return text
    places = [say_in_chinese(place, _FEWEST) for place in found.groups()]
    return _PLACE.sub(lambda place: places[int(place[1])], entry.chinese)


def _entry(text: str, fewest: int = 0) -> Entry | None:
    if _SENTENCES.search(text):
        fewest = max(fewest, _FEWEST)  # sentences of another library, which a weak template would tear apart
    fitting = (entry for entry in entries() if entry.letters >= fewest and entry.pattern.fullmatch(text))
    return next(fitting, None)


def error_in_chinese(error: RegardError) -> str:
    """An error with its three parts in Chinese; a mask text keeps the mark under its character.

    >>> error_in_chinese(RegardError("A text has at least one word.", got="''", do="Shorten it."))
    "文本至少要有一个词。实际为：''。请缩短。"
    """
    first, *marked = error.must.split("\n")
    must, got, do = first, error.got, error.do
    entry = _entry(first)
    if " Got " in first and (entry is None or " Got " not in entry.english):
        must, got, do = _parts(first)  # the mask reader hands on the whole message of another error
    middle = f"实际为：{say_in_chinese(got.rstrip('.'))}。" if got else ""
    said = say_in_chinese(must) + middle + (say_in_chinese(do) if do else "")
    return "\n".join([said, *marked])


def _parts(message: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"(.*?\.) Got (.*?)\.(?: ([A-Z].*))?", message)
    return (found[1], found[2], found[3] or "") if found else (message, "", "")
