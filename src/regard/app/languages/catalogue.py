"""Click's errors in Chinese: a message is recognised by its English template and said again in Chinese.

The most specific template wins, which is the one with the most letters of its own. What nobody has
translated, a message of the operating system, stays as it is.

>>> say_in_chinese("Missing option 'model'.")
"缺少选项 'model'。"
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache

from regard.languages import TEXTS

FILES = (TEXTS / "zh" / "click.json",)

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
